/*
 * pack_writer.c - write packs of existing streams, as a share or joined.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "format/totals.h"
#include "format/version.h"
#include "stream/block_output.h"

struct ps_pack_writer {
    int fd; /* not owned */
    ps_output_options options;
    ps_block_output output;
    bool shuffled;
    bool joined;
    uint32_t block_packs; /* packs per block, from the first stream */
    uint64_t raise;       /* number to add to ids */
    bool ended;           /* no more packs can be put */
    ps_pack_info info;    /* header of the current stream */
    uint64_t newest;      /* greatest id in the current stream */
    ps_totals totals;     /* totals of the packs put in the current stream */
};

/*
 * Sets the header of a stream.  Its counts are not known yet.  For joined
 * streams the depth is not known either, and their packing options may differ.
 */
static ps_result set_info(ps_pack_writer *w, const ps_pack_info *info,
                          ps_error *err)
{
    w->info = *info;
    w->info.share = !w->joined;
    if (w->joined) {
        w->info.options_digest = 0;
        w->info.depth = 0;
    }
    if (w->shuffled)
        w->info.max_displacement = PS_MAX_WINDOW;
    w->info.n_packs = w->info.n_sequences = w->info.n_tokens = PS_UNKNOWN;
    w->info.max_seqlen = w->info.min_fill = PS_UNKNOWN;
    w->info.block_packs = w->block_packs;
    w->newest = 0;
    w->totals = (ps_totals){0};
    return ps_layout(&w->info, err);
}

/* Opens an output whose blocks have room for packs of any depth. */
static ps_result open_output(ps_pack_writer *w, ps_error *err)
{
    const uint32_t depth = w->info.depth;
    ps_result r;

    w->info.depth = 0;
    r = ps_layout(&w->info, err);
    if (r == PS_OK)
        r = ps_block_output_open(&w->output, w->fd, &w->info, &w->options, err);
    w->info.depth = depth;
    return r == PS_OK ? ps_layout(&w->info, err) : r;
}

/* Starts a stream. */
static ps_result begin(ps_pack_writer *w, const ps_pack_info *info,
                       ps_error *err)
{
    ps_result r = set_info(w, info, err);

    if (r == PS_OK && w->output.output == NULL)
        r = open_output(w, err);
    return r == PS_OK ? ps_block_output_begin(&w->output, false, err) : r;
}

static ps_result check_version(const ps_pack_info *info, ps_error *err)
{
    if (ps_is_version_known(info))
        return PS_OK;
    return ps_fail(err, PS_ERR_UNSUPPORTED,
                   "packs of format version %u.%u may contain data that cannot "
                   "be copied: use a newer packstream",
                   (unsigned)info->version_major,
                   (unsigned)info->version_minor);
}

ps_result ps_pack_writer_open(ps_pack_writer **writer, int fd,
                              const ps_pack_info *info,
                              const ps_pack_writer_options *options,
                              ps_error *err)
{
    ps_pack_writer *w;
    ps_result r = check_version(info, err);

    *writer = NULL;
    if (r == PS_OK && options->joined && info->share)
        r = ps_fail(err, PS_ERR_UNSUPPORTED,
                    "the share of one rank cannot be joined: the other packs "
                    "are in other files");
    if (r != PS_OK)
        return r;
    w = calloc(1, sizeof *w);
    if (w == NULL)
        return ps_fail_memory(err);
    w->fd = fd;
    w->shuffled = options->shuffled;
    w->joined = options->joined;
    w->block_packs = info->block_packs;
    w->options = (ps_output_options){
        .threads = options->threads,
        .compressed = options->compressed,
        .level = options->level,
    };
    r = begin(w, info, err);
    if (r != PS_OK) {
        ps_pack_writer_free(w);
        return r;
    }
    *writer = w;
    return PS_OK;
}

