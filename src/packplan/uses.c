/*
 * uses.c - read token records, and count the sequences by their use of the
 * capacity and of each budget.
 *
 * SPDX-License-Identifier: MIT
 *
 * A packer checks the budgets against the schema and writes the error messages,
 * so both are the same as in packstream.  It packs nothing: sequences that fit
 * are rejected, because it needs all ids.
 */

#include "packplan/uses.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/message.h"
#include "cli/progress.h"
#include "common/bytes.h"
#include "files/files.h"

#define MIN_ITEMS 4096

typedef struct reading {
    uses_table *to;
    const conf *conf;
    const char *name; /* of the current file */
    int file;         /* its index */
    int fd;           /* -1: none */
    ps_token_reader *reader;
    ps_packer *packer;
    uint32_t longest; /* most tokens that a pack holds of one sequence */
    uint32_t piece;   /* tokens of a piece that is not the last */
} reading;

/* ---------------------------------------------------------------------
 * The table
 */

static int compare(const void *a, const void *b)
{
    const ps_uses *x = a;
    const ps_uses *y = b;

    for (int k = 0; k < PS_MAX_RESOURCES; k++)
        if (x->uses[k] != y->uses[k])
            return x->uses[k] < y->uses[k] ? -1 : 1;
    return 0;
}

/* Sorts the items and merges equal ones. */
static void settle(uses_table *u)
{
    size_t n = 0;

    if (u->n_sorted == u->n)
        return;
    qsort(u->items, u->n, sizeof *u->items, compare);
    for (size_t i = 1; i < u->n; i++)
        if (compare(&u->items[i], &u->items[n]) == 0)
            u->items[n].count += u->items[i].count;
        else
            u->items[++n] = u->items[i];
    u->n = n + 1;
    u->n_sorted = u->n;
}

/* Makes room for an item.  Grows unless merging frees half of the array. */
static bool reserve(uses_table *u)
{
    size_t capacity = u->capacity == 0 ? MIN_ITEMS : u->capacity * 2;
    ps_uses *items;

    if (u->n < u->capacity)
        return true;
    settle(u);
    if (u->n < u->capacity / 2)
        return true;
    if (capacity > SIZE_MAX / 2 / sizeof *items)
        return false;
    items = realloc(u->items, capacity * sizeof *items);
    if (items == NULL)
        return false;
    u->items = items;
    u->capacity = capacity;
    return true;
}

