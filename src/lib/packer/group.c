/*
 * group.c - keep consecutive sequences of a group together.
 *
 * SPDX-License-Identifier: MIT
 *
 * In the store, each piece of a group is a ps_held_piece followed by its
 * payload, in input order.
 */

#include "packer/group.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "packer/budget.h"
#include "packer/emit.h"

/* Records that no pieces are collected. */
static void clear(ps_group *g)
{
    g->pieces = g->n_tok = g->units = 0;
    g->bytes = 0;
    memset(g->uses, 0, sizeof g->uses);
}

/* ---- Collecting ---- */

/* Adds a piece, which fits, to the open group. */
static ps_result append(ps_packer *p, const ps_sequence *sequence, uint32_t off,
                        uint32_t n_tok, ps_error *err)
{
    const ps_held_piece piece = {.id = sequence->id,
                                 .seq_off = off,
                                 .seq_len = sequence->n_tok,
                                 .n_tok = n_tok,
                                 .slot = ps_packer_group_slot(p)};
    ps_group *g = &p->group;
    uint64_t uses[PS_MAX_BUDGETS];

    if (g->pieces == 0) {
        g->id = p->next_id = sequence->id;
        g->time = p->engine->now;
    }
    g->pieces++;
    g->n_tok += n_tok;
    g->units += ps_settings_units(&p->set, n_tok);
    g->bytes += ps_settings_piece_bytes(&p->set, n_tok,
                                        ps_settings_lists(&p->set, sequence));
    ps_budget_uses(&p->set, sequence, n_tok, uses);
    for (uint32_t i = 0; i < p->set.info.n_budgets; i++)
        g->uses[i] += uses[i];
    return ps_group_store(p, &piece, sequence->payload, err);
}

ps_result ps_group_store(ps_packer *p, const ps_held_piece *piece,
                         const unsigned char *payload, ps_error *err)
{
    ps_result r = ps_store_append(p->store, piece->slot, piece, sizeof *piece,
                                  err);

    return r == PS_OK ? ps_packer_store(p, piece, payload, err) : r;
}

/*
 * Admits the collected sequences to the window.  `next_id` is the lowest id
 * that can follow.
 */
static ps_result admit(ps_packer *p, uint64_t next_id, ps_error *err)
{
    ps_group *g = &p->group;
    ps_result r = PS_OK;
    uint32_t slot;

    if (g->pieces == 0)
        return PS_OK;
    if (p->set.options.max_bytes != 0)
        r = ps_packer_make_room(p, round_up(g->bytes, PS_STORE_CHUNK_BYTES),
                                err);
    if (r != PS_OK)
        return r;
    slot = ps_engine_admit_at(p->engine, g->units, g->uses, g->time);
    p->held[slot] =
        (ps_held){.id = g->id, .seq_off = g->pieces, .seq_len = g->n_tok};
    ps_store_move(p->store, ps_packer_group_slot(p), slot);
    clear(g);
    p->next_id = next_id;
    return ps_packer_emit_due(p, err);
}

ps_result ps_group_close(ps_packer *p, uint64_t next_id, ps_error *err)
{
    p->group.is_open = false;
    return admit(p, next_id, err);
}

ps_result ps_group_tick(ps_packer *p, uint64_t next_id, ps_error *err)
{
    const ps_group *g = &p->group;
    ps_result r;

    if (g->pieces == 0)
        p->next_id = next_id;
    r = ps_packer_tick(p, err);
    if (r == PS_OK && g->pieces > 0 &&
        p->engine->now - g->time >= p->set.info.max_displacement)
        r = ps_group_close(p, next_id, err);
    return r;
}

/* ---- Groups that do not fit a pack ---- */

static ps_result drop(ps_packer *p, const ps_sequence *sequence, ps_error *err)
{
    p->totals.rejected_sequences++;
    p->totals.rejected_tokens += sequence->n_tok;
    p->rejected[PS_REJECT_OVERLONG].sequences++;
    p->rejected[PS_REJECT_OVERLONG].tokens += sequence->n_tok;
    return ps_packer_report(p, sequence, false, err);
}