/* Adds a pack to the totals for END, with its new ids. */
static void count(ps_pack_writer *w, const ps_pack *pack)
{
    ps_totals *t = &w->totals;
    uint64_t oldest = UINT64_MAX;

    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const ps_piece piece = ps_pack_piece(&w->info, pack, i);

        oldest = piece.id < oldest ? piece.id : oldest;
        w->newest = piece.id > w->newest ? piece.id : w->newest;
        t->extra_pieces += piece.seq_off > 0;
        t->split_sequences +=
            piece.seq_off == 0 && piece.n_tok < piece.seq_len;
    }
    if (w->newest - oldest > t->max_displacement)
        t->max_displacement = w->newest - oldest;
    ps_totals_add_pack(t, pack->n_seq, pack->n_tok, pack->max_seqlen);
}

ps_result ps_pack_writer_put(ps_pack_writer *w, const ps_pack *pack,
                             ps_error *err)
{
    const uint64_t raise = w->shuffled || w->joined ? w->raise : 0;
    const size_t seq_bytes = w->info.seq_bytes;
    ps_pack written = *pack;
    ps_pack_builder to;
    ps_result r;

    if (w->ended || pack->row == NULL ||
        pack->n_seq > ps_max_sequences(&w->info))
        return ps_fail(err, PS_ERR_ARGUMENT,
                       w->ended           ? "the stream has ended"
                       : pack->row == NULL ? "a pack has no row"
                                           : "a pack has more sequences than "
                                             "the header's depth");
    r = ps_block_output_pack(&w->output, pack->n_seq, &to, err);
    if (r != PS_OK)
        return r;
    memcpy(to.row, pack->row, w->info.row_bytes);
    memcpy(to.seq, pack->sequences, pack->n_seq * seq_bytes);
    for (uint32_t i = 0; raise > 0 && i < pack->n_seq; i++) {
        unsigned char *id = to.seq + i * seq_bytes + PS_SEQ_ID;

        store_u64(id, load_u64(id) + raise);
    }
    to.n_seq = pack->n_seq;
    to.n_tok = pack->n_tok;
    to.max_seqlen = pack->max_seqlen;
    to.sum_len_sq = pack->sum_len_sq;
    written.sequences = to.seq;
    count(w, &written);
    return ps_block_output_add(
        &w->output, &to, w->shuffled ? 0 : pack->watermark + raise, err);
}

/* Copies the lists of a sequence.  Its sequence row has been copied. */
static void copy_lists(ps_pack_builder *to, const ps_pack *pack)
{
    const ps_form *form = to->form;
    const ps_form_field *f = form->fields + form->n_fields - form->n_lists;

    for (uint32_t i = 0; i < form->n_lists; i++) {
        const uint32_t start = load_u32(to->seq + form->lists[i]);
        uint32_t n;
        unsigned char *elements = ps_pack_next_list(to, i, &n);

        memcpy(elements, pack->row + f[i].offset + (size_t)start * f[i].bytes,
               (size_t)n * f[i].bytes);
    }
}

/* Adds sequence `i` of a pack to the pack being built. */
static void copy_sequence(const ps_pack_writer *w, ps_pack_builder *to,
                          const ps_pack *pack, uint32_t i)
{
    const ps_form *form = to->form;
    const ps_piece piece = ps_pack_piece(&w->info, pack, i);

    for (uint32_t k = 0; k < form->n_fields - form->n_lists; k++) {
        const ps_form_field *f = &form->fields[k];

        memcpy(to->row + f->offset + (size_t)to->n_rows * f->bytes,
               pack->row + f->offset + (size_t)piece.begin * f->bytes,
               (size_t)piece.n_tok * f->bytes);
    }
    memcpy(to->seq, ps_pack_sequence(&w->info, pack, i), form->seq_bytes);
    copy_lists(to, pack);
    ps_pack_add(to, &piece);
}

/*
 * Adds the first token of the first sequence, with the fill value of each
 * per-token channel, and without lists.
 */
