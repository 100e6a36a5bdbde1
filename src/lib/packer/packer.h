/*
 * packer.h - internals of the packer, shared by the files of this module.
 *
 * SPDX-License-Identifier: MIT
 *
 * A packer turns sequences into a stream of packs.  It connects the engine,
 * which chooses sequences for packs by length alone, with the payloads and the
 * output.  The path of a sequence:
 *
 *   put.c            checks it, then truncates, splits or rejects it; passes
 *                    its length to the engine and keeps its payload
 *   emit.c           builds a pack when the engine has chosen one
 *   group.c          collects sequences that must share a pack
 *   payload_store.c  stores payloads that cannot stay where they were read
 *
 * Packs are built in place in the blocks of stream/block_output.h.
 * pack_lengths.c needs no payloads or output: it computes which sequences share
 * a pack.
 *
 *   options.c        checks options and fills in defaults
 *   packer.c         opens, flushes and finishes
 *   memory.c         bounds the memory of all this
 *   checkpoint.c     saves a packer between two sequences and resumes it
 *   refill.c         gets the payloads back after a resume
 *
 * This module uses base, io, format, plan, engine and stream.  No other module
 * uses it.
 */

#ifndef LIB_PACKER_PACKER_H
#define LIB_PACKER_PACKER_H

#include "engine/engine.h"
#include "io/block.h"
#include "packer/options.h"
#include "packer/payload_store.h"
#include "packstream.h"
#include "stream/block_output.h"

/* The sequence or piece in a slot of the engine. */
typedef struct ps_held {
    uint64_t id;                  /* of the sequence in the input */
    uint32_t seq_off;             /* offset of the piece, tokens; of a group:
                                     number of its pieces */
    uint32_t seq_len;             /* of the whole sequence, tokens; of a group:
                                     tokens of its pieces */
    const unsigned char *payload; /* of the whole sequence, in `block` */
    ps_block *block;              /* held; NULL: the store has the piece */
} ps_held;

/* The group that is being collected; see group.h. */
typedef struct ps_group {
    bool is_open;     /* the next sequence with its value belongs to it */
    bool is_overlong; /* a sequence did not fit */
    uint64_t value;   /* of the channel */
    uint64_t id;      /* of the first sequence collected */
    uint64_t time;    /* of the engine, when it arrived */
    uint64_t bytes;   /* in the store */
    uint32_t pieces;  /* collected and not yet admitted; 0: nothing */
    uint32_t n_tok;   /* of these pieces */
    uint32_t units;   /* their length for the engine */
    uint64_t uses[PS_MAX_BUDGETS]; /* of the budgets by these pieces */
} ps_group;

typedef struct ps_refill ps_refill;

struct ps_packer {
    ps_settings set;
    int fd; /* not owned */
    bool finished;
    ps_engine *engine; /* NULL: the stream has ended */
    ps_store *store;
    ps_held *held;       /* [engine->n_slots + spare], by slot */
    uint32_t max_blocks; /* reader blocks that may be held */
    uint64_t bytes;      /* payload held, in whole chunks; maintained only with
                            max_bytes */
    ps_block_output output;
    ps_totals totals;
    ps_rejected rejected[PS_REJECTS]; /* rejected part of the totals, by
                                         reason */
    ps_group group;   /* zero without groups */
    ps_groups groups; /* counts */
    uint64_t next_id;    /* ids of all sequences yet to be admitted are at least
                            this */
    uint64_t newest_out; /* greatest id packed */
    uint64_t ended_delay; /* maximum delay, if the stream has ended */
    ps_refill *refill;    /* payloads still needed after resuming; NULL: none */
};

/*
 * Creates a packer with checked options, without opening anything.  On failure
 * *packer is NULL.
 */
ps_result ps_packer_prepare(ps_packer **packer, int fd,
                            const ps_schema *schema,
                            const ps_packer_options *options, ps_error *err);

/*
 * Opens engine, store and output; `place` is NULL for a new output.  PS_OK,
 * PS_ERR_MEMORY, _IO, and the results of ps_output_open.
 */
ps_result ps_packer_start(ps_packer *p, const ps_output_place *place,
                          ps_error *err);

/*
 * Writes the header of a new stream or, with `goes_on`, of a stream that starts
 * again at first_pack.  PS_OK, PS_ERR_ARGUMENT, _IO, _MEMORY.
 */
ps_result ps_packer_begin(ps_packer *p, bool goes_on, ps_error *err);

/*
 * Returns PS_ERR_CORRUPT unless the digest to be replayed has been reached and
 * matched.  Call it when everything has been written.
 */
ps_result ps_packer_check_replay(const ps_packer *p, ps_error *err);

/* The spare slot, which contains the open group. */
static inline uint32_t ps_packer_group_slot(const ps_packer *p)
{
    return p->engine->n_slots;
}

#endif
