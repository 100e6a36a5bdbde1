/*
 * repack.c - plans for few sequences, by prices and local search.
 *
 * SPDX-License-Identifier: MIT
 *
 * The loss of a pack is 1 minus the sum of its sequences' prices.  The sum of
 * all losses grows with the number of packs, so a good plan loses almost
 * nothing in each pack.
 *
 * First, packs are made one by one: a seed sequence, the longest or a random
 * one, is combined with the most valuable others.  Then a few packs at a time,
 * always including the emptiest, are taken apart and made again (ruin and
 * recreate: Schrimpf et al. 2000).  The result is kept if it has fewer packs,
 * or equally many and the sum of squared losses has not decreased: losses
 * accumulate in one pack until it disappears (as in Falkenauer 1996).
 *
 * The random seed is fixed and all work is counted: the plan depends on the
 * histogram alone.
 */

#include "plan/repack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bitset.h"
#include "base/error.h"
#include "base/mem_bound.h"
#include "base/random.h"

#define NONE UINT32_MAX
#define SEED 1
#define NO_LOSS 1e-9 /* smaller losses count as none */

/*
 * Part of a price that is proportional to length: of choices with equal value,
 * the fullest is taken.
 */
#define LINEAR 0.05

#define MAX_USED 8     /* drop used-up kinds when one in 8 is used up */
#define MAX_DRAWS 3    /* attempts to draw a kind that is not used up */
#define LAST_THREE 3.6 /* mean lengths of space below which three fill a pack */
#define MAX_TRIES 3    /* attempts at the first of these three */

#define FIRST_PART 0.1 /* part of the work for the initial packs */
#define PATIENCE 0.3   /* part of the work allowed to save one pack */

/*
 * Limits of a trial: packs and sequences to take apart.  Each of the first
 * EMPTY_PACKS is the emptiest of EMPTY_DRAWS random packs, and each of the
 * others is the emptiest of OTHER_DRAWS.
 */
#define RUINED_PACKS 8
#define RUINED_SEQUENCES 48
#define EMPTY_PACKS 4
#define EMPTY_DRAWS 16
#define OTHER_DRAWS 2

/* Steps: per pair examined, per pack, and per sequence. */
#define PAIR_WORK 2.0
#define PACK_WORK 8
#define SEQUENCE_WORK 4
#define MIN_PACK_WORK 64.0 /* minimum steps to search for a pack */

/* Sequences of one length that have no pack. */
typedef struct kind {
    double price;    /* packs */
    uint32_t length; /* tokens */
    uint32_t row;    /* bin of the histogram */
    uint32_t count;  /* sequences; 0: used up */
} kind;

/* A pack being made. */
typedef struct pack {
    uint32_t space;  /* unused tokens */
    uint32_t places; /* sequences that can still be added */
    uint32_t n;      /* sequences so far */
    double worth;    /* sum of the sequences' prices */
} pack;

/* Up to three kinds, and the sum of their prices. */
typedef struct choice {
    uint32_t kind[3]; /* indexes in repack.kinds, or NONE */
    double worth;     /* packs */
} choice;

typedef struct repack {
    const ps_histogram *h;
    const ps_repack_options *o;
    uint64_t random;
    double work;      /* steps so far */
    double pack_work; /* limit of steps to search for one pack */
    double stop;      /* value of `work` at which it ends */

    /* Sequences without a pack. */
    kind *kinds;        /* in ascending order of length */
    uint32_t n_kinds;   /* kinds in use */
    uint32_t n_used;    /* used-up kinds among them */
    uint64_t tokens;    /* sum over the kinds */
    uint32_t sequences; /* sum over the kinds */
    uint32_t *unpacked; /* rows to draw from; some may be packed by now */
    uint32_t n_unpacked;
    uint32_t *kind_of; /* kind by row */

    /* Packs made of these sequences. */
    uint32_t *made; /* rows, pack after pack */
    uint32_t n_made;
    uint32_t *sizes;   /* number of sequences, by pack made */
    double *made_loss; /* by pack made */
    uint32_t n_sizes;  /* number of packs made */

    /* All packs, as linked lists of sequences. */
    uint32_t *row;   /* by sequence */
    uint32_t *next;  /* next sequence in the pack, or NONE */
    uint32_t *first; /* first sequence, by pack */
    double *loss;    /* by pack: 1 minus its value, at least 0 */
    uint32_t n_packs;
    uint32_t emptiest; /* pack with the greatest loss */

    /* The packs taken apart. */
    uint32_t ruined[RUINED_PACKS];
    uint32_t n_ruined;
    uint32_t *taken; /* their sequences */
    uint32_t n_taken;
    uint32_t *counts; /* their number by row */
    ps_bitset rows;   /* rows with a nonzero count */
} repack;

