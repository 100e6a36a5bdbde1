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

#include "bytes.h"
#include "engine/engine.h"
#include "format/pack.h"
#include "format/schema.h"
#include "io/block.h"
#include "packer/payload_store.h"
#include "packstream.h"
#include "stream/block_output.h"

/* The sequence or piece in a slot of the engine. */
typedef struct ps_held {
    uint64_t id;                  /* of the sequence in the input */
    uint32_t seq_off;             /* offset of the piece, tokens */
    uint32_t seq_len;             /* of the whole sequence, tokens */
    const unsigned char *payload; /* of the whole sequence, in `block` */
    ps_block *block;              /* held; NULL: the store has the piece */
} ps_held;

typedef struct ps_refill ps_refill;

struct ps_packer {
    ps_packer_options options; /* with defaults; `learn_from` is the caller's
                                  and invalid after opening */
    uint64_t learned;          /* hash of the histogram learned from; 0: none */
    ps_pack_info info;
    int fd; /* not owned */
    bool finished;
    ps_shape shape;
    ps_payload_column columns[PS_MAX_FIELDS]; /* in payload order */
    uint32_t n_columns;
    ps_engine *engine; /* NULL: the stream has ended */
    ps_store *store;
    ps_held *held;       /* [engine->n_slots], by slot */
    uint32_t max_blocks; /* reader blocks that may be held */
    uint64_t bytes;      /* payload held, in whole chunks; maintained only with
                            max_bytes */
    ps_block_output output;
    ps_totals totals;
    ps_rejected rejected[PS_REJECTS]; /* rejected part of the totals, by
                                         reason */
    uint64_t next_id;    /* ids of all sequences yet to be admitted are at least
                            this */
    uint64_t newest_out; /* greatest id packed */
    uint64_t ended_delay; /* maximum delay, if the stream has ended */
    ps_refill *refill;    /* what a resumed packer still needs; NULL: nothing */
};

/* ---- options.c ---- */

/* Checks schema and options, and sets options, shape and header. */
ps_result ps_packer_set_options(ps_packer *p, const ps_schema *schema,
                                const ps_packer_options *options,
                                ps_error *err);

/*
 * Encodes the options that determine the output.  Their hash is in the header.
 */
#define PS_OPTIONS_BYTES 96
void ps_packer_options_encode(const ps_packer *p,
                              unsigned char to[PS_OPTIONS_BYTES]);

/*
 * Compares encoded options.  PS_OK, PS_ERR_ARGUMENT (the text names the first
 * difference).
 */
ps_result ps_packer_options_compare(const unsigned char *then,
                                    const unsigned char *now, ps_error *err);

/* Options of the output, without its position. */
ps_output_options ps_packer_output_options(const ps_packer *p);

/*
 * Maximum number of sequences per pack, taking capacity and window into
 * account.
 */
uint32_t ps_packer_depth(const ps_packer *p);

/* Options of the engine, without learn_from. */
ps_engine_options ps_packer_engine_options(const ps_packer *p);

/*
 * Returns the histogram for the engine, in its units, or NULL.  The caller
 * frees it.  PS_OK, PS_ERR_MEMORY.
 */
ps_result ps_packer_expected(const ps_packer *p, ps_histogram **expected,
                             ps_error *err);

/*
 * Upper bound, in bytes, on the payloads of `n` sequences in whole chunks, if
 * their total length is at most that of `packs` packs; and the same for all
 * sequences in the window.
 */
uint64_t ps_packer_chunks(const ps_packer *p, uint64_t n, uint64_t packs);
uint64_t ps_packer_window_bytes(const ps_packer *p);

/*
 * Maximum number of reader blocks that may be held: as many as the payloads in
 * the window fill.  0 with max_bytes.
 */
uint32_t ps_packer_max_blocks(const ps_packer *p);

/* ---- packer.c ---- */

/*
 * Creates a packer with checked options, without opening anything.  On failure
 * *packer is NULL.
 */
ps_result ps_packer_prepare(ps_packer **packer, int fd,
                            const ps_schema *schema,
                            const ps_packer_options *options, ps_error *err);

/* Size of a payload in bytes, for at most PS_MAX_SEQUENCE_BYTES. */
static inline size_t ps_packer_payload_bytes(const ps_packer *p,
                                             uint32_t n_tok)
{
    return (size_t)ps_shape_bytes(&p->shape, n_tok);
}

/* Its size in the store in bytes: whole chunks. */
static inline uint64_t ps_packer_store_bytes(const ps_packer *p,
                                             uint32_t n_tok)
{
    return round_up(ps_shape_bytes(&p->shape, n_tok), PS_STORE_CHUNK_BYTES);
}

