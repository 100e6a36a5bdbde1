/*
 * batch.c - the packs of a global batch, and their assignment to ranks.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packdeal/batch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/message.h"
#include "files/files.h"

/* Maximum memory for packs from pipes and token records, in bytes. */
#define HELD_MAX (UINT64_C(4) << 30)

/* Initial memory for token records, in bytes. */
#define LEAST_ROOM (UINT64_C(1) << 20)

static bool fail_memory(batch *b)
{
    b->status = message_memory();
    return false;
}

bool batch_open(batch *b, const conf *c, bool keep)
{
    ps_error err;

    *b = (batch){.conf = c, .most = c->ranks * c->per_rank, .keep = keep};
    b->packs = calloc(b->most, sizeof *b->packs);
    b->ranks = calloc(b->most, sizeof *b->ranks);
    b->first = calloc(c->ranks, sizeof *b->first);
    b->next = calloc(b->most, sizeof *b->next);
    b->costs = calloc(b->most, sizeof *b->costs);
    b->sums = calloc(c->ranks, sizeof *b->sums);
    if (b->packs == NULL || b->ranks == NULL || b->first == NULL ||
        b->next == NULL || b->costs == NULL || b->sums == NULL)
        return fail_memory(b);
    if (c->window > 1 && !window_open(&b->window, c))
        return fail_memory(b);
    if (ps_deal_open(&b->deal, c->ranks, c->per_rank, &err) != PS_OK) {
        b->status = message_failure("-n and -b", &err);
        return false;
    }
    return true;
}

void batch_close(batch *b)
{
    free(b->packs);
    free(b->ranks);
    free(b->first);
    free(b->next);
    free(b->costs);
    free(b->sums);
    free(b->held);
    ps_deal_free(b->deal);
    window_close(&b->window);
}

bool batch_suffices(const conf *c, const input *in, uint64_t n_packs)
{
    const uint64_t whole = (uint64_t)c->ranks * c->per_rank;
    const char *what = in->has_tokens ? "sequences" : "packs";

    if (n_packs >= whole || (c->last != CONF_DROP && n_packs >= c->ranks))
        return true;
    if (c->last == CONF_DROP)
        message_error("%" PRIu64 " %s do not fill a step of %" PRIu64
                      ", so --last=drop would drop all of them",
                      n_packs, what, whole);
    else
        message_error("too few %s for %" PRIu32 " ranks: %" PRIu64,
                      what, c->ranks, n_packs);
    return false;
}

bool batch_has_start(const conf *c, uint64_t steps)
{
    if (c->start < steps)
        return true;
    message_error("--%s=%" PRIu64 ": out of range: the last step is "
                  "%" PRIu64, c->what == CONF_FIND ? "find" : "start", c->start,
                  steps - 1);
    return false;
}

/* ---- Reading ---- */

static bool fail_room(batch *b, const input *in, uint64_t bytes)
{
    const char *name = files_input_name(in->file->name);

    if (in->has_tokens)
        message_error("%s: the sequences of a step or window take more than "
                      "%" PRIu64 " bytes", name, HELD_MAX);
    else
        message_error("%s: a step of %" PRIu32 " packs takes %" PRIu64
                      " bytes; if the input is not a regular file, the limit "
                      "is %" PRIu64, name, b->most, bytes, HELD_MAX);
    b->status = STATUS_DATA;
    return false;
}

/*
 * Appends a copy of the row and the sequence rows of a pack to b->held, since
 * they are valid only until the next read.  pack.offset is the position of the
 * copy until all packs have been read.
 */
static bool keep_pack(batch *b, input_pack *pack, const input *in)
{
    const size_t more = in->has_tokens ? 0
                                       : (size_t)pack->pack.n_seq *
                                             in->info.seq_bytes;
    const uint64_t end = b->kept + pack->bytes + more;
    uint64_t room = b->room;
    unsigned char *held;

    if (pack->pack.row == NULL || !b->keep)
        return true;
    if (room == 0)
        room = in->has_tokens ? LEAST_ROOM : (uint64_t)b->most * pack->bytes;
    /* If the rows of a step cannot be held, fail at the first pack. */
    if (end > HELD_MAX || room > HELD_MAX)
        return fail_room(b, in, end > room ? end : room);
    while (room < end)
        room *= 2;
    if (room > b->room) {
        room = room < HELD_MAX ? room : HELD_MAX;
        held = room <= SIZE_MAX ? realloc(b->held, (size_t)room) : NULL;
        if (held == NULL)
            return fail_memory(b);
        b->held = held;
        b->room = room;
    }
    memcpy(b->held + (size_t)b->kept, pack->pack.row, pack->bytes);
    if (more > 0)
        memcpy(b->held + (size_t)b->kept + pack->bytes, pack->pack.sequences,
               more);
    pack->pack.offset = b->kept;
    b->kept = end;
    return true;
}

/*
 * Reads up to `most` packs, and keeps them if `dealt` is set, that is, if their
 * step will be assigned.  Returns the number of packs read.
 */
