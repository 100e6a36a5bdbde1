/*
 * pack_file_parts.h - ps_pack_file, shared by pack_file.c, pack_file_open.c
 * and pack_file_index.c.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_STREAM_PACK_FILE_PARTS_H
#define LIB_STREAM_PACK_FILE_PARTS_H

#include "format/block.h"
#include "io/random_input.h"
#include "stream/pack_file.h"

/* One stream of the file.  Offsets are in bytes of the file's contents. */
typedef struct ps_file_stream {
    uint64_t at;  /* offset of its header */
    uint64_t end; /* offset of END */
    uint64_t packs;
    uint64_t first; /* number of its first pack in the file */
} ps_file_stream;

/* Encoded index entries in a growing array. */
typedef struct ps_file_entries {
    unsigned char *bytes;
    size_t capacity; /* entries allocated */
    uint32_t n;      /* entries in use */
} ps_file_entries;

/* A block of packs. */
typedef struct ps_file_block {
    uint64_t at;      /* offset in the file */
    uint64_t end;     /* offset of the next block, from the index */
    uint64_t first;   /* index of its first pack in the stream */
    uint32_t n_packs; /* number of packs */
} ps_file_block;

/* Part of a block, in a growing array. */
typedef struct ps_file_table {
    unsigned char *bytes;
    size_t capacity; /* bytes allocated */
    uint64_t size;   /* bytes in use */
    bool is_whole;   /* covers all packs of the block */
} ps_file_table;

struct ps_pack_file {
    ps_random_input *input;
    ps_pack_info info; /* of the first stream, with the maximum displacement and
                          depth */
    ps_totals totals;
    ps_file_stream *streams;
    uint32_t n_streams;
    size_t streams_capacity;

    /* The cached part of one stream's index. */
    uint32_t indexed; /* stream number; n_streams: none */
    uint32_t n_parts; /* entries of INDEX blocks in `end`; blocks of packs
                         follow */
    ps_file_entries end; /* entries in END */
    uint32_t part;    /* INDEX block cached in `listed`; n_parts: none */
    ps_file_entries listed;

    /* The current block, which was last read from, and its cached parts. */
    uint32_t block_stream;
    ps_file_block block; /* n_packs is 0: none */
    ps_file_table heads; /* of all packs */
    ps_file_table sequences; /* of all packs, or of the last pack read */
};

/*
 * Reads the header and END of stream `i`, which must not have changed since the
 * file was opened.  *end is valid until the next read.
 * PS_OK, PS_ERR_CORRUPT, and the results of ps_random_input_read.
 */
ps_result ps_pack_file_end(ps_pack_file *file, uint32_t i, ps_pack_info *info,
                           ps_end *end, ps_error *err);

/* Finds the block that contains pack `k` of stream `i`. */
ps_result ps_pack_file_block(ps_pack_file *file, uint32_t i, uint64_t k,
                             ps_file_block *block, ps_error *err);

#endif
