/*
 * memory.h - divide the memory given by -M.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_MEMORY_H
#define PACKSTREAM_MEMORY_H

#include "packstream/conf.h"

typedef struct memory {
    const conf *conf;
    ps_schema schema;
    ps_packer_options options; /* except threads */
    /* for the window and everything it needs, in bytes */
    uint64_t bound;
    /* limit on zstd windows of the input, in bytes; 0: none */
    uint64_t window;
    uint64_t longest; /* longest payload held whole, in bytes */
    /* upper bound on memory in use, with all threads, in bytes */
    uint64_t bytes;
} memory;

/* Configures malloc to return freed memory to the system. */
void memory_init(void);

/*
 * Largest zstd window accepted in the input, in bytes, if all memory is limited
 * to `bound` bytes. 0: no limit.
 */
uint64_t memory_window(uint64_t bound);

/*
 * Sets the limits on the window, payloads and frames from the bound.  Returns
 * an exit status; prints a message if the bound is too small.
 */
int memory_divide(memory *m, const conf *c, const ps_schema *schema,
                  ps_packer_options *options);

/*
 * The smallest -M, a power of two in bytes, with which the window holds this
 * many sequences, which fill this many packs; 0: none above the present bound.
 */
uint64_t memory_for(const memory *m, uint64_t sequences, uint32_t packs);

/*
 * Number of threads that fit in the bound: at least 1, at most `wanted`.  Sets
 * m->bytes.
 */
uint32_t memory_threads(memory *m, uint32_t wanted);

#endif