/* Adds `count` >= 1 equal sequences or pieces of `n_tok` tokens. */
static int add(uses_table *u, const ps_uses *of, uint32_t n_tok)
{
    if (!reserve(u))
        return message_memory();
    for (uint32_t k = 0; k < u->n_limits; k++) {
        const uint64_t most = (uint64_t)INT64_MAX - u->totals[k];

        if (of->uses[k] > 0 && of->count > most / of->uses[k]) {
            message_error("%s: exceeds 2^63 - 1 in total", u->names[k]);
            return STATUS_DATA;
        }
        u->totals[k] += of->count * of->uses[k];
    }
    u->sequences += of->count;
    u->tokens += of->count * n_tok;
    u->items[u->n++] = *of;
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * Sequences
 */

static const ps_budget *budget_of(const reading *rd, uint32_t i)
{
    return &ps_packer_info(rd->packer)->budgets[i];
}

/* Value in a channel, or length of a list.  A negative value is huge. */
static uint64_t value_of(const ps_schema *schema, uint32_t channel,
                         const ps_sequence *sequence)
{
    const ps_channel *c = &schema->channels[channel];
    const bool is_list = c->kind == PS_LIST;
    const uint64_t value = load_low(
        sequence->payload +
            ps_payload_offset(schema, channel, sequence->n_tok),
        is_list ? 4 : ps_type_bytes(c->type));

    return !is_list && c->type == PS_I32 && value > INT32_MAX ? UINT64_MAX
                                                              : value;
}

/*
 * Sets the uses of budgets other than attention.  Returns false if one is
 * exceeded.
 */
static bool find_uses(const reading *rd, const ps_sequence *sequence,
                      ps_uses *of)
{
    const ps_schema *schema = ps_token_reader_schema(rd->reader);
    bool fits = true;

    for (uint32_t k = 1; k < rd->to->n_limits; k++) {
        const ps_budget *budget = budget_of(rd, k - 1);

        if (budget->channel == PS_BUDGET_ATTENTION)
            continue;
        of->uses[k] = value_of(schema, budget->channel, sequence);
        fits = fits && of->uses[k] <= budget->limit;
    }
    return fits;
}

/* Adds `count` sequences or pieces of `n_tok` tokens, with the other uses. */
static int add_pieces(const reading *rd, const ps_uses *of, uint32_t n_tok,
                      uint64_t count)
{
    const uint32_t align = rd->conf->align;
    ps_uses piece = *of;

    piece.count = count;
    piece.uses[0] = ((uint64_t)n_tok + align - 1) / align * align;
    for (uint32_t k = 1; k < rd->to->n_limits; k++)
        if (budget_of(rd, k - 1)->channel == PS_BUDGET_ATTENTION)
            piece.uses[k] = (uint64_t)n_tok * n_tok;
    return add(rd->to, &piece, n_tok);
}

/* Prints the packer's error for a sequence that does not fit a pack. */
static int refuse(const reading *rd, const ps_sequence *sequence)
{
    ps_error err = {.code = PS_OK};

    if (ps_packer_put(rd->packer, sequence, &err) != PS_ERR_RANGE &&
        err.code != PS_ERR_OVERLONG)
        return message_failure(files_input_name(rd->name), &err);
    message_error("%s: %s: use --overlong=%s", files_input_name(rd->name),
                  err.text,
                  err.code == PS_ERR_RANGE ? "drop or a larger --budget"
                                           : "split, truncate or drop");
    return STATUS_DATA;
}

/* Adds a sequence that does not fit a pack, as packstream would. */
static int add_overlong(const reading *rd, const ps_sequence *sequence,
                        const ps_uses *of, bool fits)
{
    const uint32_t n_tok = sequence->n_tok;
    const ps_overlong overlong = rd->conf->overlong;
    uint32_t pieces;
    int status;

    if (overlong == PS_OVERLONG_ERROR ||
        (!fits && overlong != PS_OVERLONG_DROP))
        return refuse(rd, sequence);
    rd->to->long_sequences++;
    if (overlong == PS_OVERLONG_DROP) {
        rd->to->lost_tokens += n_tok;
        return STATUS_OK;
    }
    if (overlong == PS_OVERLONG_TRUNCATE) {
        rd->to->lost_tokens += n_tok - rd->piece;
        return add_pieces(rd, of, rd->piece, 1);
    }
    pieces = (n_tok - rd->longest - 1) / rd->piece + 1;
    status = add_pieces(rd, of, rd->piece, pieces);
    if (status == STATUS_OK && n_tok > pieces * rd->piece)
        status = add_pieces(rd, of, n_tok - pieces * rd->piece, 1);
    return status;
}

static int add_sequence(const reading *rd, const ps_sequence *sequence)
{
    ps_uses of = {.count = 1};
    const bool fits = find_uses(rd, sequence, &of);
    const int status = fits && sequence->n_tok <= rd->longest
                           ? add_pieces(rd, &of, sequence->n_tok, 1)
                           : add_overlong(rd, sequence, &of, fits);
    ps_error err;

    if (status == STATUS_OK &&
        ps_packer_reject(rd->packer, sequence, PS_REJECT_OVERLONG, &err) !=
            PS_OK)
        return message_failure(files_input_name(rd->name), &err);
    return status;
}

/* ---------------------------------------------------------------------
 * Files
 */

/* The output of the packer, which consists of a header at most. */
static ps_result discard(void *context, const void *bytes, size_t n,
                         ps_error *err)
{
    (void)context;
    (void)bytes;
    (void)n;
    (void)err;
    return PS_OK;
}

/* Opens the packer, and names the resources. */
static int open_packer(reading *rd)
{
    const conf *c = rd->conf;
    const ps_schema *schema = ps_token_reader_schema(rd->reader);
    const ps_packer_options options = {
        .capacity = c->options.capacity,
        .depth = c->depths[0] > PS_MAX_DEPTH ? 0 : c->depths[0],
        .overlong = c->overlong,
        .align = c->align,
        .budgets = c->budgets.of,
        .n_budgets = c->budgets.n,
        .write = discard};
    uses_table *u = rd->to;
    const ps_pack_info *info;
    ps_error err;

    if (ps_packer_open(&rd->packer, -1, schema, &options, &err) != PS_OK)
        return message_failure(files_input_name(rd->name), &err);
    info = ps_packer_info(rd->packer);
    u->n_limits = 1 + info->n_budgets;
    u->limits[0] = rd->longest = info->capacity;
    (void)strcpy(u->names[0], "tokens");
    for (uint32_t i = 0; i < info->n_budgets; i++) {
        const ps_budget *budget = &info->budgets[i];
        const bool squares = budget->channel == PS_BUDGET_ATTENTION;

        u->limits[i + 1] = budget->limit;
        (void)snprintf(u->names[i + 1], sizeof u->names[0], "%s",
                       squares ? PS_ATTENTION
                               : schema->channels[budget->channel].name);
        if (squares && sqrt((double)budget->limit) < rd->longest)
            rd->longest = (uint32_t)sqrt((double)budget->limit);
    }
    rd->piece = rd->longest - rd->longest % c->align;
    return STATUS_OK;
}

/* Reports a file of another type. */
static int not_records(const reading *rd, const char *what)
{
    message_error("%s: %s: --budget needs framed token records, because a "
                  "histogram has only lengths",
                  files_input_name(rd->name), what);
    return STATUS_DATA;
}

/* Opens the first file, or the next one with the same schema. */
static int open_file(reading *rd)
{
    const int before = rd->fd;
    const bool is_first = rd->reader == NULL;
    ps_error err;
    ps_result r;

    rd->name = rd->conf->names[rd->file];
    rd->fd = files_open_input(rd->name);
    if (rd->fd < 0) {
        rd->fd = before;
        return STATUS_FAILURE;
    }
    r = is_first ? ps_token_reader_open(&rd->reader, rd->fd, PS_U16, NULL, &err)
                 : ps_token_reader_append(rd->reader, rd->fd, &err);
    if (before >= 0)
        files_close_input(before);
    if (r == PS_ERR_MAGIC)
        return not_records(rd, err.text);
    if (r != PS_OK)
        return message_failure(files_input_name(rd->name), &err);
    if (!ps_token_reader_schema(rd->reader)->framed)
        return not_records(rd, "raw records, or not token records");
    return is_first ? open_packer(rd) : STATUS_OK;
}

/* Reads the rest of the current file. */
static int read_file(reading *rd, progress *live)
{
    ps_sequence sequence;
    int status = STATUS_OK;
    ps_error err;

    while (status == STATUS_OK) {
        const ps_result r =
            ps_token_reader_next(rd->reader, UINT32_MAX, &sequence, &err);

        if (r == PS_END)
            break;
        if (r != PS_OK)
            return message_failure(files_input_name(rd->name), &err);
        status = add_sequence(rd, &sequence);
        if (progress_due(live))
            progress_show(live, &(progress_figures){
                .bytes = ps_token_reader_offset(rd->reader),
                .sequences = rd->to->sequences,
                .tokens = rd->to->tokens,
                .input = rd->file,
                .fd = rd->fd});
    }
    return status;
}

int uses_read(uses_table *u, const conf *c)
{
    reading rd = {.to = u, .conf = c, .fd = -1};
    int status = STATUS_OK;
    progress live;

    progress_start(&live, !c->quiet);
    progress_inputs(&live, c->names, c->n_names);
    for (; status == STATUS_OK && rd.file < c->n_names; rd.file++) {
        status = open_file(&rd);
        if (status == STATUS_OK)
            status = read_file(&rd, &live);
    }
    progress_end(&live);
    if (rd.fd >= 0)
        files_close_input(rd.fd);
    ps_packer_free(rd.packer);
    ps_token_reader_free(rd.reader);
    settle(u);
    return status;
}

void uses_free(uses_table *u)
{
    free(u->items);
}
