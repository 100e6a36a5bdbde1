/*
 * input.h - the packs of all inputs, in their order; or their token records, of
 * which each counts as a pack of one sequence.
 *
 * Of a regular file it gives heads, and reads a pack when it is asked for.  A
 * pipe gives each pack once, whole, and so come all token records.  The packs
 * of regular files can also come in another order; then they are those of one
 * stream.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKDEAL_INPUT_H
#define PACKDEAL_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/packs.h"
#include "packstream.h"

typedef struct input_file {
    const char *name;
    int fd;
    packs packs;
    ps_token_reader *tokens; /* instead of packs, or NULL */
    bool ended; /* all packs were given */
    uint64_t first;      /* shuffled: number of its first pack through all... */
    uint64_t *first_ids; /* ...and sequences before each of its streams */
    struct input_file *next;
} input_file;

/*
 * A stream with packs in it, and streams without packs beside it: those from
 * `first` up to `end`, which is not one of them.
 */
typedef struct input_stream {
    input_file *file;
    uint32_t number; /* in its file */
    uint32_t first;
    uint32_t end;
    ps_pack_info *info; /* of a pipe: its header */
    ps_totals totals;   /* of files without packs beside it; and of a pipe,
                           once it has ended, its own */
    struct input_stream *next;
} input_stream;

/* A pack of an input, or a token record. */
typedef struct input_pack {
    ps_pack pack; /* of a regular file without its row, until input_read; of a
                     token record its payload is the row */
    size_t bytes; /* of a row that is there */
    uint64_t cost;
    input_file *file;
    uint64_t number;  /* in its file */
    uint64_t all;     /* through all files */
    uint64_t raise;   /* what becomes of its ids: this is added */
    input_stream *stream; /* NULL: a token record */
} input_pack;

typedef struct input {
    const char *const *names; /* "-" is stdin */
    int n_names;
    const ps_cost *cost; /* of packs */
    int next;            /* index of the next name */
    input_file *files;   /* that are open, the oldest first */
    input_file *file;    /* that is read, the last of them */
    uint64_t number;     /* of its next pack; shuffled: the next place,
                            which a caller may move on */
    uint64_t n_packs;    /* that were given; shuffled: that there are */
    input_file **shuffled; /* all files, or NULL */
    const uint64_t *seed; /* or NULL */
    uint64_t epoch;
    bool begun;           /* a pack was given */
    uint64_t *costs;      /* with a seed: of all packs, or NULL */
    input_stream *streams; /* of packs that were given, the oldest first */
    input_stream *stream;  /* the last of them */
    uint32_t n_seen;       /* streams of this file that were come to */
    ps_totals leading;     /* of files without packs before all streams */
    ps_totals before;      /* of a pipe: what streams before this one had */
    bool has_tokens;       /* records instead of packs */
    ps_pack_info info;     /* of the first stream of all, with the depth of all
                              inputs, 0 if one does not say it... */
    ps_schema schema;      /* ...or of the first token records */
    int status;            /* of a failure, which was told; else STATUS_OK */
} input;

/*
 * Opens the first file, and looks at later ones, if they are regular, whether
 * they hold the like; `cost` says what packs cost, and outlives the input.
 * False after a message.
 */
bool input_begin(input *in, const char *const *names, int n_names,
                 const ps_cost *cost);

/*
 * Has packs come in the order of an epoch, or without a seed in their own, but
 * those of all files as of one stream, of which some can be passed over.
 * `option` is what asks for that.  False after a message.
 */
bool input_shuffle(input *in, const char *option, const uint64_t *seed,
                   uint64_t epoch);

/*
 * The next pack and its cost; one from a pipe is there whole until the next
 * call.  In the order of an epoch its numbers come with its row.
 * False at the end, or after a message.
 */
bool input_next(input *in, input_pack *pack);

/* Packs of all inputs; regular ones are not read.  False after a message. */
bool input_count(input *in, uint64_t *n);

/*
 * Reads a pack of a regular file whole; does nothing to one of a pipe, and to
 * token records.
 * It is there until the next call.  False after a message.
 */
bool input_read(input *in, input_pack *pack);

/*
 * The header of a stream.  If all inputs say how deep their packs are, it says
 * the greatest depth of all.  False after a message.
 */
bool input_header(input *in, const input_stream *stream, ps_pack_info *info);

/*
 * What the input of a stream was, once all of its packs were given; streams
 * without packs count with those beside them.  False after a message.
 */
bool input_totals(input *in, const input_stream *stream, ps_totals *totals);

/* Forgets all streams and files before those of the last pack, if any. */
void input_forget(input *in);

/*
 * Bytes read or passed over so far, of the file that is read; where it is
 * regular, those of rows.
 */
uint64_t input_offset(const input *in);

/* Releases everything; the exit status. */
int input_end(input *in);

#endif
