/*
 * lookahead.c - the first sequences of a stream whose depth they are to
 * choose.
 *
 * They wait in a store of their own, already cut to the capacity.  Once the
 * depth is known they enter the window one after another, as if they came
 * then; so nothing but the depth depends on the wait.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdlib.h>

#include "base/error.h"
#include "packer/packer.h"

void ps_lookahead_free(ps_packer *p)
{
    ps_store_free(p->lookahead_store);
    free(p->lookahead);
    p->lookahead_store = NULL;
    p->lookahead = NULL;
    p->n_lookahead = 0;
}

/* Admits what was held back; each payload passes through `payload`. */
static ps_result admit_all(ps_packer *p, unsigned char *payload, ps_error *err)
{
    uint64_t next_id = p->next_id;
    uint64_t record = 0;
    ps_result r = PS_OK;

    for (uint32_t i = 0; i < p->n_lookahead && r == PS_OK; i++) {
        const ps_lookahead *e = &p->lookahead[i];
        ps_store_cursor cursor = ps_store_start(p->lookahead_store, i);
        ps_arrival a = {e->id, e->n_tok, e->seq_off, e->seq_len,
                        {payload, e->n_tok, 0, NULL}};

        p->next_id = e->id;
        for (; record < e->record && r == PS_OK; record++)
            r = ps_packer_tick(p, err);
        if (r != PS_OK)
            return r;
        ps_store_read(p->lookahead_store, &cursor, payload,
                      ps_packer_payload_bytes(p, e->n_tok));
        ps_store_clear(p->lookahead_store, i);
        r = ps_packer_admit(
            p, &a, i + 1 < p->n_lookahead ? p->lookahead[i + 1].id : next_id,
            err);
    }
    p->next_id = next_id;
    for (; record < p->n_records && r == PS_OK; record++)
        r = ps_packer_tick(p, err);
    return r;
}

ps_result ps_lookahead_end(ps_packer *p, ps_error *err)
{
    ps_histogram *lengths;
    unsigned char *payload;
    ps_result r = ps_histogram_open(&lengths, err);

    for (uint32_t i = 0; i < p->n_lookahead && r == PS_OK; i++)
        r = ps_histogram_add(lengths,
                             ps_packer_units(p, p->lookahead[i].n_tok), 1, err);
    if (r == PS_OK)
        r = ps_packer_choose_depth(p, lengths, err);
    ps_histogram_free(lengths);
    if (r == PS_OK)
        r = ps_packer_start(p, NULL, err);
    if (r != PS_OK)
        return r;

    payload = malloc(ps_packer_payload_bytes(p, p->info.capacity));
    if (payload == NULL)
        return ps_fail_memory(err);
    if (p->n_lookahead > 0)
        p->lookahead_delay = p->n_records - p->lookahead[0].record;
    p->bytes = 0;
    r = admit_all(p, payload, err);
    free(payload);
    ps_lookahead_free(p);
    return r;
}

ps_result ps_lookahead_admit(ps_packer *p, const ps_arrival *a,
                             uint64_t next_id, ps_error *err)
{
    const uint64_t bytes = ps_packer_store_bytes(p, a->n_tok);
    const uint64_t max = p->options.max_bytes;
    const size_t n = p->n_lookahead;
    ps_result r;

    if (max != 0 && bytes > max - p->bytes) {
        r = ps_lookahead_end(p, err);
        return r == PS_OK ? ps_packer_admit(p, a, next_id, err) : r;
    }

    /* The array doubles as it fills up, for the window may never be full. */
    if ((n & (n - 1)) == 0) {
        ps_lookahead *larger =
            realloc(p->lookahead, (n == 0 ? 1 : 2 * n) * sizeof *larger);

        if (larger == NULL)
            return ps_fail_memory(err);
        p->lookahead = larger;
    }
    r = ps_packer_store(p, p->lookahead_store, p->n_lookahead, a->n_tok,
                        &a->part, err);
    if (r != PS_OK)
        return r;
    p->lookahead[p->n_lookahead++] = (ps_lookahead){
        .id = a->id,
        .record = p->n_records,
        .n_tok = a->n_tok,
        .seq_off = a->seq_off,
        .seq_len = a->seq_len,
    };
    p->bytes += bytes;
    p->next_id = next_id;
    return p->n_lookahead == p->options.window ? ps_lookahead_end(p, err)
                                               : PS_OK;
}
