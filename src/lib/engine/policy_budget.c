/*
 * policy_budget.c - policy auto for packs with budgets: several resources.
 *
 * SPDX-License-Identifier: MIT
 *
 * Resource 0 is the capacity, and each budget is another one: vector bin
 * packing.  The share of a sequence is what it takes of a whole pack, as the
 * mean over the resources, each weighted by the square of its load in the
 * candidates, so that a scarce resource decides and an ample one does not
 * matter; see Panigrahy, Talwar, Uyeda and Wieder, "Heuristics for Vector Bin
 * Packing", 2011.  The score corrects the share: if the candidates have more
 * sequences of a kind than the input, these are hard to place and get a higher
 * score, other kinds a lower one (max-weight scheduling, as in policy_auto.c).
 *
 * A pack starts with one of the sequences that take most of some resource, or
 * with the oldest one.  The next largest are added one at a time, and after
 * each the pair that completes the pack best is searched.  Finally, one or two
 * sequences at a time are replaced by a better pair.
 *
 * When everything held is packed, the packs are planned first: as above, and by
 * best fit decreasing.  The plan with fewer packs is used.
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "engine/policy.h"
#include "engine/tuning.h"

#define MAX_RESOURCES (1 + PS_MAX_BUDGETS)
#define NONE UINT32_MAX

/* All of a resource, as a fraction; PS_MAX_BUDGET times it fits 64 bits. */
#define WHOLE_BITS 20
#define WHOLE (UINT64_C(1) << WHOLE_BITS)

/* Sum of the weights, and the share and usual score of a full pack. */
#define WEIGHTS 1024
#define FULL ((int64_t)WEIGHTS << WHOLE_BITS)

/* Shares are rounded up: several together can exceed the whole's by this. */
#define SLACK ((int64_t)WEIGHTS * MAX_RESOURCES * 2)

/* The oldest sequences are candidates: this many, and PS_BUDGET_PACKS packs. */
#define CANDIDATES 1024

/* A pack with this score is good enough. */
#define ENOUGH (FULL - FULL / 2048)

/* Largest correction of a score, in 1/1024 of the share. */
#define CORRECTION 300

/* Number of first sequences that are tried. */
#define SEEDS 6

/* The search for a pack ends after looking at this many items. */
#define STEPS 1000000

/* Packs with more sequences have them replaced only one at a time. */
#define FEW 12

/* Kinds of sequences: parts of each resource, and kinds in total. */
#define PARTS_OF_FEW 8 /* with at most two budgets */
#define PARTS 4
#define MAX_KINDS 1024

/* Arrivals are halved when they exceed this many windows. */
#define REMEMBERED 32

/* A sequence in the window. */
typedef struct item {
    uint64_t needs[MAX_RESOURCES]; /* of each resource */
    uint32_t parts[MAX_RESOURCES]; /* the same as fractions, in 1/WHOLE */
    uint32_t largest;              /* of `parts` */
    int64_t share;
    int64_t score;
    uint64_t time;
    uint32_t slot;
    uint32_t kind;
    uint32_t next; /* first item after it that has other needs */
    bool used;     /* in the pack being built */
} item;

/* A pack being built, as indexes of items. */
typedef struct pack {
    uint32_t *items; /* [n], with memory for a whole window */
    uint32_t n;
    int64_t score;
    uint64_t left[MAX_RESOURCES];
} pack;

/* A pack of best fit decreasing. */
typedef struct bin {
    uint64_t left[MAX_RESOURCES];
    int64_t rest; /* sum of `left` as fractions */
    uint32_t n;   /* sequences */
} bin;

/* Packs for everything in the window. */
typedef struct plan {
    uint32_t *slots; /* [count], pack by pack */
    uint32_t *sizes; /* [packs] number of sequences */
    uint32_t packs;
    uint32_t count;  /* sequences in all packs; 0: no plan */
    uint32_t next;   /* the packs before it were emitted */
    uint32_t at;     /* their sequences */
} plan;

typedef struct state {
    ps_policy_setup setup;
    uint64_t whole[MAX_RESOURCES]; /* of each resource */
    uint32_t n_resources;
    uint32_t parts;
    uint32_t arrivals[MAX_KINDS];
    uint64_t arrived; /* sum of arrivals */
    uint32_t here[MAX_KINDS]; /* candidates of each kind */
    uint64_t weights[MAX_RESOURCES];
    item *items; /* [n], those with the largest share first */
    uint32_t n;
    int64_t most; /* greatest score for a share of 1024 */
    uint64_t steps; /* items looked at for the current pack */
    pack trial;
    pack best;
    plan plan;
    bin *bins;        /* [n] */
    uint32_t *bin_of; /* [n], by item */
} state;

