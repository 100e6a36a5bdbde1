/*
 * output_internal.h - the inside of a sink, which output.c and output_open.c
 * share.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_IO_OUTPUT_INTERNAL_H
#define LIB_IO_OUTPUT_INTERNAL_H

#include <pthread.h>

#include "io/output.h"
#include "io/seek_table.h"
#include "io/zstd_frame.h"

typedef struct ps_output_block {
    unsigned char *bytes;
    size_t used;
    size_t pushed;  /* bytes that may be written before it is full */
    size_t written; /* bytes that were, */
    size_t sealed;  /* and bytes that are as they are to be */
} ps_output_block;

struct ps_output {
    int fd;
    ps_output_options options;
    ps_output_seal seal; /* its functions NULL: none */
    size_t size; /* of a block */
    ps_output_block *blocks;
    uint32_t n_blocks;
    ps_compressor **makers; /* one a thread, or one */
    uint32_t n_makers;
    ps_seek_table *table;
    pthread_t *threads;
    uint32_t n_threads;

    /* Of whoever writes; of the caller, when all is. */
    uint64_t written;
    uint64_t discard; /* bytes that are to be passed over */

    /*
     * Numbers of blocks, each from the one before: those up to `filling` are
     * full, up to `taken` in the hands of a thread, up to `done` written.
     * The lock guards them, and all below.
     */
    pthread_mutex_t lock;
    pthread_cond_t work; /* there may be some for a thread */
    pthread_cond_t room; /* a block was written */
    uint64_t filling;
    uint64_t taken;
    uint64_t done;
    uint32_t n_started; /* threads that know their maker */
    bool stop;
    bool failed;
    ps_error err;
};

/* What a thread of a sink, which is the context, does. */
void *ps_output_work(void *context);

#endif