/* ---- Memory ---- */

static void close_repack(repack *r)
{
    free(r->kinds);
    free(r->unpacked);
    free(r->kind_of);
    free(r->made);
    free(r->sizes);
    free(r->made_loss);
    free(r->row);
    free(r->next);
    free(r->first);
    free(r->loss);
    free(r->taken);
    free(r->counts);
    ps_bitset_destroy(&r->rows);
}

/* Allocates for `n` sequences with `lengths` distinct lengths. */
static void allocate(repack *r, uint64_t n, uint64_t lengths, ps_mem *mem)
{
    r->kinds = ps_mem_alloc(mem, lengths, sizeof *r->kinds);
    r->unpacked = ps_mem_alloc(mem, n, sizeof *r->unpacked);
    r->kind_of = ps_mem_alloc(mem, lengths, sizeof *r->kind_of);
    r->made = ps_mem_alloc(mem, n, sizeof *r->made);
    r->sizes = ps_mem_alloc(mem, n, sizeof *r->sizes);
    r->made_loss = ps_mem_alloc(mem, n, sizeof *r->made_loss);
    r->row = ps_mem_alloc(mem, n, sizeof *r->row);
    r->next = ps_mem_alloc(mem, n, sizeof *r->next);
    r->first = ps_mem_alloc(mem, n, sizeof *r->first);
    r->loss = ps_mem_alloc(mem, n, sizeof *r->loss);
    r->taken = ps_mem_alloc(mem, n, sizeof *r->taken);
    r->counts = ps_mem_alloc(mem, lengths, sizeof *r->counts);
    ps_bitset_init(&r->rows, (uint32_t)lengths, mem);
}

uint64_t ps_plan_repack_bytes(uint64_t sequences, uint32_t lengths)
{
    uint64_t n = ps_mem_min(sequences, PS_REPACK_SEQUENCES);
    ps_mem mem = {.counts = true};
    repack r;

    allocate(&r, n, ps_mem_min(n, lengths) + 1, &mem);
    return mem.bytes;
}

/* ---- One pack ---- */

/* Lists the sequences without a pack individually, to draw from. */
static void list_unpacked(repack *r)
{
    r->n_unpacked = 0;
    for (uint32_t i = 0; i < r->n_kinds; i++) {
        r->kind_of[r->kinds[i].row] = i;
        for (uint32_t n = r->kinds[i].count; n > 0; n--)
            r->unpacked[r->n_unpacked++] = r->kinds[i].row;
    }
    r->work += r->n_unpacked;
}

/* Drops used-up kinds and packed rows once there are many. */
static void drop_used(repack *r)
{
    uint32_t n = 0;

    if (r->n_used * MAX_USED >= r->n_kinds) {
        for (uint32_t i = 0; i < r->n_kinds; i++)
            if (r->kinds[i].count > 0) {
                r->kind_of[r->kinds[i].row] = n;
                r->kinds[n++] = r->kinds[i];
            }
        r->work += r->n_kinds;
        r->n_kinds = n;
        r->n_used = 0;
    }
    if (r->sequences < r->n_unpacked / 4)
        list_unpacked(r);
}

static void take(repack *r, pack *p, uint32_t i)
{
    kind *k = &r->kinds[i];

    r->made[r->n_made++] = k->row;
    if (--k->count == 0)
        r->n_used++;
    r->tokens -= k->length;
    r->sequences--;
    p->space -= k->length;
    p->places--;
    p->n++;
    p->worth += k->price;
    r->work += SEQUENCE_WORK;
}

/* Returns the longest kind of at most `length` tokens, or NONE. */
static uint32_t longest(const repack *r, uint32_t length)
{
    uint32_t low = 0;
    uint32_t high = r->n_kinds;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (r->kinds[middle].length <= length)
            low = middle + 1;
        else
            high = middle;
    }
    while (low > 0 && r->kinds[low - 1].count == 0)
        low--;
    return low == 0 ? NONE : low - 1;
}

