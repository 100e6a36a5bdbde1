/*
 * checkpoint.c - save and resume a packer between two sequences.
 *
 * SPDX-License-Identifier: MIT
 *
 * A state consists of a head that describes it, the caller's note, and
 * everything the output depends on: the header, which binds the state to schema
 * and options, the totals, the output position, the index and open block, the
 * engine, and the sequences held.  It contains only a hash of their payloads,
 * which are in the input; refill.c gets them back.  The state ends with the
 * XXH3-64 of all preceding bytes.
 *
 * The state of a finished stream ends after the totals.  A blank state ends
 * after the note.
 *
 * A loaded state is untrusted: every number is checked before use.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/serial.h"
#include "bytes.h"
#include "format/pack_header.h"
#include "format/pack_layout.h"
#include "format/totals.h"
#include "packer/emit.h"
#include "packer/group.h"
#include "packer/packer.h"
#include "packer/refill.h"

#define STATE_MAGIC "\x89PKT\r\n\x1a\n"
#define STATE_MAGIC_BYTES 8
#define STATE_VERSION 10
#define STATE_CHECKSUM_BYTES 8

/* Type of a state, stored in its head. */
enum { STATE_GOES_ON, STATE_FINISHED, STATE_BLANK };

/* ---- Saving ---- */

uint64_t ps_packer_resume_from_id(const ps_packer *p)
{
    uint32_t oldest = p->engine == NULL ? PS_NO_SLOT
                                        : ps_engine_oldest(p->engine);

    if (oldest != PS_NO_SLOT)
        return p->held[oldest].id;
    return p->group.pieces > 0 ? p->group.id : p->totals.input_sequences;
}

static void save_head(ps_saver *saver, uint32_t kind, const ps_state *summary)
{
    ps_save_bytes(saver, STATE_MAGIC, STATE_MAGIC_BYTES);
    ps_save_u32(saver, STATE_VERSION);
    ps_save_u32(saver, kind);
    ps_save_u64(saver, summary->packs);
    ps_save_u64(saver, summary->output_bytes);
    ps_save_u64(saver, summary->output_packs);
    ps_save_u64(saver, summary->output_digest);
    ps_save_u64(saver, summary->input_sequences);
    ps_save_u64(saver, summary->resume_from_id);
    ps_save_u64(saver, summary->note_bytes);
    ps_save_bytes(saver, summary->note, summary->note_bytes);
}

/* Saves options, header and totals. */
static void save_stream(const ps_packer *p, ps_saver *saver)
{
    unsigned char options[PS_OPTIONS_BYTES];
    unsigned char header[PS_PACK_HEADER_BYTES];
    unsigned char totals[PS_TOTALS_BYTES];

    ps_save_u32(saver, p->set.options.compressed);
    ps_save_u32(saver, (uint32_t)p->set.options.level);
    ps_settings_encode(&p->set, options);
    ps_save_bytes(saver, options, sizeof options);
    ps_pack_header_encode(&p->set.info, header);
    ps_save_bytes(saver, header, sizeof header);

    ps_totals_encode(&p->totals, 0, totals);
    ps_save_bytes(saver, totals, sizeof totals);
    for (unsigned i = 0; i < PS_REJECTS; i++) {
        ps_save_u64(saver, p->rejected[i].sequences);
        ps_save_u64(saver, p->rejected[i].tokens);
    }
    if (p->set.by != NULL) {
        ps_save_u64(saver, p->groups.groups);
        ps_save_u64(saver, p->groups.overlong);
    }
    ps_save_u64(saver, p->newest_out);
    /* Needed for a finished stream, which is loaded without an engine. */
    ps_save_u64(saver, ps_packer_delay(p));
}

