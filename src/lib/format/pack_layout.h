/*
 * pack_layout.h - offsets and sizes in a pack stream; see packstream(5), "Rows"
 * and "Sequence rows".
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_FORMAT_PACK_LAYOUT_H
#define LIB_FORMAT_PACK_LAYOUT_H

#include "packstream.h"

/*
 * Offsets of built-in fields in a sequence row.  The last two exist only if
 * sequences are split.
 */
enum {
    PS_SEQ_ID = 0,
    PS_SEQ_START = 8,
    PS_SEQ_TOK = 12,
    PS_SEQ_PIECE_OFF = 16,
    PS_SEQ_FULL_LEN = 20
};

/* Offsets in a pack head. */
enum {
    PS_HEAD_CHECKSUM = 0,
    PS_HEAD_FIRST_SEQ = 8,
    PS_HEAD_N_SEQ = 12, /* the checksum covers the head from here */
    PS_HEAD_N_TOK = 16,
    PS_HEAD_MAX_SEQLEN = 20,
    PS_HEAD_SUM_LEN_SQ = 24,
    PS_HEAD_WATERMARK = 32
};

/* Maximum size of the sequence rows in a block of more than one pack, bytes. */
#define PS_BLOCK_SEQ_BYTES (UINT32_C(1) << 20)

#define PS_MAX_BLOCK_PACKS 65536

/* Upper bound on the size of any block of packs, in bytes. */
#define PS_MAX_BLOCK_BYTES (UINT64_C(3) * PS_MAX_ROW_BYTES)

/* Checks capacity, depth, window and align.  PS_OK, PS_ERR_ARGUMENT. */
ps_result ps_geometry_check(const ps_pack_info *info, ps_error *err);

/*
 * Elements of a field with this channel and source: the capacity, 1 in a
 * sequence row, or the budget of a list; 0 if a list has none.
 */
uint64_t ps_field_places(const ps_pack_info *info, const ps_channel *channel,
                         uint32_t source);

bool ps_budgets_equal(const ps_pack_info *a, const ps_pack_info *b);

/*
 * Computes fields, row_bytes, seq_bytes, block_bytes and dtype from capacity,
 * depth, split, align, budgets and schema; also block_packs if it is 0.
 * PS_OK, PS_ERR_ARGUMENT (capacity, depth, window, align or block_packs out of
 * range), _LIMIT.
 */
ps_result ps_layout(ps_pack_info *info, ps_error *err);

#endif
