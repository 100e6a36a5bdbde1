/*
 * sources.h - the streams that are read, each with its next sequence.
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
    uint64_t start; /* of a regular file: where it began to be read */
    ps_sequence next;
    bool ready;  /* `next` is there, and was not taken yet */
    bool begun;  /* a record was read since the stream began, or began again */
    bool ended;  /* its stream has, now or before it was read again */
    bool repeats; /* it begins again, and has given nothing since */
    uint64_t sequences; /* that were taken, */
    uint64_t tokens;    /* and theirs */
    uint64_t bytes;     /* of a regular file that has ended, or PS_UNKNOWN */
    ps_token_mark place; /* if begun, of the record that was read last; else
                            where to look for the first */
    uint64_t hash;       /* of that record, or 0 */
} source;

typedef struct sources {
    source *of;
    uint32_t n;
    uint32_t n_left; /* that have not ended yet */
    ps_schema schema; /* of all of them */
    int status;       /* of a failure, which was told; else STATUS_OK */
} sources;

/* Opens all, whose schemas must agree.  False after a message. */
bool sources_open(sources *s, const conf *c);

typedef enum source_state { SOURCE_READY, SOURCE_ENDED, SOURCE_FAILED }
    source_state;

/*
 * Looks for the next sequence of a source.  SOURCE_FAILED after a message, or
 * if a hook of its reader failed, which has told why.
 */
source_state sources_look(sources *s, uint32_t i);

/* Gives that sequence up; it is valid until the next look. */
void sources_take(sources *s, uint32_t i);

/* Begins again with a source that has ended.  False after a message. */
bool sources_repeat(sources *s, uint32_t i);

/*
 * Goes to where an earlier job was with a source that was just opened: to
 * `place`, and, if it had begun, behind the record there, which must have the
 * same hash.  All members but `next` are set.  False after a message.
 */
bool sources_resume(sources *s, uint32_t i);

/* Whether a file that has ended still has its size; false after a message. */
bool sources_has_size(sources *s, uint32_t i);

/* How many are known to have more, or may have. */
uint32_t sources_unread(sources *s);

void sources_close(sources *s);

#endif
