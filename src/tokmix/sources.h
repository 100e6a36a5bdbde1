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
    bool ready;  /* `next` is there */
    bool held;   /* it is, or was taken and is still in memory */
    bool ended;  /* its stream has, now or before it was read again */
    bool repeats; /* it begins again, and has given nothing since */
    uint64_t sequences; /* that were taken, */
    uint64_t tokens;    /* and theirs */
    uint64_t bytes;     /* of a regular file that has ended, or PS_UNKNOWN */
    ps_token_mark place; /* before `next`, if that is held; else where to
                            look for it */
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

/*
 * From now on `hook` is called before a wait for input; if it fails, it has
 * told why, or a signal ends the job.
 */
void sources_on_wait(sources *s, ps_wait_hook *hook, void *context);

typedef enum source_state { SOURCE_READY, SOURCE_ENDED, SOURCE_FAILED }
    source_state;

/* Looks for the next sequence of a source.  SOURCE_FAILED after a message. */
source_state sources_look(sources *s, uint32_t i);

/* Gives that sequence up; it is valid until the next look. */
void sources_take(sources *s, uint32_t i);

/* Begins again with a source that has ended.  False after a message. */
bool sources_repeat(sources *s, uint32_t i);

/* What tells the record at `place` from others; 0 if none is held. */
uint64_t sources_hash(const source *one);

/*
 * Goes to where an earlier job was with a source that was just opened: to
 * `place`, and behind the record that it held, which must have this hash.  All
 * members but `next` are set.  A source that gives no more is left as it is.
 * False after a message.
 */
bool sources_resume(sources *s, uint32_t i, uint64_t hash);

/* Whether a file that has ended still has its size; false after a message. */
bool sources_has_size(sources *s, uint32_t i);

/* How many are known to have more, or may have. */
uint32_t sources_unread(sources *s);

void sources_close(sources *s);

#endif
