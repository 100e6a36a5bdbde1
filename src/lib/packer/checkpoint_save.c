/*
 * checkpoint_save.c - a packer that is saved between two sequences.
 *
 * A state has a head that says what it is, the caller's note, and then what
 * the output depends on: the header, which binds it to schema and options,
 * the totals, the place in the output, the engine, and whose sequences the
 * engine holds.  Their payloads are not in it but for a hash, since the input
 * has them; refill.c takes them back.  XXH3-64 of all before ends it.
 * The state of a stream that has ended goes no further than the totals, and
 * one from before it began no further than the note.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/serial.h"
#include "format/pack_header.h"
#include "format/record_layout.h"
#include "format/totals.h"
#include "packer/checkpoint.h"

uint64_t ps_packer_resume_from(const ps_packer *p)
{
    uint32_t oldest = p->engine == NULL ? PS_NO_SLOT
                                        : ps_engine_oldest(p->engine);

    if (p->n_lookahead > 0)
        return p->lookahead[0].id;
    return oldest == PS_NO_SLOT ? p->totals.input_sequences
                                : p->held[oldest].id;
}

static void save_head(ps_saver *saver, uint32_t kind, const ps_state *says)
{
    ps_save_bytes(saver, STATE_MAGIC, STATE_MAGIC_BYTES);
    ps_save_u32(saver, STATE_VERSION);
    ps_save_u32(saver, kind);
    ps_save_u64(saver, says->packs);
    ps_save_u64(saver, says->output_bytes);
    ps_save_u64(saver, says->input_sequences);
    ps_save_u64(saver, says->needs);
    ps_save_u64(saver, says->note_bytes);
    ps_save_bytes(saver, says->note, says->note_bytes);
}

static void save_totals(const ps_packer *p, ps_saver *saver)
{
    unsigned char bytes[PS_TOTALS_BYTES];

    ps_totals_encode(&p->totals, p->digest, bytes);
    ps_save_bytes(saver, bytes, sizeof bytes);
    for (unsigned i = 0; i < PS_REJECTS; i++) {
        ps_save_u64(saver, p->rejected[i].sequences);
        ps_save_u64(saver, p->rejected[i].tokens);
    }
    ps_length_counts_save(&p->packed, saver);
    ps_save_u64(saver, p->newest_out);
    /* What ends without an engine has to know the delay of both. */
    ps_save_u64(saver, p->finished ? ps_packer_delay(p) : p->lookahead_delay);
}

static void save_header(const ps_packer *p, ps_saver *saver)
{
    unsigned char header[PS_PACK_HEADER_BYTES];

    ps_pack_header_encode(&p->info, header);
    ps_save_u32(saver, p->info.depth);
    ps_save_u32(saver, p->options.compressed);
    ps_save_u32(saver, (uint32_t)p->options.level);
    ps_save_bytes(saver, header, sizeof header);
}

static void save_place(const ps_output_place *place, ps_saver *saver)
{
    ps_save_u64(saver, place->table_bytes);
    ps_save_bytes(saver, place->table, place->table_bytes);
    ps_save_u64(saver, place->pending_bytes);
    ps_save_bytes(saver, place->pending, place->pending_bytes);
}

static ps_result save_engine(ps_packer *p, ps_saver *saver, ps_error *err)
{
    uint32_t *slots =
        malloc(ps_engine_slots(p->engine) * sizeof *slots);
    uint32_t n;
    uint64_t hash;
    ps_result r;

    if (slots == NULL)
        return ps_fail_memory(err);
    n = ps_engine_save(p->engine, saver, slots);
    for (uint32_t i = 0; i < n; i++) {
        const held *h = &p->held[slots[i]];

        ps_save_u64(saver, h->id);
        ps_save_u32(saver, h->seq_off);
        ps_save_u32(saver, h->seq_len);
    }
    r = ps_refill_hash(p, slots, n, &hash, err);
    ps_save_u64(saver, hash);
    free(slots);
    return r;
}

static ps_result save_all(ps_packer *p, ps_saver *saver, ps_state *says,
                          ps_error *err)
{
    ps_output_place place;
    ps_result r = ps_output_where(p->output, &place, err);

    if (r == PS_OK)
        r = ps_packer_check_replay(p, err);
    if (r != PS_OK)
        return r;
    says->output_bytes = place.written;
    save_head(saver, p->finished ? STATE_FINISHED : STATE_GOES_ON, says);
    save_header(p, saver);
    save_totals(p, saver);
    if (!p->finished) {
        save_place(&place, saver);
        r = save_engine(p, saver, err);
    }
    return r;
}

/* Gives what was saved to the caller, with its checksum, if all went well. */
static ps_result give(ps_saver *saver, ps_result r, unsigned char **state,
                      size_t *bytes, ps_error *err)
{
    if (r == PS_OK && !saver->failed)
        ps_save_u64(saver, XXH3_64bits(saver->bytes, saver->n));
    if (r == PS_OK && saver->failed)
        r = ps_fail_memory(err);
    if (r != PS_OK) {
        free(saver->bytes);
        return r;
    }
    *state = saver->bytes;
    *bytes = saver->n;
    return PS_OK;
}

ps_result ps_packer_save(ps_packer *p, const void *note, size_t note_bytes,
                         unsigned char **state, size_t *bytes, ps_error *err)
{
    ps_saver saver = {0};
    ps_state says = {.packs = p->totals.packs,
                     .input_sequences = p->totals.input_sequences,
                     .note = note,
                     .note_bytes = note_bytes};

    *state = NULL;
    *bytes = 0;
    if (ps_refill_waits(p))
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "not all that is needed has come again");
    if (p->totals.packs == 0 && !p->finished)
        return ps_fail(err, PS_ERR_ARGUMENT, "no pack was made yet");
    says.needs = ps_packer_resume_from(p);
    return give(&saver, save_all(p, &saver, &says, err), state, bytes, err);
}

ps_result ps_state_blank(const void *note, size_t note_bytes,
                         unsigned char **state, size_t *bytes, ps_error *err)
{
    const ps_state says = {.note = note, .note_bytes = note_bytes};
    ps_saver saver = {0};

    *state = NULL;
    *bytes = 0;
    save_head(&saver, STATE_BLANK, &says);
    return give(&saver, PS_OK, state, bytes, err);
}
