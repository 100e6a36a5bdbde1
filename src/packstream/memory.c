/*
 * memory.c - divide the memory given by -M.
 *
 * Without -M, only the window and its packs are limited, to DEFAULT_BOUND or to
 * the size of DEFAULT_PACKS packs if that is more.  Threads, blocks of a given
 * size, compression, a histogram to learn from and sequences longer than a pack
 * do not count towards this limit, so the packs do not depend on them.
 *
 * The output must not depend on the number of threads.  The limit on payloads,
 * which affects the packs, is therefore computed from the options alone: three
 * quarters of the bound less the needs of a single thread.  The last quarter is
 * for further threads and limits their number.  The output must not depend on
 * whether the input is compressed, or on --state or --rejects, so memory for
 * them is always reserved.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstream/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "cli/message.h"
#include "packstream/resume.h"

#define DEFAULT_BOUND ((uint64_t)1 << 30)
#define DEFAULT_PACKS 512

/* Shares of the bound: each gets 1/N of it. */
#define FOR_THREADS 4
#define FOR_SLOTS 4 /* slots beyond MIN_SEQUENCES */
/* minimum share of the bytes left after everything except slots */
#define FOR_PAYLOADS 4
#define FOR_WINDOW 8
#define FOR_LONG 8 /* sequences longer than a pack, if they are held */
#define FOR_FRAMES 16

/* Minimum zstd window of the input, in bytes; gzip needs less. */
#define MIN_WINDOW ((uint64_t)256 << 10)
#define NO_WINDOW 1024 /* zstd's minimum, in bytes */

/* Bytes per frame in the seek table and, with --state, in states as well. */
#define FRAME_BYTES 20
#define FRAME_STATE_BYTES 100

/*
 * Buffer of the rejects' writer, in bytes.  In addition, each sequence is
 * copied.
 */
#define REJECTS_BYTES ((uint64_t)320 << 10)

/* Reader buffers, in bytes; part of the share for long sequences. */
#define READ_BYTES ((uint64_t)320 << 10)

/*
 * Minimum payload of a sequence held whole, in bytes beyond a pack's payload.
 */
#define MIN_LONG ((uint64_t)64 << 10)

/* Blocks shrink to this size, in bytes, to make space for a full window. */
#define MIN_BLOCK ((uint64_t)64 << 10)

/* Minimum sequences in a window of unspecified size. */
#define MIN_SEQUENCES 1024

/* unit of ps_packer_options.max_bytes, in bytes */
#define CHUNK ((uint64_t)256)

#define MAX_ADVICE ((uint64_t)1 << 40)

#define LARGE_PIECE (128 << 10)

/*
 * Freed large blocks are returned to the system, and all threads share one
 * arena.  Otherwise freed memory would count twice.
 */
void memory_init(void)
{
#ifdef __GLIBC__
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_PIECE);
    (void)mallopt(M_ARENA_MAX, 1);
#endif
}

/* ---- Memory in use ---- */

/* Everything that is open at the same time. */
typedef struct parts {
    ps_packer_options options;
    uint64_t window;  /* zstd window of the input, in bytes */
    uint64_t longest; /* longest payload held whole, in bytes */
    bool threads;     /* one thread reads ahead */
    bool rejects;
    bool state;
} parts;

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Upper bound on the memory of all parts, in bytes. */
static uint64_t parts_bytes(const memory *m, const parts *p)
{
    uint64_t bytes =
        sum(ps_packer_memory(&m->schema, &p->options),
            ps_token_reader_memory(p->longest, p->window, p->threads));

    if (p->rejects)
        bytes = sum(bytes, sum(REJECTS_BYTES, sum(p->longest, p->longest)));
    if (p->state)
        bytes = sum(bytes, ps_packer_save_memory(&m->schema, &p->options,
                                                 RESUME_NOTE_BYTES));
    return bytes;
}

uint64_t memory_window(uint64_t bound)
{
    uint64_t window = bound / FOR_WINDOW;

    if (bound == 0)
        return 0;
    return window > MIN_WINDOW ? window : MIN_WINDOW;
}

static bool has_lists(const ps_schema *schema)
{
    for (uint32_t i = 0; i < schema->n_channels; i++)
        if (schema->channels[i].kind == PS_LIST)
            return true;
    return false;
}

/* Elements of a list in a pack: its budget, or as many as tokens. */
static uint64_t list_places(const memory *m, const char *name)
{
    for (uint32_t i = 0; i < m->options.n_budgets; i++)
        if (strcmp(m->options.budgets[i].name, name) == 0)
            return m->options.budgets[i].limit;
    return m->conf->capacity;
}

