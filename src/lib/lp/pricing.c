/*
 * pricing.c - find the most valuable columns at given prices.
 *
 * SPDX-License-Identifier: MIT
 *
 * A knapsack problem with a limit on the number of items (Gilmore and Gomory
 * 1961).  Let Fd(c) be the maximum value of d sequences in c tokens, so F1(c)
 * is the best price of a single length up to c.  F(a + b)(c) is the maximum of
 * Fa(j) + Fb(c - j), so depth D takes about 2 log2 D combinations.  Only those
 * j at which Fa increases have to be tried.  The last combination is computed
 * for the full capacity only, and its different splits give different columns.
 * At depth 3 the best pair for each length is found directly.
 *
 * If depth is not a constraint, a single table F is computed: F(c) is the
 * maximum of F1(c) and F(j) + F(c - j).
 */

#include "lp/pricing.h"

#include <stdlib.h>
#include <string.h>

#include "lp/lengths.h"

#define NONE UINT32_MAX
#define ANY 1 /* the table for any number of sequences */
#define MAX_SWAPS 16
#define MIN_GAIN 1e-9

/* Allocates for n lengths, `capacity` units and `tables` tables. */
static void allocate(ps_pricer *p, uint32_t n, uint32_t capacity,
                     uint32_t tables, ps_mem *mem)
{
    uint64_t size = (uint64_t)capacity + 1;

    p->weight = ps_mem_alloc(mem, n, sizeof *p->weight);
    p->item = ps_mem_alloc(mem, size, sizeof *p->item);
    p->rises = ps_mem_alloc(mem, size, sizeof *p->rises);
    p->part = ps_mem_alloc(mem, n, sizeof *p->part);
    p->worth = ps_mem_alloc(mem, n, sizeof *p->worth);
    p->best = ps_mem_alloc(mem, ps_mem_times(tables, size), sizeof *p->best);
    p->split = ps_mem_alloc(mem, ps_mem_times(tables, size),
                            sizeof *p->split);
}

/*
 * The maximum of two cases: many units and one table, or few units and two
 * tables per bit of the depth.
 */
uint64_t ps_pricer_bytes(uint32_t n, uint32_t capacity, uint32_t depth,
                         uint32_t max_units)
{
    ps_mem shallow = {.counts = true};
    ps_mem deep = {.counts = true};
    uint32_t tables = 2;
    ps_pricer p;

    allocate(&p, n, capacity, 1, &shallow);
    if (depth <= 3)
        return shallow.bytes;
    for (uint32_t bit = depth; bit > 1; bit /= 2)
        tables += 2;
    allocate(&p, n, (uint32_t)ps_mem_min(capacity, max_units), tables, &deep);
    return ps_mem_max(shallow.bytes, deep.bytes);
}

static void add_table(ps_pricer *p, uint32_t a, uint32_t b)
{
    p->tables[p->n_tables++] = (ps_price_table){.a = a, .b = b};
}

void ps_pricer_init(ps_pricer *p, const ps_lp_instance *s, uint32_t max_units,
                    ps_mem *mem)
{
    uint32_t max = s->capacity / s->length[0];
    bool shallow = s->depth <= 3 || max <= 3;
    uint32_t bit = 1;

    *p = (ps_pricer){.instance = s, .any = !shallow && s->depth >= max};
    p->unit = shallow ? 1 : (s->capacity - 1) / max_units + 1;
    p->capacity = s->capacity / p->unit;

    /* From depth 4 on, build up half of the depth bit by bit. */
    add_table(p, NONE, NONE);
    if (p->any) {
        add_table(p, ANY, ANY);
    } else if (!shallow) {
        while (bit <= s->depth / 4)
            bit *= 2;
        for (bit /= 2; bit > 0; bit /= 2) {
            uint32_t last = p->n_tables - 1;

            add_table(p, last, last);
            if (((s->depth / 2) & bit) != 0)
                add_table(p, 0, last + 1);
        }
        p->half[0] = p->n_tables - 1;
        if (s->depth % 2 == 1)
            add_table(p, 0, p->half[0]);
        p->half[1] = p->n_tables - 1;
    }

    allocate(p, s->n, p->capacity, p->n_tables, mem);
    if (mem->failed)
        return;
    for (uint32_t t = 0; t < p->n_tables; t++) {
        p->tables[t].best = p->best + t * ((size_t)p->capacity + 1);
        p->tables[t].split = p->split + t * ((size_t)p->capacity + 1);
    }
    for (uint32_t i = 0; i < s->n; i++) {
        p->weight[i] = (s->length[i] - 1) / p->unit + 1;
        if (p->weight[i] > p->capacity) /* part of a unit: alone in its pack
                                           anyway */
            p->weight[i] = p->capacity;
    }
}

