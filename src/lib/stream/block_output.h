/*
 * block_output.h - packs that are built in place, gathered in blocks, indexed
 * and written: what the packer and the pack writer share.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_STREAM_BLOCK_OUTPUT_H
#define LIB_STREAM_BLOCK_OUTPUT_H

#include "base/serial.h"
#include "format/block.h"
#include "format/pack.h"
#include "io/output.h"

/* Entries of the index, encoded. */
typedef struct ps_entries {
    unsigned char *bytes;
    size_t n;
    size_t capacity;
} ps_entries;

/*
 * The open block lies in memory of the output as if it were full: rows, then
 * heads, then sequence rows.  A block that is closed earlier is moved together.
 */
typedef struct ps_block_output {
    const ps_pack_info *info; /* of the stream; the owner's */
    ps_form form;
    ps_output *output;
    uint64_t first_pack; /* blocks that lie before it are not written */
    uint32_t n_packs; /* of the open block, */
    uint32_t n_seqs;
    unsigned char *row; /* and where the next one goes, */
    unsigned char *head;
    unsigned char *sequences; /* if it has any */
    uint64_t first;     /* index of its first pack */
    uint64_t watermark; /* and that of its last */
    uint64_t at;        /* where it will be, from the stream's header */
    uint32_t n_blocks;  /* listed in `entries`, */
    uint64_t index_first; /* from that pack on */
    unsigned char *entries; /* PS_INDEX_BLOCKS */
    ps_entries parts;

    /* For the thread that writes; to be read when all is written. */
    uint64_t digest; /* of the packs of whole blocks, */
    uint64_t followed; /* so many */
    uint64_t proof_packs; /* that are to have the digest `proof`; or 0 */
    uint64_t proof;
    bool differs;
} ps_block_output;

/* A bound of the memory, but for what grows with the length of the stream. */
uint64_t ps_block_output_bytes(const ps_pack_info *info,
                               const ps_output_options *options);

/*
 * Opens the output, of which `largest` and `finalizer` are set here.  `b` is
 * zeros but for `first_pack`, and must stay where it is.  PS_ERR_MEMORY, _IO.
 */
ps_result ps_block_output_open(ps_block_output *b, int fd,
                               const ps_pack_info *info,
                               const ps_output_options *options, ps_error *err);

/*
 * Begins a stream, the first or one behind END, with its header.  With
 * `goes_on` its packs begin in the middle.  PS_ERR_IO, _MEMORY.
 */
ps_result ps_block_output_begin(ps_block_output *b, bool goes_on,
                                ps_error *err);

/* Goes on with a block that is empty.  PS_ERR_IO, _MEMORY. */
ps_result ps_block_output_next_block(ps_block_output *b, ps_error *err);

/*
 * The next pack, to be built; it will have `n_seq` sequences.  Closes the block
 * if these do not fit.  PS_ERR_IO, _MEMORY.
 */
static inline ps_result ps_block_output_pack(ps_block_output *b,
                                             uint32_t n_seq,
                                             ps_pack_builder *pack,
                                             ps_error *err)
{
    const uint64_t n = (uint64_t)b->n_seqs + n_seq;
    ps_result r = PS_OK;

    if (b->n_packs == 0 || n * b->info->seq_bytes > PS_BLOCK_SEQ_BYTES)
        r = ps_block_output_next_block(b, err);
    *pack = (ps_pack_builder){
        .form = &b->form, .row = b->row, .seq = b->sequences};
    return r;
}

/* Adds that pack, which is whole.  PS_ERR_IO, _MEMORY. */
ps_result ps_block_output_add(ps_block_output *b, const ps_pack_builder *pack,
                              uint64_t watermark, ps_error *err);

/* Closes the block, if it has packs.  PS_ERR_IO, _MEMORY, _LIMIT. */
ps_result ps_block_output_close(ps_block_output *b, ps_error *err);

/* Closes the block and waits until it is written.  As that. */
ps_result ps_block_output_settle(ps_block_output *b, ps_error *err);

/* Writes END; nothing is finished yet.  PS_ERR_IO, _MEMORY, _LIMIT. */
ps_result ps_block_output_end(ps_block_output *b, const ps_totals *totals,
                              ps_error *err);

/*
 * Saves the index and the open block; `followed` and the digest are for the
 * caller to save.  All blocks before it must be written, as by
 * ps_output_where.
 */
void ps_block_output_save(const ps_block_output *b, ps_saver *saver);

/*
 * Loads what was saved into an output that was opened, but has no packs yet;
 * with `first_pack` it has begun.  `n_packs` packs were in whole blocks, and
 * `n_all` with those of the open one.
 * PS_OK, PS_ERR_CORRUPT, PS_ERR_MEMORY.
 */
ps_result ps_block_output_load(ps_block_output *b, ps_restorer *restorer,
                               uint64_t n_packs, uint64_t n_all,
                               ps_error *err);

void ps_block_output_free(ps_block_output *b);

#endif
