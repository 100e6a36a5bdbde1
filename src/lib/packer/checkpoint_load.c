/*
 * checkpoint_load.c - a saved packer: compared, asked, proved and resumed.
 *
 * A state is untrusted: what it says is checked before it is used.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/serial.h"
#include "bytes.h"
#include "format/pack_header.h"
#include "format/record_layout.h"
#include "format/totals.h"
#include "packer/checkpoint.h"

/* ---- Read ---- */

static ps_result damaged(ps_error *err)
{
    return ps_fail(err, PS_ERR_CORRUPT, "the state is damaged");
}

static ps_result check_whole(const unsigned char *state, size_t bytes,
                             ps_error *err)
{
    size_t n = bytes < STATE_MAGIC_BYTES ? bytes : STATE_MAGIC_BYTES;

    if (n > 0 && memcmp(state, STATE_MAGIC, n) != 0)
        return ps_fail(err, PS_ERR_MAGIC, "this is not a saved state");
    if (bytes < STATE_MAGIC_BYTES + 4 + STATE_CHECKSUM_BYTES)
        return ps_fail(err, PS_ERR_TRUNCATED, "the state is cut");
    n = bytes - STATE_CHECKSUM_BYTES;
    if (load_u64(state + n) != XXH3_64bits(state, n))
        return damaged(err);
    if (load_u32(state + STATE_MAGIC_BYTES) != STATE_VERSION)
        return ps_fail(err, PS_ERR_UNSUPPORTED,
                       "the state is of version %" PRIu32
                       ", this program knows %d",
                       load_u32(state + STATE_MAGIC_BYTES), STATE_VERSION);
    return PS_OK;
}

/* Checks it all and reads the head; what is left is behind the note. */
static ps_result read_head(ps_restorer *restorer, const unsigned char *state,
                           size_t bytes, ps_state *says, ps_error *err)
{
    ps_result r = check_whole(state, bytes, err);
    uint32_t kind;

    *says = (ps_state){0};
    if (r != PS_OK)
        return r;
    *restorer = (ps_restorer){.at = state,
                              .left = bytes - STATE_CHECKSUM_BYTES};
    (void)ps_load_bytes(restorer, STATE_MAGIC_BYTES + 4);
    kind = ps_load_within(restorer, STATE_GOES_ON, STATE_BLANK);
    says->finished = kind == STATE_FINISHED;
    says->blank = kind == STATE_BLANK;
    says->packs = ps_load_u64(restorer);
    says->output_bytes = ps_load_u64(restorer);
    says->input_sequences = ps_load_u64(restorer);
    says->needs = ps_load_u64(restorer);
    says->note_bytes = (size_t)ps_load_u64(restorer);
    says->note = ps_load_bytes(restorer, says->note_bytes);
    return restorer->failed || says->needs > says->input_sequences ||
                   (says->packs == 0 && kind == STATE_GOES_ON) ||
                   (says->packs > 0 && says->blank)
               ? damaged(err)
               : PS_OK;
}

ps_result ps_state_read(const unsigned char *state, size_t bytes,
                        ps_state *says, ps_error *err)
{
    ps_restorer restorer;

    return read_head(&restorer, state, bytes, says, err);
}

/* ---- Resumed ---- */

static ps_result does_not_fit(ps_error *err, const char *what)
{
    return ps_fail(err, PS_ERR_ARGUMENT,
                   "the state was saved with other %s", what);
}

/*
 * The header repeats all that binds the state to its stream; where it is
 * another one, the first thing that differs is told.
 */
static ps_result compare(const ps_packer *p, const unsigned char *header,
                         ps_error *err)
{
    unsigned char ours[PS_PACK_HEADER_BYTES];
    ps_pack_info theirs;

    ps_pack_header_encode(&p->info, ours);
    if (memcmp(ours, header, sizeof ours) == 0)
        return PS_OK;
    if (ps_pack_header_decode(header, &theirs, err) != PS_OK)
        return damaged(err);
    if (theirs.capacity != p->info.capacity)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the state is of packs of %" PRIu32
                       " tokens, not %" PRIu32,
                       theirs.capacity, p->info.capacity);
    if (theirs.align != p->info.align)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the state is of packs with sequences aligned to "
                       "%" PRIu32 ", not %" PRIu32,
                       theirs.align, p->info.align);
    if (theirs.depth != p->info.depth)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the state is of packs of up to %" PRIu32
                       " sequences, not %" PRIu32,
                       theirs.depth, p->info.depth);
    if (!ps_schema_equal(&theirs.schema, &p->info.schema))
        return does_not_fit(err, "tokens, channels or vocabulary");
    return does_not_fit(err, "options");
}