/* Length in units of the engine, each `align` tokens, rounded up. */
static inline uint32_t ps_packer_units(const ps_packer *p, uint32_t n_tok)
{
    const uint32_t align = p->info.align;

    return align == 1 ? n_tok : n_tok / align + (n_tok % align != 0);
}

/*
 * Opens engine, store and output; `place` is NULL for a new output.  PS_OK,
 * PS_ERR_MEMORY, _IO, and the results of ps_output_open.
 */
ps_result ps_packer_start(ps_packer *p, const ps_output_place *place,
                          ps_error *err);

/*
 * Writes the header of a new stream or, with `goes_on`, of one that starts
 * again at first_pack.  PS_OK, PS_ERR_ARGUMENT, _IO, _MEMORY.
 */
ps_result ps_packer_begin(ps_packer *p, bool goes_on, ps_error *err);

/*
 * Returns PS_ERR_CORRUPT unless the digest to be replayed was reached and
 * matched.  Call it when everything is written.
 */
ps_result ps_packer_check_replay(const ps_packer *p, ps_error *err);

/* ---- emit.c ---- */

/*
 * Length in tokens of the piece in a slot.  The engine has it rounded up to
 * units.  Only the last piece of a sequence can end inside a unit.
 */
static inline uint32_t ps_packer_length(const ps_packer *p, uint32_t slot)
{
    const ps_held *h = &p->held[slot];
    const uint32_t n = ps_engine_length(p->engine, slot) * p->info.align;
    const uint32_t left = h->seq_len - h->seq_off;

    return n < left ? n : left;
}

/* Emits packs according to `mode`. */
ps_result ps_packer_emit(ps_packer *p, ps_emit_mode mode, ps_error *err);

/* With max_bytes: emits packs until `bytes` more fit, and counts them. */
ps_result ps_packer_make_room(ps_packer *p, uint64_t bytes, ps_error *err);

/* Emits the packs that are due.  After most sequences there are none. */
static inline ps_result ps_packer_emit_due(ps_packer *p, ps_error *err)
{
    return ps_engine_is_idle(p->engine) ? PS_OK
                                        : ps_packer_emit(p, PS_EMIT_DUE, err);
}

/* Counts an input record, and emits packs that are due because of it. */
static inline ps_result ps_packer_tick(ps_packer *p, ps_error *err)
{
    ps_engine_tick(p->engine);
    return ps_packer_emit_due(p, err);
}

/* Copies the piece in a slot from its payload to the store. */
ps_result ps_packer_store(ps_packer *p, uint32_t slot, ps_error *err);

/*
 * Keeps the payload of the piece in a slot.  It stays in its block if the
 * reader's block may be held, otherwise it is copied to the store.  PS_OK,
 * PS_ERR_MEMORY.
 */
static inline ps_result ps_packer_keep(ps_packer *p, uint32_t slot,
                                       const ps_sequence *s, ps_error *err)
{
    ps_held *h = &p->held[slot];
    const bool stays =
        s->block != NULL && s->payload == s->lent &&
        ps_pool_held(s->block->pool) <= p->max_blocks &&
        ps_block_has(s->block, s->payload, s->payload_bytes);

    h->payload = s->payload;
    h->block = stays ? s->block : NULL;
    if (!stays)
        return ps_packer_store(p, slot, err);
    ps_block_hold(s->block);
    return PS_OK;
}

/*
 * Copies the payload kept for a slot, column by column:
 * ps_packer_payload_bytes(p, n_tok) bytes.
 */
void ps_packer_get(const ps_packer *p, uint32_t slot, uint32_t n_tok,
                   unsigned char *payload);

/* ---- refill.c ---- */

/* Hashes the payloads in some slots, in input order.  PS_OK, PS_ERR_MEMORY. */
ps_result ps_refill_hash(const ps_packer *p, const uint32_t *slots, uint32_t n,
                         uint64_t *hash, ps_error *err);

/*
 * Starts waiting for the payloads of these slots, whose hash is given.  PS_OK,
 * PS_ERR_MEMORY.
 */
ps_result ps_refill_begin(ps_packer *p, const uint32_t *slots, uint32_t n,
                          uint64_t hash, ps_error *err);

/*
 * Processes a sequence that is put again or, with *is_new, for the first time.
 * PS_OK, PS_ERR_ARGUMENT, _CORRUPT (it has changed), _MEMORY.
 */
ps_result ps_refill_put(ps_packer *p, const ps_sequence *sequence,
                        bool *is_new, ps_error *err);

/* True if earlier sequences must still be put again. */
bool ps_refill_waits(const ps_packer *p);
void ps_refill_free(ps_packer *p);

#endif