static void keep_token(const ps_pack_writer *w, ps_pack_builder *to,
                       const ps_pack *pack)
{
    const ps_form *form = to->form;
    const ps_form_field *tokens = &form->fields[PS_FIELD_TOKENS];
    ps_piece piece = ps_pack_piece(&w->info, pack, 0);

    ps_pack_pad(to, 0, 1);
    memcpy(to->row + tokens->offset, pack->row + tokens->offset,
           tokens->bytes);
    memcpy(to->seq, pack->sequences, form->seq_bytes);
    for (uint32_t i = 0; i < form->n_lists; i++)
        memset(to->seq + form->lists[i], 0, PS_LIST_BYTES);
    piece.n_tok = 1;
    ps_pack_add(to, &piece);
}

ps_result ps_pack_writer_put_without(ps_pack_writer *w, const ps_pack *pack,
                                     const bool *omitted, ps_error *err)
{
    unsigned char *row = malloc(w->info.row_bytes);
    unsigned char *sequences = malloc((size_t)pack->n_seq * w->info.seq_bytes);
    ps_pack_builder to = {
        .form = &w->output.form, .row = row, .seq = sequences};
    ps_pack written = *pack;
    ps_result r;

    if (row == NULL || sequences == NULL) {
        r = ps_fail_memory(err);
    } else if (pack->row == NULL) {
        r = ps_pack_writer_put(w, pack, err);
    } else {
        for (uint32_t i = 0; i < pack->n_seq; i++)
            if (!omitted[i])
                copy_sequence(w, &to, pack, i);
        if (to.n_seq == 0)
            keep_token(w, &to, pack);
        ps_pack_end(&to);
        written.row = row;
        written.sequences = sequences;
        written.n_seq = to.n_seq;
        written.n_tok = to.n_tok;
        written.max_seqlen = to.max_seqlen;
        written.sum_len_sq = to.sum_len_sq;
        r = ps_pack_writer_put(w, &written, err);
    }
    free(row);
    free(sequences);
    return r;
}

void ps_pack_writer_raise_ids(ps_pack_writer *w, uint64_t by)
{
    w->raise = by;
}

ps_result ps_pack_writer_push(ps_pack_writer *w, ps_error *err)
{
    ps_result r;

    if (w->output.output == NULL)
        return PS_OK;
    r = ps_block_output_close(&w->output, err);
    return r == PS_OK ? ps_output_push(w->output.output, err) : r;
}

/*
 * Completes the totals.  Everything that is not in the share counts as
 * rejected: sequences whose first token is in another share, and all tokens in
 * other shares.
 */
static ps_result complete_totals(ps_totals *t, const ps_totals *whole,
                                 ps_error *err)
{
    const uint64_t sequences = t->sequences - t->extra_pieces;

    if (sequences > whole->input_sequences ||
        whole->truncated_tokens > whole->input_tokens ||
        t->tokens > whole->input_tokens - whole->truncated_tokens)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the packs have %" PRIu64 " sequences and %" PRIu64 " "
                       "tokens, more than END declares as input",
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
    ps_result r = PS_OK;

    if (w->ended || (w->joined && next != NULL))
        return ps_fail(err, PS_ERR_ARGUMENT,
                       w->ended ? "the stream has ended"
                                : "joined streams have a single END");
    if (next != NULL) {
        ps_pack_info share = *next;

        share.share = true;
        r = check_version(next, err);
        if (r == PS_OK)
            r = ps_pack_info_compare(&share, &w->info, err);
    }
    if (r == PS_OK)
        r = complete_totals(&w->totals, totals, err);
    if (r != PS_OK)
        return r;
    w->ended = true;
    r = ps_block_output_end(&w->output, &w->totals, err);
    if (r != PS_OK)
        return r;

    /* A seek table ends a compressed output.  The next stream opens another. */
    if (w->options.compressed) {
        r = ps_output_finish(w->output.output, err);
        if (r == PS_OK)
            ps_block_output_free(&w->output);
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
    return w->output.output == NULL ? PS_OK
                                    : ps_output_finish(w->output.output, err);
}

void ps_pack_writer_free(ps_pack_writer *w)
{
    if (w == NULL)
        return;
    ps_block_output_free(&w->output);
    free(w);
}
