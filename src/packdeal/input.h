/*
 * input.h - the packs of all inputs, in order; or their token records, each of
 * which counts as a pack of one sequence.
 *
 * For regular files, only heads are read at first, and the rest of a pack on
 * demand.  Packs from a pipe, and all token records, are read completely and
 * only once.  Packs of regular files can also be read in another order; the
 * packs then form a single stream.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKDEAL_INPUT_H
#define PACKDEAL_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "files/packs.h"
#include "packstream.h"

typedef struct input_file {
    const char *name;
    int fd;
    packs packs;
    ps_token_reader *tokens; /* reader of token records; NULL: see `packs` */
    bool ended;              /* all packs have been read */
    /* with shuffling: number of its first pack, over all files */
    uint64_t first;
    /* with shuffling: number of sequences before each of its streams; owned */
    uint64_t *first_ids;
    struct input_file *next;
} input_file;

/*
 * A stream with packs, and the adjacent streams without packs: the streams
 * `first` to `end` - 1.
 */
typedef struct input_stream {
    input_file *file;
    uint32_t number;    /* index in its file */
    uint64_t first_id;  /* number of sequences in earlier streams */
    uint32_t first;     /* index of the first of these streams */
    uint32_t end;       /* index after the last of these streams */
    ps_pack_info *info; /* for a pipe: its header; owned */
    /*
     * totals of adjacent files without packs and, for a pipe that has ended, of
     * the stream
     */
    ps_totals totals;
    struct input_stream *next;
} input_stream;

/* A pack of an input, or a token record. */
typedef struct input_pack {
    /*
     * For a regular file, the row is NULL until input_read.  For a token
     * record, the row is the payload.
     */
    ps_pack pack;
    size_t bytes; /* size of the row, in bytes, once it has been read */
    uint64_t cost;
    input_file *file;
    uint64_t number;      /* index of the pack in its file */
    uint64_t all;         /* index of the pack over all files */
    /*
     * number added to the ids of its sequences to count them over all streams;
     * with shuffling, set by input_read
     */
    uint64_t raise;
    input_stream *stream; /* NULL: a token record */
} input_pack;

typedef struct input {
    const char *const *names; /* "-" is stdin */
    int n_names;
    const ps_cost *cost; /* cost function; owned by the caller */
    int next;            /* index of the next name */
    input_file *files;   /* open files, oldest first */
    input_file *file;    /* the current file, the last open file */
    /*
     * index of the next pack of this file; with shuffling: next position in the
     * order, which the caller can advance
     */
    uint64_t number;
    uint64_t n_packs;      /* packs read; with shuffling: packs in all files */
    input_file **shuffled; /* all files; NULL: no shuffling */
    /* every file is regular and allows random access */
    bool seekable;
    bool few;         /* few packs will be read, so costs are not held */
    bool numbers_ids; /* set the first_id of streams */
    uint64_t n_ids;   /* with numbers_ids: sequences in earlier files */
    const uint64_t *seed;  /* NULL: none */
    uint64_t epoch;
    bool begun; /* a pack has been read */
    /* with a seed: costs of all packs; owned; NULL: not held */
    uint64_t *costs;
    input_stream *streams; /* streams of packs already read, oldest first */
    input_stream *stream;  /* the last of these streams */
    uint32_t n_seen;       /* number of streams found in this file */
    /* totals of files without packs before the first stream */
    ps_totals leading;
    ps_totals before; /* for a pipe: totals of earlier streams */
    bool has_tokens;  /* token records instead of packs */
    /*
     * header of the first stream; its depth is the maximum of all inputs, or 0
     * if a depth is unknown
     */
    ps_pack_info info;
    ps_schema schema; /* schema of token records */
    /* STATUS_OK, or the status of a failure already reported */
    int status;
} input;

/*
 * Opens the first file, and checks that later regular files match it.  `cost`
 * must outlive the input.  On failure, prints a message and returns false.
 */
bool input_begin(input *in, const char *const *names, int n_names,
                 const ps_cost *cost);

/*
 * From now on, all files are read as one stream, in which packs can be skipped.
 * Packs are read in the shuffled order of an epoch or, if `seed` is NULL, in
 * their own order.  `option` is the name of the option that requires this, for
 * messages.  On failure, prints a message and returns false.
 */
bool input_shuffle(input *in, const char *option, const uint64_t *seed,
                   uint64_t epoch);

/*
 * Reads the next pack and its cost.  A pack from a pipe is complete, and valid
 * until the next call.  With shuffling, input_read sets the numbers of the
 * pack.  Returns false at the end, or on failure after printing a message.
 */
bool input_next(input *in, input_pack *pack);

/*
 * Counts the packs of all inputs, without reading regular files.  On failure,
 * prints a message and returns false.
 */
bool input_count(input *in, uint64_t *n);

/*
 * Reads the complete pack if it is in a regular file.  Does nothing for a pipe
 * or token records.  The pack is valid until the next call.  On failure, prints
 * a message and returns false.
 */
bool input_read(input *in, input_pack *pack);

/*
 * Returns the header of a stream, with the maximum depth of all inputs if it is
 * known.  On failure, prints a message and returns false.
 */
bool input_header(input *in, const input_stream *stream, ps_pack_info *info);

/*
 * Totals of a stream's input, after all of its packs have been read.  Adjacent
 * streams without packs are included.  On failure, prints a message and returns
 * false.
 */
bool input_totals(input *in, const input_stream *stream, ps_totals *totals);

/* Frees all streams and files before the stream and file of the last pack. */
void input_forget(input *in);

/*
 * Bytes of the current file read or skipped so far.  In a regular file, only
 * rows count.
 */
uint64_t input_offset(const input *in);

/* Frees everything.  Returns the exit status. */
int input_end(input *in);

#endif
