/*
 * block_output.h - build packs in place, collect them in blocks, index and
 * write them.  Used by the packer and the pack writer.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_STREAM_BLOCK_OUTPUT_H
#define LIB_STREAM_BLOCK_OUTPUT_H

#include "base/serial.h"
#include "format/block.h"
#include "format/pack.h"
#include "io/output.h"

/* Encoded index entries in a growing array. */
typedef struct ps_entries {
    unsigned char *bytes;
    size_t n;        /* entries in use */
    size_t capacity; /* entries allocated */
} ps_entries;

/*
 * The open block is built in the output's memory with the layout of a full
 * block: rows, heads, sequence rows.  A block that is closed early is
 * compacted.
 */
typedef struct ps_block_output {
    const ps_pack_info *info; /* header of the stream; not owned */
    ps_form form;
    ps_output *output;
    uint64_t first_pack; /* blocks with only earlier packs are not written */
    uint32_t n_packs; /* packs in the open block */
    uint32_t n_seqs;  /* sequences of these packs */
    unsigned char *row; /* address of the next row */
    unsigned char *head;      /* address of the next head */
    unsigned char *sequences; /* address of the next sequence row */
    uint64_t first;     /* index of the first pack in the open block */
    uint64_t watermark; /* watermark of the last pack added */
    uint64_t at;        /* offset of the open block in the stream, bytes */
    uint32_t n_blocks;  /* number of blocks in `entries` */
    uint64_t index_first; /* index of the first pack of these blocks */
    unsigned char *entries; /* encoded, with room for PS_INDEX_BLOCKS */
    ps_entries parts;       /* one entry per INDEX block written */

    /* Owned by the writer thread.  Read them only after a flush. */
    uint64_t digest;      /* digest of the packs in complete blocks */
    uint64_t followed;    /* number of packs in `digest` */
    uint64_t proof_packs; /* number of packs after which the digest must equal
                             `proof`; 0: no check */
    uint64_t proof;
    bool differs; /* the digest was not equal to `proof` */
} ps_block_output;

/*
 * Upper bound on the memory of an output with up to 2^27 blocks, in bytes.
 */
uint64_t ps_block_output_bytes(const ps_pack_info *info,
                               const ps_output_options *options);

/*
 * Opens the output.  options->largest and options->finalizer are ignored.  All
 * members of `b` except first_pack must be zero, and `b` must not be moved
 * afterwards.  PS_OK, PS_ERR_MEMORY, PS_ERR_IO.
 */
ps_result ps_block_output_open(ps_block_output *b, int fd,
                               const ps_pack_info *info,
                               const ps_output_options *options, ps_error *err);

/*
 * Starts a stream, the first or one after END, by writing its header.
 * `goes_on` is set if the next packs are from the middle of a stream.  PS_OK,
 * PS_ERR_IO, PS_ERR_MEMORY.
 */
ps_result ps_block_output_begin(ps_block_output *b, bool goes_on,
                                ps_error *err);

/* Closes the open block and starts an empty one.  PS_OK, PS_ERR_IO, _MEMORY. */
ps_result ps_block_output_next_block(ps_block_output *b, ps_error *err);

/*
 * Prepares *pack for building the next pack, which will have `n_seq` sequences.
 * If they do not fit the block, closes it first.  PS_OK, PS_ERR_IO,
 * PS_ERR_MEMORY.
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

/* Adds the pack that was built.  PS_OK, PS_ERR_IO, PS_ERR_MEMORY. */
ps_result ps_block_output_add(ps_block_output *b, const ps_pack_builder *pack,
                              uint64_t watermark, ps_error *err);

/* Closes the block if it has packs.  PS_OK, PS_ERR_IO, _MEMORY, _LIMIT. */
ps_result ps_block_output_close(ps_block_output *b, ps_error *err);

/* Closes the block and waits until it is written.  Results as _close. */
ps_result ps_block_output_settle(ps_block_output *b, ps_error *err);

/* Writes END, without finishing the output.  Results as _close. */
ps_result ps_block_output_end(ps_block_output *b, const ps_totals *totals,
                              ps_error *err);

/*
 * Saves the index and the open block.  The caller must save `followed` and
 * `digest`.  All earlier blocks must have been written, as by ps_output_where.
 */
void ps_block_output_save(const ps_block_output *b, ps_saver *saver);

/*
 * Loads saved data into an opened output without packs.  If first_pack is set,
 * the stream must have begun.  `n_packs` is the number of packs in complete
 * blocks; `n_all` also counts the open block's packs.
 * PS_OK, PS_ERR_CORRUPT, PS_ERR_MEMORY.
 */
ps_result ps_block_output_load(ps_block_output *b, ps_restorer *restorer,
                               uint64_t n_packs, uint64_t n_all,
                               ps_error *err);

void ps_block_output_free(ps_block_output *b);

#endif
