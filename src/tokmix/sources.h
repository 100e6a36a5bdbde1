/*
 * sources.h - the input streams, each with its next sequence.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKMIX_SOURCES_H
#define TOKMIX_SOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "packstream.h"
#include "tokmix/conf.h"

typedef struct source {
    const char *name;
    int fd; /* -1: not open */
    ps_token_reader *reader;
    /* offset at which reading started, in bytes; for regular files */
    uint64_t start;
    ps_sequence next;
    bool ready; /* `next` is valid and not taken yet */
    /* a record has been read since the stream started or restarted */
    bool begun;
    bool ended;         /* the stream has ended at least once */
    bool repeats;       /* no sequence has been read since the restart */
    /* `repeats`, but the current stage has not seen that the source ended */
    bool at_end;
    uint64_t sequences; /* number of sequences taken */
    uint64_t tokens;    /* tokens of the sequences taken */
    /* size of a regular file that has ended, in bytes, or PS_UNKNOWN */
    uint64_t bytes;
    /*
     * position of the last record read, or of the start of the stream if not
     * `begun`
     */
    ps_token_mark position;
    uint64_t hash; /* fingerprint of the last record read; 0: none */
} source;

typedef struct sources {
    source *of;       /* owned */
    uint32_t n;       /* number of sources */
    ps_schema schema; /* shared by all sources */
    /* STATUS_OK, or the status of a failure already reported */
    int status;
} sources;

/*
 * Opens all sources, whose schemas must agree.  On failure, prints a message
 * and returns false.
 */
bool sources_open(sources *s, const conf *c);

typedef enum source_state { SOURCE_READY, SOURCE_ENDED, SOURCE_FAILED }
    source_state;

/*
 * Makes sure that the next sequence of source `i` has been read.  If the source
 * has ended, it must be restarted before the next call.  Returns
 * SOURCE_FAILED, after a message, if the source or a hook failed.
 */
source_state sources_look(sources *s, uint32_t i);

/* Takes the sequence that is ready.  It stays valid until the next look. */
void sources_take(sources *s, uint32_t i);

/*
 * Starts a stage.  A source that has been restarted, but not read since, ends
 * in this stage once more.  Otherwise the stage would depend on whether the
 * stage before had tried to read on.
 */
void sources_begin_stage(sources *s);

/*
 * Restarts a source that has ended.  On failure, prints a message and returns
 * false.
 */
bool sources_repeat(sources *s, uint32_t i);

/*
 * Seeks a newly opened source to `position` and, if it had begun, past the
 * record there, whose hash must match.  All members except `next` must be set.
 * On failure, prints a message and returns false.
 */
bool sources_resume(sources *s, uint32_t i);

/*
 * Checks that the size of a file that has ended is unchanged.  On failure,
 * prints a message and returns false.
 */
bool sources_check_size(sources *s, uint32_t i);

/* True if a source has, or may have, more sequences. */
bool sources_is_unread(sources *s, uint32_t i);

void sources_close(sources *s);

#endif
