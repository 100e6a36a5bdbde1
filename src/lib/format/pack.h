/*
 * pack.h - building and reading packs: a row, the sequence rows, a head;
 * packstream(5) "Rows", "Sequence rows" and "Pack heads".
 *
 * This room, format, knows the two formats byte by byte.  It works on bytes in
 * memory, and leaves it to the rooms stream and packer to read and write them.
 *
 *   schema.h         what a token and its channels are; common to both formats
 *   version.h        the versioning rules, likewise
 *   token_header.h   the header and control records of framed token records
 *   lengths_record.h the histogram that framed records end with
 *   pack_header.h    the header of a pack stream
 *   pack_layout.h    where a pack stream has what; only writers ask
 *   pack.h           one pack: built in place, or checked and decoded
 *   pack_check.c     the rules of a pack that a reader may leave unchecked
 *   block.h          blocks, which packs lie in, their index, and END
 *   totals.h         the sums that END repeats;  digest.h, the digests in it
 *   pack_mark.h      a place between two packs, as a reader's mark keeps it
 *
 * Whatever is decoded comes from a hostile file: each decoder checks all that
 * memory safety rests on, and says PS_ERR_CORRUPT otherwise.  A decoder names
 * no place in the file; its caller adds that.  The room uses base alone.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_FORMAT_PACK_H
#define LIB_FORMAT_PACK_H

#include <string.h>

#include "bytes.h"
#include "format/pack_layout.h"
#include "packstream.h"

/* ---- Sequence rows ---- */

static inline uint64_t ps_seq_id(const unsigned char *seq)
{
    return load_u64(seq + PS_SEQ_ID);
}

static inline uint32_t ps_seq_start(const unsigned char *seq)
{
    return load_u32(seq + PS_SEQ_START);
}

static inline uint32_t ps_seq_n_tok(const unsigned char *seq)
{
    return load_u32(seq + PS_SEQ_TOK);
}

/* Places that so many tokens take up. */
static inline uint32_t ps_aligned(uint32_t n_tok, uint32_t align)
{
    const uint32_t over = align == 1 ? 0 : n_tok % align;

    return over == 0 ? n_tok : n_tok + (align - over);
}

/* ---- Building ---- */

/*
 * Where a part of the payload goes: the tokens or a user's channel.  In a
 * payload of n tokens it starts at `before` * n if it is per token, else
 * behind the per-token parts at `before`.
 */
typedef struct ps_payload_column {
    uint32_t offset; /* of the field: in the row, or in a sequence row */
    uint32_t bytes;  /* of an element */
    bool per_token;
    uint32_t before;
} ps_payload_column;

/* The columns of a stream, in payload order; returns their number. */
uint32_t ps_payload_columns(const ps_pack_info *info,
                            ps_payload_column columns[PS_MAX_FIELDS]);

/* What it takes to fill the unused places of a per-token field. */
typedef struct ps_form_field {
    uint32_t offset;
    uint32_t bytes; /* of an element */
    uint32_t gap;   /* bytes from its end to the next field's start */
    uint64_t fill;
} ps_form_field;

/* How packs of a stream are built, worked out once. */
typedef struct ps_form {
    uint32_t capacity;
    uint32_t row_bytes;
    uint32_t seq_bytes;
    bool split;
    bool gaps; /* in sequence rows, behind channels */
    uint32_t align;
    uint32_t n_fields; /* per token */
    ps_form_field fields[PS_MAX_FIELDS];
} ps_form;

ps_form ps_form_of(const ps_pack_info *info);

/*
 * A pack under construction, in memory that the caller provides: at first all
 * but the first three members are 0.
 */
typedef struct ps_pack_builder {
    const ps_form *form;
    unsigned char *row;       /* form->row_bytes of them */
    unsigned char *seq;       /* the next sequence row */
    uint32_t n_seq;
    uint32_t n_tok;
    uint32_t n_rows; /* places that are taken: the next sequence's start */
    uint32_t max_seqlen;
    uint64_t sum_len_sq;
} ps_pack_builder;

/* The sequence row of the next sequence; zeroed where it may have gaps. */
static inline unsigned char *ps_pack_next_sequence(const ps_pack_builder *b)
{
    if (b->form->gaps)
        memset(b->seq, 0, b->form->seq_bytes);
    return b->seq;
}

/* Fills `n` places from `first` on, of all per-token fields. */
void ps_pack_pad(const ps_pack_builder *builder, uint32_t first, uint32_t n);