/*
 * Draws a kind with probability proportional to its number of sequences.
 * Returns NONE if only used-up kinds were drawn.
 */
static uint32_t draw_kind(repack *r)
{
    for (int n = 0; n < MAX_DRAWS; n++) {
        uint32_t row = r->unpacked[ps_random_below(&r->random, r->n_unpacked)];
        uint32_t i = r->kind_of[row];

        if (i < r->n_kinds && r->kinds[i].row == row &&
            r->kinds[i].count > 0)
            return i;
    }
    return NONE;
}

/*
 * Tries the kinds starting at `from`, each with the longest kind that fits and
 * is not shorter, until a pair is worth `wanted`.
 */
static void scan_pairs(repack *r, uint32_t space, uint32_t from,
                       uint32_t to, double wanted, choice *best)
{
    const kind *k = r->kinds;
    double max = (r->stop - r->work) / PAIR_WORK;
    uint32_t i = from;
    uint32_t j = to;

    for (; i <= j && best->worth < wanted && i - from < max; i++) {
        double worth;

        if (k[i].count == 0)
            continue;
        while (j > i && (k[j].count == 0 ||
                         k[i].length > space - k[j].length))
            j--;
        if (i == j && (k[i].count < 2 || k[i].length > space - k[i].length))
            break;
        worth = k[i].price + k[j].price;
        if (worth > best->worth)
            *best = (choice){{i, j, NONE}, worth};
    }
    r->work += PAIR_WORK * (i - from) + PAIR_WORK;
}

/*
 * Returns up to two kinds with the greatest total value in this space, or the
 * first choice found that is worth `wanted`.  A longer kind is worth at least
 * as much, so each kind is tried only with the longest that fits.
 */
static choice best_pair(repack *r, uint32_t space, uint32_t places,
                        double wanted)
{
    choice best = {{NONE, NONE, NONE}, 0};
    uint32_t j = places == 0 ? NONE : longest(r, space);
    uint32_t from;

    r->work += 4;
    if (j == NONE)
        return best;
    best = (choice){{j, NONE, NONE}, r->kinds[j].price};
    if (places < 2 || best.worth >= wanted)
        return best;
    from = draw_kind(r);
    if (from == NONE || from > j)
        from = 0;
    else if (r->kinds[from].length > space / 2)
        from = longest(r, space - r->kinds[from].length);
    if (from == NONE)
        from = 0;
    scan_pairs(r, space, from, j, wanted, &best);
    if (from > 0)
        scan_pairs(r, space, 0, j, wanted, &best);
    return best;
}

/* Tries several kinds, each with the best pair for the remaining space. */
static choice best_three(repack *r, uint32_t space, uint32_t places,
                         double wanted)
{
    choice best = best_pair(r, space, places, wanted);

    for (int n = 0; n < MAX_TRIES && places > 2 && best.kind[0] != NONE &&
         best.worth < wanted && r->work < r->stop;
         n++) {
        uint32_t i = n == 0 ? longest(r, space) : draw_kind(r);
        kind *k = i == NONE ? NULL : &r->kinds[i];
        choice c;

        if (k == NULL || k->length > space)
            continue;
        k->count--;
        c = best_pair(r, space - k->length, 2, wanted - k->price);
        k->count++;
        if (c.worth + k->price > best.worth)
            best = (choice){{c.kind[0], c.kind[1], i}, c.worth + k->price};
    }
    return best;
}

/*
 * While more than three sequences fit, adds a random kind or, if that kind does
 * not fit, the kind closest to an even share of the space.
 */
static void fill_to_last_three(repack *r, pack *p)
{
    while (p->places > 3 && r->sequences > 0) {
        double mean = (double)r->tokens / r->sequences;
        double n = p->space / mean;
        uint32_t i;

        if (n < LAST_THREE)
            return;
        n = n < p->places ? n : p->places;
        i = draw_kind(r);
        if (i == NONE || r->kinds[i].length > p->space)
            i = longest(r, (uint32_t)(p->space / n));
        if (i == NONE)
            return;
        take(r, p, i);
    }
}

/*
 * Makes packs from all kinds.  Each starts with a random sequence or, in one
 * pack out of four, with the longest.
 */