/* The depth may have been chosen by the first sequences. */
static ps_result load_header(ps_packer *p, ps_restorer *restorer, ps_error *err)
{
    uint32_t depth = ps_load_within(restorer, 1, PS_MAX_DEPTH);
    uint32_t compressed = ps_load_within(restorer, 0, 1);
    uint32_t level = ps_load_u32(restorer);
    const unsigned char *header =
        ps_load_bytes(restorer, PS_PACK_HEADER_BYTES);
    ps_result r = PS_OK;

    if (restorer->failed)
        return damaged(err);
    if (compressed != p->options.compressed ||
        (compressed != 0 && level != (uint32_t)p->options.level))
        return does_not_fit(err, "compression");
    if (p->info.depth == PS_DEPTH_AUTO && depth <= ps_packer_max_depth(p)) {
        p->info.depth = depth;
        r = ps_layout(&p->info, err);
    }
    return r == PS_OK ? compare(p, header, err) : r;
}

static void load_totals(ps_packer *p, ps_restorer *restorer)
{
    const unsigned char *bytes = ps_load_bytes(restorer, PS_TOTALS_BYTES);

    if (bytes != NULL)
        ps_totals_decode(bytes, &p->totals, &p->digest);
    for (unsigned i = 0; i < PS_REJECTS; i++) {
        p->rejected[i].sequences = ps_load_u64(restorer);
        p->rejected[i].tokens = ps_load_u64(restorer);
    }
    ps_length_counts_load(&p->packed, restorer);
    p->newest_out = ps_load_u64(restorer);
    p->lookahead_delay = ps_load_u64(restorer);
    p->next_id = p->totals.input_sequences;
}

static ps_result load_place(ps_packer *p, ps_restorer *restorer, ps_state *says,
                            ps_output_place *place, ps_error *err)
{
    uint64_t n = ps_load_u64(restorer);

    place->written = says->output_bytes;
    place->table = ps_load_bytes(restorer, n);
    place->table_bytes = (size_t)n;
    n = ps_load_u64(restorer);
    place->pending = ps_load_bytes(restorer, n);
    place->pending_bytes = (size_t)n;
    if (restorer->failed || (n > 0 && !p->options.compressed) ||
        n % p->info.record_bytes != 0 || says->packs != p->totals.packs)
        return damaged(err);
    if (place->table_bytes == 0)
        place->table = NULL;
    return PS_OK;
}

static ps_result load_held(ps_packer *p, ps_restorer *restorer,
                           const uint32_t *slots, uint32_t n,
                           const ps_state *says, ps_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        held *h = &p->held[slots[i]];
        uint32_t n_tok;

        h->id = ps_load_u64(restorer);
        h->seq_off = ps_load_u32(restorer);
        h->seq_len = ps_load_u32(restorer);
        if (restorer->failed || h->id < says->needs ||
            h->id >= says->input_sequences || h->seq_off >= h->seq_len)
            return damaged(err);
        n_tok = ps_packer_length(p, slots[i]);
        if (ps_packer_units(p, n_tok) !=
            ps_engine_length(p->engine, slots[i]))
            return damaged(err);
        p->bytes += ps_packer_room(p, n_tok);
    }
    return PS_OK;
}

static ps_result load_engine(ps_packer *p, ps_restorer *restorer,
                             const ps_state *says, ps_error *err)
{
    const ps_engine_options options = ps_packer_engine_options(p);
    uint32_t *slots = malloc(ps_engine_slots(p->engine) * sizeof *slots);
    uint32_t n;
    ps_result r;

    if (slots == NULL)
        return ps_fail_memory(err);
    r = ps_engine_load(p->engine, restorer, &options, slots, &n, err);
    if (r == PS_OK)
        r = load_held(p, restorer, slots, n, says, err);
    if (r == PS_OK)
        r = ps_refill_begin(p, slots, n, ps_load_u64(restorer), err);
    free(slots);
    if (r == PS_OK && (restorer->failed || restorer->left > 0))
        r = damaged(err);
    return r;
}

/* Whether what is left is the totals that were loaded, and no more. */
static bool is_all(const ps_packer *p, const ps_restorer *restorer,
                   const ps_state *says)
{
    return !restorer->failed && restorer->left == 0 &&
           p->totals.packs == says->packs;
}

