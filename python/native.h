/*
 * native.h - loops over many sequences or packs, for the Python package: what
 * would be a call from Python for each of them is one call here.
 *
 * cffi reads these declarations behind those of packstream.h, so there are
 * none but plain ones.
 *
 * SPDX-License-Identifier: MIT
 */

/* The bytes of a stream, for a packer that keeps its packs in memory. */
typedef struct psn_sink {
    unsigned char *bytes;
    size_t size;     /* of them that are used */
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
 * Puts sequences *from and up into a packer, as number *id and up of its input,
 * until all are in or the sink has `enough` bytes; both are then those of the
 * first that is not in.  One without tokens is left out, and counted.
 * As ps_packer_put, PS_ERR_MEMORY.
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
 * Reads packs of a file by their numbers: their rows, info->row_bytes apart,
 * their heads, and the rows of their sequences, which are appended to a sink
 * that is empty.  A head is as in a block, but has the index in place of the
 * checksum, and first_seq counts from the first row in the sink.  `*done` of
 * them were read.
 * As ps_pack_file_read, and PS_ERR_MEMORY.
 */
ps_result psn_read(ps_pack_file *file, const uint64_t *numbers, uint64_t n,
                   unsigned char *rows, unsigned char *heads,
                   psn_sink *sequences, uint64_t *done, ps_error *err);

/* Reads n bytes at `offset` of a file.  err may be NULL.  PS_OK, PS_ERR_IO. */
typedef ps_result psn_fetch_hook(void *context, void *to, size_t n,
                                 uint64_t offset, ps_error *err);

/*
 * Opens a file of `size` bytes that `fetch` reads; it gets `context`, which must
 * live as long as the file.
 * As ps_pack_file_open.
 */
ps_result psn_open(ps_pack_file **file, uint64_t size, psn_fetch_hook *fetch,
                   void *context, ps_error *err);

/*
 * Where packs lie in a file, by their numbers: four numbers for each, those of
 * ps_pack_extent.  `*done` of them were found.
 * As ps_pack_file_extent.
 */
ps_result psn_extents(ps_pack_file *file, const uint64_t *numbers, uint64_t n,
                      uint64_t *extents, uint64_t *done, ps_error *err);

/*
 * How many packs and sequences are in blocks that a packer made; other blocks
 * among them do not count.
 */
void psn_count(const ps_pack_info *info, const unsigned char *blocks,
               size_t bytes, uint64_t *n_packs, uint64_t *n_seqs);

/*
 * Takes them apart, with heads as psn_read makes them; psn_count has said for
 * how many there must be room.
 */
void psn_split(const ps_pack_info *info, const unsigned char *blocks,
               uint64_t n_packs, unsigned char *rows, unsigned char *heads,
               unsigned char *sequences);

/* XXH3, 64 bits. */
uint64_t psn_hash(const void *bytes, size_t n, uint64_t seed);

/* What packs have in common, and whether their checksums count. */
typedef struct psn_shape {
    uint32_t capacity;
    uint32_t align;
    uint32_t depth; /* no pack has more sequences; 0: not known */
    uint32_t row_bytes;
    uint32_t seq_bytes;
    bool verify;
} psn_shape;

/*
 * Checks packs as a reader does, which ought to have these indices; `heads` are
 * as in a block.  There are n_seqs sequence rows; those of the first pack begin
 * at row *next, which is moved past those of the packs that are right.
 * Returns the number of the first pack that is wrong, or n.
 */
uint64_t psn_check(const psn_shape *shape, uint64_t n, const int64_t *indices,
                   const unsigned char *rows, const unsigned char *heads,
                   const unsigned char *sequences, uint32_t n_seqs,
                   uint32_t *next);

/*
 * Where the sequences of packs begin, and the last one ends, then the capacity:
 * a row of `width` numbers for each pack, 2 more than it has sequences or more.
 * The packs were checked.
 */
void psn_cu(const psn_shape *shape, uint64_t n, const unsigned char *heads,
            const unsigned char *sequences, size_t width, int32_t *cu);

/* The digest of packs after n more. */
uint64_t psn_digest(uint64_t digest, const unsigned char *heads, uint64_t n);

/*
 * What packs of a file cost, by their heads.  `*done` of them were read.
 * As ps_pack_file_head and ps_pack_cost.
 */
ps_result psn_costs(ps_pack_file *file, const ps_cost *cost,
                    const uint64_t *numbers, uint64_t n, uint64_t *costs,
                    uint64_t *done, ps_error *err);

/*
 * Copies n runs of elements one behind the other: run i has lengths[i] of them,
 * from number starts[i] of array which[i] on.
 */
void psn_gather(void *to, const unsigned char *const *arrays,
                size_t element_bytes, const int64_t *which,
                const int64_t *starts, const int64_t *lengths, int64_t n);

/* Fills `to` with 0, 1, 2, ... for each of n lengths, one behind the other. */
void psn_positions(int32_t *to, const int64_t *lengths, int64_t n);

/* The digest of a tokenizer for the header, as of tokcat --tokenizer. */
void psn_tokenizer_digest(const void *bytes, size_t n,
                          unsigned char digest[32]);