static void make_packs(repack *r)
{
    r->n_made = 0;
    r->n_sizes = 0;
    r->n_used = 0;
    list_unpacked(r);
    while (r->sequences > 0) {
        pack p = {.space = r->o->capacity, .places = r->o->depth};
        uint32_t i = NONE;
        choice c;

        drop_used(r);
        r->stop = r->work + r->pack_work;
        if (ps_random_below(&r->random, 4) > 0)
            i = draw_kind(r);
        if (i == NONE)
            i = longest(r, r->o->capacity);
        take(r, &p, i);
        fill_to_last_three(r, &p);

        c = best_three(r, p.space, p.places, 1 - NO_LOSS - p.worth);
        for (int k = 0; k < 3; k++)
            if (c.kind[k] != NONE)
                take(r, &p, c.kind[k]);
        while (p.places > 0 && r->sequences > 0 &&
               (i = longest(r, p.space)) != NONE)
            take(r, &p, i);
        r->work += PACK_WORK;
        r->made_loss[r->n_sizes] = p.worth < 1 ? 1 - p.worth : 0;
        r->sizes[r->n_sizes++] = p.n;
    }
}

/* ---- All packs ---- */

/* Sets *to to a kind of `count` sequences of a row, and counts them. */
static void add_kind(repack *r, kind *to, uint32_t row, uint32_t count)
{
    uint32_t length = ps_histogram_length(r->h, row);
    double linear = (double)length / r->o->capacity;

    *to = (kind){(1 - LINEAR) * r->o->price[row] + LINEAR * linear, length,
                 row, count};
    r->tokens += (uint64_t)length * count;
    r->sequences += count;
}

/* Stores the k-th new pack at index `at`. */
static void put_pack(repack *r, uint32_t k, uint32_t at, const uint32_t *rows,
                     const uint32_t *sequences)
{
    r->first[at] = NONE;
    r->loss[at] = r->made_loss[k];
    for (uint32_t i = 0; i < r->sizes[k]; i++) {
        r->row[sequences[i]] = rows[i];
        r->next[sequences[i]] = r->first[at];
        r->first[at] = sequences[i];
    }
}

/* Makes the initial packs, using a part of the work. */
static void begin(repack *r)
{
    uint32_t n = 0;

    r->pack_work = fmax(MIN_PACK_WORK,
                        FIRST_PART * r->o->work / fmax(1, r->o->min_packs));
    r->n_kinds = (uint32_t)ps_histogram_size(r->h);
    for (uint32_t i = 0; i < r->n_kinds; i++)
        add_kind(r, &r->kinds[i], i, (uint32_t)ps_histogram_count(r->h, i));
    for (uint32_t i = 0; i < r->sequences; i++)
        r->taken[i] = i;
    make_packs(r);
    r->pack_work = HUGE_VAL;
    r->n_packs = r->n_sizes;
    for (uint32_t k = 0; k < r->n_packs; k++) {
        put_pack(r, k, k, r->made + n, r->taken + n);
        n += r->sizes[k];
    }
}

static void find_emptiest(repack *r)
{
    r->emptiest = 0;
    for (uint32_t k = 1; k < r->n_packs; k++)
        if (r->loss[k] > r->loss[r->emptiest])
            r->emptiest = k;
    r->work += r->n_packs;
}

/*
 * Adds pack k to the packs to take apart, unless it is already there.  The pack
 * itself is unchanged.
 */
static void ruin_pack(repack *r, uint32_t k)
{
    for (uint32_t i = 0; i < r->n_ruined; i++)
        if (r->ruined[i] == k)
            return;
    r->ruined[r->n_ruined++] = k;
    for (uint32_t s = r->first[k]; s != NONE; s = r->next[s]) {
        uint32_t row = r->row[s];

        r->taken[r->n_taken++] = s;
        if (r->counts[row]++ == 0) {
            ps_bitset_add(&r->rows, row);
            r->n_kinds++;
        }
    }
}

/*
 * Takes apart the emptiest pack and several others, each the emptiest of a few
 * random packs, and collects their kinds.
 */