/* For a reader that has all packs, the header and END are left. */
static ps_result load_end(ps_packer *p, const ps_restorer *restorer,
                          const ps_state *says, ps_error *err)
{
    const ps_output_place place = {.written = says->output_bytes};

    if (p->options.first_record != says->packs || says->packs == 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the state is that of a stream that has ended");
    if (!is_all(p, restorer, says))
        return damaged(err);
    return ps_packer_go_on(p, &place, err);
}

static ps_result load_all(ps_packer *p, ps_restorer *restorer, ps_state *says,
                          ps_error *err)
{
    ps_output_place place = {0};
    ps_result r;

    load_totals(p, restorer);
    if (says->finished)
        return load_end(p, restorer, says, err);
    r = load_place(p, restorer, says, &place, err);
    if (r == PS_OK)
        r = ps_packer_go_on(p, &place, err);
    return r == PS_OK ? load_engine(p, restorer, says, err) : r;
}

/* A packer with the header of the state, if that fits; NULL if not. */
static ps_result prepare(ps_packer **packer, int fd, const ps_schema *schema,
                         const ps_packer_options *options,
                         ps_restorer *restorer, ps_error *err)
{
    ps_result r = ps_packer_prepare(packer, fd, schema, options, err);

    if (r == PS_OK)
        r = load_header(*packer, restorer, err);
    if (r != PS_OK) {
        ps_packer_free(*packer);
        *packer = NULL;
    }
    return r;
}

ps_result ps_state_fits(const unsigned char *state, size_t bytes,
                        const ps_schema *schema,
                        const ps_packer_options *options, ps_error *err)
{
    ps_restorer restorer;
    ps_state says;
    ps_packer *p = NULL;
    ps_result r = read_head(&restorer, state, bytes, &says, err);

    if (r == PS_OK && says.blank)
        return restorer.left == 0 ? PS_OK : damaged(err);
    if (r == PS_OK)
        r = prepare(&p, -1, schema, options, &restorer, err);
    ps_packer_free(p);
    return r;
}

ps_result ps_packer_ended(ps_packer **packer, const ps_schema *schema,
                          const ps_packer_options *options,
                          const unsigned char *state, size_t bytes,
                          ps_error *err)
{
    ps_restorer restorer;
    ps_state says;
    ps_packer *p = NULL;
    ps_result r = read_head(&restorer, state, bytes, &says, err);

    *packer = NULL;
    if (r == PS_OK && !says.finished)
        r = ps_fail(err, PS_ERR_ARGUMENT,
                    "the state is of a stream that has not ended");
    if (r == PS_OK)
        r = prepare(&p, -1, schema, options, &restorer, err);
    if (r != PS_OK)
        return r;
    load_totals(p, &restorer);
    p->finished = true;
    if (!is_all(p, &restorer, &says)) {
        ps_packer_free(p);
        return damaged(err);
    }
    *packer = p;
    return PS_OK;
}

ps_result ps_packer_verify_replay(ps_packer *p, const unsigned char *state,
                                  size_t bytes, ps_error *err)
{
    ps_restorer restorer;
    ps_state says;
    ps_totals totals; /* only the digest is wanted */
    const unsigned char *at;
    ps_result r = read_head(&restorer, state, bytes, &says, err);

    if (r != PS_OK || says.blank)
        return r;
    if (p->totals.input_sequences > 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "sequences were put before the state to prove");
    (void)ps_load_bytes(&restorer, STATE_HEADER_BYTES);
    at = ps_load_bytes(&restorer, PS_TOTALS_BYTES);
    if (at == NULL)
        return damaged(err);
    ps_totals_decode(at, &totals, &p->proof.digest);
    p->proof.packs = says.packs;
    return PS_OK;
}

ps_result ps_packer_resume(ps_packer **packer, int fd,
                           const ps_schema *schema,
                           const ps_packer_options *options,
                           const unsigned char *state, size_t bytes,
                           ps_error *err)
{
    ps_restorer restorer;
    ps_state says;
    ps_packer *p = NULL;
    ps_result r = read_head(&restorer, state, bytes, &says, err);

    *packer = NULL;
    if (r == PS_OK && says.blank)
        r = ps_fail(err, PS_ERR_ARGUMENT,
                    "the state is of a stream that has not begun");
    if (r == PS_OK)
        r = prepare(&p, fd, schema, options, &restorer, err);
    if (r != PS_OK)
        return r;
    r = load_all(p, &restorer, &says, err);
    if (r != PS_OK) {
        ps_packer_free(p);
        return r;
    }
    *packer = p;
    return PS_OK;
}
