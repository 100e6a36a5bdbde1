/*
 * pack_record.h - building and reading pack records; packstream(5) "Pack
 * records" and "END record".
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
typedef struct ps_lane {
    uint32_t offset; /* of the field in the record */
    uint32_t bytes;  /* of an element */
    bool per_token;
    uint32_t before;
} ps_lane;

/* Bytes of the checksum with which every record starts. */
#define PS_CHECKSUM_BYTES 8

/* The lanes of a stream in payload order; returns how many there are. */
uint32_t ps_lanes(const ps_pack_info *info, ps_lane lanes[PS_MAX_FIELDS]);

/* A field as it is filled: what of ps_field that takes, worked out once. */
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

/* A record under construction, in memory that the caller provides. */
typedef struct ps_record {
    const ps_form *form;
    unsigned char *bytes; /* form->record_bytes of them */
    uint32_t n_seq;
    uint32_t n_tok;
    uint32_t n_rows; /* with gaps: where the next sequence begins */
    uint32_t max_seqlen;
    uint64_t sum_len_sq;
} ps_record;

static inline ps_record ps_record_begin(const ps_form *form,
                                        unsigned char *room)
{
    return (ps_record){.form = form, .bytes = room};
}

/*
 * Adds a sequence, which must fit: writes its boundary, id and piece.  The
 * caller copies the lanes to element n_seq or n_rows of their fields, before.
 */
void ps_record_add(ps_record *record, const ps_piece *piece);

/* Fills what is unused and writes the head, but for the checksum. */
void ps_record_end(ps_record *record, uint64_t index, uint64_t watermark);

/* Writes the checksum of a record that is complete. */
void ps_record_finalize(unsigned char *bytes, uint32_t record_bytes);

/*
 * Writes the END record, to info->record_bytes bytes.
 */
void ps_end_encode(const ps_pack_info *info, const ps_totals *totals,
                   uint64_t digest, unsigned char *bytes);

/*
 * Checks magic, checksum and flags of a record and says whether it is END.
 * The messages name no place; the caller does.  PS_OK, PS_ERR_CORRUPT.
 */
ps_result ps_record_open(const ps_pack_info *info,
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