static void ruin(repack *r)
{
    uint32_t row = (uint32_t)ps_histogram_size(r->h);

    r->n_ruined = 0;
    r->n_taken = 0;
    r->n_kinds = 0;
    ruin_pack(r, r->emptiest);
    for (int n = 0; n < 2 * RUINED_PACKS && r->n_ruined < RUINED_PACKS &&
                    (r->n_taken < RUINED_SEQUENCES || r->n_ruined < 2);
         n++) {
        int draws = r->n_ruined < EMPTY_PACKS ? EMPTY_DRAWS : OTHER_DRAWS;
        uint32_t best = (uint32_t)ps_random_below(&r->random, r->n_packs);

        for (int d = 1; d < draws; d++) {
            uint32_t k = (uint32_t)ps_random_below(&r->random, r->n_packs);

            if (r->loss[k] > r->loss[best])
                best = k;
        }
        r->work += draws;
        ruin_pack(r, best);
    }
    for (uint32_t i = r->n_kinds; i-- > 0;) {
        (void)ps_bitset_at_most(&r->rows, row, &row);
        add_kind(r, &r->kinds[i], row, r->counts[row]);
        r->counts[row] = 0;
        ps_bitset_remove(&r->rows, row);
    }
    r->work += SEQUENCE_WORK * r->n_taken;
}

/* Replaces the packs taken apart by the packs made, if these are better. */
static void recreate(repack *r)
{
    double before = 0;
    double after = 0;
    uint32_t n = 0;

    if (r->n_sizes > r->n_ruined)
        return;
    for (uint32_t k = 0; k < r->n_ruined; k++)
        before += r->loss[r->ruined[k]] * r->loss[r->ruined[k]];
    for (uint32_t k = 0; k < r->n_sizes; k++)
        after += r->made_loss[k] * r->made_loss[k];
    if (r->n_sizes == r->n_ruined && after < before)
        return;

    for (uint32_t k = 0; k < r->n_sizes; k++) {
        uint32_t at = r->ruined[k];

        put_pack(r, k, at, r->made + n, r->taken + n);
        n += r->sizes[k];
        if (k == 0 || r->loss[at] > r->loss[r->emptiest])
            r->emptiest = at;
    }
    if (r->n_sizes == r->n_ruined)
        return;
    /* There are fewer packs.  Fill the gaps with the last packs. */
    for (uint32_t k = r->n_ruined; k-- > r->n_sizes;) {
        uint32_t gap = r->ruined[k];

        r->n_packs--;
        r->first[gap] = r->first[r->n_packs];
        r->loss[gap] = r->loss[r->n_packs];
        for (uint32_t i = 0; i < r->n_ruined; i++)
            if (r->ruined[i] == r->n_packs)
                r->ruined[i] = gap;
    }
    find_emptiest(r);
}

ps_result ps_plan_repack(ps_plan **best, const ps_histogram *h,
                         ps_repack_options *o, ps_error *err)
{
    repack r = {.h = h, .o = o, .random = SEED};
    ps_result result = PS_OK;
    ps_mem mem = {0};
    ps_plan *plan;
    double end;

    if (ps_histogram_sequences(h) > PS_REPACK_SEQUENCES)
        return PS_OK;
    allocate(&r, ps_histogram_sequences(h), ps_histogram_size(h), &mem);
    if (mem.failed) {
        close_repack(&r);
        return ps_fail_memory(err);
    }
    begin(&r);
    find_emptiest(&r);

    /* Repeat until the plan is good enough or no longer improves. */
    end = r.work + PATIENCE * o->work;
    while (r.n_packs > 1 && r.n_packs > o->min_packs && r.work < o->work &&
           r.work < end) {
        uint32_t before = r.n_packs;

        ruin(&r);
        make_packs(&r);
        recreate(&r);
        if (r.n_packs < before)
            end = r.work + PATIENCE * o->work;
    }
    o->work -= r.work;

    if (*best == NULL || ps_plan_packs(*best) > r.n_packs) {
        result = ps_plan_open(&plan, err);
        for (uint32_t k = 0; k < r.n_packs && result == PS_OK; k++) {
            uint32_t n = 0;

            for (uint32_t s = r.first[k]; s != NONE; s = r.next[s])
                r.made[n++] = ps_histogram_length(h, r.row[s]);
            result = ps_plan_add(plan, 1, r.made, n, err);
        }
        result = ps_plan_keep_better(best, plan, result);
    }
    close_repack(&r);
    return result;
}
