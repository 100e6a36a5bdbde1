/*
 * pack_writer.c - packs that a reader gave out again, as a share or joined.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "format/digest.h"
#include "format/pack_header.h"
#include "format/pack_record.h"
#include "format/totals.h"
#include "format/version.h"
#include "io/output.h"
#include "io/seek_table.h"

struct ps_pack_writer {
    int fd;
    ps_output_options options;
    ps_output *output;
    bool shuffled;
    bool joined;
    uint64_t raise;    /* added to ids */
    bool ended;        /* no stream follows */
    ps_pack_info info; /* of this stream, as all below */
    uint64_t digest;   /* so far */
    uint64_t newest;   /* greatest id */
    ps_totals totals;  /* what packs show */
};

/*
 * Begins a stream.  Its counts are not known yet; and which options chose all
 * packs of streams that are joined nobody knows.
 */
static ps_result begin(ps_pack_writer *w, const ps_pack_info *info,
                       ps_error *err)
{
    unsigned char header[PS_PACK_HEADER_BYTES];
    ps_result r = PS_OK;

    w->info = *info;
    w->info.share = !w->joined;
    if (w->joined)
        w->info.options_digest = 0;
    if (w->shuffled)
        w->info.window = PS_MAX_WINDOW;
    w->info.n_records = w->info.n_sequences = w->info.n_tokens = PS_UNKNOWN;
    w->info.max_seqlen = w->info.min_fill = PS_UNKNOWN;
    ps_pack_header_encode(&w->info, header);
    w->digest = ps_pack_digest_begin(header);
    w->newest = 0;
    w->totals = (ps_totals){0};
    if (w->output == NULL)
        r = ps_output_open(&w->output, w->fd, &w->options, err);
    if (r == PS_OK)
        r = ps_output_put(w->output, header, sizeof header, err);
    return r == PS_OK ? ps_output_cut(w->output, err) : r;
}

static ps_result check_version(const ps_pack_info *info, ps_error *err)
{
    if (ps_is_version_known(info))
        return PS_OK;
    return ps_fail(err, PS_ERR_UNSUPPORTED,
                   "packs of format version %u.%u may hold what cannot be "
                   "handed on",
                   (unsigned)info->version_major,
                   (unsigned)info->version_minor);
}

ps_result ps_pack_writer_open(ps_pack_writer **writer, int fd,
                              const ps_pack_info *info,
                              const ps_pack_writer_options *options,
                              ps_error *err)
{
    const size_t record = info->record_bytes;
    ps_pack_writer *w;
    ps_result r = check_version(info, err);

    *writer = NULL;
    if (r == PS_OK && options->joined && info->share)
        r = ps_fail(err, PS_ERR_UNSUPPORTED,
                    "a share, of which other packs are elsewhere, cannot be "
                    "joined");
    if (r != PS_OK)
        return r;
    w = calloc(1, sizeof *w);
    if (w == NULL)
        return ps_fail_memory(err);
    w->fd = fd;
    w->shuffled = options->shuffled;
    w->joined = options->joined;
    w->options = (ps_output_options){
        .largest = record,
        .threads = options->threads,
        .compressed = options->compressed,
        .level = options->level,
        .frame = record * ps_frame_records(info->record_bytes),
    };
    r = begin(w, info, err);
    if (r != PS_OK) {
        ps_pack_writer_free(w);
        return r;
    }
    *writer = w;
    return PS_OK;
}

