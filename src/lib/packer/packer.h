/*
 * packer.h - the inside of a packer, which the files of this room share.
 *
 * A packer turns sequences into a stream of packs.  It joins the engine,
 * which decides by lengths alone what makes a pack, with the payloads and
 * the output.  A sequence goes this way:
 *
 *   put.c            checks it, and cuts it, splits it or leaves it out; gives
 *                    its length to the engine and keeps its payload;
 *   emit.c           when the engine decides on a pack, builds it;
 *   payload_store.c  has the payloads that cannot stay where they were read.
 *
 * Packs are built in the block that stream/block_output.h gathers them in.
 *
 * pack_lengths.c does without payloads and output: it only tells which
 * sequences share a pack.
 *
 * Around these, options.c checks and completes what is asked for, packer.c
 * opens, flushes and finishes, and memory.c adds up the most memory that all of
 * it takes.  checkpoint.c saves a packer between
 * two sequences and resumes it, and refill.c then takes back the payloads that
 * it held.
 *
 * The room uses base, io, format, plan, engine and the output of stream, and no
 * other room uses it.
 *
 * SPDX-License-Identifier: MIT
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

/* The sequence, or piece of one, in a slot of the engine. */
typedef struct ps_held {
    uint64_t id;
    uint32_t seq_off;
    uint32_t seq_len;
    const unsigned char *payload; /* of the whole sequence, in `block` */
    ps_block *block; /* is held; if it is NULL, the store has the piece */
} ps_held;

typedef struct ps_refill ps_refill;

struct ps_packer {
    ps_packer_options options; /* with max_delay worked out; `learn_from` is
                                  the caller's, gone after the start */
    uint64_t learned;          /* a hash of that */
    ps_pack_info info;
    int fd;
    bool finished;
    ps_shape shape;
    ps_payload_column columns[PS_MAX_FIELDS]; /* in payload order */
    uint32_t n_columns;
    ps_engine *engine; /* NULL: the stream had ended */
    ps_store *store;
    ps_held *held; /* by slot */
    uint32_t max_blocks;
    uint64_t bytes; /* of payload that are held, in whole chunks; counted if
                       they are bounded */
    ps_block_output output;
    ps_totals totals;
    ps_rejected rejected[PS_REJECTS]; /* of the totals, by reason */
    uint64_t next_id;    /* sequences still to be admitted have this id
                            or a greater one */
    uint64_t newest_out; /* greatest id that has left */
    uint64_t ended_delay; /* of a stream that had ended */
    ps_refill *refill;    /* what a resumed packer still needs, or NULL */
};

/* ---- options.c ---- */

/* Checks schema and options, and fills in options, shape and header. */
ps_result ps_packer_set_options(ps_packer *p, const ps_schema *schema,
                                const ps_packer_options *options,
                                ps_error *err);

/* The options as they decide the output; their hash is in the header. */
#define PS_OPTIONS_BYTES 96
void ps_packer_options_encode(const ps_packer *p,
                              unsigned char to[PS_OPTIONS_BYTES]);

/*
 * Says in `err` which options differ first from those that were encoded:
 * PS_ERR_ARGUMENT; PS_OK if none do.
 */
ps_result ps_packer_options_compare(const unsigned char *then,
                                    const unsigned char *now, ps_error *err);

/* The options of the output, but for where it is. */
ps_output_options ps_packer_output_options(const ps_packer *p);

/* The most sequences of a pack, whatever the cap on them. */
uint32_t ps_packer_depth(const ps_packer *p);

/* The options of the engine, but for what it learns from. */
ps_engine_options ps_packer_engine_options(const ps_packer *p);

/*
 * What the engine is to learn from, in its units, for the caller to free;
 * NULL if nothing.  PS_ERR_MEMORY.
 */
ps_result ps_packer_expected(const ps_packer *p, ps_histogram **expected,
                             ps_error *err);

/*
 * The most that the payloads of `n` sequences take in whole chunks, if they are
 * together no longer than so many packs; and those of all in the window.
 */
uint64_t ps_packer_chunks(const ps_packer *p, uint64_t n, uint64_t packs);
uint64_t ps_packer_window_bytes(const ps_packer *p);

/*
 * How many blocks of a reader may be held: as many as the payloads of the
 * window take at most.  0 if the bytes are bounded.
 */
uint32_t ps_packer_max_blocks(const ps_packer *p);

/* ---- packer.c ---- */

/*
 * Makes a packer with checked options; nothing is opened yet.  After a failure
 * *packer is NULL.
 */