static ps_result save_engine(ps_packer *p, ps_saver *saver, ps_error *err)
{
    uint32_t *slots = malloc(p->engine->n_slots * sizeof *slots);
    ps_held_piece *pieces;
    uint32_t n;
    uint64_t hash;
    ps_result r = PS_OK;

    if (slots == NULL)
        return ps_fail_memory(err);
    n = ps_engine_save(p->engine, saver, slots);
    for (uint32_t i = 0; i < n; i++) {
        const ps_held *h = &p->held[slots[i]];

        ps_save_u64(saver, h->id);
        ps_save_u32(saver, h->seq_off);
        ps_save_u32(saver, h->seq_len);
    }
    pieces = p->set.by == NULL ? ps_refill_list(p, slots, n)
                               : ps_group_list(p, slots, n, &n);
    free(slots);
    if (pieces == NULL)
        return ps_fail_memory(err);
    if (p->set.by != NULL)
        ps_group_save(p, saver, pieces, n);
    r = ps_refill_hash(p, pieces, n, &hash, err);
    ps_save_u64(saver, hash);
    free(pieces);
    return r;
}

/*
 * Appends the checksum and passes the saved bytes to the caller, unless an
 * error occurred.
 */
static ps_result give(ps_saver *saver, ps_result r, unsigned char **state,
                      size_t *bytes, ps_error *err)
{
    if (r == PS_OK && !saver->failed)
        ps_save_u64(saver, ps_hash(saver->bytes, saver->n));
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
    ps_state summary = {.packs = p->totals.packs,
                        .input_sequences = p->totals.input_sequences,
                        .resume_from_id = ps_packer_resume_from_id(p),
                        .note = note,
                        .note_bytes = note_bytes};
    ps_output_place place;
    ps_result r;

    *state = NULL;
    *bytes = 0;
    if (ps_refill_waits(p))
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the replay is not complete");
    if (p->totals.packs == 0 && !p->finished)
        return ps_fail(err, PS_ERR_ARGUMENT, "no pack has been written yet");
    r = ps_output_where(p->output.output, &place, err);
    if (r == PS_OK)
        r = ps_packer_check_replay(p, err);
    if (r != PS_OK)
        return r;

    summary.output_bytes = place.written;
    summary.output_packs = p->output.followed;
    summary.output_digest = p->output.digest;
    save_head(&saver, p->finished ? STATE_FINISHED : STATE_GOES_ON, &summary);
    save_stream(p, &saver);
    if (!p->finished) {
        ps_save_u64(&saver, place.table_bytes);
        ps_save_bytes(&saver, place.table, place.table_bytes);
        ps_block_output_save(&p->output, &saver);
        r = save_engine(p, &saver, err);
    }
    return give(&saver, r, state, bytes, err);
}

ps_result ps_state_blank(const void *note, size_t note_bytes,
                         unsigned char **state, size_t *bytes, ps_error *err)
{
    const ps_state summary = {.note = note, .note_bytes = note_bytes};
    ps_saver saver = {0};

    *state = NULL;
    *bytes = 0;
    save_head(&saver, STATE_BLANK, &summary);
    return give(&saver, PS_OK, state, bytes, err);
}

/* ---- Reading ---- */