static void allocate(state *s, const ps_policy_setup *setup, ps_mem *mem)
{
    s->items = ps_mem_alloc(mem, setup->max_window, sizeof *s->items);
    s->trial.items = ps_mem_alloc(mem, setup->max_window, sizeof(uint32_t));
    s->best.items = ps_mem_alloc(mem, setup->max_window, sizeof(uint32_t));
    s->plan.slots = ps_mem_alloc(mem, setup->max_window, sizeof(uint32_t));
    s->plan.sizes = ps_mem_alloc(mem, setup->max_window, sizeof(uint32_t));
    s->bins = ps_mem_alloc(mem, setup->max_window, sizeof *s->bins);
    s->bin_of = ps_mem_alloc(mem, setup->max_window, sizeof *s->bin_of);
}

static uint64_t bytes_of(const ps_policy_setup *setup)
{
    ps_mem mem = {.bytes = sizeof(state), .counts = true};
    state s = {0};

    allocate(&s, setup, &mem);
    /* qsort may copy the items. */
    return ps_mem_sum(mem.bytes, ps_mem_array(setup->max_window,
                                              sizeof *s.items));
}

static void free_state(void *p)
{
    state *s = p;

    free(s->items);
    free(s->trial.items);
    free(s->best.items);
    free(s->plan.slots);
    free(s->plan.sizes);
    free(s->bins);
    free(s->bin_of);
    free(s);
}

static ps_result open_state(void **p, const ps_policy_setup *setup,
                            ps_error *err)
{
    state *s = calloc(1, sizeof *s);
    ps_mem mem = {0};

    *p = NULL;
    if (s == NULL)
        return ps_fail_memory(err);
    allocate(s, setup, &mem);
    if (mem.failed) {
        free_state(s);
        return ps_fail_memory(err);
    }
    s->setup = *setup;
    s->n_resources = 1 + setup->n_budgets;
    s->parts = setup->n_budgets > 2 ? PARTS : PARTS_OF_FEW;
    s->whole[0] = setup->capacity;
    memcpy(s->whole + 1, setup->budgets, setup->n_budgets * sizeof *s->whole);
    *p = s;
    return PS_OK;
}

/* ---- Shares and scores ---- */

/* Fraction of a resource, rounded up. */
static uint32_t fraction(const state *s, uint32_t resource, uint64_t amount)
{
    const uint64_t whole = s->whole[resource];

    return (uint32_t)(((amount << WHOLE_BITS) + whole - 1) / whole);
}

/* Sets the needs, the kind and the largest fraction of a sequence. */
static void describe(const state *s, uint32_t slot, item *t)
{
    const ps_window_slot *at = &s->setup.window->slots[slot];
    const uint64_t *uses = s->setup.uses + (size_t)slot * s->setup.n_budgets;

    *t = (item){.time = at->time, .slot = slot};
    for (uint32_t i = 0; i < s->n_resources; i++) {
        const uint64_t need = i == 0 ? at->length : uses[i - 1];
        const uint32_t part = fraction(s, i, need);
        const uint32_t k = part * s->parts >> WHOLE_BITS;

        t->needs[i] = need;
        t->parts[i] = part;
        t->kind = t->kind * s->parts + (k < s->parts ? k : s->parts - 1);
        t->largest = part > t->largest ? part : t->largest;
    }
}

static void admitted(void *policy, uint32_t length)
{
    state *s = policy;
    item t;

    (void)length;
    s->plan.count = 0;
    describe(s, s->setup.window->youngest, &t);
    s->arrivals[t.kind]++;
    if (++s->arrived < (uint64_t)REMEMBERED * s->setup.window_size)
        return;
    s->arrived = 0;
    for (uint32_t k = 0; k < MAX_KINDS; k++)
        s->arrived += s->arrivals[k] /= 2;
}