void ps_pricer_destroy(ps_pricer *p)
{
    free(p->weight);
    free(p->item);
    free(p->rises);
    free(p->part);
    free(p->worth);
    free(p->best);
    free(p->split);
}

/* Computes F1, the lengths that attain it, and where it increases. */
static void fill_first(ps_pricer *p)
{
    const ps_lp_instance *s = p->instance;
    double *best = p->tables[0].best;
    ps_price_rise last = {0, 0};
    uint32_t item = NONE;
    uint32_t c = 0;

    p->n_rises = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        p->worth[i] = item;
        if (p->price[i] <= last.best)
            continue;
        for (; c < p->weight[i]; c++) {
            best[c] = last.best;
            p->item[c] = item;
        }
        if (last.at < c || p->n_rises == 0)
            p->rises[p->n_rises++] = last;
        item = i;
        p->worth[i] = i;
        last = (ps_price_rise){c, p->price[i]};
    }
    p->rises[p->n_rises++] = last;
    for (; c <= p->capacity; c++) {
        best[c] = last.best;
        p->item[c] = item;
    }
    p->work += p->capacity;
}

/* to[c] = max(to[c], base + from[c]) for c < n; vectorizes. */
static void raise_to(double *restrict to, const double *restrict from,
                     double base, uint32_t n)
{
    for (uint32_t c = 0; c < n; c++) {
        double v = base + from[c];

        to[c] = v > to[c] ? v : to[c];
    }
}

/* Computes a table from its two parts. */
static void combine(ps_pricer *p, const ps_price_table *t)
{
    const double *a = p->tables[t->a].best;
    const double *b = p->tables[t->b].best;

    p->n_rises = 0;
    p->rises[p->n_rises++] = (ps_price_rise){0, a[0]};
    for (uint32_t c = 1; c <= p->capacity; c++)
        if (a[c] > a[c - 1])
            p->rises[p->n_rises++] = (ps_price_rise){c, a[c]};

    memcpy(t->best, b, ((size_t)p->capacity + 1) * sizeof *b);
    for (size_t k = 1; k < p->n_rises; k++) {
        uint32_t at = p->rises[k].at;
        uint32_t from = t->a == t->b ? at : 0; /* if equal, the shorter part
                                                  first */

        if (from > p->capacity - at)
            break;
        raise_to(t->best + at + from, b + from, p->rises[k].best,
                 p->capacity - at - from + 1);
        p->work += p->capacity - at - from;
    }
}

/* Computes the table for any number.  Each value is final before it is used. */
static void fill_any(ps_pricer *p)
{
    double *best = p->tables[ANY].best;

    memcpy(best, p->tables[0].best, ((size_t)p->capacity + 1) * sizeof *best);
    for (uint32_t c = 1; c <= p->capacity; c++) {
        uint32_t n = c < p->capacity - c ? c : p->capacity - c;

        if (best[c] <= best[c - 1]) {
            best[c] = best[c - 1];
            continue;
        }
        raise_to(best + c + 1, best + 1, best[c], n);
        p->work += n;
    }
}

