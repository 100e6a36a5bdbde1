/*
 * pack.h - build, decode and check packs: row, sequence rows, head; see
 * packstream(5), "Rows", "Sequence rows" and "Pack heads".
 *
 * SPDX-License-Identifier: MIT
 *
 * This module, format, implements the formats of token records and pack
 * streams.  It works on bytes in memory; the modules stream and packer read and
 * write them.
 *
 *   schema.h         token types and channels; common to both formats
 *   version.h        versioning rules; common to both formats
 *   token_header.h   header and control records of framed token records
 *   lengths_record.h histogram at the end of framed token records
 *   pack_header.h    header of a pack stream
 *   pack_layout.h    offsets in rows and heads, and sizes
 *   pack.h           one pack: built in place, or checked and decoded
 *   pack_check.c     pack rules that readers may leave unchecked
 *   block.h          blocks of packs, index and END
 *   totals.h         the totals in END
 *   digest.h         the digests in END
 *   pack_mark.h      a position between two packs, saved as a mark
 *
 * Decoders treat their input as hostile: they return PS_ERR_CORRUPT unless
 * everything that memory safety depends on is valid.  Their messages do not
 * contain file positions; callers add them.  This module depends only on module
 * base.
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

/* Elements occupied by `n_tok` tokens, including the gap after them. */
static inline uint32_t ps_aligned(uint32_t n_tok, uint32_t align)
{
    const uint32_t over = align == 1 ? 0 : n_tok % align;

    return over == 0 ? n_tok : n_tok + (align - over);
}

/* ---- Building ---- */

/*
 * Field of a channel, of which a list has two: the one in the sequence row.
 */
const ps_field *ps_source_field(const ps_pack_info *info, uint32_t channel);

/*
 * A part of the payload: the tokens, a user channel, or the length of a list;
 * and the field to which it is copied.  In a payload of n tokens, a per-token
 * part starts at byte `before` * n.  A per-sequence part starts `before` bytes
 * after the last per-token part.
 */
typedef struct ps_payload_column {
    uint32_t offset; /* offset of the field in the row or sequence row, bytes */
    uint32_t bytes;  /* size of an element */
    bool per_token;
    uint32_t before; /* bytes; see above */
} ps_payload_column;

/* Lists the columns of a stream in payload order and returns their number. */
uint32_t ps_payload_columns(const ps_pack_info *info,
                            ps_payload_column columns[PS_MAX_FIELDS]);

/* A field of the row, whose unused elements have to be filled. */
typedef struct ps_form_field {
    uint32_t offset; /* offset in the row, bytes */
    uint32_t bytes;  /* size of an element */
    uint32_t value_bytes; /* size of a value; smaller in vectors */
    uint32_t places; /* elements: the capacity, or the budget of a list */
    uint32_t gap;    /* bytes between its end and the next field */
    uint64_t fill;   /* each value of unused elements, as a bit pattern */
} ps_form_field;

/* Parameters for building the packs of a stream, derived from its header. */
typedef struct ps_form {
    uint32_t capacity; /* tokens */
    uint32_t row_bytes;
    uint32_t seq_bytes;
    bool split;
    bool gaps;         /* sequence rows have unused bytes */
    uint32_t align;    /* tokens; divides the capacity */
    uint32_t n_fields; /* number of per-token fields and lists */
    ps_form_field fields[PS_MAX_FIELDS]; /* lists last */
    uint32_t n_lists;
    uint32_t lists[PS_MAX_LISTS]; /* offsets of their start and length in the
                                     sequence row */
} ps_form;

/* Size of the start and the length of a list in a sequence row. */
#define PS_LIST_BYTES 8

ps_form ps_form_of(const ps_pack_info *info);

/*
 * A pack being built, in memory provided by the caller.  To start, set the
 * first three members and zero the others.
 */
typedef struct ps_pack_builder {
    const ps_form *form;
    unsigned char *row;       /* form->row_bytes bytes */
    unsigned char *seq;       /* next sequence row */
    uint32_t n_seq;
    uint32_t n_tok;
    uint32_t n_rows;     /* elements in use; the next sequence starts there */
    uint32_t max_seqlen; /* longest sequence so far, tokens */
    uint64_t sum_len_sq;
    uint32_t used[PS_MAX_LISTS]; /* elements of each list in use */
} ps_pack_builder;

/* Returns the next sequence row, zeroed if it has unused bytes. */
static inline unsigned char *ps_pack_next_sequence(const ps_pack_builder *b)
{
    if (b->form->gaps)
        memset(b->seq, 0, b->form->seq_bytes);
    return b->seq;
}

/* Fills `n` elements of every per-token field, starting at `first`. */
void ps_pack_pad(const ps_pack_builder *builder, uint32_t first, uint32_t n);

/*
 * Makes room for list `i` of the next sequence.  Its length is already in the
 * sequence row, and it must fit.  Stores the length at *n, and returns the
 * address for the elements.
 */
unsigned char *ps_pack_next_list(ps_pack_builder *builder, uint32_t i,
                                 uint32_t *n);

/*
 * Adds a sequence, which must fit, by writing the built-in fields of its
 * sequence row.  The caller has already copied the payload: per-token columns
 * to the row from element n_rows on, per-sequence columns to the row returned
 * by ps_pack_next_sequence, lists to the addresses from ps_pack_next_list.
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

/* Fills the elements after the last sequence. */
void ps_pack_end(const ps_pack_builder *builder);

/* ---- Heads ---- */

/* Writes a head, with a checksum of 0. */
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

/* Index of the pack's first sequence row within its block. */
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
 * Decodes the numbers of a head into *pack.  Other members are unchanged.
 * PS_OK, PS_ERR_CORRUPT.
 */
ps_result ps_head_decode(const ps_pack_info *info, const unsigned char *head,
                         ps_pack *pack, ps_error *err);

/* ---- Whole packs ---- */

/* Checksum of a pack, which covers its index as well as its contents. */
uint64_t ps_pack_checksum(const ps_pack_info *info, uint64_t index,
                          const unsigned char *head, const unsigned char *row,
                          const unsigned char *sequences);

/*
 * Decodes and checks a pack, given pack->index, row and sequences.  Checks the
 * checksum and everything that memory safety depends on.
 * PS_OK, PS_ERR_CORRUPT.
 */
ps_result ps_pack_decode(const ps_pack_info *info, const unsigned char *head,
                         ps_pack *pack, ps_error *err);

/*
 * Checks that sequences are contiguous, except for gaps due to the alignment,
 * and agree with the numbers of the head, which must have been decoded.
 * PS_OK, PS_ERR_CORRUPT.
 */
ps_result ps_pack_check_sequences(const ps_pack_info *info,
                                  const ps_pack *pack, ps_error *err);

/* Sequence row of sequence `i`. */
static inline const unsigned char *
ps_pack_sequence(const ps_pack_info *info, const ps_pack *pack, uint32_t i)
{
    return pack->sequences + (size_t)i * info->seq_bytes;
}

#endif
