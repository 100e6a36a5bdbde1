/*
 * fill.c - the arrays of a batch, filled pack by pack.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fill.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "channel.h"
#include "draw.h"
#include "fail.h"
#include "masking.h"

/* The channels of the stream, NULL where it lacks one. */
typedef struct fill_fields {
    const ps_field *tokens;
    const ps_field *types;
    const ps_field *labels;
    const ps_field *nsp;
} fill_fields;

struct fill {
    feed_options options;
    const ps_pack_info *info;
    fill_fields fields;
    masking masking;
    uint32_t vocab_size;
    feed_counts counts;
    bert_batch batch; /* shows the arrays below */

    uint32_t room; /* packs that they have room for */
    /* A row each. */
    int32_t *token, *type, *position, *segment, *label;
    int32_t *mlm_row, *mlm_label, *mlm_seq;
    uint32_t *places;
    real *mlm_weight;
    /* A sequence each, and of `cu` a span each. */
    int32_t *cu, *cls_row, *nsp_label, *masked;
    real *nsp_weight;
};

fill *fill_open(const feed_options *options)
{
    fill *f = calloc(1, sizeof *f);

    if (f == NULL)
        return NULL;
    f->options = *options;
    f->vocab_size = options->vocab_size;
    return f;
}

void fill_free(fill *f)
{
    if (f == NULL)
        return;
    free(f->token);
    free(f->type);
    free(f->position);
    free(f->segment);
    free(f->label);
    free(f->mlm_row);
    free(f->mlm_label);
    free(f->mlm_seq);
    free(f->places);
    free(f->mlm_weight);
    free(f->cu);
    free(f->cls_row);
    free(f->nsp_label);
    free(f->masked);
    free(f->nsp_weight);
    free(f);
}

/* ---- Streams ---- */

static ps_result find(const ps_pack_info *info, const char *name,
                      ps_kind kind, const ps_field **field, ps_error *err)
{
    *field = ps_pack_field(info, name);
    if (*field == NULL || ((*field)->channel.kind == kind &&
                           channel_is_whole((*field)->channel.type)))
        return PS_OK;
    return fail(err, PS_ERR_ARGUMENT,
                     "its channel %s is not a whole number for each %s", name,
                     kind == PS_PER_TOKEN ? "token" : "sequence");
}

static ps_result find_fields(fill *f, const ps_pack_info *info, ps_error *err)
{
    fill_fields *fields = &f->fields;
    ps_result r;

    fields->tokens = &info->fields[info->tokens_field];
    r = find(info, "token_type_ids", PS_PER_TOKEN, &fields->types, err);
    if (r == PS_OK)
        r = find(info, "labels", PS_PER_TOKEN, &fields->labels, err);
    if (r == PS_OK)
        r = find(info, "next_sentence_label", PS_PER_SEQUENCE, &fields->nsp,
                 err);
    if (r == PS_OK && fields->labels != NULL &&
        info->schema.labels == PS_LABELS_SHIFTED)
        r = fail(err, PS_ERR_ARGUMENT,
                      "its labels are for the token behind them, not their "
                      "own as masked tokens want it");
    return r;
}

/* Tokens can only be masked here if the stream says which one is [MASK]. */
static ps_result use_masking(fill *f, const ps_schema *schema, ps_error *err)
{
    f->masking = (masking){.share = f->options.mask_share,
                           .vocab_size = f->vocab_size,
                           .mask_id = schema->special[PS_MASK],
                           .n_special = MASKING_SPECIALS};
    memcpy(f->masking.special, schema->special, sizeof f->masking.special);
    if (f->masking.mask_id < f->vocab_size)
        return PS_OK;
    return fail(err, PS_ERR_ARGUMENT,
                     "it has no labels, and declares no mask token below the "
                     "vocabulary of %" PRIu32, f->vocab_size);
}

ps_result fill_use(fill *f, const ps_pack_info *info, ps_error *err)
{
    ps_result r;

    if (f->info != NULL && f->batch.capacity != info->capacity)
        return fail(err, PS_ERR_ARGUMENT,
                         "its packs are of %" PRIu32 " tokens, those before "
                         "of %" PRIu32, info->capacity, f->batch.capacity);
    if (f->vocab_size == 0)
        f->vocab_size = info->schema.vocab_size;
    if (f->vocab_size == 0 || f->vocab_size > INT32_MAX)
        return fail(err, PS_ERR_ARGUMENT,
                         "it does not declare how large its vocabulary is");
    f->info = info;
    f->batch.capacity = info->capacity;
    r = find_fields(f, info, err);
    if (r == PS_OK && f->fields.labels == NULL)
        r = use_masking(f, &info->schema, err);
    return r;
}

uint32_t fill_vocab(const fill *f)
{
    return f->vocab_size;
}

/* ---- Room ---- */