/* Depth 3: prices each length with the best pair of lengths not longer. */
static void price_triples(ps_pricer *p, double *value)
{
    const ps_lp_instance *s = p->instance;
    const double *best = p->tables[0].best;
    const ps_price_rise *all = p->rises;
    size_t from = 0;
    size_t to = 0;

    for (uint32_t i = s->n; i-- > 0;) {
        uint32_t c = s->capacity - s->length[i];
        uint32_t longest = s->length[i] < c ? s->length[i] : c;
        uint32_t min = c - longest;
        uint32_t rest = c;

        /* Either one of the pair is the best length allowed... */
        if (p->item[longest] != NONE)
            rest -= s->length[p->item[longest]];
        value[i] = best[longest] + best[rest];
        p->part[i] = rest;

        /* ...or the shorter one is at least `min`: try increases from there. */
        while (to < p->n_rises && all[to].at <= c / 2)
            to++;
        while (from > 0 && all[from - 1].at >= min)
            from--;
        while (from < to && all[from].at < min)
            from++;
        for (const ps_price_rise *r = all + from; r < all + to; r++) {
            double v = r->best + best[c - r->at];

            if (v > value[i]) {
                value[i] = v;
                p->part[i] = r->at;
            }
        }
        p->work += (double)(to - from);
    }
}

/*
 * Greater depths: finds the best split of the capacity between the halves, one
 * in each of n ranges.
 */
static void price_halves(ps_pricer *p, double *value)
{
    const double *a = p->tables[p->half[0]].best;
    const double *b = p->tables[p->half[1]].best;
    uint32_t n = p->instance->n;
    uint32_t end = p->half[0] == p->half[1] ? p->capacity / 2 : p->capacity;

    memset(value, 0, n * sizeof *value);
    for (uint32_t j = 0; j <= end; j++) {
        uint32_t i = (uint32_t)((uint64_t)j * n / ((uint64_t)end + 1));
        double v = a[j] + b[p->capacity - j];

        if (v > value[i] && (j == 0 || a[j] > a[j - 1])) {
            value[i] = v;
            p->part[i] = j;
        }
    }
    p->work += end;
}

/*
 * From depth 4 on, uses the tables for the halves.  Up to depth 2, and if depth
 * is not a constraint, a table gives the best value beside each length.
 */
double ps_pricer_run(ps_pricer *p, const double *price, double *value)
{
    const ps_lp_instance *s = p->instance;
    const double *best = p->tables[p->any ? ANY : 0].best;
    bool halves = p->n_tables > 1 && !p->any;
    double max = 0;

    p->price = price;
    fill_first(p);
    if (p->n_tables > 1)
        memset(p->split, 0xff, /* NONE */
               p->n_tables * ((size_t)p->capacity + 1) * sizeof *p->split);
    if (p->any)
        fill_any(p);
    for (uint32_t t = 1; t < p->n_tables && halves; t++)
        combine(p, &p->tables[t]);
    if (halves)
        price_halves(p, value);
    else if (p->any)
        for (uint32_t i = 0; i < s->n; i++)
            value[i] = best[p->capacity - p->weight[i]];
    else if (s->depth > 2)
        price_triples(p, value);
    else
        for (uint32_t i = 0; i < s->n; i++)
            value[i] = s->depth == 1 ? 0 : best[p->capacity - p->weight[i]];
    for (uint32_t i = 0; i < s->n; i++) {
        if (!halves)
            value[i] += price[i] > 0 ? price[i] : 0;
        max = value[i] > max ? value[i] : max;
    }
    return max;
}

/* Adds the most valuable length up to c, if any. */
static bool add_best(const ps_pricer *p, uint32_t c, ps_entries *to,
                     ps_column *column)
{
    return p->item[c] == NONE ||
           ps_column_add(to, column, p->item[c], 1);
}

/*
 * Finds where the value of a table at c is split between its two parts.
 * Results are cached until the next run, because columns share parts.
 */
