/*
 * memory.c - how the memory that -M gives is divided.
 *
 * The output must not depend on how many threads there are.  So what payloads
 * may take, which decides on packs, follows from the options alone: it is
 * what one thread leaves of three quarters of the bound.  The last quarter is
 * for more threads, and there are as many as it has room for.  Nor may the
 * output depend on how the input is compressed, on --state or on --rejects:
 * what these can take is set aside in any case.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstream/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "cli/message.h"
#include "packstream/resume.h"

/* Parts of the bound: one of so many. */
#define FOR_THREADS 4
#define FOR_WINDOW 8
#define FOR_LONG 8 /* sequences that are longer than a pack, if they are held */
#define FOR_FRAMES 16

/* The least that the window of the input gets; gzip has less. */
#define MIN_WINDOW ((uint64_t)256 << 10)
#define NO_WINDOW 1024 /* zstd has none that is less */

/* What a frame takes in the table, and with --state in states as well. */
#define FRAME_BYTES 20
#define FRAME_STATE_BYTES 100

/* For the rejects: the buffer of the writer, and of each sequence a copy. */
#define REJECTS_BYTES ((uint64_t)320 << 10)

/* A reader's buffers take so much of the share for long sequences. */
#define READ_BYTES ((uint64_t)320 << 10)

/* A sequence that is held may be at least so much longer than a pack. */
#define MIN_LONG ((uint64_t)64 << 10)

/* Blocks become smaller for a full window, but no smaller than this. */
#define MIN_BLOCK ((uint64_t)64 << 10)

#define CHUNK ((uint64_t)256) /* ps_packer_options.max_bytes counts in these */

#define LARGE_PIECE (128 << 10)

/*
 * Large pieces are given back when they are freed, and threads take theirs
 * from where all others do; else what was freed would count twice.
 */
void memory_init(void)
{
#ifdef __GLIBC__
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_PIECE);
    (void)mallopt(M_ARENA_MAX, 1);
#endif
}

/* ---- What there is to be bounded ---- */

/* What is open at once. */
typedef struct parts {
    ps_packer_options options;
    uint64_t window;  /* of the input */
    uint64_t longest; /* payload that is held whole */
    bool threads;     /* one reads ahead */
    bool rejects;
    bool state;
} parts;

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* The most memory that all of it takes. */
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

/* Whether a sequence may be written to --rejects, if that is given. */
static bool may_reject(const conf *c)
{
    return c->overlong == PS_OVERLONG_DROP ||
           c->overlong == PS_OVERLONG_TRUNCATE || c->drop_outside;
}

/* Whether sequences longer than a pack are held whole, or may be. */
static bool holds_long(const conf *c, bool may)
{
    return c->policy == PS_POLICY_CONCAT ||
           c->overlong == PS_OVERLONG_TRUNCATE ||
           c->overlong == PS_OVERLONG_SPLIT || c->rejects != NULL ||
           (may && may_reject(c));
}

/* The longest payload that a bound lets be held. */
static uint64_t longest_of(const memory *m, uint64_t bound, bool may)
{
    uint64_t pack = ps_payload_bytes(&m->schema, m->conf->capacity);
    uint64_t part = bound / FOR_LONG / 2;

    if (!holds_long(m->conf, may))
        return pack;
    if (bound == 0)
        return PS_MAX_SEQUENCE_BYTES;
    part -= part < READ_BYTES ? part : READ_BYTES;
    return part > pack ? part : pack;
}

/* ---- The bound divided ---- */

/*
 * Whether a bound leaves so much for payloads, with all that may be asked for
 * besides; 0: all that a window holds.
 */
static bool fits(const memory *m, uint64_t bound, uint64_t payload)
{
    parts all = {.options = m->options,
                 .window = NO_WINDOW,
                 .longest = longest_of(m, bound, true),
                 .rejects = may_reject(m->conf),
                 .state = true};
    uint64_t left = bound - bound / FOR_THREADS;

    /* With less the option that has long sequences held would be of no use. */
    if (holds_long(m->conf, true) &&
        bound / FOR_LONG / 2 <
            READ_BYTES + MIN_LONG +
                ps_payload_bytes(&m->schema, m->conf->capacity))
        return false;
    all.options.max_bytes = payload;
    if (all.options.compressed)
        left -= bound / FOR_FRAMES;
    /* All of the window's part counts: what is left rises with the bound. */
    return sum(parts_bytes(m, &all), memory_window(bound)) <= left;
}

int memory_divide(memory *m, const conf *c, const ps_schema *schema,
                  ps_packer_options *options)
{
    uint64_t bound = c->memory;
    uint64_t pack = ps_payload_bytes(schema, c->capacity);
    uint64_t min = (pack / CHUNK + 1) * CHUNK;
    ps_error err;

    *m = (memory){.conf = c, .schema = *schema, .options = *options};
    m->window = memory_window(bound);
    m->longest = longest_of(m, bound, false);
    /* What is wrong with the options is told elsewhere. */
    if (bound == 0 || ps_packer_check(schema, options, &err) != PS_OK)
        return STATUS_OK;

    /* Below that they do only if the bound leaves no choice. */
    for (uint32_t n = CONF_BLOCK_PACKS;
         c->block_packs == 0 && n > 0 &&
         !fits(m, bound, n * pack >= MIN_BLOCK ? 0 : min);
         n /= 2)
        m->options.block_packs = options->block_packs = n;
    /* If the bound is too small, find the least one that would do. */
    if (!fits(m, bound, min)) {
        uint64_t low = 0;
        uint64_t high = UINT64_MAX / 2;

        while (low + 1 < high) {
            uint64_t middle = low + (high - low) / 2;

            *(fits(m, middle, min) ? &high : &low) = middle;
        }
        return message_usage("-M %" PRIu64 ": at least %" PRIu64
                             " bytes are needed with these options",
                             bound, high);
    }

    /* Payloads get the most that the bound leaves, in chunks. */
    if (!fits(m, bound, 0)) {
        uint64_t low = min / CHUNK;
        uint64_t high = bound / CHUNK + 1;

        while (low + 1 < high) {
            uint64_t middle = low + (high - low) / 2;

            *(fits(m, bound, middle * CHUNK) ? &low : &high) = middle;
        }
        options->max_bytes = low * CHUNK;
    }
    if (options->compressed) {
        /* As many as the part of the bound for the table has room for. */
        uint64_t frames =
            bound / FOR_FRAMES /
            (c->state == NULL ? FRAME_BYTES : FRAME_STATE_BYTES);

        options->max_frames =
            frames < UINT32_MAX ? (uint32_t)frames : UINT32_MAX;
    }
    m->options = *options;
    return STATUS_OK;
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
