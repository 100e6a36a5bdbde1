/*
 * skip.h - the sequences that shares omit.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKDEAL_SKIP_H
#define PACKDEAL_SKIP_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/ids.h"
#include "packdeal/conf.h"
#include "packdeal/input.h"

typedef struct skip {
    const conf *conf;
    id_set ids;      /* ids of the sequences, counted over all streams */
    bool *omitted;   /* of the last pack; owned */
    uint32_t room;   /* sequences allocated in `omitted` */
    uint64_t n_packs; /* packs changed */
    int status; /* STATUS_OK, or the status of a failure already reported */
} skip;

/* Reads the file of --skip, if any.  Returns false after printing a message. */
bool skip_open(skip *s, const conf *c);

/*
 * Looks for sequences to omit in a complete pack, which is assigned to `rank`
 * in `step`.  Sets *omitted to an array for shares_put that is valid until the
 * next call, or to NULL if there are none.  Names each changed pack, unless -q
 * is given.  Returns false after printing a message.
 */
bool skip_find(skip *s, const input *in, const input_pack *pack, uint64_t step,
               uint32_t rank, const bool **omitted);

/* Prints how many ids were not in any pack that was written. */
void skip_report(const skip *s);

void skip_close(skip *s);

#endif
