/*
 * native.h - loops over many sequences or packs, for the Python package: one
 * call from Python instead of one for each of them.
 *
 * cffi parses this file after packstream.h, so only plain declarations are
 * possible.
 *
 * SPDX-License-Identifier: MIT
 */

/* The bytes of a stream, for a packer that keeps its packs in memory. */
typedef struct psn_sink {
    unsigned char *bytes;
    size_t size;     /* bytes used */
    size_t capacity;
} psn_sink;

/* The write hook of a packer; its context is a psn_sink.  PS_ERR_MEMORY. */
ps_result psn_sink_write(void *context, const void *bytes, size_t n,
                         ps_error *err);
void psn_sink_free(psn_sink *sink);

/*
 * Sequences in columns, in the order of a schema: the tokens, then each of its
 * channels.  A per-token column has the elements of sequence i from
 * offsets[i] up to offsets[i + 1], a per-sequence one its i-th.  Elements are
 * of the types of the schema.
 */
typedef struct psn_columns {
    const int64_t *offsets; /* n + 1 of them, ascending */
    int64_t n;
    const unsigned char *const *columns; /* schema->n_channels + 1 of them */
} psn_columns;

/*
 * Puts sequences from *from on into a packer, as input sequences from *id on,
 * until all are put or the sink has `enough` bytes; *from and *id are then
 * those of the next sequence.  A sequence without tokens is dropped, and
 * counted.  As ps_packer_put, PS_ERR_MEMORY.
 */
ps_result psn_pack(ps_packer *packer, const ps_schema *schema,
                   const psn_columns *c, uint64_t *id, int64_t *from,
                   const psn_sink *sink, size_t enough, ps_error *err);

/*
 * Writes them all as token records; each has a token.
 * As ps_token_writer_put, PS_ERR_MEMORY.
 */
ps_result psn_write(ps_token_writer *writer, const ps_schema *schema,
                    const psn_columns *c, ps_error *err);

/*
 * Reads packs of a file by number: their rows, info->row_bytes apart, their
 * heads, and their sequence rows, which are appended to an empty sink.  A head
 * is as in a block, except that the index replaces the checksum, and first_seq
 * counts from the first row in the sink.  *done is the number of packs read.
 * As ps_pack_file_read, and PS_ERR_MEMORY.
 */
ps_result psn_read(ps_pack_file *file, const uint64_t *numbers, uint64_t n,
                   unsigned char *rows, unsigned char *heads,
                   psn_sink *sequences, uint64_t *done, ps_error *err);

/* Reads n bytes at `offset` of a file.  err may be NULL.  PS_OK, PS_ERR_IO. */
typedef ps_result psn_fetch_hook(void *context, void *to, size_t n,
                                 uint64_t offset, ps_error *err);

/*
 * Opens a file of `size` bytes that `fetch` reads, with `context`, which must
 * be valid until the file is closed.
 * As ps_pack_file_open.
 */
ps_result psn_open(ps_pack_file **file, uint64_t size, psn_fetch_hook *fetch,
                   void *context, ps_error *err);

/*
 * Offsets and sizes of packs in a file, by number: four numbers per pack, those
 * of ps_pack_extent.  *done is the number of packs found.
 * As ps_pack_file_extent.
 */
ps_result psn_extents(ps_pack_file *file, const uint64_t *numbers, uint64_t n,
                      uint64_t *extents, uint64_t *done, ps_error *err);

/*
 * Numbers of packs and sequences in blocks from a packer; blocks of other kinds
 * are skipped.
 */
void psn_count(const ps_pack_info *info, const unsigned char *blocks,
               size_t bytes, uint64_t *n_packs, uint64_t *n_seqs);

/*
 * Splits these blocks into arrays for the counts of psn_count, with heads as in
 * psn_read.
 */
void psn_split(const ps_pack_info *info, const unsigned char *blocks,
               uint64_t n_packs, unsigned char *rows, unsigned char *heads,
               unsigned char *sequences);

/* XXH3, 64 bits. */
uint64_t psn_hash(const void *bytes, size_t n, uint64_t seed);

/* Properties of all packs of a stream. */
typedef struct psn_shape {
    uint32_t capacity;
    uint32_t align;
    uint32_t depth; /* most sequences of a pack; 0: unknown */
    uint32_t row_bytes;
    uint32_t seq_bytes;
    bool verify;
} psn_shape;

/*
 * Checks packs, which must have these indices, as a reader does; `heads` are as
 * in a block.  There are n_seqs sequence rows; those of the first pack begin at
 * row *next, which is moved past those of the valid packs.
 * Returns the number of the first invalid pack, or n.
 */
uint64_t psn_check(const psn_shape *shape, uint64_t n, const int64_t *indices,
                   const unsigned char *rows, const unsigned char *heads,
                   const unsigned char *sequences, uint32_t n_seqs,
                   uint32_t *next);

/*
 * Boundaries of packs, one row of `width` numbers each: the start of every
 * sequence, the end of the last one, and then the capacity.  A row has at least
 * 2 numbers more than the pack has sequences.  The packs must be valid.
 */
void psn_cu(const psn_shape *shape, uint64_t n, const unsigned char *heads,
            const unsigned char *sequences, size_t width, int32_t *cu);

/* The digest of packs after n more. */
uint64_t psn_digest(uint64_t digest, const unsigned char *heads, uint64_t n);

/*
 * Costs of packs of a file, computed from their heads.  *done is the number of
 * packs read.
 * As ps_pack_file_head and ps_pack_cost.
 */
ps_result psn_costs(ps_pack_file *file, const ps_cost *cost,
                    const uint64_t *numbers, uint64_t n, uint64_t *costs,
                    uint64_t *done, ps_error *err);

/*
 * Copies n runs of elements in sequence: run i is lengths[i] elements of array
 * which[i] from index starts[i] on.
 */
void psn_gather(void *to, const unsigned char *const *arrays,
                size_t element_bytes, const int64_t *which,
                const int64_t *starts, const int64_t *lengths, int64_t n);

/* Fills `to` with 0, 1, 2, ... for each of n lengths in sequence. */
void psn_positions(int32_t *to, const int64_t *lengths, int64_t n);

/* The digest of a tokenizer for the header, as of tokcat --tokenizer. */
void psn_tokenizer_digest(const void *bytes, size_t n,
                          unsigned char digest[32]);