/* Drops the sequences collected so far, none of which was cut. */
static ps_result drop_collected(ps_packer *p, ps_error *err)
{
    const uint32_t slot = ps_packer_group_slot(p);
    ps_store_cursor cursor = ps_store_start(p->store, slot);
    unsigned char *payload =
        malloc(ps_settings_max_payload(&p->set));
    ps_result r = payload == NULL ? ps_fail_memory(err) : PS_OK;

    for (uint32_t i = 0; r == PS_OK && i < p->group.pieces; i++) {
        ps_held_piece piece;
        ps_sequence sequence;

        ps_store_read(p->store, &cursor, &piece, sizeof piece);
        sequence = (ps_sequence){
            .id = piece.id,
            .n_tok = piece.n_tok,
            .payload = payload,
            .payload_bytes =
                ps_settings_payload_bytes(&p->set, piece.n_tok) +
                (size_t)ps_packer_stored_lists(p, cursor, piece.n_tok)};
        ps_store_read(p->store, &cursor, payload, sequence.payload_bytes);
        r = drop(p, &sequence, err);
    }
    free(payload);
    ps_store_clear(p->store, slot);
    clear(&p->group);
    return r;
}

/* Keeps the first `left` tokens of a sequence. */
static ps_result truncate(ps_packer *p, const ps_sequence *sequence,
                          uint32_t left, ps_error *err)
{
    ps_result r;

    if (left == 0)
        return drop(p, sequence, err);
    p->totals.truncated_sequences++;
    p->totals.truncated_tokens += sequence->n_tok - left;
    r = ps_packer_report(p, sequence, true, err);
    if (r == PS_OK)
        r = append(p, sequence, 0, left, err);
    /* Nothing more is added, so there is nothing to wait for. */
    return r == PS_OK ? admit(p, sequence->id + 1, err) : r;
}

/*
 * Cuts the group before a sequence.  The sequence itself is split only if it is
 * longer than a pack.
 */
static ps_result split(ps_packer *p, const ps_sequence *sequence, ps_error *err)
{
    const uint32_t piece = p->set.piece;
    uint32_t off = 0;
    ps_result r = admit(p, sequence->id, err);

    while (r == PS_OK && sequence->n_tok - off > p->set.longest) {
        r = append(p, sequence, off, piece, err);
        if (r == PS_OK)
            r = admit(p, sequence->id, err);
        if (r == PS_OK)
            r = ps_packer_tick(p, err);
        off += piece;
        p->totals.extra_pieces++;
    }
    p->totals.split_sequences += off > 0;
    return r == PS_OK ? append(p, sequence, off, sequence->n_tok - off, err)
                      : r;
}

/* Fails without counting the sequence.  Its group is open already. */
static ps_result refuse(ps_packer *p, const ps_sequence *sequence,
                        ps_error *err)
{
    p->totals.input_sequences--;
    p->totals.input_tokens -= sequence->n_tok;
    if (!ps_budget_allows(&p->set, sequence))
        return ps_budget_blame(&p->set, sequence, err);
    return ps_fail(err, PS_ERR_OVERLONG,
                   "record %" PRIu64 " at byte %" PRIu64 ": its group, which "
                   "starts at record %" PRIu64 ", exceeds the capacity, "
                   "%" PRIu32 "%s",
                   sequence->id, sequence->offset,
                   p->group.pieces > 0 ? p->group.id : sequence->id,
                   p->set.info.capacity,
                   p->set.info.n_budgets > 0 ? ", or a budget" : "");
}

/* Adds a sequence of which only the first `left` tokens fit the open group. */
static ps_result put_overlong(ps_packer *p, const ps_sequence *sequence,
                              uint32_t left, ps_error *err)
{
    ps_result r;

    if (p->set.options.overlong == PS_OVERLONG_ERROR ||
        (p->set.options.overlong != PS_OVERLONG_DROP &&
         !ps_budget_allows(&p->set, sequence)))
        return refuse(p, sequence, err);
    p->groups.overlong += !p->group.is_overlong;
    p->group.is_overlong = true;
    switch (p->set.options.overlong) {
    case PS_OVERLONG_DROP:
        r = drop_collected(p, err);
        return r == PS_OK ? drop(p, sequence, err) : r;
    case PS_OVERLONG_TRUNCATE:
        return truncate(p, sequence, left, err);
    default:
        return split(p, sequence, err);
    }
}

