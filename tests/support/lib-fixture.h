/*
 * lib-fixture.h - shared by the tests of the library: temporary files, and
 * streams in memory.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_LIB_FIXTURE_H
#define TESTS_LIB_FIXTURE_H

#include "tap.h"

#include "grown.h"
#include "packstream.h"
#include "seal.h"

/* ---------------------------------------------------------------- results */

/*
 * Fails the test unless `call`, which fills `err`, returns `wanted`, and unless
 * a failure left the same code and a printable sentence in `err`.
 */
#define assert_result(call, wanted, err)                                \
    check_result((call), (wanted), (err), #call, __FILE__, __LINE__)
#define assert_ok(call, err) assert_result(call, PS_OK, err)

void check_result(ps_result got, ps_result wanted, const ps_error *err,
                  const char *call, const char *file, int line);

/* ---------------------------------------------------------------- memory */

/* Memory of at least one byte; fails the test if it cannot be allocated. */
void *must_alloc(size_t n);

/* ----------------------------------------------------------------- files */

/* A temporary file that is deleted when closed: empty, or with bytes. */
int open_empty(void);
int open_data(const void *data, size_t n);
int open_bytes(const bytes *b);

/* Seeks to the start of a file. */
void rewind_fd(int fd);

/* The size of a file, and its contents. */
size_t size_of(int fd);
bytes read_back(int fd);

/* Fails the test unless they are the same. */
void assert_same_bytes(const bytes *a, const bytes *b);

/* --------------------------------------------------------------- random */

/* Numbers that look random and are the same in every run; *state != 0. */
uint64_t random_next(uint64_t *state);
uint32_t random_below(uint64_t *state, uint32_t n);

/* ------------------------------------------------------------- sequences */

/* A schema with per-token and per-sequence channels of several types. */
ps_schema rich_schema(ps_type token_type);

typedef struct sample {
    uint32_t n_tok;
    unsigned char *payload;
    size_t payload_bytes;
} sample;

/* Sequences to pack and to compare with. */
typedef struct corpus {
    ps_schema schema;
    uint32_t count;
    sample *samples;
} corpus;

/* `count` sequences of 1..longest tokens with random payloads. */
corpus make_corpus(const ps_schema *schema, uint32_t count,
                   uint32_t longest, uint64_t seed);

/* Makes groups of up to 3 sequences by the channel `group` of rich_schema. */
void set_groups(corpus *c);

/* A sequence for each of these lengths. */
corpus make_lengths(const ps_schema *schema, uint32_t count,
                    const uint32_t *lengths, uint64_t seed);

void free_corpus(corpus *c);

/* Sequence `i` as a reader would return it. */
ps_sequence corpus_sequence(const corpus *c, uint32_t i);

/* Fails the test unless length and payload equal those of sequence `i`. */
void assert_sample(const corpus *c, uint32_t i, const ps_sequence *s);

/* A packer of raw records, which have u16 tokens. */
ps_packer *open_packer(int fd, const ps_packer_options *options);

/* Puts sequences `from` to `to` - 1 of a corpus. */
void put_corpus(ps_packer *p, const corpus *c, uint32_t from, uint32_t to);

/* The corpus as token records, written by ps_token_writer. */
bytes corpus_records(const corpus *c);

/* The corpus as packs, written by ps_packer; `totals` may be NULL. */
bytes corpus_packs(const corpus *c, const ps_packer_options *options,
                   ps_totals *totals);

/* Size of LENGTHS, which a stream of token records has before END. */
size_t lengths_size(const bytes *records);

/* Removes LENGTHS, as in a stream of an older writer. */
void drop_lengths(bytes *records);

/* Appends the LENGTHS of a corpus to its records. */
void put_lengths(bytes *records, const corpus *c);

/* The records of a corpus, which is freed. */
bytes records_from(corpus c);
bytes packs_from(corpus c, const ps_packer_options *options,
                 ps_totals *totals);

/* ---------------------------------------------------------------- streams */

/* Appends `more`, which is freed, to `b`. */
void join_bytes(bytes *b, bytes more);

/* A reader of token records, which have u16 tokens if they are raw. */
ps_token_reader *open_tokens(int fd, const ps_token_reader_options *options);

/* Byte `at` of block `k` of a pack stream; INDEX and END are blocks, too. */
unsigned char *block_at(const bytes *packs, size_t k, size_t at);
unsigned char *end_at(const bytes *packs, size_t at);

/* The block of pack `i`; the size of a block. */
unsigned char *block_of(const bytes *packs, size_t i);
size_t block_bytes(const unsigned char *block);

/* Byte `at` of pack `i`: of its row, its head, its sequence row `s`. */
unsigned char *row_at(const bytes *packs, size_t i, size_t at);
unsigned char *head_at(const bytes *packs, size_t i, size_t at);
unsigned char *seq_at(const bytes *packs, size_t i, size_t s, size_t at);

/*
 * Recomputes all checksums and digests, so that they no longer reveal a change.
 * `packs` can hold several streams.
 */
void seal_packs(bytes *packs);

/* Fails the test unless all totals are the same. */
void assert_totals(const ps_totals *a, const ps_totals *b);

/* Fails the test unless unpacking in input order restores the corpus. */
void assert_unpacked(const bytes *packs, const corpus *c);

/* Reads all packs of a stream; returns the final result. */
ps_result read_packs(const bytes *packs, uint64_t *n_packs, ps_error *err);

/*
 * The same with ps_pack_check of each pack.  `by_check` is true if that call
 * found the fault.
 */
ps_result audit_packs(const bytes *packs, bool *by_check, ps_error *err);

#endif
