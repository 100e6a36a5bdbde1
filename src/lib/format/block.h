/*
 * block.h - the blocks of a pack stream: packs, their index, and END;
 * packstream(5) "Blocks", "Index" and "END".
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_FORMAT_BLOCK_H
#define LIB_FORMAT_BLOCK_H

#include "format/totals.h"
#include "packstream.h"

#define PS_BLOCK_HEAD_BYTES 64
#define PS_BLOCK_ALIGN 64

typedef enum ps_block_kind {
    PS_BLOCK_PACKS = 0,
    PS_BLOCK_END = 1,
    PS_BLOCK_INDEX = 2
} ps_block_kind;

/* The head of a block. */
typedef struct ps_block_head {
    ps_block_kind kind;
    uint32_t n_packs;
    uint32_t n_seqs;
    uint64_t first; /* index of the first pack in it, or behind it */
    uint64_t bytes; /* of the block, with its head */
    uint64_t body;  /* hash of what is behind the head, but of packs */
} ps_block_head;

void ps_block_head_encode(const ps_block_head *head,
                          unsigned char to[PS_BLOCK_HEAD_BYTES]);

/*
 * Reads and checks one: its numbers fit one another and the header, so that
 * `bytes` is no more than a block of its kind may have.
 * PS_OK, PS_ERR_CORRUPT.
 */
ps_result ps_block_head_decode(const ps_pack_info *info,
                               const unsigned char *from, ps_block_head *head,
                               ps_error *err);

/* ---- Blocks of packs ---- */

/* Where the parts of a block lie in it; its bytes. */
typedef struct ps_block_layout {
    uint64_t heads;
    uint64_t sequences;
    uint64_t end; /* of what is no padding */
    uint64_t bytes;
} ps_block_layout;

ps_block_layout ps_block_layout_of(const ps_pack_info *info, uint32_t n_packs,
                                   uint32_t n_seqs);

/*
 * Checks that heads tile the sequence rows of their block, and are followed by
 * zeros.  `block` has all bytes that `head` says.  PS_OK, PS_ERR_CORRUPT.
 */
ps_result ps_block_check(const ps_pack_info *info, const ps_block_head *head,
                         const unsigned char *block, ps_error *err);

/* The watermark of the last pack of a block that was checked. */
uint64_t ps_block_watermark(const ps_pack_info *info,
                            const ps_block_head *head,
                            const unsigned char *block);

/* How many packs a block that was built here has. */
uint32_t ps_block_n_packs(const unsigned char *block);

/* Writes the checksums of all packs of a block that is complete otherwise. */
void ps_block_finalize(const ps_pack_info *info, unsigned char *block);

/* ---- The index ---- */

/* Blocks that one INDEX block lists, and its size. */
#define PS_INDEX_BLOCKS 4096
#define PS_ENTRY_BYTES 24
#define PS_INDEX_BYTES (PS_BLOCK_HEAD_BYTES + PS_INDEX_BLOCKS * PS_ENTRY_BYTES)

/* The most INDEX blocks of a stream. */
#define PS_MAX_INDEX_PARTS (UINT32_C(1) << 20)

/* A block of packs in the index, or a part of the index in END. */
typedef struct ps_entry {
    uint64_t offset;    /* from the start of the stream's header */
    uint64_t first;     /* index of the first pack */
    uint64_t watermark; /* of the last */
} ps_entry;

void ps_entry_encode(const ps_entry *entry, unsigned char *to);
ps_entry ps_entry_decode(const unsigned char *from);

/* Where the blocks of an index end. */
typedef struct ps_index_end {
    uint64_t offset; /* the first byte behind it */
    uint64_t first;  /* the pack behind it */
} ps_index_end;

/*
 * Checks that entries rise, from behind the header up to what is before `end`.
 * PS_OK, PS_ERR_CORRUPT.
 */
ps_result ps_entries_check(const unsigned char *entries, uint32_t n,
                           ps_index_end end, ps_error *err);

/* Writes an INDEX block of PS_INDEX_BYTES around its entries. */
void ps_index_encode(const unsigned char *entries, uint64_t first,
                     unsigned char *to);

/* ---- END ---- */

/* END but for its head and its numbers; the arrays are of encoded entries. */
typedef struct ps_end {
    ps_totals totals;
    uint64_t digest;
    uint32_t n_parts;
    uint32_t n_blocks;
    const unsigned char *entries; /* of the parts, then of the blocks */
    uint64_t stream_bytes;        /* from the header to the end of END */
} ps_end;

uint64_t ps_end_bytes(uint32_t n_parts, uint32_t n_blocks);

/* Writes END to ps_end_bytes(); `at` is its offset in the stream. */
void ps_end_encode(const ps_totals *totals, uint64_t digest,
                   const unsigned char *parts, uint32_t n_parts,
                   const unsigned char *blocks, uint32_t n_blocks, uint64_t at,
                   unsigned char *to);

/* Reads END, of which all head->bytes are there.  PS_OK, PS_ERR_CORRUPT. */
ps_result ps_end_decode(const ps_pack_info *info, const unsigned char *from,
                        const ps_block_head *head, ps_end *end, ps_error *err);

/* The last bytes of END, and so of a stream. */
#define PS_TRAILER_BYTES 24

/* Reads a trailer; false if none is there, or not of a stream so long. */
bool ps_trailer_decode(const unsigned char *from, uint64_t *end_bytes,
                       uint64_t *stream_bytes);

/*
 * Puts a place before a message that names none: the block at byte `block`, or
 * a pack in it.
 */
ps_result ps_blame(const ps_pack *pack, uint64_t block, ps_result code,
                   ps_error *err);

#endif
