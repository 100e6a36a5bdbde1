/*
 * native.h - loops over many sequences or packs, so that the Python package
 * needs one call instead of one per sequence or pack.
 *
 * cffi parses this file after packstream.h, so it can contain only plain
 * declarations.
 *
 * SPDX-License-Identifier: MIT
 */

/* The bytes of a stream in memory, which a packer writes. */
typedef struct psn_sink {
    unsigned char *bytes;
    size_t size;     /* bytes used */
    size_t capacity;
} psn_sink;

/* The write hook of a packer; its context is a psn_sink. */
ps_result psn_sink_write(void *context, const void *bytes, size_t n,
                         ps_error *err);
void psn_sink_free(psn_sink *sink);

/*
 * Sequences in columns, in the order of a schema: the tokens, then each
 * channel.  Sequence i has elements offsets[i] to offsets[i + 1] - 1 of a
 * per-token column, and element i of a per-sequence column.  Elements have the
 * types of the schema.  In a list column, sequence i has elements
 * lists[k][i] to lists[k][i + 1] - 1 of column k; lists[k] is NULL for other
 * columns.  A list has less than 2^32 elements.
 */
typedef struct psn_columns {
    const int64_t *offsets; /* [n + 1] ascending */
    int64_t n;
    const unsigned char *const *columns; /* [schema->n_channels + 1] */
    const int64_t *const *lists;         /* [schema->n_channels + 1] */
} psn_columns;

/*
 * Puts sequences from *from on into a packer, as input sequences from *id on,
 * until all are put or the sink has `enough` bytes.  Sets *from and *id to
 * those of the next sequence.  A sequence without tokens is dropped and
 * counted.  Results are as for ps_packer_put, or PS_ERR_MEMORY.
 */
ps_result psn_pack(ps_packer *packer, const ps_schema *schema,
                   const psn_columns *c, uint64_t *id, int64_t *from,
                   const psn_sink *sink, size_t enough, ps_error *err);

/*
 * Writes all sequences as token records; none may be empty.  Results are as for
 * ps_token_writer_put, or PS_ERR_MEMORY.
 */
ps_result psn_write(ps_token_writer *writer, const ps_schema *schema,
                    const psn_columns *c, ps_error *err);

/*
 * Reads packs of a file by number: their rows, info->row_bytes apart, their
 * heads, and their sequence rows, which are appended to an empty sink.  A head
 * is as in a block, except that the index replaces the checksum, and first_seq
 * counts from the first row in the sink.  *done is the number of packs read.
 * Results are as for ps_pack_file_read, or PS_ERR_MEMORY.
 */
ps_result psn_read(ps_pack_file *file, const uint64_t *numbers, uint64_t n,
                   unsigned char *rows, unsigned char *heads,
                   psn_sink *sequences, uint64_t *done, ps_error *err);

/* Reads n bytes at `offset`.  err may be NULL.  Returns PS_OK or PS_ERR_IO. */
typedef ps_result psn_fetch_hook(void *context, void *to, size_t n,
                                 uint64_t offset, ps_error *err);

/*
 * Opens a file of `size` bytes, which is read by calling `fetch` with
 * `context`.  The context must be valid until the file is closed.  Results are
 * as for ps_pack_file_open.
 */
ps_result psn_open(ps_pack_file **file, uint64_t size, psn_fetch_hook *fetch,
                   void *context, ps_error *err);

/*
 * Finds packs of a file by number.  Sets four numbers per pack, as in
 * ps_pack_extent.  *done is the number of packs found.  Results are as for
 * ps_pack_file_extent.
 */
ps_result psn_extents(ps_pack_file *file, const uint64_t *numbers, uint64_t n,
                      uint64_t *extents, uint64_t *done, ps_error *err);

/*
 * Counts packs and sequences in blocks from a packer.  Blocks of other kinds
 * are skipped.
 */
void psn_count(const ps_pack_info *info, const unsigned char *blocks,
               size_t bytes, uint64_t *n_packs, uint64_t *n_seqs);

/*
 * Splits these blocks into arrays whose sizes psn_count has determined.  Heads
 * are as in psn_read.
 */
void psn_split(const ps_pack_info *info, const unsigned char *blocks,
               uint64_t n_packs, unsigned char *rows, unsigned char *heads,
               unsigned char *sequences);

/* Returns the 64-bit XXH3 hash. */
uint64_t psn_hash(const void *bytes, size_t n, uint64_t seed);

/* Properties of all packs of a stream. */
typedef struct psn_shape {
    uint32_t capacity;
    uint32_t align;
    uint32_t depth; /* maximum sequences in a pack; 0: unknown */
    uint32_t row_bytes;
    uint32_t seq_bytes;
    bool verify;
} psn_shape;

/*
 * Checks packs, which must have these indices, as a reader does.  `heads` are
 * as in a block.  There are n_seqs sequence rows; the rows of the first pack
 * start at *next, which is advanced past the rows of valid packs.  Returns the
 * number of the first invalid pack, or n.
 */
uint64_t psn_check(const psn_shape *shape, uint64_t n, const int64_t *indices,
                   const unsigned char *rows, const unsigned char *heads,
                   const unsigned char *sequences, uint32_t n_seqs,
                   uint32_t *next);

/*
 * Computes the boundaries of packs, one row of `width` numbers per pack: the
 * start of every sequence, the end of the last sequence, then the capacity up
 * to the end of the row.  `width` must exceed the sequences of every pack by at
 * least 2.  The packs must be valid.
 */
void psn_cu(const psn_shape *shape, uint64_t n, const unsigned char *heads,
            const unsigned char *sequences, size_t width, int32_t *cu);

/* Returns the digest of packs, updated with n more packs. */
uint64_t psn_digest(uint64_t digest, const unsigned char *heads, uint64_t n);

/*
 * Computes the costs of packs of a file from their heads.  *done is the number
 * of packs read.  Results are as for ps_pack_file_head and ps_pack_cost.
 */
ps_result psn_costs(ps_pack_file *file, const ps_cost *cost,
                    const uint64_t *numbers, uint64_t n, uint64_t *costs,
                    uint64_t *done, ps_error *err);

/* Frees an array that the library allocated, or NULL. */
void psn_free(void *array);

/*
 * Concatenates n runs of elements.  Run i consists of lengths[i] elements of
 * array which[i], from index starts[i] on.
 */
void psn_gather(void *to, const unsigned char *const *arrays,
                size_t element_bytes, const int64_t *which,
                const int64_t *starts, const int64_t *lengths, int64_t n);

/* Fills `to` with 0, 1, 2, ... for each of n consecutive lengths. */
void psn_positions(int32_t *to, const int64_t *lengths, int64_t n);

/* Computes the digest of a tokenizer, as tokcat --tokenizer does. */
void psn_tokenizer_digest(const void *bytes, size_t n,
                          unsigned char digest[32]);
