/*
 * batch.h - the packs of a global batch, and the rank of each.
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

/* Costs of all steps dealt; of a step the greatest of a rank counts. */
typedef struct batch_costs {
    double dealt;
    double in_order; /* each rank had the next pack in turn */
    double mean;     /* of all ranks */
} batch_costs;

typedef struct batch {
    const conf *conf;
    uint32_t most; /* packs of a whole one */
    uint32_t n;    /* packs in it */
    bool has_tokens; /* they are token records */
    input_pack *packs;
    uint32_t *ranks; /* of each pack */
    uint32_t *first; /* of each rank: its first pack, or n */
    uint32_t *next;  /* of each pack: the next one of its rank, or n */
    uint64_t *costs;
    uint64_t *sums;  /* costs of ranks, had each the next pack in turn */
    ps_deal *deal;
    window window; /* that they come from, if --window is more than 1 */
    unsigned char *held; /* packs of pipes, and token records, or NULL */
    uint64_t room;       /* for them */
    uint64_t kept;       /* bytes of them */
    bool keep;           /* what comes by a pipe is kept whole */
    uint64_t steps;         /* so far, with those before --start */
    uint64_t n_packs;       /* in them */
    batch_costs all;
    int status; /* of a failure, which was told; else STATUS_OK */
} batch;

/*
 * Prepares for batches; `keep`: with what comes by a pipe.  False after a
 * message.
 */
bool batch_open(batch *b, const conf *c, bool keep);

/*
 * Reads the next batch, passing over those before --start, and deals it.  What
 * the input knows of earlier ones is forgotten.  False at the end or after a
 * message.
 */
bool batch_next(batch *b, input *in);

/*
 * Whether so many packs can be dealt: each rank gets one, and with --last=drop
 * there is a whole batch.  False after a message.
 */
bool batch_suffices(const conf *c, const input *in, uint64_t n_packs);

/* Whether --start is one of so many steps.  False after a message. */
bool batch_has_start(const conf *c, uint64_t steps);

void batch_close(batch *b);

#endif