/* Weights each resource by the square of its load in the window. */
static void weigh(state *s)
{
    uint64_t loads[MAX_RESOURCES] = {0};
    uint64_t most = 1;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < s->n_resources; i++) {
        for (uint32_t k = 0; k < s->n; k++)
            loads[i] += s->items[k].parts[i];
        most = loads[i] > most ? loads[i] : most;
    }
    for (uint32_t i = 0; i < s->n_resources; i++) {
        const uint64_t part = loads[i] * WEIGHTS / most;

        s->weights[i] = part * part;
        sum += s->weights[i];
    }
    for (uint32_t i = 0; i < s->n_resources; i++)
        s->weights[i] = s->weights[i] * WEIGHTS / sum;
}

/* At least 1, so that a sequence that needs nothing scarce is packed, too. */
static int64_t share_of(const state *s, const uint32_t *parts)
{
    uint64_t share = 1;

    for (uint32_t i = 0; i < s->n_resources; i++)
        share += s->weights[i] * parts[i];
    return (int64_t)share;
}

/* The largest share that can fit what a pack has left. */
static int64_t share_left(const state *s, const pack *p)
{
    uint32_t parts[MAX_RESOURCES];

    for (uint32_t i = 0; i < s->n_resources; i++)
        parts[i] = fraction(s, i, p->left[i]);
    return share_of(s, parts) + SLACK;
}

/*
 * Sets the score of a sequence: its share, corrected by how frequent its kind
 * is in the window, compared with the input.
 */
static void score(const state *s, item *t)
{
    const uint64_t have = (2 * (uint64_t)s->here[t->kind] + 1) * s->arrived;
    const uint64_t want =
        2 * (uint64_t)s->n * s->arrivals[t->kind] + s->arrived;
    const int64_t excess =
        have >= 2 * want ? 1024 : (int64_t)(have * 1024 / want) - 1024;

    t->score = t->share + t->share * excess / 1024 * CORRECTION / 1024;
}

/* The largest share first; of equal needs, the oldest sequence. */
static int compare_items(const void *a, const void *b)
{
    const item *x = a;
    const item *y = b;

    if (x->share != y->share)
        return x->share > y->share ? -1 : 1;
    for (uint32_t i = 0; i < MAX_RESOURCES; i++)
        if (x->needs[i] != y->needs[i])
            return x->needs[i] > y->needs[i] ? -1 : 1;
    return (x->time > y->time) - (x->time < y->time);
}

/* Sets shares and scores of the candidates, and sorts them. */
static void rate(state *s)
{
    weigh(s);
    s->most = 0;
    for (uint32_t k = 0; k < s->n; k++) {
        item *t = &s->items[k];
        int64_t most;

        t->share = share_of(s, t->parts);
        score(s, t);
        most = t->score * 1024 / t->share + 1;
        s->most = most > s->most ? most : s->most;
    }
    qsort(s->items, s->n, sizeof *s->items, compare_items);
    for (uint32_t k = s->n; k > 0; k--) {
        item *t = &s->items[k - 1];

        t->next = k < s->n && memcmp(t->needs, t[1].needs,
                                     sizeof t->needs) == 0 ? t[1].next : k;
    }
}

/* Lists the candidates, the oldest sequences of the window. */
static void list(state *s)
{
    const ps_window *w = s->setup.window;
    uint64_t sums[MAX_RESOURCES] = {0};
    bool enough = false;

    s->n = 0;
    memset(s->here, 0, sizeof s->here);
    for (uint32_t slot = w->oldest;
         slot != PS_NO_SLOT && !((enough || s->n / PS_BUDGET_PACKS >=
                                              s->setup.depth) &&
                                 s->n >= CANDIDATES);
         slot = w->slots[slot].younger) {
        item *t = &s->items[s->n++];

        describe(s, slot, t);
        s->here[t->kind]++;
        for (uint32_t i = 0; i < s->n_resources; i++) {
            sums[i] += t->needs[i];
            enough |= sums[i] / PS_BUDGET_PACKS >= s->whole[i];
        }
    }
    rate(s);
}

/* ---- Building a pack ---- */

static bool fits(const state *s, const uint64_t *left, const item *t)
{
    for (uint32_t i = 0; i < s->n_resources; i++)
        if (t->needs[i] > left[i])
            return false;
    return !t->used;
}

/* The next item to try after item `k`, which does not fit or was tried. */
static uint32_t after(const state *s, uint32_t k)
{
    return s->items[k].used ? k + 1 : s->items[k].next;
}

static void start(const state *s, pack *p)
{
    p->n = 0;
    p->score = 0;
    memcpy(p->left, s->whole, sizeof p->left);
}