static bool grow(void *array, uint64_t count, size_t size)
{
    void *old, *more;

    if (count > SIZE_MAX / size)
        return false;
    memcpy(&old, array, sizeof old);
    more = realloc(old, (size_t)count * size);
    if (more == NULL)
        return false;
    memcpy(array, &more, sizeof more);
    return true;
}

static bool grow_rows(fill *f, uint64_t rows)
{
    return grow(&f->token, rows, sizeof *f->token) &&
           grow(&f->type, rows, sizeof *f->type) &&
           grow(&f->position, rows, sizeof *f->position) &&
           grow(&f->segment, rows, sizeof *f->segment) &&
           grow(&f->label, rows, sizeof *f->label) &&
           grow(&f->mlm_row, rows, sizeof *f->mlm_row) &&
           grow(&f->mlm_label, rows, sizeof *f->mlm_label) &&
           grow(&f->mlm_seq, rows, sizeof *f->mlm_seq) &&
           grow(&f->places, rows, sizeof *f->places) &&
           grow(&f->mlm_weight, rows, sizeof *f->mlm_weight);
}

/* A pack has a ghost besides its sequences, and a batch the end of `cu`. */
static bool grow_sequences(fill *f, uint64_t packs, uint64_t each)
{
    return grow(&f->cu, packs * (each + 1) + 1, sizeof *f->cu) &&
           grow(&f->cls_row, packs * each, sizeof *f->cls_row) &&
           grow(&f->nsp_label, packs * each, sizeof *f->nsp_label) &&
           grow(&f->masked, packs * each, sizeof *f->masked) &&
           grow(&f->nsp_weight, packs * each, sizeof *f->nsp_weight);
}

/* Room for twice as many packs, or one. */
static ps_result make_room(fill *f, ps_error *err)
{
    uint64_t packs = f->room == 0 ? 1 : (uint64_t)f->room * 2;
    uint64_t capacity = f->batch.capacity;

    if (packs * capacity > INT32_MAX)
        return fail(err, PS_ERR_ARGUMENT,
                         "batches of so many tokens are too large");
    if (!grow_rows(f, packs * capacity) ||
        !grow_sequences(f, packs, capacity))
        return fail(err, PS_ERR_MEMORY, "no memory for a batch");
    f->room = (uint32_t)packs;
    return PS_OK;
}

/* ---- Packs ---- */

/* A number of a channel, to be from `least` to below `end`. */
static ps_result take(const ps_field *field, const ps_pack *pack, uint32_t i,
                      int64_t least, int64_t end, int32_t *to, ps_error *err)
{
    int64_t value = channel_at(field, pack->record, i);

    if (value < least || value >= end)
        return fail(err, PS_ERR_RANGE,
                         "pack %" PRIu64 ": %s of %" PRId64 ", which is not "
                         "from %" PRId64 " to %" PRId64, pack->index,
                         field->channel.name, value, least, end - 1);
    *to = (int32_t)value;
    return PS_OK;
}

/* Tokens and types of a sequence, in rows from `row` on. */
static ps_result take_tokens(fill *f, const ps_pack *pack,
                             const ps_piece *piece, uint32_t row,
                             ps_error *err)
{
    const fill_fields *fields = &f->fields;
    ps_result r = PS_OK;

    for (uint32_t i = 0; i < piece->n_tok && r == PS_OK; i++) {
        uint32_t at = piece->begin + i;

        f->position[row + i] = (int32_t)i;
        f->type[row + i] = 0;
        r = take(fields->tokens, pack, at, 0, f->vocab_size,
                 &f->token[row + i], err);
        if (r == PS_OK && fields->types != NULL)
            r = take(fields->types, pack, at, 0, f->options.types,
                     &f->type[row + i], err);
    }
    return r;
}

static ps_result take_labels(fill *f, const ps_pack *pack,
                             const ps_piece *piece, uint32_t row,
                             ps_error *err)
{
    ps_result r = PS_OK;

    for (uint32_t i = 0; i < piece->n_tok && r == PS_OK; i++) {
        int32_t *label = &f->label[row + i];

        *label = MASKING_NONE;
        if (channel_at(f->fields.labels, pack->record, piece->begin + i) !=
            MASKING_NONE)
            r = take(f->fields.labels, pack, piece->begin + i, 0,
                     f->vocab_size, label, err);
    }
    return r;
}

/* Lists the masked tokens of the sequence that comes next. */
static void list_masked(fill *f, uint32_t row, uint32_t n_tok)
{
    bert_batch *b = &f->batch;
    uint32_t before = b->n_mlm;

    for (uint32_t i = row; i < row + n_tok; i++) {
        if (f->label[i] == MASKING_NONE)
            continue;
        f->mlm_row[b->n_mlm] = (int32_t)i;
        f->mlm_label[b->n_mlm] = f->label[i];
        f->mlm_seq[b->n_mlm] = (int32_t)b->n_seq;
        b->n_mlm++;
    }
    f->masked[b->n_seq] = (int32_t)(b->n_mlm - before);
}

