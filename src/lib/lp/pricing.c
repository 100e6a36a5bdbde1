/*
 * pricing.c - the column that is worth most at given prices.
 *
 * A knapsack with a cap on the number of items (Gilmore and Gomory 1961).
 * F1(c) is the best price of one length up to c.  What d sequences in c
 * tokens are worth at most follows by halves: F(a + b)(c) is the greatest
 * Fa(j) + Fb(c - j), so that depth D takes about 2 log2 D such steps.  Only
 * the j at which Fa rises need a look.  The last step is for the capacity
 * alone, and the ways to divide it give different columns.  At depth 3 the
 * pair beside each length is found directly.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lp/column_gen.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define MAX_TABLES 64 /* 2 for each bit of a depth */
#define MAX_SWAPS 16
#define MIN_GAIN 1e-9

/* What a number of sequences, at most, are worth by capacity. */
typedef struct table {
    double *best;
    uint32_t a; /* the tables that it is made of; the first has none */
    uint32_t b;
} table;

/* Where a table rises: place and value. */
typedef struct rise {
    uint32_t at;
    double best;
} rise;

struct ps_pricer {
    const ps_lp_instance *instance;
    const double *price;
    uint32_t unit;     /* tokens; if more than one, all this is inexact */
    uint32_t capacity; /* in units, as what follows */
    uint32_t *weight;  /* of each length */
    uint32_t *item;    /* by capacity: the length worth F1, or NONE */
    rise *rises;
    size_t n_rises;
    table tables[MAX_TABLES];
    uint32_t n_tables;
    uint32_t half[2]; /* from depth 4 on: the tables for halves of it */
    uint32_t *part;   /* of each column: the capacity for its first half; */
                      /* at depth 3: for the last of the three */
    uint32_t *worth;   /* inexact: of the lengths up to i the one worth most */
    double work;
};

void ps_pricer_free(ps_pricer *p)
{
    if (p == NULL)
        return;
    for (uint32_t t = 0; t < p->n_tables; t++)
        free(p->tables[t].best);
    free(p->weight);
    free(p->item);
    free(p->rises);
    free(p->part);
    free(p->worth);
    free(p);
}

static bool add_table(ps_pricer *p, uint32_t a, uint32_t b)
{
    double *best = calloc((size_t)p->capacity + 1, sizeof *best);

    if (best == NULL)
        return false;
    p->tables[p->n_tables++] = (table){best, a, b};
    return true;
}

/* Tables for `depth` >= 4: half of it is reached bit by bit. */
static bool add_tables(ps_pricer *p, uint32_t depth)
{
    uint32_t half = depth / 2;
    uint32_t bit = 1;

    while (bit <= half / 2)
        bit *= 2;
    for (bit /= 2; bit > 0; bit /= 2) {
        uint32_t last = p->n_tables - 1;

        if (!add_table(p, last, last) ||
            ((half & bit) != 0 && !add_table(p, 0, last + 1)))
            return false;
    }
    p->half[0] = p->n_tables - 1;
    if (depth % 2 == 1 && !add_table(p, 0, p->half[0]))
        return false;
    p->half[1] = p->n_tables - 1;
    return true;
}

/* The depth to make tables for: where it is no limit, a power is cheaper. */
static uint32_t useful_depth(uint32_t depth, uint32_t max)
{
    uint32_t power = 4;

    if (depth < max)
        return depth;
    while (power < max)
        power *= 2;
    return power;
}

static bool open_arrays(ps_pricer *p)
{
    size_t n = p->instance->n;
    size_t capacity = (size_t)p->capacity + 1;

    p->weight = malloc(n * sizeof *p->weight);
    p->item = malloc(capacity * sizeof *p->item);
    p->rises = malloc(capacity * sizeof *p->rises);
    p->part = calloc(n, sizeof *p->part);
    p->worth = malloc(n * sizeof *p->worth);
    return p->weight != NULL && p->item != NULL && p->rises != NULL &&
           p->part != NULL && p->worth != NULL &&
           add_table(p, NONE, NONE);
}

ps_pricer *ps_pricer_open(const ps_lp_instance *s, uint32_t max_units)
{
    ps_pricer *p = calloc(1, sizeof *p);
    uint32_t max = s->capacity / s->length[0];
    bool shallow = s->depth <= 3 || max <= 3;

    if (p == NULL)
        return NULL;
    p->instance = s;
    p->unit = shallow ? 1 : (s->capacity - 1) / max_units + 1;
    p->capacity = s->capacity / p->unit;
    if (!open_arrays(p) ||
        (!shallow && !add_tables(p, useful_depth(s->depth, max)))) {
        ps_pricer_free(p);
        return NULL;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        p->weight[i] = (s->length[i] - 1) / p->unit + 1;
        if (p->weight[i] > p->capacity) /* a rest of a unit: alone anyway */
            p->weight[i] = p->capacity;
    }
    return p;
}