static void add(state *s, pack *p, uint32_t k)
{
    p->items[p->n++] = k;
    p->score += s->items[k].score;
    for (uint32_t i = 0; i < s->n_resources; i++)
        p->left[i] -= s->items[k].needs[i];
}

/* Marks the items of a pack as used, or not. */
static void mark(state *s, const pack *p, bool used)
{
    for (uint32_t i = 0; i < p->n; i++)
        s->items[p->items[i]].used = used;
}

/* First item whose share is at most `share`, or n. */
static uint32_t at_most(const state *s, int64_t share)
{
    uint32_t low = 0;
    uint32_t high = s->n;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (s->items[middle].share > share)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/*
 * Returns the item with the largest share that fits, from item `k` on, or NONE
 * if none fits that can score more than `least`.
 */
static uint32_t largest(state *s, const uint64_t *left, uint32_t k,
                        int64_t least)
{
    const int64_t low = least <= 0 ? 0 : least * 1024 / s->most;
    bool found = false;

    for (; k < s->n && s->items[k].share >= low; k = after(s, k)) {
        s->steps++;
        found = fits(s, left, &s->items[k]);
        if (found)
            break;
    }
    s->steps++;
    return found ? k : NONE;
}

/*
 * Finds the one or two items that fit the pack and have the greatest score.
 * With the first one, the second is the one with the largest share that fits.
 * Returns their score; absent ones are NONE.
 */
static int64_t find_pair(state *s, const pack *p, uint32_t pair[2])
{
    const int64_t share = share_left(s, p);
    const uint32_t places = s->setup.depth - p->n;
    int64_t best = 0;

    pair[0] = pair[1] = NONE;
    for (uint32_t k = at_most(s, share); places > 0 && k < s->n;
         k = after(s, k)) {
        const item *t = &s->items[k];
        uint64_t left[MAX_RESOURCES];
        uint32_t with;

        /* No later pair can score more. */
        if (t->share * s->most / 512 <= best ||
            (best > 0 && s->steps > STEPS))
            break;
        s->steps++;
        if (!fits(s, p->left, t))
            continue;
        if (t->score > best) {
            best = t->score;
            pair[0] = k;
            pair[1] = NONE;
        }
        if (places < 2)
            continue;
        for (uint32_t i = 0; i < s->n_resources; i++)
            left[i] = p->left[i] - t->needs[i];
        with = at_most(s, share - t->share);
        with = largest(s, left, with > k ? with : k + 1, best - t->score);
        if (with != NONE && t->score + s->items[with].score > best) {
            best = t->score + s->items[with].score;
            pair[0] = k;
            pair[1] = with;
        }
    }
    return best;
}

/* Completes the trial by the best pair, and keeps it if it is the best pack. */
static bool complete(state *s)
{
    uint32_t pair[2];
    const int64_t gain = find_pair(s, &s->trial, pair);
    uint32_t *items = s->best.items;

    s->steps += s->trial.n;
    if (s->trial.score + gain <= s->best.score && s->best.n > 0)
        return false;
    memcpy(items, s->trial.items, s->trial.n * sizeof *items);
    s->best = s->trial;
    s->best.items = items;
    for (uint32_t i = 0; i < 2; i++)
        if (pair[i] != NONE)
            add(s, &s->best, pair[i]);
    return true;
}

/* Adds the largest items that fit to the trial, in one pass. */
static void fill(state *s)
{
    uint32_t k = at_most(s, share_left(s, &s->trial));

    for (; k < s->n && s->trial.n < s->setup.depth; k++)
        if (fits(s, s->trial.left, &s->items[k])) {
            add(s, &s->trial, k);
            s->items[k].used = true;
        }
}

/* Builds a pack that starts with an item. */
static void build(state *s, uint32_t seed)
{
    uint32_t k = seed;

    start(s, &s->trial);
    while (k != NONE && s->trial.n < s->setup.depth) {
        add(s, &s->trial, k);
        s->items[k].used = true;
        (void)complete(s);
        if (s->best.score >= ENOUGH)
            break;
        if (s->steps > STEPS) {
            fill(s);
            (void)complete(s);
            break;
        }
        k = largest(s, s->trial.left,
                    at_most(s, share_left(s, &s->trial)), 0);
    }
    mark(s, &s->trial, false);
}

/* Builds packs that start with the items that take most of some resource. */
static void try_seeds(state *s)
{
    uint32_t seeds[SEEDS + 1];
    uint32_t n = 0;

    for (uint32_t k = 0; k < s->n; k++) {
        uint32_t i = n;

        for (; i > 0 && s->items[k].largest > s->items[seeds[i - 1]].largest;
             i--)
            seeds[i] = seeds[i - 1];
        seeds[i] = k;
        n += n < SEEDS;
    }
    for (uint32_t i = 0; i < n && s->best.score < ENOUGH; i++)
        if (i == 0 || s->steps <= STEPS)
            build(s, seeds[i]);
}

/* Tries to improve the best pack without its items `a` and `b`. */
static bool replace(state *s, uint32_t a, uint32_t b)
{
    bool better;

    start(s, &s->trial);
    for (uint32_t i = 0; i < s->best.n; i++)
        if (i != a && i != b)
            add(s, &s->trial, s->best.items[i]);
    mark(s, &s->trial, true);
    better = complete(s);
    mark(s, &s->trial, false);
    return better;
}

/* Replaces one or two items, from item `first` on.  False: nothing helps. */
static bool improve(state *s, uint32_t first)
{
    for (uint32_t a = first; a < s->best.n; a++)
        for (uint32_t b = a; b < s->best.n; b++) {
            if (b > a && s->best.n > FEW)
                break;
            if (s->steps > STEPS)
                return false;
            if (replace(s, a, b))
                return true;
        }
    return false;
}

/* By length; of equal ones, the oldest sequence first. */
static int compare_lengths(const void *a, const void *b)
{
    const item *x = a;
    const item *y = b;

    if (x->needs[0] != y->needs[0])
        return x->needs[0] < y->needs[0] ? -1 : 1;
    return (x->time > y->time) - (x->time < y->time);
}

/* Removes the first `n` items from the window, and writes their slots. */
static void take(state *s, uint32_t n, uint32_t *slots)
{
    qsort(s->items, n, sizeof *s->items, compare_lengths);
    for (uint32_t i = 0; i < n; i++)
        slots[i] = s->items[i].slot;
    ps_window_remove(s->setup.window, slots, n);
}

/* Takes the best pack. */
static void take_best(state *s, uint32_t *slots)
{
    uint32_t n = 0;

    mark(s, &s->best, true);
    for (uint32_t k = 0; k < s->n; k++)
        if (s->items[k].used)
            s->items[n++] = s->items[k];
    take(s, n, slots);
}

/* Index of the oldest item. */
static uint32_t oldest(const state *s)
{
    uint32_t k = 0;

    while (s->items[k].slot != s->setup.window->oldest)
        k++;
    return k;
}

/*
 * True if the oldest sequence must be packed now: it has been a candidate for
 * as many records as there are candidates, or is close to its maximum delay.
 */
static bool is_urgent(const state *s, uint64_t now)
{
    const ps_window *w = s->setup.window;
    const uint32_t usual = s->setup.window_size;
    const uint64_t time = w->slots[w->oldest].time;
    uint64_t max = ps_mem_max(w->count, usual);

    max += ps_mem_max(s->n, ps_mem_min(usual, CANDIDATES));
    max = ps_mem_min(max, s->setup.max_delay);
    return now > time && now - time >= max - max / TUNE_URGENT_PART;
}

/* Builds the best pack, which must contain item `first` unless it is NONE. */
static void build_best(state *s, uint32_t first)
{
    s->steps = 0;
    s->best.n = 0;
    s->best.score = 0;
    if (first != NONE)
        build(s, first);
    else
        try_seeds(s);
    while (s->best.score < ENOUGH && improve(s, first != NONE))
        ;
}

/* ---- Packing everything ---- */

/* Moves the best pack from the candidates to the plan. */
static void plan_best(state *s)
{
    plan *p = &s->plan;
    uint32_t n = 0;

    mark(s, &s->best, true);
    for (uint32_t k = 0; k < s->n; k++)
        if (s->items[k].used) {
            s->here[s->items[k].kind]--;
            p->slots[p->count++] = s->items[k].slot;
        } else {
            s->items[n++] = s->items[k];
        }
    s->n = n;
    p->sizes[p->packs++] = s->best.n;
}

/* Largest fraction first; of equal ones, the oldest sequence. */
static int compare_largest(const void *a, const void *b)
{
    const item *x = a;
    const item *y = b;

    if (x->largest != y->largest)
        return x->largest > y->largest ? -1 : 1;
    return (x->time > y->time) - (x->time < y->time);
}

/*
 * Puts each candidate into the bin with the least rest that it fits, or a new
 * one.  Returns the number of bins.
 */
static uint32_t fill_bins(state *s)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < s->n; k++) {
        const item *t = &s->items[k];
        uint32_t best = n;

        for (uint32_t i = 0; i < n; i++)
            if (s->bins[i].n < s->setup.depth && fits(s, s->bins[i].left, t) &&
                (best == n || s->bins[i].rest < s->bins[best].rest))
                best = i;
        if (best == n) {
            s->bins[n] = (bin){.rest = (int64_t)s->n_resources << WHOLE_BITS};
            memcpy(s->bins[n++].left, s->whole, sizeof s->whole);
        }
        s->bin_of[k] = best;
        s->bins[best].n++;
        for (uint32_t i = 0; i < s->n_resources; i++) {
            s->bins[best].left[i] -= t->needs[i];
            s->bins[best].rest -= t->parts[i];
        }
    }
    return n;
}

