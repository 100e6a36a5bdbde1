/*
 * baselines.c - what trainers do without a plan: with these the others are
 * compared.
 *
 *  - none: every sequence has a pack of its own.
 *  - sorted: sequences of neighbouring lengths make a batch, and are padded
 *    to the longest of it.
 *  - greedy: next fit.  A sequence goes to the pack at hand if it fits there,
 *    else the pack is closed and a new one opened.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "base/random.h"
#include "plan/plan.h"

ps_result ps_plan_none(ps_plan *plan, const ps_histogram *h,
                       ps_algorithm algorithm, const ps_plan_options *o,
                       ps_error *err)
{
    ps_result r = PS_OK;

    (void)algorithm;
    (void)o;
    for (size_t i = ps_histogram_size(h); r == PS_OK && i-- > 0;) {
        uint32_t length = ps_histogram_length(h, i);

        r = ps_plan_add(plan, ps_histogram_count(h, i), &length, 1, err);
    }
    return r;
}

/* ---- Sorted batching ---- */

/* A number of tokens that may not fit an integer: rows and a rest. */
typedef struct rows {
    uint64_t full;
    uint64_t rest; /* below the capacity */
    uint32_t capacity;
} rows;

/* Adds `n` sequences padded to `length`, which is at most the capacity. */
static void add(rows *r, uint64_t n, uint32_t length)
{
    /* Below n * length, and written so that it does not overflow. */
    uint64_t full = n / r->capacity * length;
    uint64_t rest = r->rest + n % r->capacity * length;

    r->full += full + rest / r->capacity;
    r->rest = rest % r->capacity;
}

/*
 * From the longest sequence to the shortest, `batch` of them at a time; the
 * last batch may be smaller.  So that its padding can be compared with that
 * of packs, the plan counts as packs the full rows that would hold as many
 * tokens as its batches do, padding included and rounded up.  Its
 * strategies are the sequences one by one.
 */
ps_result ps_plan_sorted(ps_plan *plan, const ps_histogram *h,
                         ps_algorithm algorithm, const ps_plan_options *o,
                         ps_error *err)
{
    rows padded = {.capacity = o->capacity};
    uint64_t open = 0; /* places left in the batch begun last */
    uint32_t longest = 0;
    ps_result r = ps_plan_none(plan, h, algorithm, o, err);

    if (r != PS_OK)
        return r;
    for (size_t i = ps_histogram_size(h); i-- > 0;) {
        uint64_t n = ps_histogram_count(h, i);
        uint64_t joining = n < open ? n : open;

        add(&padded, joining, longest);
        n -= joining;
        open -= joining;
        if (n == 0)
            continue;
        longest = ps_histogram_length(h, i);
        add(&padded, n, longest);
        open = (o->batch - n % o->batch) % o->batch;
    }
    ps_plan_set_packs(plan, padded.full + (padded.rest > 0 ? 1 : 0));
    return PS_OK;
}

/* ---- Next fit ----
 *
 * The order of the sequences matters, and a histogram has none.  Taken from
 * the longest to the shortest, as the other algorithms have it, next fit is
 * far worse than it is in practice, because a long sequence never meets a
 * short one.  So the order is one that has nothing to do with length: the
 * sequences are divided into equal parts, each part holds every length in
 * proportion and is shuffled in the same way, and so they make the same packs.
 * What does not divide is divided again, into fewer parts, until nothing is
 * left.  The shuffle is fixed.
 */

/*
 * Sequences in a part: so many that chance hardly moves the result, and
 * enough of each length that most of what there is can be divided.
 */
#define MIN_PART 16384
#define PART_PER_LENGTH 8

typedef struct mixer {
    const ps_histogram *histogram;
    const ps_plan_options *options;
    ps_plan *plan;
    uint64_t *left; /* of each length */
    uint64_t n_left;
    uint32_t *part; /* bins of the histogram, as their sequences come */
    size_t n_part;
    uint64_t state; /* of the shuffle */
} mixer;

/* Takes one of `parts` equal parts, as large as they can be, and shuffles. */
static void take_part(mixer *m, uint64_t parts)
{
    m->n_part = 0;
    for (size_t i = 0; i < ps_histogram_size(m->histogram); i++) {
        uint64_t n = m->left[i] / parts;

        m->left[i] -= n * parts;
        m->n_left -= n * parts;
        while (n-- > 0)
            m->part[m->n_part++] = (uint32_t)i;
    }
    for (size_t i = m->n_part; i > 1; i--) {
        size_t j = (size_t)ps_random_below(&m->state, i);
        uint32_t bin = m->part[i - 1];

        m->part[i - 1] = m->part[j];
        m->part[j] = bin;
    }
}

/*
 * Packs a part; there are `parts` like it.  What is in the last pack goes
 * back, for no sequence that does not fit has closed that pack; but not
 * most of a part, or this might take for ever.
 */
static ps_result pack_part(mixer *m, uint64_t parts, ps_error *err)
{
    ps_result r = PS_OK;
    size_t end;

    for (size_t i = 0; r == PS_OK && i < m->n_part; i = end) {
        uint32_t spare = m->options->capacity;
        uint32_t n;

        for (end = i; end < m->n_part && end - i < m->options->depth; end++) {
            uint32_t length =
                ps_histogram_length(m->histogram, m->part[end]);

            if (length > spare)
                break;
            spare -= length;
        }
        n = (uint32_t)(end - i);
        if (parts > 1 && end == m->n_part && n < m->n_part / 2) {
            m->n_left += n * parts;
            for (size_t k = i; k < end; k++)
                m->left[m->part[k]] += parts;
            continue;
        }
        for (size_t k = i; k < end; k++)
            m->part[k] = ps_histogram_length(m->histogram, m->part[k]);
        r = ps_plan_add(m->plan, parts, m->part + i, n, err);
    }
    return r;
}

ps_result ps_plan_next_fit(ps_plan *plan, const ps_histogram *h,
                           ps_algorithm algorithm, const ps_plan_options *o,
                           ps_error *err)
{
    size_t n = ps_histogram_size(h);
    uint64_t size = ps_mem_max(MIN_PART, (uint64_t)PART_PER_LENGTH * n);
    mixer m = {.histogram = h, .options = o, .plan = plan};
    ps_mem mem = {0};
    ps_result r = PS_OK;

    (void)algorithm;
    m.left = ps_mem_alloc(&mem, n, sizeof *m.left);
    /* It holds less than twice its size, as n_left / (n_left / size) is. */
    m.part = ps_mem_alloc(&mem, 2 * size, sizeof *m.part);
    if (mem.failed)
        r = ps_fail_memory(err);
    else
        m.n_left = ps_histogram_sequences(h);
    for (size_t i = 0; r == PS_OK && i < n; i++)
        m.left[i] = ps_histogram_count(h, i);
    while (r == PS_OK && m.n_left > 0) {
        uint64_t parts = ps_mem_max(m.n_left / size, 1);

        take_part(&m, parts);
        r = pack_part(&m, parts, err);
    }
    if (r == PS_OK)
        r = ps_plan_merge(plan, err);
    free(m.left);
    free(m.part);
    return r;
}