/* Size of the largest payload in a pack, in bytes. */
static uint64_t pack_bytes(const memory *m)
{
    uint64_t bytes = ps_payload_bytes(&m->schema, m->conf->capacity);

    for (uint32_t i = 0; i < m->schema.n_channels; i++) {
        const ps_channel *c = &m->schema.channels[i];

        if (c->kind == PS_LIST)
            bytes += list_places(m, c->name) * ps_channel_bytes(c);
    }
    return bytes;
}

/* True if a sequence may be written to --rejects, if that option is given. */
static bool may_reject(const conf *c)
{
    return c->overlong == PS_OVERLONG_DROP ||
           c->overlong == PS_OVERLONG_TRUNCATE || c->drop_outside;
}

/*
 * True if sequences longer than a pack are held whole or, with `may`, if they
 * would be held with --rejects.  A list can be of any length.
 */
static bool holds_long(const memory *m, bool may)
{
    const conf *c = m->conf;

    return c->policy == PS_POLICY_CONCAT || has_lists(&m->schema) ||
           (c->overlong == PS_OVERLONG_DROP &&
            (c->group != NULL || c->budgets.n > 0)) ||
           c->overlong == PS_OVERLONG_TRUNCATE ||
           c->overlong == PS_OVERLONG_SPLIT || c->rejects != NULL ||
           (may && may_reject(c));
}

/*
 * Longest payload that can be held within a bound, in bytes.  Without -M there
 * is no limit.
 */
static uint64_t longest_of(const memory *m, uint64_t bound, bool may)
{
    uint64_t pack = pack_bytes(m);
    uint64_t part = bound / FOR_LONG / 2;

    if (!holds_long(m, may))
        return pack;
    if (m->conf->memory == 0)
        return may ? pack : PS_MAX_SEQUENCE_BYTES;
    part -= part < READ_BYTES ? part : READ_BYTES;
    return part > pack ? part : pack;
}

/* ---- Dividing the bound ---- */

/*
 * Memory needed, in bytes, with `payload` bytes of payloads (0: all that a
 * window holds) and everything that other options may require.
 */
static uint64_t needed(const memory *m, uint64_t bound, uint64_t payload)
{
    parts all = {.options = m->options,
                 .window = NO_WINDOW,
                 .longest = longest_of(m, bound, true),
                 .rejects = may_reject(m->conf),
                 .state = true};

    if (m->conf->memory == 0) {
        all.rejects = true;
        all.options.compressed = false;
        all.options.block_packs = 0;
        all.options.learn_from = NULL;
    }
    all.options.max_bytes = payload;
    /*
     * Count the whole share of the window, so that the rest grows with the
     * bound.
     */
    return sum(parts_bytes(m, &all), memory_window(bound));
}

/* Part of the bound available for the needs above, in bytes. */
static uint64_t available(const memory *m, uint64_t bound)
{
    uint64_t bytes = bound;

    if (m->conf->memory == 0)
        return bytes;
    bytes -= bound / FOR_THREADS;
    return m->options.compressed ? bytes - bound / FOR_FRAMES : bytes;
}

static bool fits(const memory *m, uint64_t bound, uint64_t payload)
{
    /* A smaller share would make holding long sequences useless. */
    if (m->conf->memory != 0 && holds_long(m, true) &&
        bound / FOR_LONG / 2 <
            READ_BYTES + MIN_LONG +
                pack_bytes(m))
        return false;
    return needed(m, bound, payload) <= available(m, bound);
}

/* Smallest bound that leaves `payload` bytes for payloads. */
static uint64_t least_bound(const memory *m, uint64_t payload)
{
    uint64_t low = 0;
    uint64_t high = UINT64_MAX / 2;

    while (low + 1 < high) {
        uint64_t middle = low + (high - low) / 2;

        *(fits(m, middle, payload) ? &high : &low) = middle;
    }
    return high;
}

/*
 * Memory of the sequences beyond MIN_SEQUENCES, in bytes, with or without the
 * planner.
 */
static uint64_t more_bytes(memory *m, uint32_t sequences, bool planner)
{
    const ps_policy policy = m->options.policy;
    uint64_t bytes;

    if (!planner)
        m->options.policy = PS_POLICY_BESTFIT;
    m->options.max_window = sequences;
    bytes = needed(m, 0, 0);
    m->options.max_window = MIN_SEQUENCES;
    bytes -= needed(m, 0, 0);
    m->options.policy = policy;
    return bytes;
}

/*
 * A window of unspecified size holds as many sequences as its share of the
 * bound has slots for, provided that enough is left for payloads.
 */
static void divide_window(memory *m, uint64_t bound, uint64_t min)
{
    const uint64_t slots = bound / FOR_SLOTS;
    const uint64_t left = available(m, bound) - needed(m, bound, min);
    const uint64_t all = left - left / FOR_PAYLOADS;
    uint32_t low = MIN_SEQUENCES;
    uint32_t high = PS_MAX_WINDOW + 1;
    uint32_t middle = PS_MAX_WINDOW;

    while (low + 1 < high) {
        *(more_bytes(m, middle, false) <= slots &&
                  more_bytes(m, middle, true) <= all
              ? &low
              : &high) = middle;
        middle = low + (high - low) / 2;
    }
    m->options.max_window = low;
}

