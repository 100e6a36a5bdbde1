/*
 * lengths_record.h - LENGTHS, the control record that repeats how many
 * sequences of each length a stream has; packstream(5) "Control records".
 *
 * A reader checks one in parts: its head, entries as they arrive, its tail.
 * ps_lengths_decode checks one that is in memory.  A failure is
 * PS_ERR_CORRUPT; ps_lengths_blame adds the offset to its message.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_FORMAT_LENGTHS_RECORD_H
#define LIB_FORMAT_LENGTHS_RECORD_H

#include "bytes.h"
#include "packstream.h"

#define PS_LENGTHS_MAX UINT32_C(65536) /* entries */
#define PS_LENGTHS_HEAD_BYTES 12
#define PS_LENGTHS_ENTRY_BYTES 12
#define PS_LENGTHS_TAIL_BYTES 24
#define PS_LENGTHS_MIN_BYTES (PS_LENGTHS_HEAD_BYTES + PS_LENGTHS_TAIL_BYTES)

/* The size of a record with `n` entries. */
#define PS_LENGTHS_BYTES(n)                                            \
    (PS_LENGTHS_MIN_BYTES + (size_t)(n) * PS_LENGTHS_ENTRY_BYTES)

/* A record as far as it has been checked. */
typedef struct ps_lengths {
    uint32_t n;            /* entries it has */
    uint32_t last;         /* length of the latest entry; 0: none yet */
    uint64_t sequences;    /* sums over the entries so far */
    uint64_t tokens;
    uint64_t stream_bytes; /* of the stream, before this record */
} ps_lengths;

static inline uint32_t ps_lengths_length(const unsigned char *entry)
{
    return load_u32(entry);
}

static inline uint64_t ps_lengths_count(const unsigned char *entry)
{
    return load_u64(entry + 4);
}

static inline void ps_lengths_store(unsigned char *entry, uint32_t length,
                                    uint64_t count)
{
    store_u32(entry, length);
    store_u64(entry + 4, count);
}

/* Writes head and tail of a record whose `n` entries are in place. */
void ps_lengths_seal(unsigned char *record, uint32_t n,
                     uint64_t stream_bytes);

ps_result ps_lengths_head_decode(ps_lengths *lengths,
                                 const unsigned char *head, ps_error *err);

/* The next `n` of the entries. */
ps_result ps_lengths_entries_decode(ps_lengths *lengths,
                                    const unsigned char *entries, size_t n,
                                    ps_error *err);

/* `checksum` is that of the bytes up to the one in the tail. */
ps_result ps_lengths_tail_decode(ps_lengths *lengths,
                                 const unsigned char *tail,
                                 uint64_t checksum, ps_error *err);

/* A whole record of `n` bytes. */
ps_result ps_lengths_decode(ps_lengths *lengths, const unsigned char *record,
                            size_t n, ps_error *err);

/* PS_OK if the sums are those of the stream, otherwise PS_ERR_CORRUPT. */
ps_result ps_lengths_compare(const ps_lengths *lengths, uint64_t sequences,
                             uint64_t tokens, ps_error *err);

/* Returns `r`; if it is not PS_OK, the text of `err` names the record. */
ps_result ps_lengths_blame(ps_result r, uint64_t offset, ps_error *err);

#endif