ps_result ps_packer_prepare(ps_packer **packer, int fd,
                            const ps_schema *schema,
                            const ps_packer_options *options, ps_error *err);

/* Bytes of a payload of at most PS_MAX_SEQUENCE_BYTES. */
static inline size_t ps_packer_payload_bytes(const ps_packer *p,
                                             uint32_t n_tok)
{
    return (size_t)ps_shape_bytes(&p->shape, n_tok);
}

/* What it takes in the store, or would take there: whole chunks. */
static inline uint64_t ps_packer_store_bytes(const ps_packer *p,
                                             uint32_t n_tok)
{
    return round_up(ps_shape_bytes(&p->shape, n_tok), PS_STORE_CHUNK_BYTES);
}

/*
 * The engine counts in units of `align` tokens: what a sequence of that many
 * takes up in a pack.
 */
static inline uint32_t ps_packer_units(const ps_packer *p, uint32_t n_tok)
{
    const uint32_t align = p->info.align;

    return align == 1 ? n_tok : n_tok / align + (n_tok % align != 0);
}

/*
 * Opens the engine, the store and the output.  PS_ERR_MEMORY, _IO, and as
 * ps_output_open.
 */
ps_result ps_packer_start(ps_packer *p, const ps_output_place *place,
                          ps_error *err);

/*
 * Writes the header: of a stream that begins, or of one that begins again with
 * the first pack of the options.  PS_ERR_ARGUMENT, _IO, _MEMORY.
 */
ps_result ps_packer_begin(ps_packer *p, bool goes_on, ps_error *err);

/*
 * PS_ERR_CORRUPT if the digest is not the one that was to be proved, or not
 * yet; to be asked when all is written.
 */
ps_result ps_packer_check_replay(const ps_packer *p, ps_error *err);

/* ---- emit.c ---- */

/*
 * Tokens of the sequence in a slot.  The engine knows its length rounded up
 * to units; only the end of a sequence can end within a unit.
 */
static inline uint32_t ps_packer_length(const ps_packer *p, uint32_t slot)
{
    const ps_held *h = &p->held[slot];
    const uint32_t n = ps_engine_length(p->engine, slot) * p->info.align;
    const uint32_t left = h->seq_len - h->seq_off;

    return n < left ? n : left;
}

/* Emits the packs that `mode` asks for. */
ps_result ps_packer_emit(ps_packer *p, ps_emit_mode mode, ps_error *err);

/* Where bytes are bounded: packs leave until so many more fit; counts them. */
ps_result ps_packer_make_room(ps_packer *p, uint64_t bytes, ps_error *err);

/* Emits the packs that are due; after most sequences there are none. */
static inline ps_result ps_packer_emit_due(ps_packer *p, ps_error *err)
{
    return ps_engine_is_idle(p->engine) ? PS_OK
                                        : ps_packer_emit(p, PS_EMIT_DUE, err);
}

/* Counts a record of the input: the packs that are due because of it leave. */
static inline ps_result ps_packer_tick(ps_packer *p, ps_error *err)
{
    ps_engine_tick(p->engine);
    return ps_packer_emit_due(p, err);
}

/* Copies the piece of a slot, whose payload is there, to the store. */
ps_result ps_packer_store(ps_packer *p, uint32_t slot, ps_error *err);

/*
 * Keeps what a slot has of a sequence that was checked; it stays in its block,
 * if it came in one that may be held, or is copied to the store.
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
 * Copies the payload that is kept for a slot, column after column:
 * ps_packer_payload_bytes() of its tokens.
 */
void ps_packer_get(const ps_packer *p, uint32_t slot, uint32_t n_tok,
                   unsigned char *payload);

/* ---- refill.c ---- */

/* Hashes what some slots hold, in the order of the input.  PS_ERR_MEMORY. */
ps_result ps_refill_hash(const ps_packer *p, const uint32_t *slots, uint32_t n,
                         uint64_t *hash, ps_error *err);

/* The payloads of these slots are to come, with that hash.  PS_ERR_MEMORY. */
ps_result ps_refill_begin(ps_packer *p, const uint32_t *slots, uint32_t n,
                          uint64_t hash, ps_error *err);

/*
 * A sequence came: again, or, with *is_new, for the first time.
 * PS_ERR_ARGUMENT, _CORRUPT (it is another one), _MEMORY.
 */
ps_result ps_refill_put(ps_packer *p, const ps_sequence *sequence,
                        bool *is_new, ps_error *err);

/* Whether sequences that came before have still to come again. */
bool ps_refill_waits(const ps_packer *p);
void ps_refill_free(ps_packer *p);

#endif