static uint32_t find_split(ps_pricer *p, uint32_t table, uint32_t c)
{
    const ps_price_table *t = &p->tables[table];
    const double *a = p->tables[t->a].best;
    const double *b = p->tables[t->b].best;
    uint32_t split = t->a == table ? 1 : 0; /* of itself: neither part is
                                               empty */

    if (t->split[c] != NONE)
        return t->split[c];
    while (split < c && a[split] + b[c - split] < t->best[c])
        split++;
    p->work += split;
    t->split[c] = split;
    return split;
}

/*
 * Adds the most valuable lengths in c by splitting table values down to single
 * lengths.  Shorter parts are processed first, which bounds the stack.
 */
static bool add_items(ps_pricer *p, uint32_t table, uint32_t c,
                      ps_entries *to, ps_column *column)
{
    struct { uint32_t table, c; } stack[PS_PRICER_TABLES + 1];
    uint32_t n = 1;

    stack[0].table = table;
    stack[0].c = c;
    while (n > 0) {
        const ps_price_table *t = &p->tables[stack[--n].table];
        uint32_t split;

        c = stack[n].c;
        if (t->best[c] <= p->tables[0].best[c]) { /* one length or none */
            if (!add_best(p, c, to, column))
                return false;
            continue;
        }
        split = find_split(p, stack[n].table, c);
        stack[n].table = t->b;
        stack[n++].c = c - split;
        stack[n].table = t->a;
        stack[n++].c = split;
    }
    return true;
}

/*
 * Exchanges a length of the last column of the list for the longer one that
 * increases its value most within the unused space.
 */
static bool swap_best(const ps_pricer *p, uint32_t *space, ps_entries *list,
                      ps_column *column)
{
    const ps_lp_instance *s = p->instance;
    double max = MIN_GAIN;
    uint32_t out = 0, in = NONE;
    size_t at = 0;

    for (size_t k = column->first; k < list->n; k++) {
        uint32_t i = list->index[k];
        uint32_t n = ps_lengths_up_to(s->length, 0, s->n,
                                      s->length[i] + *space);
        uint32_t j = p->worth[n - 1];

        if (j != NONE && p->price[j] - p->price[i] > max) {
            max = p->price[j] - p->price[i];
            at = k;
            out = i;
            in = j;
        }
    }
    if (in == NONE)
        return false;

    list->value[at] -= 1;
    if (list->value[at] <= 0) {
        list->n--;
        list->index[at] = list->index[list->n];
        list->value[at] = list->value[list->n];
        column->n--;
    }
    *space = *space + s->length[out] - s->length[in];
    return ps_column_add(list, column, in, 1);
}

bool ps_pricer_column(ps_pricer *p, uint32_t i, ps_entries *to,
                      ps_column *column)
{
    const ps_lp_instance *s = p->instance;
    uint32_t c = p->capacity - p->weight[i];
    uint32_t space = s->capacity;

    *column = (ps_column){.first = to->n};
    if (p->n_tables == 1) {
        if (!ps_column_add(to, column, i, 1))
            return false;
        if (s->depth == 1)
            return true;
        if (s->depth == 2)
            return add_best(p, c, to, column);
        return add_best(p, p->part[i], to, column) &&
               add_best(p, c - p->part[i], to, column);
    }

    if (p->any ? !ps_column_add(to, column, i, 1) ||
                     !add_items(p, ANY, c, to, column)
               : !add_items(p, p->half[1], p->capacity - p->part[i], to,
                            column) ||
                     !add_items(p, p->half[0], p->part[i], to, column))
        return false;
    if (p->unit == 1)
        return true;
    /* Use space left by rounding up to units for longer lengths. */
    for (size_t k = column->first; k < to->n; k++)
        space -= (uint32_t)to->value[k] * s->length[to->index[k]];
    for (int k = 0; k < MAX_SWAPS && swap_best(p, &space, to, column);)
        k++;
    return true;
}
