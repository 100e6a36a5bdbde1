/*
 * baselines.c - trainers' methods that need no plan, for comparison.
 *
 * SPDX-License-Identifier: MIT
 *
 *  - none: one sequence per pack.
 *  - sorted: a batch contains sequences of similar lengths, padded to the
 *    longest.
 *  - greedy: next fit.  A sequence goes to the open pack if it fits; otherwise
 *    the pack is closed and a new one opened.
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

/* A token count, in rows and a remainder because it can exceed 64 bits. */
typedef struct rows {
    uint64_t full;     /* number of full rows */
    uint64_t rest;     /* less than the capacity */
    uint32_t capacity; /* tokens per row */
} rows;

/* Adds `n` sequences padded to `length` <= capacity. */
static void add(rows *r, uint64_t n, uint32_t length)
{
    /* Equal to n * length, without overflow. */
    uint64_t full = n / r->capacity * length;
    uint64_t rest = r->rest + n % r->capacity * length;

    r->full += full + rest / r->capacity;
    r->rest = rest % r->capacity;
}

/*
 * Forms batches of `batch` sequences from the longest sequence down; the last
 * batch can be smaller.  The number of packs is the token count of the batches,
 * including padding, divided by the capacity and rounded up, which makes the
 * padding comparable with packing.  Each strategy is a single sequence.
 */
ps_result ps_plan_sorted(ps_plan *plan, const ps_histogram *h,
                         ps_algorithm algorithm, const ps_plan_options *o,
                         ps_error *err)
{
    rows padded = {.capacity = o->capacity};
    uint64_t open = 0; /* free slots in the last batch */
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

/*
 * ---- Next fit ----
 *
 * Next fit depends on the order of the sequences, which a histogram does not
 * record.  In descending order of length, which other algorithms use, next fit
 * is far worse than in practice, because long sequences never meet short ones.
 * So the order must not depend on length.  The sequences are divided into equal
 * parts with all lengths in proportion.  All parts are shuffled in the same way
 * and therefore give the same packs.  The remainder is divided again into fewer
 * parts, until nothing is left.  The shuffle has a fixed seed.
 */

/*
 * Minimum size of a part: large enough that chance hardly affects the result
 * and that most sequences of each length can be divided evenly.
 */
#define MIN_PART 16384
#define PART_PER_LENGTH 8

typedef struct mixer {
    const ps_histogram *histogram;
    const ps_plan_options *options;
    ps_plan *plan;
    uint64_t *left;  /* [bins], remaining sequences of each length */
    uint64_t n_left; /* sum over `left` */
    uint32_t *part;  /* bins of the histogram, in packing order */
    size_t n_part;   /* sequences in the part */
    uint64_t state;  /* of the random generator */
} mixer;

/* Takes one of `parts` equal parts, as large as possible, and shuffles it. */
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
 * Packs one part on behalf of `parts` equal parts.  The last pack is still
 * open, so its sequences return to the remainder, unless they are most of the
 * part: then the loop might never end.
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
    /* A part has fewer than 2 * size sequences: n_left / (n_left / size). */
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