ps_result ps_group_put(ps_packer *p, const ps_sequence *sequence,
                       ps_error *err)
{
    const uint64_t value = ps_settings_value(&p->set, sequence, p->set.by);
    ps_group *g = &p->group;
    uint32_t left;
    ps_result r = ps_group_tick(p, sequence->id, err);

    if (r == PS_OK && !(g->is_open && g->value == value)) {
        r = ps_group_close(p, sequence->id, err);
        g->is_open = true;
        g->is_overlong = false;
        g->value = value;
        p->groups.groups++;
    }
    if (r != PS_OK)
        return r;
    left = ps_budget_room(&p->set, sequence, g->uses,
                          g->units * p->set.info.align);
    if (g->is_overlong && p->set.options.overlong != PS_OVERLONG_SPLIT)
        return drop(p, sequence, err);
    return sequence->n_tok <= left
               ? append(p, sequence, 0, sequence->n_tok, err)
               : put_overlong(p, sequence, left, err);
}

/* ---- Saving and resuming ---- */

/* Size of a piece in a state, bytes. */
#define SAVED_BYTES 20

/* A group in a slot of the store. */
typedef struct place {
    uint64_t time; /* of the engine, when the first sequence arrived */
    uint64_t id;   /* of the first sequence */
    uint32_t slot;
    uint32_t pieces;
    uint32_t n_tok;
    uint32_t units; /* its length for the engine */
} place;

static int compare_places(const void *a, const void *b)
{
    const place *x = a;
    const place *y = b;

    return (x->time > y->time) - (x->time < y->time);
}

/*
 * Lists the groups in `n` slots of the engine, and the open group as element n,
 * in input order.  NULL: out of memory.
 */
static place *list_places(const ps_packer *p, const uint32_t *slots, uint32_t n)
{
    const ps_window_slot *at = p->engine->window.slots;
    const ps_group *g = &p->group;
    place *places = malloc(((size_t)n + 1) * sizeof *places);

    if (places == NULL)
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        const ps_held *h = &p->held[slots[i]];

        places[i] = (place){at[slots[i]].time, h->id, slots[i], h->seq_off,
                            h->seq_len, at[slots[i]].length};
    }
    qsort(places, n, sizeof *places, compare_places);
    places[n] = (place){g->time, g->id, ps_packer_group_slot(p), g->pieces,
                        g->n_tok, g->units};
    return places;
}

ps_held_piece *ps_group_list(const ps_packer *p, const uint32_t *slots,
                             uint32_t n, uint32_t *n_pieces)
{
    place *places = list_places(p, slots, n);
    ps_held_piece *pieces = NULL;
    size_t count = 0;

    for (uint32_t i = 0; places != NULL && i <= n; i++)
        count += places[i].pieces;
    if (places != NULL)
        pieces = malloc((count + 1) * sizeof *pieces);
    *n_pieces = 0;
    for (uint32_t i = 0; pieces != NULL && i <= n; i++) {
        ps_store_cursor cursor = ps_store_start(p->store, places[i].slot);

        for (uint32_t k = 0; k < places[i].pieces; k++) {
            ps_held_piece *piece = &pieces[(*n_pieces)++];

            ps_store_read(p->store, &cursor, piece, sizeof *piece);
            piece->slot = places[i].slot;
            ps_store_skip(
                p->store, &cursor,
                ps_settings_payload_bytes(&p->set, piece->n_tok) +
                    (size_t)ps_packer_stored_lists(p, cursor, piece->n_tok));
        }
    }
    free(places);
    return pieces;
}

void ps_group_save(const ps_packer *p, ps_saver *saver,
                   const ps_held_piece *pieces, uint32_t n)
{
    const ps_group *g = &p->group;

    ps_save_u32(saver, g->is_open);
    ps_save_u32(saver, g->is_overlong);
    ps_save_u64(saver, g->value);
    ps_save_u64(saver, g->id);
    ps_save_u64(saver, g->time);
    ps_save_u32(saver, g->pieces);
    ps_save_u32(saver, g->n_tok);
    ps_save_u32(saver, g->units);
    for (uint32_t i = 0; i < p->set.info.n_budgets; i++)
        ps_save_u64(saver, g->uses[i]);
    ps_save_u32(saver, n);
    for (uint32_t i = 0; i < n; i++) {
        ps_save_u64(saver, pieces[i].id);
        ps_save_u32(saver, pieces[i].seq_off);
        ps_save_u32(saver, pieces[i].seq_len);
        ps_save_u32(saver, pieces[i].n_tok);
    }
}