/* Replaces the plan with the bins. */
static void plan_bins(state *s, uint32_t n)
{
    plan *p = &s->plan;
    uint32_t at = 0;

    for (uint32_t i = 0; i < n; i++) {
        p->sizes[i] = s->bins[i].n;
        s->bins[i].n = at;
        at += p->sizes[i];
    }
    for (uint32_t k = 0; k < s->n; k++)
        p->slots[s->bins[s->bin_of[k]].n++] = s->items[k].slot;
    p->packs = n;
}

/* Plans packs for the whole window, which is listed. */
static void make_plan(state *s)
{
    uint32_t bins;

    s->plan.packs = s->plan.count = s->plan.next = s->plan.at = 0;
    while (s->n > 0) {
        build_best(s, NONE);
        plan_best(s);
        if (s->n > 0)
            rate(s);
    }
    list(s);
    qsort(s->items, s->n, sizeof *s->items, compare_largest);
    bins = fill_bins(s);
    if (bins < s->plan.packs)
        plan_bins(s, bins);
}

/* Takes the next pack of the plan. */
static void follow_plan(state *s, uint32_t *slots, uint32_t *n)
{
    plan *p = &s->plan;

    *n = p->sizes[p->next++];
    for (uint32_t i = 0; i < *n; i++)
        describe(s, p->slots[p->at++], &s->items[i]);
    take(s, *n, slots);
    if (p->next == p->packs)
        p->count = 0;
}