bool ps_pricer_is_exact(const ps_pricer *p)
{
    return p->unit == 1;
}

double ps_pricer_work(const ps_pricer *p)
{
    return p->work;
}

/* F1, which length it is, and where it rises. */
static void fill_first(ps_pricer *p)
{
    const ps_lp_instance *s = p->instance;
    double *best = p->tables[0].best;
    rise last = {0, 0};
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
        last = (rise){c, p->price[i]};
    }
    p->rises[p->n_rises++] = last;
    for (; c <= p->capacity; c++) {
        best[c] = last.best;
        p->item[c] = item;
    }
    p->work += p->capacity;
}

static void find_rises(ps_pricer *p, const double *best)
{
    p->n_rises = 0;
    p->rises[p->n_rises++] = (rise){0, best[0]};
    for (uint32_t c = 1; c <= p->capacity; c++)
        if (best[c] > best[c - 1])
            p->rises[p->n_rises++] = (rise){c, best[c]};
}

/* to[c] = max(to[c], base + from[c]) for c < n; in a form for vectors. */
static void raise_to(double *restrict to, const double *restrict from,
                     double base, uint32_t n)
{
    for (uint32_t c = 0; c < n; c++) {
        double v = base + from[c];

        to[c] = v > to[c] ? v : to[c];
    }
}

/* Fills a table from the two that it is made of. */
static void combine(ps_pricer *p, const table *t)
{
    const double *b = p->tables[t->b].best;

    find_rises(p, p->tables[t->a].best);
    memcpy(t->best, b, ((size_t)p->capacity + 1) * sizeof *b);
    for (size_t k = 1; k < p->n_rises; k++) {
        uint32_t at = p->rises[k].at;
        uint32_t from = t->a == t->b ? at : 0; /* of halves the shorter */

        if (from > p->capacity - at)
            break;
        raise_to(t->best + at + from, b + from, p->rises[k].best,
                 p->capacity - at - from + 1);
        p->work += p->capacity - at - from;
    }
}

/*
 * The best pair in c tokens with a shorter length of at least `min`; the
 * search for that place in the rises goes on from *from.
 */
static double best_pair(ps_pricer *p, uint32_t c, uint32_t min,
                        size_t *from, uint32_t *shorter)
{
    const double *best = p->tables[0].best;
    double max = 0;
    size_t k;

    while (*from > 0 && p->rises[*from - 1].at >= min)
        --*from;
    while (*from < p->n_rises && p->rises[*from].at < min)
        ++*from;
    for (k = *from; k < p->n_rises && p->rises[k].at <= c / 2; k++) {
        double v = p->rises[k].best + best[c - p->rises[k].at];

        if (v > max) {
            max = v;
            *shorter = p->rises[k].at;
        }
    }
    p->work += (double)(k - *from);
    return max;
}

/* Depth 3: each length with the best pair of lengths that are no longer. */
static void price_triples(ps_pricer *p, double *value)
{
    const ps_lp_instance *s = p->instance;
    const double *best = p->tables[0].best;
    size_t from = 0;

    for (uint32_t i = s->n; i-- > 0;) {
        uint32_t c = s->capacity - s->length[i];
        uint32_t longest = s->length[i] < c ? s->length[i] : c;
        uint32_t rest = c;
        double v, pair;

        if (p->item[longest] != NONE)
            rest -= s->length[p->item[longest]];
        v = best[longest] + best[rest];
        p->part[i] = rest;
        pair = best_pair(p, c, c - longest, &from, &rest);
        if (pair > v) {
            v = pair;
            p->part[i] = rest;
        }
        value[i] = v;
    }
}

/*
 * Deeper: the best ways to divide the capacity between the halves, one from
 * each of n stretches.
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

/* Up to depth 3: each length with the best beside it. */
static void price_lengths(ps_pricer *p, double *value)
{
    const ps_lp_instance *s = p->instance;
    const double *best = p->tables[0].best;

    if (s->depth > 2)
        price_triples(p, value);
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->depth <= 2)
            value[i] = s->depth == 1 ? 0 : best[p->capacity - p->weight[i]];
        value[i] += p->price[i] > 0 ? p->price[i] : 0;
    }
}

double ps_pricer_run(ps_pricer *p, const double *price, double *value)
{
    double max = 0;

    p->price = price;
    fill_first(p);
    for (uint32_t t = 1; t < p->n_tables; t++)
        combine(p, &p->tables[t]);
    if (p->n_tables > 1)
        price_halves(p, value);
    else
        price_lengths(p, value);
    for (uint32_t i = 0; i < p->instance->n; i++)
        max = value[i] > max ? value[i] : max;
    return max;
}