ps_result ps_pack_writer_put(ps_pack_writer *w, const ps_pack *pack,
                             ps_error *err)
{
    ps_totals *t = &w->totals;
    ps_pack written = *pack;
    uint64_t oldest = UINT64_MAX;
    unsigned char *bytes;
    ps_result r;

    if (w->ended || pack->record == NULL)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       w->ended ? "the stream has ended"
                                : "a pack without its record");
    r = ps_output_reserve(w->output, w->info.record_bytes, &bytes, err);
    if (r != PS_OK)
        return r;
    memcpy(bytes, pack->record, w->info.record_bytes);
    ps_record_renumber(bytes, t->packs);
    if (w->shuffled || w->joined)
        ps_record_raise(&w->info, bytes, pack->n_seq, w->raise);
    if (w->shuffled)
        ps_record_set_watermark(bytes, 0);
    ps_record_finalize(bytes, w->info.record_bytes);

    /* Count it, as it is now, for END. */
    written.record = bytes;
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const ps_piece piece = ps_pack_piece(&w->info, &written, i);

        oldest = piece.id < oldest ? piece.id : oldest;
        w->newest = piece.id > w->newest ? piece.id : w->newest;
        t->extra_pieces += piece.seq_off > 0;
        t->split_sequences +=
            piece.seq_off == 0 && piece.n_tok < piece.seq_len;
    }
    if (w->newest - oldest > t->max_displacement)
        t->max_displacement = w->newest - oldest;
    ps_totals_add_pack(t, pack->n_seq, pack->n_tok, pack->max_seqlen);
    w->digest = ps_pack_digest(w->digest, bytes);
    return PS_OK;
}

void ps_pack_writer_raise_ids(ps_pack_writer *w, uint64_t by)
{
    w->raise = by;
}

ps_result ps_pack_writer_push(ps_pack_writer *w, ps_error *err)
{
    return w->output == NULL ? PS_OK : ps_output_push(w->output, err);
}

/*
 * What is not in the share counts as rejected: a sequence whose first token is
 * elsewhere, and all tokens that are.
 */
static ps_result complete_totals(ps_totals *t, const ps_totals *whole,
                                 ps_error *err)
{
    const uint64_t sequences = t->sequences - t->extra_pieces;

    if (sequences > whole->input_sequences ||
        whole->truncated_tokens > whole->input_tokens ||
        t->tokens > whole->input_tokens - whole->truncated_tokens)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "%" PRIu64 " sequences and %" PRIu64 " tokens are in "
                       "packs, more than END of the stream says of its input",
                       sequences, t->tokens);
    t->input_sequences = whole->input_sequences;
    t->input_tokens = whole->input_tokens;
    t->truncated_sequences = whole->truncated_sequences;
    t->truncated_tokens = whole->truncated_tokens;
    t->rejected_sequences = whole->input_sequences - sequences;
    t->rejected_tokens =
        whole->input_tokens - whole->truncated_tokens - t->tokens;
    return PS_OK;
}

ps_result ps_pack_writer_end(ps_pack_writer *w, const ps_totals *totals,
                             const ps_pack_info *next, ps_error *err)
{
    unsigned char *bytes;
    ps_result r = PS_OK;

    if (w->ended || (w->joined && next != NULL))
        return ps_fail(err, PS_ERR_ARGUMENT,
                       w->ended ? "the stream has ended"
                                : "streams that are joined end once");
    if (next != NULL) {
        ps_pack_info share = *next;

        share.share = true;
        r = check_version(next, err);
        if (r == PS_OK)
            r = ps_pack_info_compare(&share, &w->info, err);
    }
    if (r == PS_OK)
        r = complete_totals(&w->totals, totals, err);
    if (r == PS_OK)
        r = ps_output_reserve(w->output, w->info.record_bytes, &bytes, err);
    if (r != PS_OK)
        return r;
    ps_end_encode(&w->info, &w->totals, w->digest, bytes);
    w->ended = true;

    /* A seek table ends a compressed stream; another one begins anew. */
    if (w->options.compressed) {
        r = ps_output_finish(w->output, err);
        if (r == PS_OK) {
            ps_output_free(w->output);
            w->output = NULL;
        }
    }
    if (r == PS_OK && next != NULL) {
        r = begin(w, next, err);
        w->ended = r != PS_OK;
    }
    return r == PS_OK ? ps_pack_writer_push(w, err) : r;
}

ps_result ps_pack_writer_finish(ps_pack_writer *w, ps_error *err)
{
    if (!w->ended)
        return ps_fail(err, PS_ERR_ARGUMENT, "the stream has not ended");
    return w->output == NULL ? PS_OK : ps_output_finish(w->output, err);
}

void ps_pack_writer_free(ps_pack_writer *w)
{
    if (w == NULL)
        return;
    ps_output_free(w->output);
    free(w);
}
