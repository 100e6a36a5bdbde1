/*
 * lengths_record.h - LENGTHS, the control record with the number of sequences
 * of each length in a stream; see packstream(5), "Control records".
 *
 * SPDX-License-Identifier: MIT
 *
 * A stream reader checks a record in parts: first the head, then the entries as
 * they arrive, then the tail.  ps_lengths_decode checks a complete record in
 * memory.  The decoders return PS_OK or PS_ERR_CORRUPT; ps_lengths_blame adds
 * the offset of the record to the message.
 */

#ifndef LIB_FORMAT_LENGTHS_RECORD_H
#define LIB_FORMAT_LENGTHS_RECORD_H

#include "bytes.h"
#include "packstream.h"

#define PS_LENGTHS_MAX UINT32_C(65536) /* entries per record */
#define PS_LENGTHS_HEAD_BYTES 12
#define PS_LENGTHS_ENTRY_BYTES 12
#define PS_LENGTHS_TAIL_BYTES 24
#define PS_LENGTHS_MIN_BYTES (PS_LENGTHS_HEAD_BYTES + PS_LENGTHS_TAIL_BYTES)

/* Size in bytes of a record with `n` entries. */
#define PS_LENGTHS_BYTES(n)                                            \
    (PS_LENGTHS_MIN_BYTES + (size_t)(n) * PS_LENGTHS_ENTRY_BYTES)

/* The part of a record that has been decoded. */
typedef struct ps_lengths {
    uint32_t n;            /* number of entries in the record */
    uint32_t last;         /* length of the last entry, tokens; 0: none yet */
    uint64_t sequences;    /* number of sequences in the entries so far */
    uint64_t tokens;       /* number of tokens in these sequences */
    uint64_t stream_bytes; /* bytes of the stream before this record */
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

/* Writes the head and tail of a record that already has its `n` entries. */
void ps_lengths_seal(unsigned char *record, uint32_t n,
                     uint64_t stream_bytes);

ps_result ps_lengths_head_decode(ps_lengths *lengths,
                                 const unsigned char *head, ps_error *err);

/* Checks the next `n` entries. */
ps_result ps_lengths_entries_decode(ps_lengths *lengths,
                                    const unsigned char *entries, size_t n,
                                    ps_error *err);

/* `checksum` is the hash of all bytes before the checksum in the tail. */
ps_result ps_lengths_tail_decode(ps_lengths *lengths,
                                 const unsigned char *tail,
                                 uint64_t checksum, ps_error *err);

/* Checks a complete record of `n` bytes. */
ps_result ps_lengths_decode(ps_lengths *lengths, const unsigned char *record,
                            size_t n, ps_error *err);

/* Compares the sums with the sums of the stream.  PS_OK, PS_ERR_CORRUPT. */
ps_result ps_lengths_compare(const ps_lengths *lengths, uint64_t sequences,
                             uint64_t tokens, ps_error *err);

/* Returns `r`.  Unless it is PS_OK, prefixes the message with the offset. */
ps_result ps_lengths_blame(ps_result r, uint64_t offset, ps_error *err);

#endif
