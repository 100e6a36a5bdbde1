/*
 * sorted.c - sorted batching: sequences of neighbouring lengths make a
 * batch and are padded to the longest of it; nothing is packed.
 *
 * From the longest sequence to the shortest, `batch` of them at a time; the
 * last batch may be smaller.  So that its padding can be compared with that
 * of packs, the plan counts as packs the full rows that would hold as many
 * tokens as its batches do, padding included and rounded up.  Its
 * strategies are the sequences one by one.
 *
 * SPDX-License-Identifier: MIT
 */

#include "plan/plan.h"

/* A number of tokens that may not fit an integer: rows and a rest. */
typedef struct rows {
    uint64_t full;
    uint64_t rest; /* below the capacity */
    uint32_t capacity;
} rows;

/* Adds `n` sequences padded to `length`, which is at most the capacity. */
static void add(rows *r, uint64_t n, uint32_t length)
{
    /* Below n * length, and so written that it does not overflow. */
    uint64_t full = n / r->capacity * length;
    uint64_t rest = r->rest + n % r->capacity * length;

    r->full += full + rest / r->capacity;
    r->rest = rest % r->capacity;
}

/* The padded size of all batches, in rows. */
static uint64_t padded_rows(const ps_histogram *h, const ps_plan_options *o)
{
    rows r = {.capacity = o->capacity};
    uint64_t open = 0; /* places left in the batch begun last */
    uint32_t longest = 0;

    for (size_t i = ps_histogram_size(h); i-- > 0;) {
        uint64_t n = ps_histogram_count(h, i);
        uint64_t joining = n < open ? n : open;

        add(&r, joining, longest);
        n -= joining;
        open -= joining;
        if (n == 0)
            continue;
        longest = ps_histogram_length(h, i);
        add(&r, n, longest);
        open = (o->batch - n % o->batch) % o->batch;
    }
    return r.full + (r.rest > 0 ? 1 : 0);
}

ps_result ps_plan_sorted(ps_plan *plan, const ps_histogram *h,
                         const ps_plan_options *o, ps_error *err)
{
    ps_result r = ps_plan_none(plan, h, o, err);

    if (r == PS_OK)
        ps_plan_set_packs(plan, padded_rows(h, o));
    return r;
}