static void add_span(fill *f, uint32_t row, uint32_t n)
{
    bert_batch *b = &f->batch;

    f->cu[b->n_spans++] = (int32_t)row;
    if (b->max_span < n)
        b->max_span = n;
}

static ps_result take_sequence(fill *f, const ps_pack *pack, uint32_t number,
                               uint32_t row, uint64_t key, ps_error *err)
{
    ps_piece piece = ps_pack_piece(f->info, pack, number);
    bert_batch *b = &f->batch;
    ps_result r;

    row += piece.begin;
    if (piece.n_tok != piece.seq_len || piece.n_tok == 0)
        return fail(err, PS_ERR_ARGUMENT,
                         "pack %" PRIu64 " holds a piece of sequence %" PRIu64
                         ", and BERT learns from whole ones", pack->index,
                         piece.id);
    r = take_tokens(f, pack, &piece, row, err);
    if (r == PS_OK && f->fields.labels != NULL)
        r = take_labels(f, pack, &piece, row, err);
    else if (r == PS_OK)
        (void)masking_apply(&f->masking, draw_mix(key, piece.id), piece.n_tok,
                            f->token + row, f->label + row, f->places);
    f->nsp_label[b->n_seq] = -1;
    if (r == PS_OK && f->fields.nsp != NULL)
        r = take(f->fields.nsp, pack, number, -1, 2,
                 &f->nsp_label[b->n_seq], err);
    if (r != PS_OK)
        return r;
    for (uint32_t i = 0; i < piece.n_tok; i++)
        f->segment[row + i] = (int32_t)number + 1;
    list_masked(f, row, piece.n_tok);
    add_span(f, row, piece.n_tok);
    f->cls_row[b->n_seq++] = (int32_t)row;
    return PS_OK;
}

/* What stands in the padding is nobody's business, so we write it anew. */
static void add_ghost(fill *f, uint32_t row, uint32_t n)
{
    uint32_t pad = f->info->pad_id < f->vocab_size ? f->info->pad_id : 0;

    for (uint32_t i = 0; i < n; i++) {
        f->token[row + i] = (int32_t)pad;
        f->type[row + i] = 0;
        f->position[row + i] = (int32_t)i;
        f->segment[row + i] = 0;
    }
    if (n > 0)
        add_span(f, row, n);
}

void fill_begin(fill *f)
{
    f->batch = (bert_batch){.capacity = f->batch.capacity};
    f->counts = (feed_counts){0};
}

ps_result fill_put(fill *f, const ps_pack *pack, uint64_t key, ps_error *err)
{
    bert_batch *b = &f->batch;
    ps_result r = PS_OK;

    if (b->n_packs == f->room)
        r = make_room(f, err);
    for (uint32_t i = 0; i < pack->n_seq && r == PS_OK; i++)
        r = take_sequence(f, pack, i, b->n_rows, key, err);
    if (r != PS_OK)
        return r;
    add_ghost(f, b->n_rows + pack->n_tok, b->capacity - pack->n_tok);
    b->n_rows += b->capacity;
    b->n_packs++;
    f->counts.tokens += pack->n_tok;
    f->counts.packs++;
    f->counts.sequences += pack->n_seq;
    return PS_OK;
}

/* ---- Weights ---- */

static void weigh_tokens(fill *f)
{
    const bert_batch *b = &f->batch;

    for (uint32_t i = 0; i < b->n_mlm; i++) {
        double among = b->n_mlm;

        if (f->options.loss == FEED_PER_SEQUENCE)
            among = (double)f->masked[f->mlm_seq[i]] * (double)b->n_seq;
        f->mlm_weight[i] = (real)(1 / among);
    }
}

static void weigh_sequences(fill *f)
{
    const bert_batch *b = &f->batch;
    uint32_t labelled = 0;

    for (uint32_t i = 0; i < b->n_seq; i++)
        labelled += f->nsp_label[i] >= 0;
    for (uint32_t i = 0; i < b->n_seq; i++)
        f->nsp_weight[i] =
            (real)(f->nsp_label[i] < 0 ? 0 : 1 / (double)labelled);
}

void fill_end(fill *f)
{
    bert_batch *b = &f->batch;

    weigh_tokens(f);
    weigh_sequences(f);
    if (b->n_packs > 0)
        f->cu[b->n_spans] = (int32_t)b->n_rows;
    b->token = f->token;
    b->type = f->type;
    b->position = f->position;
    b->segment = f->segment;
    b->cu = f->cu;
    b->cls_row = f->cls_row;
    b->nsp_label = f->nsp_label;
    b->nsp_weight = f->nsp_weight;
    b->mlm_row = f->mlm_row;
    b->mlm_label = f->mlm_label;
    b->mlm_seq = f->mlm_seq;
    b->mlm_weight = f->mlm_weight;
}

const bert_batch *fill_batch(const fill *f)
{
    return &f->batch;
}

feed_counts fill_count(const fill *f)
{
    return f->counts;
}