static uint32_t read_packs(batch *b, input *in, input_pack *to,
                           uint32_t most, bool dealt)
{
    uint32_t n = 0;

    b->kept = 0;
    while (n < most && input_next(in, &to[n]) &&
           (!dealt || keep_pack(b, &to[n], in)))
        n++;
    for (uint32_t i = 0; i < n; i++) {
        ps_pack *pack = &to[i].pack;

        if (pack->row == NULL)
            continue;
        pack->row = b->held == NULL ? NULL : b->held + (size_t)pack->offset;
        pack->sequences = b->held == NULL ? NULL : pack->row + to[i].bytes;
    }
    return n;
}

/* Reads the packs of the next batch, directly or from the window. */
static bool fill(batch *b, input *in)
{
    const bool dealt = b->steps + b->conf->window > b->conf->start;
    window *w = &b->window;

    b->n = 0;
    b->has_tokens = in->has_tokens;
    if (b->conf->window > 1) {
        if (w->step == w->steps) {
            w->first_step += w->steps;
            w->n = w->steps = w->step = 0;
            w->n = read_packs(b, in, w->packs, w->most, dealt);
            window_arrange(w);
        }
        b->n = window_take(w, b->packs);
    } else {
        b->n = read_packs(b, in, b->packs, b->most, dealt);
    }
    for (uint32_t i = 0; i < b->n; i++)
        b->costs[i] = b->packs[i].cost;
    return in->status == STATUS_OK && b->status == STATUS_OK;
}

/* ---- Assigning ---- */

/*
 * Checks that every rank gets at least one of the last packs if the readers of
 * the shares have to pad the last batch.
 */
static bool can_pad(batch *b, const input *in)
{
    const conf *c = b->conf;

    if (c->last != CONF_PAD || c->what != CONF_SHARES || b->n >= c->ranks)
        return true;
    message_error("--last=pad: the last step has %" PRIu32 " %s for %" PRIu32
                  " ranks, and a share cannot contain empty packs; use "
                  "--last=drop or --last=short",
                  b->n, in->has_tokens ? "sequences" : "packs", c->ranks);
    b->status = STATUS_DATA;
    return false;
}

/* Adds the costs of this step, as assigned and in input order. */
static void add_costs(batch *b)
{
    const uint32_t ranks = b->conf->ranks;
    uint64_t greatest = 0;
    double total = 0;

    memset(b->sums, 0, ranks * sizeof *b->sums);
    for (uint32_t i = 0; i < b->n; i++) {
        uint64_t *sum = &b->sums[i % ranks];

        *sum += b->costs[i];
        greatest = *sum > greatest ? *sum : greatest;
        total += (double)b->costs[i];
    }
    b->all.dealt += (double)ps_deal_max(b->deal);
    b->all.in_order += (double)greatest;
    b->all.mean += total / ranks;
}

static bool deal(batch *b)
{
    const uint32_t ranks = b->conf->ranks;
    ps_error err;

    /*
     * The last packs do not fill a batch.  They are assigned in a smaller
     * batch, as evenly as possible.  Its empty slots count as packs of cost 0.
     */
    if (b->n < b->most) {
        const uint32_t per_rank = b->n / ranks + (b->n % ranks != 0);

        ps_deal_free(b->deal);
        if (ps_deal_open(&b->deal, ranks, per_rank, &err) != PS_OK)
            return fail_memory(b);
        memset(b->costs + b->n, 0,
               ((size_t)ranks * per_rank - b->n) * sizeof *b->costs);
    }
    if (ps_deal_make(b->deal, b->costs, b->ranks, &err) != PS_OK) {
        b->status = message_failure("--cost", &err);
        return false;
    }

    /* Link the packs of each rank, in order. */
    for (uint32_t rank = 0; rank < ranks; rank++)
        b->first[rank] = b->n;
    for (uint32_t i = b->n; i-- > 0;) {
        b->next[i] = b->first[b->ranks[i]];
        b->first[b->ranks[i]] = i;
    }
    add_costs(b);
    return true;
}

bool batch_next(batch *b, input *in)
{
    const conf *c = b->conf;

    /* Skip whole windows before --start without reading them. */
    if (in->shuffled != NULL && b->steps == 0) {
        const uint64_t whole = in->n_packs / b->most;
        const uint64_t steps = c->start < whole ? c->start : whole;

        b->steps = steps - steps % c->window;
        b->n_packs = b->steps * b->most;
        b->window.first_step = b->steps;
        in->number += b->n_packs;
    }
    do {
        input_forget(in);
        if (!fill(b, in))
            return false;
        if (b->steps == 0 && !batch_suffices(c, in, b->n)) {
            b->status = STATUS_DATA;
            return false;
        }
        if (b->n == 0 || (b->n < b->most && c->last == CONF_DROP)) {
            if (!batch_has_start(c, b->steps))
                b->status = STATUS_DATA;
            return false;
        }
        b->steps++;
        b->n_packs += b->n;
    } while (b->steps <= c->start);
    return can_pad(b, in) && deal(b);
}
