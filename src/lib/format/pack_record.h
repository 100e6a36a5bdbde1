/*
 * pack_record.h - building and reading pack records; packstream(5) "Pack
 * records" and "END record".
 *
 * This room, format, knows the two formats byte by byte.  It works on bytes in
 * memory, and leaves it to the rooms stream and packer to read and write them.
 *
 *   schema.h         what a token and its channels are; common to both formats
 *   version.h        the versioning rules, likewise
 *   token_header.h   the header and control records of framed token records
 *   pack_header.h    the header of a pack stream
 *   record_layout.h  where a pack record has its fields; only writers ask
 *   pack_record.h    one record: built in place, or checked and decoded
 *   pack_check.c     the rules of a record that a reader may leave unchecked
 *   totals.h         the sums that END repeats;  digest.h, the digests in it
 *   pack_mark.h      a place between two records, as a reader's mark keeps it
 *
 * Whatever is decoded comes from a hostile file: each decoder checks all that
 * memory safety rests on, and says PS_ERR_CORRUPT otherwise.  A decoder names
 * no place in the file; its caller adds that.  The room uses base alone.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_FORMAT_PACK_RECORD_H
#define LIB_FORMAT_PACK_RECORD_H

#include "packstream.h"

/*
 * Where a part of the payload goes: the tokens or a user's channel.  In a
 * payload of n tokens it starts at `before` * n if it is per token, else
 * behind the per-token parts at `before`.
 */
typedef struct ps_payload_column {
    uint32_t offset; /* of the field in the record */
    uint32_t bytes;  /* of an element */
    bool per_token;
    uint32_t before;
} ps_payload_column;

/* Every record starts with a checksum of so many bytes. */
#define PS_CHECKSUM_BYTES 8

/* In a record's head: zeros from here to the first field. */
#define PS_HEAD_ZERO 52

/* The columns of a stream, in payload order; returns their number. */
uint32_t ps_payload_columns(const ps_pack_info *info,
                            ps_payload_column columns[PS_MAX_FIELDS]);

/* What it takes to fill a field, worked out once. */
typedef struct ps_form_field {
    ps_kind kind;
    uint32_t offset;
    uint32_t bytes; /* of an element */
    uint32_t count;
    uint32_t gap; /* bytes from its end to the next field's start */
    uint64_t fill;
} ps_form_field;

/* How records of a stream are built. */
typedef struct ps_form {
    uint32_t record_bytes;
    bool split;
    uint32_t align;
    uint32_t seq_tok_field; /* if align is above 1 */
    uint32_t n_fields;
    ps_form_field fields[PS_MAX_FIELDS];
} ps_form;

ps_form ps_form_of(const ps_pack_info *info);

/* Where the field after field `i` starts, or the record ends. */
uint32_t ps_field_limit(const ps_pack_info *info, uint32_t i);

/*
 * A record under construction, in memory that the caller provides: at first all
 * but the first two members are 0.
 */
typedef struct ps_record {
    const ps_form *form;
    unsigned char *bytes; /* form->record_bytes of them */
    uint32_t n_seq;
    uint32_t n_tok;
    uint32_t n_rows; /* with gaps: where the next sequence begins */
    uint32_t max_seqlen;
    uint64_t sum_len_sq;
} ps_record;

/*
 * Adds a sequence, which must fit: writes its boundary, id and piece.  Before
 * that, the caller copies its columns to element n_seq or n_rows of their
 * fields.
 */
void ps_record_add(ps_record *record, const ps_piece *piece);

/* Fills unused elements and writes the head, all but the checksum. */
void ps_record_end(ps_record *record, uint64_t index, uint64_t watermark);

/* Gives a record another index; its checksum is wrong then. */
void ps_record_renumber(unsigned char *bytes, uint64_t index);

/* The same of its watermark. */
void ps_record_set_watermark(unsigned char *bytes, uint64_t watermark);

/* Adds `by` to the watermark of a record and to the ids of its sequences. */
void ps_record_raise(const ps_pack_info *info, unsigned char *bytes,
                     uint32_t n_seq, uint64_t by);

/* Writes the checksum of a record in which all else is written. */
void ps_record_finalize(unsigned char *bytes, uint32_t record_bytes);

/* Writes the END record, to info->record_bytes bytes. */
void ps_end_encode(const ps_pack_info *info, const ps_totals *totals,
                   uint64_t digest, unsigned char *bytes);

/*
 * Checks magic, checksum and flags of a record and says whether it is END.
 * The messages name no place; the caller does.  PS_OK, PS_ERR_CORRUPT.
 */
ps_result ps_record_check(const ps_pack_info *info,
                          const unsigned char *bytes, bool *is_end,
                          ps_error *err);

/* The index in a record's head: END's is the number of packs. */
uint64_t ps_record_index(const unsigned char *bytes);

/*
 * Reads the head and the boundaries of a record that is not END, all that
 * memory safety rests on.  PS_OK, PS_ERR_CORRUPT.
 */
ps_result ps_record_decode(const ps_pack_info *info,
                           const unsigned char *bytes, ps_pack *pack,
                           ps_error *err);

/*
 * Reads the head of a pack, PS_HEAD_BYTES bytes, without the rest of the
 * record, and so without its checksum.  PS_OK, PS_ERR_CORRUPT.
 */
ps_result ps_head_decode(const ps_pack_info *info, const unsigned char *bytes,
                         ps_pack *pack, ps_error *err);

/*
 * Reads END: totals and digest.  PS_OK, PS_ERR_CORRUPT (its head or unused
 * bytes are not as they must be).
 */
ps_result ps_end_decode(const ps_pack_info *info, const unsigned char *bytes,
                        ps_totals *totals, uint64_t *digest, ps_error *err);

/* Puts the place of a record before a message that names none. */
ps_result ps_record_blame(uint64_t record, uint64_t offset, ps_result code,
                          ps_error *err);

/* Boundary `i` of a record that was decoded. */
uint32_t ps_record_cu(const ps_pack_info *info, const unsigned char *bytes,
                      uint32_t i);

/* Tokens of its sequence `i`, without the gap behind them. */
uint32_t ps_record_length(const ps_pack_info *info,
                          const unsigned char *bytes, uint32_t i);

#endif