/* Verifies the checksum and decodes the head and note. */
static ps_result read_head(ps_restorer *restorer, const unsigned char *state,
                           size_t bytes, ps_state *summary, ps_error *err)
{
    size_t n = bytes < STATE_MAGIC_BYTES ? bytes : STATE_MAGIC_BYTES;
    uint32_t kind;

    *summary = (ps_state){0};
    if (n > 0 && memcmp(state, STATE_MAGIC, n) != 0)
        return ps_fail(err, PS_ERR_MAGIC, "not a saved state");
    if (bytes < STATE_MAGIC_BYTES + 4 + STATE_CHECKSUM_BYTES)
        return ps_fail(err, PS_ERR_TRUNCATED, "the state is truncated: remove "
                       "it and the output to start again");
    n = bytes - STATE_CHECKSUM_BYTES;
    if (load_u64(state + n) != ps_hash(state, n))
        return ps_fail_state(err);
    if (load_u32(state + STATE_MAGIC_BYTES) != STATE_VERSION)
        return ps_fail(err, PS_ERR_UNSUPPORTED,
                       "the state has version %" PRIu32 ", but this program "
                       "reads version %d: resume with the version that saved "
                       "it",
                       load_u32(state + STATE_MAGIC_BYTES), STATE_VERSION);

    *restorer = (ps_restorer){.at = state, .left = n};
    (void)ps_load_bytes(restorer, STATE_MAGIC_BYTES + 4);
    kind = ps_load_within(restorer, STATE_GOES_ON, STATE_BLANK);
    summary->finished = kind == STATE_FINISHED;
    summary->blank = kind == STATE_BLANK;
    summary->packs = ps_load_u64(restorer);
    summary->output_bytes = ps_load_u64(restorer);
    summary->output_packs = ps_load_u64(restorer);
    summary->output_digest = ps_load_u64(restorer);
    summary->input_sequences = ps_load_u64(restorer);
    summary->resume_from_id = ps_load_u64(restorer);
    summary->note_bytes = (size_t)ps_load_u64(restorer);
    summary->note = ps_load_bytes(restorer, summary->note_bytes);
    if (restorer->failed ||
        summary->output_packs > summary->packs ||
        summary->resume_from_id > summary->input_sequences ||
        (summary->packs == 0 && kind == STATE_GOES_ON) ||
        (summary->output_packs < summary->packs && kind != STATE_GOES_ON) ||
        (summary->packs > 0 && kind == STATE_BLANK))
        return ps_fail_state(err);
    return PS_OK;
}

ps_result ps_state_read(const unsigned char *state, size_t bytes,
                        ps_state *summary, ps_error *err)
{
    ps_restorer restorer;

    return read_head(&restorer, state, bytes, summary, err);
}

/*
 * Compares the saved header with ours.  The header covers everything that binds
 * the state to its stream.  If it differs, the message names the first
 * difference, with the saved value before the current one.
 */
static ps_result load_header(ps_packer *p, ps_restorer *restorer, ps_error *err)
{
    const ps_pack_info *info = &p->set.info;
    uint32_t compressed = ps_load_within(restorer, 0, 1);
    uint32_t level = ps_load_u32(restorer);
    const unsigned char *then = ps_load_bytes(restorer, PS_OPTIONS_BYTES);
    const unsigned char *header =
        ps_load_bytes(restorer, PS_PACK_HEADER_BYTES);
    unsigned char ours[PS_PACK_HEADER_BYTES];
    unsigned char now[PS_OPTIONS_BYTES];
    ps_pack_info theirs;
    ps_error why;

    if (restorer->failed)
        return ps_fail_state(err);
    if (compressed != p->set.options.compressed)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the state was saved for packs that are %scompressed, "
                       "but these packs are%s",
                       compressed ? "" : "not ", compressed ? " not" : "");
    if (compressed != 0 && level != (uint32_t)p->set.options.level)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the state was saved with compression level "
                       "%" PRId32 ", not %d",
                       (int32_t)level, p->set.options.level);
    ps_pack_header_encode(info, ours);
    if (memcmp(ours, header, sizeof ours) == 0)
        return PS_OK;
    if (ps_pack_header_decode(header, &theirs, err) != PS_OK)
        return ps_fail_state(err);
    if (theirs.capacity != info->capacity)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the state was saved with capacity %" PRIu32 ", not "
                       "%" PRIu32,
                       theirs.capacity, info->capacity);
    if (theirs.align != info->align)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the state was saved with align %" PRIu32 ", not "
                       "%" PRIu32,
                       theirs.align, info->align);
    if (theirs.block_packs != info->block_packs)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the state was saved with blocks of %" PRIu32 " packs, "
                       "not %" PRIu32,
                       theirs.block_packs, info->block_packs);
    if (!ps_budgets_equal(&theirs, info))
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the state was saved with different budgets");
    if (ps_schema_compare(&theirs.schema, &info->schema, &why) != PS_OK)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the state was saved for different token records: %s",
                       why.text);
    ps_settings_encode(&p->set, now);
    return ps_fail(err, PS_ERR_ARGUMENT, "the state was saved with %s",
                   ps_settings_compare(then, now, &why) == PS_OK
                       ? "a different header"
                       : why.text);
}