/* Gives payloads the rest of the bound, in units of CHUNK. */
static void divide_payload(memory *m, uint64_t bound, uint64_t min)
{
    uint64_t low = min / CHUNK;
    uint64_t high = bound / CHUNK + 1;

    if (fits(m, bound, 0))
        return;
    while (low + 1 < high) {
        uint64_t middle = low + (high - low) / 2;

        *(fits(m, bound, middle * CHUNK) ? &low : &high) = middle;
    }
    m->options.max_bytes = low * CHUNK;
}

int memory_divide(memory *m, const conf *c, const ps_schema *schema,
                  ps_packer_options *options)
{
    const bool given = c->memory != 0;
    uint64_t pack;
    uint64_t bound;
    uint64_t min;
    ps_error err;

    *m = (memory){.conf = c, .schema = *schema, .options = *options};
    pack = pack_bytes(m);
    bound = DEFAULT_PACKS * pack;
    min = (pack / CHUNK + 1) * CHUNK;
    if (given)
        bound = c->memory;
    else if (bound < DEFAULT_BOUND)
        bound = DEFAULT_BOUND;
    m->window = memory_window(c->memory);
    m->longest = longest_of(m, bound, false);
    /* Invalid options are reported elsewhere. */
    if (ps_packer_check(schema, options, &err) != PS_OK)
        return STATUS_OK;
    if (c->window == 0)
        m->options.max_window = MIN_SEQUENCES;
    if (c->group != NULL)
        min = ps_packer_least_bytes(schema, options);

    /* Use blocks below MIN_BLOCK only if the bound requires it. */
    for (uint32_t n = CONF_BLOCK_PACKS;
         given && c->block_packs == 0 && n > 0 &&
         !fits(m, bound, n * pack >= MIN_BLOCK ? 0 : min);
         n /= 2)
        m->options.block_packs = n;
    if (given && !fits(m, bound, min))
        return message_usage("-M %" PRIu64 " is too small: these options need "
                             "at least %" PRIu64 " bytes",
                             bound, least_bound(m, min));
    if (!fits(m, bound, min))
        bound = 2 * least_bound(m, min);

    m->bound = bound;
    if (c->window == 0)
        divide_window(m, bound, min);
    divide_payload(m, bound, min);
    *options = m->options;
    if (given && options->compressed) {
        /*
         * Limit frames to the number that fits in the table's share of the
         * bound.
         */
        uint64_t frames =
            bound / FOR_FRAMES /
            (c->state == NULL ? FRAME_BYTES : FRAME_STATE_BYTES);

        options->max_frames =
            frames < UINT32_MAX ? (uint32_t)frames : UINT32_MAX;
    }
    m->options = *options;
    return STATUS_OK;
}

uint64_t memory_for(const memory *m, uint64_t sequences, uint32_t packs)
{
    const uint64_t payload =
        packs * pack_bytes(m) +
        CHUNK * sequences;
    const uint64_t most = sequences < PS_MAX_WINDOW ? sequences
                                                    : PS_MAX_WINDOW;
    conf c = *m->conf;
    memory larger;

    for (c.memory = (uint64_t)1 << 20; c.memory <= MAX_ADVICE; c.memory *= 2) {
        ps_packer_options o = m->options;

        o.block_packs = c.block_packs;
        o.max_bytes = o.max_window = 0;
        larger = (memory){.conf = &c, .schema = m->schema, .options = o};
        larger.options.max_window = c.window == 0 ? MIN_SEQUENCES : 0;
        /*
         * Skip bounds that are too small: memory_divide would print an error.
         */
        if (c.memory <= m->bound || !fits(&larger, c.memory, payload) ||
            memory_divide(&larger, &c, &m->schema, &o) != STATUS_OK)
            continue;
        if ((c.window != 0 || o.max_window >= most) &&
            (o.max_bytes == 0 || o.max_bytes >= payload))
            return c.memory;
    }
    return 0;
}

uint32_t memory_threads(memory *m, uint32_t wanted)
{
    const uint64_t bound = m->conf->memory;
    uint32_t threads = wanted;

    for (;; threads--) {
        parts p = {.options = m->options,
                   .window = m->window,
                   .longest = m->longest,
                   .threads = threads > 1,
                   .rejects = m->conf->rejects != NULL,
                   .state = m->conf->state != NULL};

        p.options.threads = threads == 1 ? 0 : threads;
        m->bytes = parts_bytes(m, &p);
        if (bound == 0 || m->bytes <= bound || threads == 1)
            return threads;
    }
}