static ps_result choose(void *policy, uint64_t now, ps_emit_mode mode,
                        uint32_t *slots, uint32_t *n, ps_error *err)
{
    state *s = policy;
    const bool has_plan = mode != PS_EMIT_DUE && s->plan.count > 0;
    bool urgent;

    (void)err;
    if (!has_plan)
        list(s);
    if (!has_plan && mode != PS_EMIT_DUE && !s->setup.in_order &&
        s->n == s->setup.window->count)
        make_plan(s);
    if (mode != PS_EMIT_DUE && s->plan.count > 0) {
        follow_plan(s, slots, n);
        return PS_OK;
    }
    s->plan.count = 0;
    urgent = s->setup.in_order || is_urgent(s, now);
    build_best(s, urgent ? oldest(s) : NONE);
    *n = s->best.n;
    take_best(s, slots);
    return PS_OK;
}

/* ---- Saving and loading ---- */

static uint32_t kinds(const state *s)
{
    uint32_t n = 1;

    for (uint32_t i = 0; i < s->n_resources; i++)
        n *= s->parts;
    return n;
}

static void save(const void *policy, ps_saver *saver)
{
    const state *s = policy;

    for (uint32_t k = 0; k < kinds(s); k++)
        ps_save_u32(saver, s->arrivals[k]);
}

static ps_result load(void *policy, ps_restorer *restorer, ps_error *err)
{
    state *s = policy;

    s->arrived = 0;
    for (uint32_t k = 0; k < kinds(s); k++) {
        s->arrivals[k] = ps_load_u32(restorer);
        s->arrived += s->arrivals[k];
    }
    if (s->arrived > (uint64_t)REMEMBERED * s->setup.window_size)
        restorer->failed = true;
    return restorer->failed ? ps_fail(err, PS_ERR_CORRUPT,
                                      "the counts in the state are invalid")
                            : PS_OK;
}

const ps_policy_calls ps_policy_budget_calls = {
    .bytes = bytes_of,
    .open = open_state,
    .free = free_state,
    .admitted = admitted,
    .choose = choose,
    .save = save,
    .load = load,
};