/* Creates a packer whose header matches the state; NULL on failure. */
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
    ps_state summary;
    ps_packer *p = NULL;
    ps_result r = read_head(&restorer, state, bytes, &summary, err);

    if (r == PS_OK && summary.blank)
        return restorer.left == 0 ? PS_OK : ps_fail_state(err);
    if (r == PS_OK)
        r = prepare(&p, -1, schema, options, &restorer, err);
    ps_packer_free(p);
    return r;
}

/*
 * Loads the totals.  They must agree with the head.  In the state of a finished
 * stream nothing may follow.
 */
static ps_result load_totals(ps_packer *p, ps_restorer *restorer,
                             const ps_state *summary, ps_error *err)
{
    const unsigned char *bytes = ps_load_bytes(restorer, PS_TOTALS_BYTES);
    uint64_t none;

    if (bytes != NULL)
        ps_totals_decode(bytes, &p->totals, &none);
    for (unsigned i = 0; i < PS_REJECTS; i++) {
        p->rejected[i].sequences = ps_load_u64(restorer);
        p->rejected[i].tokens = ps_load_u64(restorer);
    }
    if (p->set.by != NULL) {
        p->groups.groups = ps_load_u64(restorer);
        p->groups.overlong = ps_load_u64(restorer);
    }
    p->newest_out = ps_load_u64(restorer);
    p->ended_delay = ps_load_u64(restorer);
    p->output.digest = summary->output_digest;
    p->output.first = p->output.followed = summary->output_packs;
    p->next_id = p->totals.input_sequences;
    if (restorer->failed || p->totals.packs != summary->packs ||
        p->totals.input_sequences != summary->input_sequences ||
        (summary->finished && restorer->left > 0))
        return ps_fail_state(err);
    return PS_OK;
}

ps_result ps_packer_open_ended(ps_packer **packer, const ps_schema *schema,
                               const ps_packer_options *options,
                               const unsigned char *state, size_t bytes,
                               ps_error *err)
{
    ps_restorer restorer;
    ps_state summary;
    ps_packer *p = NULL;
    ps_result r = read_head(&restorer, state, bytes, &summary, err);

    *packer = NULL;
    if (r == PS_OK && !summary.finished)
        r = ps_fail(err, PS_ERR_ARGUMENT,
                    "the state's stream has not ended");
    if (r == PS_OK)
        r = prepare(&p, -1, schema, options, &restorer, err);
    if (r == PS_OK)
        r = load_totals(p, &restorer, &summary, err);
    if (r != PS_OK) {
        ps_packer_free(p);
        return r;
    }
    p->finished = true;
    *packer = p;
    return PS_OK;
}

ps_result ps_packer_verify_replay(ps_packer *p, const unsigned char *state,
                                  size_t bytes, ps_error *err)
{
    ps_restorer restorer;
    ps_state summary;
    ps_result r = read_head(&restorer, state, bytes, &summary, err);

    if (r != PS_OK || summary.blank)
        return r;
    if (p->totals.input_sequences > 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "sequences were added before the state was verified");
    p->output.proof_packs = summary.output_packs;
    p->output.proof = summary.output_digest;
    return PS_OK;
}

/* ---- Resuming ---- */

/* Loads the position of the output.  A finished stream has no seek table. */
static ps_result load_place(ps_restorer *restorer, const ps_state *summary,
                            ps_output_place *place, ps_error *err)
{
    *place = (ps_output_place){.written = summary->output_bytes};
    if (summary->finished)
        return PS_OK;
    place->table_bytes = (size_t)ps_load_u64(restorer);
    place->table = ps_load_bytes(restorer, place->table_bytes);
    if (restorer->failed)
        return ps_fail_state(err);
    if (place->table_bytes == 0)
        place->table = NULL;
    return PS_OK;
}