/* Adds one of length i to the column at the end of the list. */
static bool add_item(ps_entries *to, ps_column *column, uint32_t i)
{
    for (size_t k = column->first; k < to->n; k++)
        if (to->index[k] == i) {
            to->value[k] += 1;
            return true;
        }
    if (!ps_entries_reserve(to, 1))
        return false;
    to->index[to->n] = i;
    to->value[to->n++] = 1;
    column->n++;
    return true;
}

static bool add_best(const ps_pricer *p, uint32_t c, ps_entries *to,
                     ps_column *column)
{
    return p->item[c] == NONE || add_item(to, column, p->item[c]);
}

/* How a table divides c: the part of the first of the two. */
static uint32_t divide(const ps_pricer *p, const table *t, uint32_t c)
{
    const double *a = p->tables[t->a].best;
    const double *b = p->tables[t->b].best;
    uint32_t j = 0;

    while (j < c && a[j] + b[c - j] < t->best[c])
        j++;
    return j;
}

/* Takes the tables apart again, from the halves to single lengths. */
static bool add_items(ps_pricer *p, uint32_t first, ps_entries *to,
                      ps_column *column)
{
    struct { uint32_t table, c; } stack[MAX_TABLES + 2];
    uint32_t n = 2;

    stack[0].table = p->half[0];
    stack[0].c = first;
    stack[1].table = p->half[1];
    stack[1].c = p->capacity - first;
    while (n > 0) {
        const table *t = &p->tables[stack[--n].table];
        uint32_t whole = stack[n].c;
        uint32_t part;

        if (t->best[whole] <= 0)
            continue;
        if (t->a == NONE) {
            if (!add_best(p, whole, to, column))
                return false;
            continue;
        }
        part = divide(p, t, whole);
        p->work += part;
        stack[n].table = t->a;
        stack[n++].c = part;
        stack[n].table = t->b;
        stack[n++].c = whole - part;
    }
    return true;
}

/* How many lengths are not above c. */
static uint32_t count_up_to(const ps_lp_instance *s, uint32_t c)
{
    uint32_t low = 0;
    uint32_t high = s->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (s->length[middle] <= c)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Takes one of entry k out of the column that ends the list. */
static void drop_item(ps_entries *list, ps_column *column, size_t k)
{
    list->value[k] -= 1;
    if (list->value[k] > 0)
        return;
    list->n--;
    list->index[k] = list->index[list->n];
    list->value[k] = list->value[list->n];
    column->n--;
}

/* Swaps the length for which the space left over is worth most. */
static bool swap_best(const ps_pricer *p, uint32_t *space, ps_entries *list,
                      ps_column *column)
{
    const ps_lp_instance *s = p->instance;
    double max = MIN_GAIN;
    uint32_t out = 0, in = NONE;
    size_t at = 0;

    for (size_t k = column->first; k < list->n; k++) {
        uint32_t i = list->index[k];
        uint32_t j = p->worth[count_up_to(s, s->length[i] + *space) - 1];

        if (j != NONE && p->price[j] - p->price[i] > max) {
            max = p->price[j] - p->price[i];
            at = k;
            out = i;
            in = j;
        }
    }
    if (in == NONE)
        return false;
    drop_item(list, column, at);
    *space = *space + s->length[out] - s->length[in];
    return add_item(list, column, in);
}

/* What rounding up to units left over goes to longer lengths. */
static void use_space(const ps_pricer *p, ps_entries *list,
                      ps_column *column)
{
    const ps_lp_instance *s = p->instance;
    uint32_t space = s->capacity;

    for (size_t k = column->first; k < list->n; k++)
        space -= (uint32_t)list->value[k] * s->length[list->index[k]];
    for (int k = 0; k < MAX_SWAPS && swap_best(p, &space, list, column);)
        k++;
}

bool ps_pricer_column(ps_pricer *p, uint32_t i, ps_entries *to,
                      ps_column *column)
{
    uint32_t c = p->capacity - p->weight[i];

    *column = (ps_column){.first = to->n};
    if (p->n_tables > 1) {
        if (!add_items(p, p->part[i], to, column))
            return false;
        if (p->unit > 1)
            use_space(p, to, column);
        return true;
    }
    if (!add_item(to, column, i))
        return false;
    if (p->instance->depth == 1)
        return true;
    if (p->instance->depth == 2)
        return add_best(p, c, to, column);
    return add_best(p, p->part[i], to, column) &&
           add_best(p, c - p->part[i], to, column);
}
