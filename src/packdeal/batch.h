/*
 * batch.h - the packs of a global batch, and their assignment to ranks.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKDEAL_BATCH_H
#define PACKDEAL_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "packdeal/conf.h"
#include "packdeal/input.h"
#include "packdeal/window.h"

/*
 * Costs, summed over all steps assigned.  The cost of a step is the cost of its
 * costliest rank.
 */
typedef struct batch_costs {
    double dealt;    /* with packs assigned by cost */
    double in_order; /* with packs assigned to ranks in turn */
    double mean;     /* mean of all ranks */
} batch_costs;

typedef struct batch {
    const conf *conf;
    uint32_t most;     /* packs of a full batch */
    uint32_t n;        /* packs of this batch */
    bool has_tokens;   /* the packs are token records */
    input_pack *packs; /* [most] */
    uint32_t *ranks;   /* [n], rank of each pack */
    uint32_t *first;   /* [ranks], index of the rank's first pack, or n */
    uint32_t *next;    /* [n], index of the next pack of the same rank, or n */
    uint64_t *costs;   /* [most], cost of each pack */
    uint64_t *sums;    /* [ranks], cost of each rank; with -v */
    ps_deal *deal;
    window window; /* source of the packs if --window is more than 1 */
    /* copies of packs from pipes, and of token records; owned; NULL: none */
    unsigned char *held;
    uint64_t room;    /* allocated size of `held`, in bytes */
    uint64_t kept;    /* used size of `held`, in bytes */
    bool keep;        /* keep packs from pipes */
    uint64_t steps;   /* number of steps, including those before --start */
    uint64_t n_packs; /* number of packs in these steps */
    batch_costs all;  /* sums over all steps */
    /* STATUS_OK, or the status of a failure already reported */
    int status;
} batch;

/*
 * Prepares for batches.  If `keep` is set, packs from pipes are copied.  On
 * failure, prints a message and returns false.
 */
bool batch_open(batch *b, const conf *c, bool keep);

/*
 * Reads the next batch, skipping batches before --start, and assigns its packs.
 * The input frees its data about earlier batches.  Returns false at the end, or
 * on failure after printing a message.
 */
bool batch_next(batch *b, input *in);

/*
 * Checks that there are enough packs: at least one per rank, and with
 * --last=drop a whole batch.  On failure, prints a message and returns false.
 */
bool batch_suffices(const conf *c, const input *in, uint64_t n_packs);

/*
 * Checks that --start is less than `steps`.  On failure, prints a message and
 * returns false.
 */
bool batch_has_start(const conf *c, uint64_t steps);

void batch_close(batch *b);

#endif
