/*
 * block.h - blocks of a pack stream: packs, index and END; see packstream(5),
 * "Blocks", "Index" and "END".
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
    uint32_t n_packs; /* number of packs; 0 except in blocks of packs */
    uint32_t n_seqs;  /* sequence rows of all its packs */
    uint64_t first;   /* index of the first pack; INDEX and END: next pack */
    uint64_t bytes;   /* size of the block, including the head */
    uint64_t body;    /* hash of the bytes after the head; 0 for packs */
} ps_block_head;

void ps_block_head_encode(const ps_block_head *head,
                          unsigned char to[PS_BLOCK_HEAD_BYTES]);

/*
 * Decodes and checks a head.  On success its numbers are consistent with each
 * other and with the header, so `bytes` is at most the maximum size of a block
 * of this kind.
 * PS_OK, PS_ERR_CORRUPT.
 */
ps_result ps_block_head_decode(const ps_pack_info *info,
                               const unsigned char *from, ps_block_head *head,
                               ps_error *err);

/* ---- Blocks of packs ---- */

/*
 * Offsets of the parts of a block of packs, in bytes.  The rows follow the
 * head.
 */
typedef struct ps_block_layout {
    uint64_t heads;     /* offset of the pack heads */
    uint64_t sequences; /* offset of the sequence rows */
    uint64_t end;       /* offset of the padding */
    uint64_t bytes;     /* size of the block */
} ps_block_layout;

ps_block_layout ps_block_layout_of(const ps_pack_info *info, uint32_t n_packs,
                                   uint32_t n_seqs);

/*
 * Checks that pack heads divide the sequence rows of their block without gaps,
 * and that the padding is zero.  `block` has head->bytes bytes.  PS_OK,
 * PS_ERR_CORRUPT.
 */
ps_result ps_block_check(const ps_pack_info *info, const ps_block_head *head,
                         const unsigned char *block, ps_error *err);

/* Watermark of the last pack in a block that passed ps_block_check. */
uint64_t ps_block_watermark(const ps_pack_info *info,
                            const ps_block_head *head,
                            const unsigned char *block);

/* Number of packs in a block built by this process. */
uint32_t ps_block_n_packs(const unsigned char *block);

/* Fills in the checksums of all packs in an otherwise complete block. */
void ps_block_finalize(const ps_pack_info *info, unsigned char *block);

/* ---- The index ---- */

/* Number of blocks that one INDEX block lists, and sizes in bytes. */
#define PS_INDEX_BLOCKS 4096
#define PS_ENTRY_BYTES 24
#define PS_INDEX_BYTES (PS_BLOCK_HEAD_BYTES + PS_INDEX_BLOCKS * PS_ENTRY_BYTES)

/* Maximum number of INDEX blocks per stream. */
#define PS_MAX_INDEX_PARTS (UINT32_C(1) << 20)

/* Entry for a block of packs in the index, or for an INDEX block in END. */
typedef struct ps_entry {
    uint64_t offset;    /* from the start of the stream header */
    uint64_t first;     /* index of the first pack */
    uint64_t watermark; /* watermark of the last pack */
} ps_entry;

void ps_entry_encode(const ps_entry *entry, unsigned char *to);
ps_entry ps_entry_decode(const unsigned char *from);

/* Exclusive upper limits of the entries of an index. */
typedef struct ps_index_end {
    uint64_t offset; /* end of the listed blocks, in bytes */
    uint64_t first;  /* index of the pack after them */
} ps_index_end;

/*
 * Checks that offsets and pack indexes of entries ascend, start after the
 * header and stay below `end`.  PS_OK, PS_ERR_CORRUPT.
 */
ps_result ps_entries_check(const unsigned char *entries, uint32_t n,
                           ps_index_end end, ps_error *err);

/* Writes an INDEX block with PS_INDEX_BLOCKS entries: PS_INDEX_BYTES bytes. */
void ps_index_encode(const unsigned char *entries, uint64_t first,
                     unsigned char *to);

/* ---- END ---- */

/* Decoded END, without its head. */
typedef struct ps_end {
    ps_totals totals;
    uint64_t digest;
    uint32_t n_parts;             /* number of INDEX blocks */
    uint32_t n_blocks;            /* blocks of packs after the last INDEX */
    const unsigned char *entries; /* encoded: INDEX blocks, then blocks */
    uint64_t stream_bytes;        /* size from the header to END, inclusive */
} ps_end;

uint64_t ps_end_bytes(uint32_t n_parts, uint32_t n_blocks);

/* Writes END, ps_end_bytes() bytes.  `at` is its offset in the stream. */
void ps_end_encode(const ps_totals *totals, uint64_t digest,
                   const unsigned char *parts, uint32_t n_parts,
                   const unsigned char *blocks, uint32_t n_blocks, uint64_t at,
                   unsigned char *to);

/* Decodes and checks END, head->bytes bytes.  PS_OK, PS_ERR_CORRUPT. */
ps_result ps_end_decode(const ps_pack_info *info, const unsigned char *from,
                        const ps_block_head *head, ps_end *end, ps_error *err);

/* The trailer: the last bytes of END, and therefore of the stream. */
#define PS_TRAILER_BYTES 24

/*
 * Decodes a trailer.  Returns false if the bytes are not a trailer, or if the
 * trailer has a size that END or the stream cannot have.
 */
bool ps_trailer_decode(const unsigned char *from, uint64_t *end_bytes,
                       uint64_t *stream_bytes);

/*
 * Prefixes the message in `err` with the position: the block at byte `block`
 * and, unless NULL, the pack in it.  Returns `code`.
 */
ps_result ps_blame(const ps_pack *pack, uint64_t block, ps_result code,
                   ps_error *err);

#endif