/*
 * Checks and counts the sequence or piece that was loaded to a slot.  refill.c
 * counts its lists.
 */
static bool count_piece(ps_packer *p, uint32_t slot)
{
    const ps_held *h = &p->held[slot];
    uint32_t n_tok;

    if (h->seq_off >= h->seq_len)
        return false;
    n_tok = ps_packer_length(p, slot);
    p->bytes += ps_settings_store_bytes(&p->set, n_tok, 0);
    return ps_settings_units(&p->set, n_tok) ==
           ps_engine_length(p->engine, slot);
}

/* Loads the engine and the sequences it holds, without payloads. */
static ps_result load_engine(ps_packer *p, ps_restorer *restorer,
                             const ps_state *summary, ps_error *err)
{
    const ps_engine_options options = ps_settings_engine(&p->set);
    uint32_t *slots = malloc(p->engine->n_slots * sizeof *slots);
    ps_held_piece *pieces = NULL;
    uint32_t n = 0;
    ps_result r;

    if (slots == NULL)
        return ps_fail_memory(err);
    r = ps_engine_load(p->engine, restorer, &options, slots, &n, err);
    for (uint32_t i = 0; i < n && r == PS_OK; i++) {
        ps_held *h = &p->held[slots[i]];

        h->id = ps_load_u64(restorer);
        h->seq_off = ps_load_u32(restorer);
        h->seq_len = ps_load_u32(restorer);
        if (restorer->failed || h->id < summary->resume_from_id ||
            h->id >= summary->input_sequences ||
            (p->set.by == NULL && !count_piece(p, slots[i])))
            r = ps_fail_state(err);
    }
    if (r == PS_OK) {
        pieces = p->set.by == NULL
                     ? ps_refill_list(p, slots, n)
                     : ps_group_load(p, restorer, slots, n, &n);
        r = pieces == NULL ? ps_fail_memory(err)
                           : ps_refill_begin(p, pieces, n,
                                             ps_load_u64(restorer), err);
    }
    free(slots);
    if (r == PS_OK && (restorer->failed || restorer->left > 0))
        r = ps_fail_state(err);
    return r;
}

ps_result ps_packer_resume(ps_packer **packer, int fd,
                           const ps_schema *schema,
                           const ps_packer_options *options,
                           const unsigned char *state, size_t bytes,
                           ps_error *err)
{
    ps_restorer restorer;
    ps_state summary;
    ps_output_place place;
    ps_packer *p = NULL;
    ps_result r = read_head(&restorer, state, bytes, &summary, err);

    *packer = NULL;
    if (r == PS_OK && summary.blank)
        r = ps_fail(err, PS_ERR_ARGUMENT,
                    "the state's stream has not started");
    if (r == PS_OK)
        r = prepare(&p, fd, schema, options, &restorer, err);
    /* A reader that has all packs still needs the header and END. */
    if (r == PS_OK && summary.finished &&
        (options->first_pack != summary.packs || summary.packs == 0))
        r = ps_fail(err, PS_ERR_ARGUMENT,
                    "the state's stream has ended");
    if (r == PS_OK)
        r = load_totals(p, &restorer, &summary, err);
    if (r == PS_OK)
        r = load_place(&restorer, &summary, &place, err);
    if (r == PS_OK)
        r = ps_packer_start(p, &place, err);
    /* Write the header before loading the open block into the same memory. */
    if (r == PS_OK && options->first_pack > 0)
        r = ps_packer_begin(p, true, err);
    if (r == PS_OK && !summary.finished)
        r = ps_block_output_load(&p->output, &restorer, summary.output_packs,
                                 summary.packs, err);
    if (r == PS_OK && !summary.finished)
        r = load_engine(p, &restorer, &summary, err);
    if (r != PS_OK) {
        ps_packer_free(p);
        return r;
    }
    *packer = p;
    return PS_OK;
}
