/*
 * next_fit.c - next fit: a sequence goes to the pack at hand if it fits
 * there, else the pack is closed and a new one opened.
 *
 * What trainers do that fill packs as sequences come.  The order matters,
 * and a histogram has none; taken from the longest to the shortest, as the
 * other algorithms have it, next fit is far worse than it is in practice,
 * because a long sequence never meets a short one.  So the order is one
 * that has nothing to do with length: the sequences are divided into equal
 * parts, each part holds every length in proportion and is shuffled in the
 * same way, and so they make the same packs.  What does not divide is
 * divided again, into fewer parts, until nothing is left.  The shuffle is
 * fixed: the plan follows from the histogram and the options alone.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdlib.h>

#include "base/error.h"
#include "base/random.h"
#include "plan/plan.h"

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

static void shuffle(mixer *m)
{
    for (size_t i = m->n_part; i > 1; i--) {
        size_t j = (size_t)ps_random_below(&m->state, i);
        uint32_t bin = m->part[i - 1];

        m->part[i - 1] = m->part[j];
        m->part[j] = bin;
    }
}

static uint64_t part_size(const mixer *m)
{
    uint64_t per_length = ps_histogram_size(m->histogram);

    per_length *= PART_PER_LENGTH;
    return per_length > MIN_PART ? per_length : MIN_PART;
}

/* Takes one of `parts` equal parts, as large as they can be. */
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
}

/* How many sequences from `from` on make a pack. */
static uint32_t fill_pack(const mixer *m, size_t from)
{
    uint32_t spare = m->options->capacity;
    uint32_t n = 0;

    while (from + n < m->n_part && n < m->options->depth) {
        uint32_t length =
            ps_histogram_length(m->histogram, m->part[from + n]);

        if (length > spare)
            break;
        spare -= length;
        n++;
    }
    return n;
}

/* Puts `n` lengths of a part back, to be packed later. */
static void put_back(mixer *m, size_t from, uint32_t n, uint64_t parts)
{
    m->n_left += n * parts;
    while (n-- > 0)
        m->left[m->part[from++]] += parts;
}

static ps_result add_pack(mixer *m, size_t from, uint32_t n, uint64_t parts,
                          ps_error *err)
{
    uint32_t *lengths = m->part + from;

    for (uint32_t i = 0; i < n; i++)
        lengths[i] = ps_histogram_length(m->histogram, lengths[i]);
    return ps_plan_add(m->plan, parts, lengths, n, err);
}

/*
 * Packs a part; there are `parts` like it.  What is in the last pack goes
 * back, for no sequence that does not fit has closed that pack; but not
 * most of a part, or this might take for ever.
 */
static ps_result pack_part(mixer *m, uint64_t parts, ps_error *err)
{
    ps_result r = PS_OK;
    uint32_t n;

    for (size_t i = 0; r == PS_OK && i < m->n_part; i += n) {
        n = fill_pack(m, i);
        if (parts > 1 && i + n == m->n_part && n < m->n_part / 2)
            put_back(m, i, n, parts);
        else
            r = add_pack(m, i, n, parts, err);
    }
    return r;
}

static ps_result pack_all(mixer *m, ps_error *err)
{
    uint64_t size = part_size(m);
    ps_result r = PS_OK;

    while (r == PS_OK && m->n_left > 0) {
        uint64_t parts = m->n_left / size;

        if (parts == 0)
            parts = 1;
        take_part(m, parts);
        shuffle(m);
        r = pack_part(m, parts, err);
    }
    return r == PS_OK ? ps_plan_merge(m->plan, err) : r;
}

/* A part holds less than twice its size, for n_left / (n_left / size) is. */
static bool prepare(mixer *m)
{
    size_t n = ps_histogram_size(m->histogram);
    uint64_t max = 2 * part_size(m);

    if (n > SIZE_MAX / sizeof *m->left || max > SIZE_MAX / sizeof *m->part)
        return false;
    m->left = malloc(n * sizeof *m->left);
    m->part = malloc((size_t)max * sizeof *m->part);
    if (m->left == NULL || m->part == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        m->left[i] = ps_histogram_count(m->histogram, i);
    m->n_left = ps_histogram_sequences(m->histogram);
    return true;
}

ps_result ps_plan_greedy(ps_plan *plan, const ps_histogram *h,
                         const ps_plan_options *o, ps_error *err)
{
    mixer m = {.histogram = h, .options = o, .plan = plan};
    ps_result r = prepare(&m) ? pack_all(&m, err) : ps_fail_memory(err);

    free(m.left);
    free(m.part);
    return r;
}