/*
 * Adds a sequence, which must fit: writes the format's members of its row.
 * Before that, the caller copies its columns: per token, from place n_rows of
 * the row on; per sequence, to the row that ps_pack_next_sequence gave.
 */
static inline void ps_pack_add(ps_pack_builder *b, const ps_piece *piece)
{
    const ps_form *form = b->form;
    const uint32_t places = ps_aligned(piece->n_tok, form->align);
    unsigned char *seq = b->seq;

    store_u64(seq + PS_SEQ_ID, piece->id);
    store_u32(seq + PS_SEQ_START, b->n_rows);
    store_u32(seq + PS_SEQ_TOK, piece->n_tok);
    if (form->split) {
        store_u32(seq + PS_SEQ_PIECE_OFF, piece->seq_off);
        store_u32(seq + PS_SEQ_FULL_LEN, piece->seq_len);
    }
    if (places > piece->n_tok)
        ps_pack_pad(b, b->n_rows + piece->n_tok, places - piece->n_tok);
    b->seq += form->seq_bytes;
    b->n_rows += places;
    b->n_seq++;
    b->n_tok += piece->n_tok;
    b->sum_len_sq += (uint64_t)piece->n_tok * piece->n_tok;
    if (piece->n_tok > b->max_seqlen)
        b->max_seqlen = piece->n_tok;
}

/* Fills the unused places behind the last sequence. */
void ps_pack_end(const ps_pack_builder *builder);

/* ---- Heads ---- */

/* Writes a head, but for the checksum. */
static inline void ps_head_encode(unsigned char head[PS_PACK_HEAD_BYTES],
                                  const ps_pack_builder *b, uint32_t first_seq,
                                  uint64_t watermark)
{
    store_u64(head + PS_HEAD_CHECKSUM, 0);
    store_u32(head + PS_HEAD_FIRST_SEQ, first_seq);
    store_u32(head + PS_HEAD_N_SEQ, b->n_seq);
    store_u32(head + PS_HEAD_N_TOK, b->n_tok);
    store_u32(head + PS_HEAD_MAX_SEQLEN, b->max_seqlen);
    store_u64(head + PS_HEAD_SUM_LEN_SQ, b->sum_len_sq);
    store_u64(head + PS_HEAD_WATERMARK, watermark);
}

static inline uint64_t ps_head_checksum(const unsigned char *head)
{
    return load_u64(head + PS_HEAD_CHECKSUM);
}

/* Where the sequence rows of a pack begin in those of its block. */
static inline uint32_t ps_head_first_seq(const unsigned char *head)
{
    return load_u32(head + PS_HEAD_FIRST_SEQ);
}

static inline uint32_t ps_head_n_seq(const unsigned char *head)
{
    return load_u32(head + PS_HEAD_N_SEQ);
}

static inline uint64_t ps_head_watermark(const unsigned char *head)
{
    return load_u64(head + PS_HEAD_WATERMARK);
}

/*
 * Reads the numbers of a head into *pack; its other members are left alone.
 * PS_OK, PS_ERR_CORRUPT.
 */
ps_result ps_head_decode(const ps_pack_info *info, const unsigned char *head,
                         ps_pack *pack, ps_error *err);

/* ---- Whole packs ---- */

/* The checksum of a pack, which binds its parts to its index. */
uint64_t ps_pack_checksum(const ps_pack_info *info, uint64_t index,
                          const unsigned char *head, const unsigned char *row,
                          const unsigned char *sequences);

/*
 * Reads a pack; pack->index, row and sequences are given.  Checks all that
 * memory safety rests on, and the checksum.  PS_OK, PS_ERR_CORRUPT.
 */
ps_result ps_pack_decode(const ps_pack_info *info, const unsigned char *head,
                         ps_pack *pack, ps_error *err);

/*
 * Whether the sequences of a pack, whose head was decoded, follow one another,
 * each from the first position that is free, and make up the head's numbers.
 * PS_OK, PS_ERR_CORRUPT.
 */
ps_result ps_pack_check_sequences(const ps_pack_info *info,
                                  const ps_pack *pack, ps_error *err);

/* The sequence row of sequence `i`. */
static inline const unsigned char *
ps_pack_sequence(const ps_pack_info *info, const ps_pack *pack, uint32_t i)
{
    return pack->sequences + (size_t)i * info->seq_bytes;
}

#endif