/* Loads the open group, without its pieces. */
static void load_open(ps_packer *p, ps_restorer *restorer)
{
    const ps_window *w = &p->engine->window;
    ps_group *g = &p->group;

    g->is_open = ps_load_within(restorer, 0, 1) == 1;
    g->is_overlong = ps_load_within(restorer, 0, 1) == 1;
    g->value = ps_load_u64(restorer);
    g->id = ps_load_u64(restorer);
    g->time = ps_load_u64(restorer);
    g->pieces = ps_load_u32(restorer);
    g->n_tok = ps_load_u32(restorer);
    g->units = ps_load_within(restorer, 0, p->set.info.capacity /
                                               p->set.info.align);
    for (uint32_t i = 0; i < p->set.info.n_budgets; i++) {
        g->uses[i] = ps_load_u64(restorer);
        if (g->uses[i] > p->set.info.budgets[i].limit)
            restorer->failed = true;
    }
    if (g->time > p->engine->now ||
        (g->pieces > 0 && (!g->is_open ||
                           (w->youngest != PS_NO_SLOT &&
                            w->slots[w->youngest].time >= g->time))))
        restorer->failed = true;
    if (g->pieces > 0)
        p->next_id = g->id;
}

/* Loads a piece.  It must follow the piece `before` in the input. */
static void load_piece(const ps_packer *p, ps_restorer *restorer,
                       const ps_held_piece *before, ps_held_piece *piece)
{
    piece->id = ps_load_u64(restorer);
    piece->seq_off = ps_load_u32(restorer);
    piece->seq_len = ps_load_u32(restorer);
    piece->n_tok = ps_load_within(restorer, 1, p->set.info.capacity);
    if (piece->id >= p->totals.input_sequences ||
        piece->seq_off >= piece->seq_len ||
        piece->n_tok > piece->seq_len - piece->seq_off ||
        (before != NULL && (piece->id < before->id ||
                            (piece->id == before->id &&
                             piece->seq_off <= before->seq_off))))
        restorer->failed = true;
}

/* Loads the pieces of a group, from pieces[*n] on and below index `most`. */
static void load_pieces(ps_packer *p, ps_restorer *restorer, const place *at,
                        ps_held_piece *pieces, uint32_t most, uint32_t *n)
{
    const uint32_t first = *n;
    uint64_t n_tok = 0;
    uint64_t units = 0;
    uint64_t bytes = 0;

    if (at->pieces > most - first)
        restorer->failed = true;
    for (uint32_t k = 0; k < at->pieces && !restorer->failed; k++) {
        ps_held_piece *piece = &pieces[*n];

        *piece = (ps_held_piece){.slot = at->slot};
        load_piece(p, restorer, *n == 0 ? NULL : piece - 1, piece);
        n_tok += piece->n_tok;
        units += ps_settings_units(&p->set, piece->n_tok);
        bytes += ps_settings_piece_bytes(&p->set, piece->n_tok, 0);
        ++*n;
    }
    if (restorer->failed || n_tok != at->n_tok || units != at->units ||
        (at->pieces > 0 && pieces[first].id != at->id))
        restorer->failed = true;
    else if (at->slot == ps_packer_group_slot(p))
        p->group.bytes = bytes;
    else
        p->bytes += round_up(bytes, PS_STORE_CHUNK_BYTES);
}

ps_held_piece *ps_group_load(ps_packer *p, ps_restorer *restorer,
                             const uint32_t *slots, uint32_t n,
                             uint32_t *n_pieces)
{
    ps_held_piece *pieces;
    place *places;
    uint32_t most;

    load_open(p, restorer);
    most = ps_load_count(restorer, UINT32_MAX - 1, SAVED_BYTES);
    places = list_places(p, slots, n);
    pieces = malloc(((size_t)most + 1) * sizeof *pieces);
    *n_pieces = 0;
    for (uint32_t i = 0; places != NULL && pieces != NULL && i <= n; i++)
        load_pieces(p, restorer, &places[i], pieces, most, n_pieces);
    if (*n_pieces != most)
        restorer->failed = true;
    if (places == NULL) {
        free(pieces);
        pieces = NULL;
    }
    free(places);
    return pieces;
}
