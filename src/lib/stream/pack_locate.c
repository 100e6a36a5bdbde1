/*
 * pack_locate.c - find the packs that contain a sequence, by its id.
 *
 * SPDX-License-Identifier: MIT
 *
 * A sequence is in the first block whose watermark is greater than its id, or
 * in an earlier block.  Let D be the greatest displacement in the stream.  When
 * a sequence is packed, every sequence whose id is lower by more than D has
 * been packed, so a watermark that is not lower than necessary is at least
 * id - D.  This leaves few blocks.  Watermarks can be lower than necessary, and
 * in a share D does not count the sequences of other shares.  Therefore all
 * earlier blocks are searched if tokens of the sequence are missing.
 */

#include "stream/pack_file.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"

typedef struct search {
    ps_pack_file *file;
    uint64_t id;
    ps_location *locations; /* owned */
    size_t capacity;        /* locations allocated */
    uint32_t n;
    /* tokens not found yet; all ones while the length is unknown */
    uint64_t missing;
} search;

/* Adds the location of a piece. */
static ps_result add(search *s, uint64_t pack, uint32_t slot,
                     const ps_piece *piece, ps_error *err)
{
    ps_location *locations = ps_array_grow(s->locations, &s->capacity,
                                           s->n + 1u, 1, sizeof *locations);

    if (locations == NULL)
        return ps_fail_memory(err);
    s->locations = locations;
    locations[s->n++] = (ps_location){pack, slot, *piece};
    if (s->missing == UINT64_MAX)
        s->missing = piece->seq_len;
    s->missing -= ps_mem_min(s->missing, piece->n_tok);
    return PS_OK;
}

/* Searches the packs `first` to `end` - 1, until no tokens are missing. */
static ps_result search_packs(search *s, uint64_t first, uint64_t end,
                              ps_error *err)
{
    const ps_pack_info *info = ps_pack_file_info(s->file);
    ps_result r = PS_OK;

    for (uint64_t i = first; r == PS_OK && i < end && s->missing > 0; i++) {
        ps_pack pack;
        bool verified = false;

        r = ps_pack_file_sequences(s->file, i, &pack, err);
        for (uint32_t k = 0; r == PS_OK && k < pack.n_seq; k++) {
            ps_piece piece = ps_pack_piece(info, &pack, k);

            if (piece.id != s->id)
                continue;
            /* Only a complete pack can be verified. */
            if (!verified)
                r = ps_pack_file_read(s->file, i, &pack, err);
            verified = true;
            if (r == PS_OK && k < pack.n_seq)
                piece = ps_pack_piece(info, &pack, k);
            if (r == PS_OK && piece.id == s->id)
                r = add(s, i, k, &piece, err);
        }
    }
    return r;
}

/*
 * Verifies the packs `first` to `end` - 1.  A damaged id would make a search
 * fail.
 */
static ps_result verify_packs(ps_pack_file *f, uint64_t first, uint64_t end,
                              ps_error *err)
{
    ps_result r = PS_OK;
    ps_pack pack;

    for (uint64_t i = first; r == PS_OK && i < end; i++)
        r = ps_pack_file_read(f, i, &pack, err);
    return r;
}

/* Orders locations by pack and slot. */
static int compare(const void *a, const void *b)
{
    const ps_location *x = a;
    const ps_location *y = b;

    if (x->pack != y->pack)
        return x->pack < y->pack ? -1 : 1;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

ps_result ps_pack_file_locate(ps_pack_file *f, uint32_t stream, uint64_t id,
                              ps_location **locations, uint32_t *n,
                              ps_error *err)
{
    search s = {.file = f, .id = id, .missing = UINT64_MAX};
    uint64_t begin, first, end, unused;
    ps_pack_info info;
    ps_totals totals;
    ps_result r = ps_pack_file_stream(f, stream, &info, &totals, err);

    *locations = NULL;
    *n = 0;
    if (r != PS_OK || totals.packs == 0 || id >= totals.input_sequences)
        return r;
    r = ps_pack_file_marked(f, stream, 0, &begin, &unused, err);
    if (r == PS_OK)
        r = ps_pack_file_marked(
            f, stream, id - ps_mem_min(id, totals.max_displacement), &first,
            &unused, err);
    if (r == PS_OK)
        r = ps_pack_file_marked(f, stream, id + 1, &unused, &end, err);
    if (r == PS_OK)
        r = search_packs(&s, first, end, err);
    /* Shares lack sequences, and shuffled shares would be read completely. */
    if (r == PS_OK && s.missing > 0 && !info.share)
        r = verify_packs(f, first, end, err);
    if (r == PS_OK)
        r = search_packs(&s, begin, first < end ? first : end, err);
    if (r != PS_OK) {
        free(s.locations);
        return r;
    }
    if (s.n > 1)
        qsort(s.locations, s.n, sizeof *s.locations, compare);
    *locations = s.locations;
    *n = s.n;
    return PS_OK;
}
