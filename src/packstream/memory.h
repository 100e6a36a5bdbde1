/*
 * memory.h - how the memory that -M gives is divided.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_MEMORY_H
#define PACKSTREAM_MEMORY_H

#include "packstream/conf.h"

typedef struct memory {
    const conf *conf;
    ps_schema schema;
    ps_packer_options options; /* but for the threads */
    uint64_t bound;   /* of the window and what belongs to it, bytes */
    uint64_t window;  /* the largest of zstd frames of the input, or 0 */
    uint64_t longest; /* payload that is held whole, bytes */
    uint64_t bytes;   /* the most that all of this takes, with its threads */
} memory;

/* Has memory that is not needed given back to the system. */
void memory_init(void);

/*
 * The largest window that zstd frames of the input may ask for, of a bound of
 * all memory.  0: none.
 */
uint64_t memory_window(uint64_t bound);

/*
 * Fills in what the bound leaves for the window, payloads and the table of
 * frames.  An exit status, after a message if the bound is too small.
 */
int memory_divide(memory *m, const conf *c, const ps_schema *schema,
                  ps_packer_options *options);

/*
 * The least power of two for -M with which the window can hold so many
 * sequences, which fill so many packs.  0: none above the bound.
 */
uint64_t memory_for(const memory *m, uint64_t sequences, uint32_t packs);

/*
 * Of so many threads those that there is memory for, at least 1; fills in
 * m->bytes.
 */
uint32_t memory_threads(memory *m, uint32_t wanted);

#endif
