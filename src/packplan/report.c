/*
 * report.c - print the results of packplan.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packplan/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/message.h"
#include "cli/report.h"

/* ---------------------------------------------------------------------
 * Tables, in columns as wide as their contents or separated by tabs
 */

#define TABLE_CELL 32
#define TABLE_COLUMNS 16

typedef struct table {
    size_t n;                  /* cells so far, row by row */
    size_t capacity;           /* cells allocated */
    unsigned columns;          /* cells in the heading */
    bool failed;               /* memory exhausted */
    char (*cells)[TABLE_CELL]; /* owned */
} table;

/* Appends a cell to the current row.  Text that does not fit is cut off. */
static void put(table *t, const char *format, ...) MESSAGE_PRINTF(2, 3);

static void put(table *t, const char *format, ...)
{
    va_list args;

    if (t->failed)
        return;
    if (t->n == t->capacity) {
        size_t capacity = t->capacity == 0 ? 128 : 2 * t->capacity;
        char(*cells)[TABLE_CELL] =
            realloc(t->cells, capacity * sizeof *cells);

        if (cells == NULL) {
            t->failed = true;
            return;
        }
        t->cells = cells;
        t->capacity = capacity;
    }
    va_start(args, format);
    (void)vsnprintf(t->cells[t->n++], TABLE_CELL, format, args);
    va_end(args);
}

static void put_names(table *t, const char *const *names, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        put(t, "%s", names[i]);
}

/*
 * Prints all rows, right-aligned or separated by tabs, and frees the table.
 * Returns an exit status; prints a message on failure.
 */
static int print_table(table *t, bool tabs)
{
    const bool failed = t->failed;
    int widths[TABLE_COLUMNS] = {0};

    if (failed)
        message_error("out of memory");
    for (size_t i = 0; !failed && !tabs && i < t->n; i++) {
        int *width = &widths[i % t->columns];
        int n = (int)strlen(t->cells[i]);

        *width = n > *width ? n : *width;
    }
    for (size_t i = 0; !failed && i < t->n; i++) {
        unsigned column = (unsigned)(i % t->columns);

        if (column > 0)
            (void)fputs(tabs ? "\t" : "  ", stdout);
        printf("%*s", widths[column], t->cells[i]);
        if (column + 1 == t->columns)
            putchar('\n');
    }
    free(t->cells);
    *t = (table){0};
    return failed ? STATUS_FAILURE : STATUS_OK;
}

/* ---------------------------------------------------------------------
 * Cells of both kinds of tables
 */

/* Text tables show `decimals` digits, others full precision. */
static void put_value(table *t, const conf *c, int decimals, double value)
{
    if (c->form == CONF_TEXT)
        put(t, "%.*f", decimals, value);
    else
        put(t, "%.9g", value);
}

/* Appends a ratio per pack, which is undefined without packs. */
static void put_ratio(table *t, const conf *c, const row *r, int decimals,
                      double value)
{
    if (r->packs == 0)
        put(t, "-");
    else
        put_value(t, c, decimals, value);
}

/*
 * Decay rate of LAMB for packs: the rate is applied once for each sequence in a
 * pack.  Sorted batches have as many sequences as unpacked ones.
 */
static double packed_beta(const conf *c, const row *r, unsigned i)
{
    return r->algorithm->id == PS_PLAN_SORTED ? c->betas[i]
                                              : pow(c->betas[i], r->factor);
}

/* An incomplete last step counts, as in packdeal. */
static uint64_t steps_of(const conf *c, const row *r)
{
    return r->packs / c->global_batch + (r->packs % c->global_batch != 0);
}

/* Appends the columns requested by options, which all tables share. */
static void put_extras(table *t, const conf *c, const row *r)
{
    if (c->n_overheads > 0) {
        put_value(t, c, 3, r->overhead);
        put_ratio(t, c, r, 4, r->speed_up);
    }
    for (unsigned i = 0; c->given[CONF_LAMB] && i < 2; i++)
        put_ratio(t, c, r, 5, packed_beta(c, r, i));
    if (c->global_batch > 0)
        put(t, "%" PRIu64, steps_of(c, r));
}

static void put_heading(table *t, const conf *c, const char *const *names,
                        unsigned n)
{
    static const char *const speed_up[] = {"overhead", "speed_up"};
    static const char *const betas[] = {"beta1", "beta2"};
    static const char *const steps = "steps";

    put_names(t, names, n);
    if (c->n_overheads > 0)
        put_names(t, speed_up, 2);
    if (c->given[CONF_LAMB])
        put_names(t, betas, 2);
    if (c->global_batch > 0)
        put_names(t, &steps, 1);
    t->columns = (unsigned)t->n;
}

/* ---------------------------------------------------------------------
 * Rows, as tables for humans and as TSV
 */

static int report_text(const conf *c, const length_counts *of, const rows *rs)
{
    static const char *const names[] = {"depth",  "algorithm", "packs",
                                        "full%",  "factor",    "strat.",
                                        "time",   "bound",     "above%"};
    const ps_histogram *h = of->histogram;
    const uint64_t tokens = ps_histogram_tokens(h);
    const uint32_t capacity = c->options.capacity;
    table t = {0};

    printf("%" PRIu64 " sequences, %" PRIu64 " tokens; packs of %" PRIu32
           " tokens, at least %" PRIu64 "\n",
           ps_histogram_sequences(h), tokens, capacity,
           ps_lower_bound(tokens, capacity));
    if (c->align > 1)
        printf("sequences begin at multiples of %" PRIu32 "\n", c->align);
    if (c->overlong != PS_OVERLONG_ERROR)
        printf("%" PRIu64 " were longer, and %" PRIu64 " tokens are lost\n",
               of->long_sequences, of->lost_tokens);
    putchar('\n');

    put_heading(&t, c, names, sizeof names / sizeof names[0]);
    for (size_t i = 0; i < rs->n; i++) {
        const row *r = &rs->of[i];
        const double bound = (double)report_bound_packs(r->bound);

        /* The limit, or the depth reached without a limit. */
        if (r->depth == CONF_NO_CAP)
            put(&t, "%" PRIu32 "/max", r->max_depth);
        else
            put(&t, "%" PRIu32, r->depth);
        put(&t, "%s", r->algorithm->name);
        put(&t, "%" PRIu64, r->packs);
        put_ratio(&t, c, r, 3, 100 * r->efficiency);
        put_ratio(&t, c, r, 4, r->factor);
        put(&t, "%zu", r->strategies);

        if (r->seconds < 1e-3)
            put(&t, "%.0f us", 1e6 * r->seconds);
        else if (r->seconds < 1)
            put(&t, "%.1f ms", 1e3 * r->seconds);
        else
            put(&t, "%.2f s", r->seconds);

        /* The bound in packs, and the distance from it in per cent. */
        if (r->bound < 0) {
            put(&t, "-");
            put(&t, "-");
        } else {
            put(&t, "%" PRIu64, report_bound_packs(r->bound));
            put_ratio(&t, c, r, 4,
                      bound > 0 ? 100 * ((double)r->packs / bound - 1) : 0);
        }
        put_extras(&t, c, r);
    }
    return print_table(&t, false);
}

static int report_tsv(const conf *c, const rows *rs)
{
    static const char *const names[] = {
        "algorithm",  "depth",          "packs",   "strategies", "max_depth",
        "efficiency", "packing_factor", "seconds", "bound"};
    table t = {0};

    put_heading(&t, c, names, sizeof names / sizeof names[0]);
    for (size_t i = 0; i < rs->n; i++) {
        const row *r = &rs->of[i];

        put(&t, "%s", r->algorithm->name);
        if (r->depth == CONF_NO_CAP)
            put(&t, "max");
        else
            put(&t, "%" PRIu32, r->depth);
        put(&t, "%" PRIu64, r->packs);
        put(&t, "%zu", r->strategies);
        put(&t, "%" PRIu32, r->max_depth);
        put_ratio(&t, c, r, 0, r->efficiency);
        put_ratio(&t, c, r, 0, r->factor);
        put(&t, "%.9f", r->seconds);
        if (r->bound < 0)
            put(&t, "-");
        else
            put(&t, "%.3f", r->bound);
        put_extras(&t, c, r);
    }
    return print_table(&t, true);
}

/* ---------------------------------------------------------------------
 * JSON
 */

static void print_ratio(const char *key, double value, bool known)
{
    if (known)
        printf(", \"%s\": %.9g", key, value);
    else
        printf(", \"%s\": null", key);
}

/* Prints the start of the object: the options, and the overlong sequences. */
static void print_start(const conf *c, uint64_t long_sequences,
                        uint64_t lost_tokens)
{
    printf("{\"capacity\": %" PRIu32, c->options.capacity);
    if (c->align > 1)
        printf(", \"align\": %" PRIu32, c->align);
    if (c->overlong != PS_OVERLONG_ERROR)
        printf(", \"overlong_sequences\": %" PRIu64
               ", \"lost_tokens\": %" PRIu64,
               long_sequences, lost_tokens);
}

static void report_json(const conf *c, const length_counts *of, const rows *rs)
{
    const ps_histogram *h = of->histogram;
    uint64_t tokens = ps_histogram_tokens(h);

    print_start(c, of->long_sequences, of->lost_tokens);
    printf(", \"sequences\": %" PRIu64 ", \"tokens\": %" PRIu64
           ", \"lower_bound\": %" PRIu64 ", \"rows\": [",
           ps_histogram_sequences(h), tokens,
           ps_lower_bound(tokens, c->options.capacity));
    for (size_t i = 0; i < rs->n; i++) {
        const row *r = &rs->of[i];
        const bool packed = r->packs > 0;

        printf("%s{\"algorithm\": \"%s\"", i > 0 ? ", " : "",
               r->algorithm->name);
        if (r->depth == CONF_NO_CAP)
            printf(", \"depth\": null");
        else
            printf(", \"depth\": %" PRIu32, r->depth);
        printf(", \"packs\": %" PRIu64 ", \"strategies\": %zu"
               ", \"max_depth\": %" PRIu32,
               r->packs, r->strategies, r->max_depth);
        print_ratio("efficiency", r->efficiency, packed);
        print_ratio("packing_factor", r->factor, packed);
        printf(", \"seconds\": %.9f", r->seconds);
        if (r->bound < 0)
            printf(", \"bound\": null");
        else
            printf(", \"bound\": %.3f", r->bound);
        if (c->n_overheads > 0) {
            print_ratio("overhead", r->overhead, true);
            print_ratio("speed_up", r->speed_up, packed);
        }
        if (c->given[CONF_LAMB]) {
            print_ratio("beta1", packed_beta(c, r, 0), packed);
            print_ratio("beta2", packed_beta(c, r, 1), packed);
        }
        if (c->global_batch > 0)
            printf(", \"steps\": %" PRIu64, steps_of(c, r));
        putchar('}');
    }
    printf("]}\n");
}

int report_rows(const conf *c, const length_counts *of, const rows *rs)
{
    switch (c->form) {
    case CONF_TSV:
        return report_tsv(c, rs);
    case CONF_JSON:
        report_json(c, of, rs);
        return STATUS_OK;
    case CONF_TEXT:
        break;
    }
    return report_text(c, of, rs);
}

/* ---------------------------------------------------------------------
 * Plans
 */

void report_plan(const ps_plan *plan)
{
    for (size_t i = 0; i < ps_plan_strategies(plan); i++) {
        const uint32_t *lengths;
        uint32_t n;

        printf("%" PRIu64 ":", ps_plan_strategy(plan, i, &lengths, &n));
        for (uint32_t k = 0; k < n; k++)
            printf(" %" PRIu32, lengths[k]);
        putchar('\n');
    }
}

/* ---------------------------------------------------------------------
 * Scaling
 */

int report_scaling(const conf *c, const scaling *s, const row *packing)
{
    static const char *const names[] = {"devices", "unpadding", "slowdown",
                                        "packing"};
    const double padded = (double)s->batch * (double)s->capacity;
    table t = {.columns = 4};

    if (c->form == CONF_JSON) {
        printf("{\"capacity\": %" PRIu32 ", \"batch\": %" PRIu32
               ", \"algorithm\": \"%s\", \"rows\": [",
               s->capacity, s->batch, packing->algorithm->name);
        for (unsigned i = 0; i < c->n_devices; i++) {
            const double fullest = scaling_fullest(s, c->devices[i]);

            printf("%s{\"devices\": %" PRIu32, i > 0 ? ", " : "",
                   c->devices[i]);
            print_ratio("unpadding", padded / fullest, true);
            print_ratio("slowdown", fullest / s->mean, true);
            print_ratio("packing", packing->speed_up, true);
            putchar('}');
        }
        printf("]}\n");
        return STATUS_OK;
    }

    if (c->form == CONF_TEXT)
        printf("How many times faster than with padding: un-padding batches "
               "of %" PRIu32 ", and\npacking with %s\n\n",
               s->batch, packing->algorithm->name);
    put_names(&t, names, 4);
    for (unsigned i = 0; i < c->n_devices; i++) {
        const double fullest = scaling_fullest(s, c->devices[i]);

        put(&t, "%" PRIu32, c->devices[i]);
        put_value(&t, c, 4, padded / fullest);
        put_value(&t, c, 4, fullest / s->mean);
        put_value(&t, c, 4, packing->speed_up);
    }
    return print_table(&t, c->form == CONF_TSV);
}

/* ---------------------------------------------------------------------
 * Bounds with budgets
 */

static void report_budgets_json(const conf *c, const uses_table *u,
                                const double *alone, double packs)
{
    print_start(c, u->long_sequences, u->lost_tokens);
    printf(", \"sequences\": %" PRIu64 ", \"tokens\": %" PRIu64
           ", \"lower_bound\": %" PRIu64 ", \"bound\": %.3f"
           ", \"resources\": [",
           u->sequences, u->tokens, report_bound_packs(packs), packs);
    for (uint32_t k = 0; k < u->n_limits; k++)
        printf("%s{\"name\": \"%s\", \"limit\": %" PRIu64
               ", \"total\": %" PRIu64 ", \"bound\": %.3f}",
               k > 0 ? ", " : "", u->names[k], u->limits[k], u->totals[k],
               alone[k]);
    printf("]}\n");
}

/* Appends a row to the table: a resource, or all of them if it has no limit. */
static void put_bound(table *t, const conf *c, const char *name,
                      uint64_t limit, uint64_t total, double bound)
{
    put(t, "%s", name);
    if (limit == 0) {
        put(t, "-");
        put(t, "-");
    } else {
        put(t, "%" PRIu64, limit);
        put(t, "%" PRIu64, total);
    }
    if (c->form == CONF_TEXT)
        put(t, "%" PRIu64, report_bound_packs(bound));
    else
        put(t, "%.3f", bound);
}

int report_budgets(const conf *c, const uses_table *u, const double *alone,
                   double packs)
{
    static const char *const names[] = {"resource", "limit", "total", "bound"};
    table t = {.columns = 4};

    if (c->form == CONF_JSON) {
        report_budgets_json(c, u, alone, packs);
        return STATUS_OK;
    }
    if (c->form == CONF_TEXT) {
        printf("%" PRIu64 " sequences, %" PRIu64 " tokens; packs of %" PRIu32
               " tokens, at least %" PRIu64 "\n",
               u->sequences, u->tokens, c->options.capacity,
               report_bound_packs(packs));
        if (c->align > 1)
            printf("sequences begin at multiples of %" PRIu32 "\n", c->align);
        if (c->overlong != PS_OVERLONG_ERROR)
            printf("%" PRIu64 " exceeded a limit, and %" PRIu64
                   " tokens are lost\n",
                   u->long_sequences, u->lost_tokens);
        putchar('\n');
    }
    put_names(&t, names, 4);
    for (uint32_t k = 0; k < u->n_limits; k++)
        put_bound(&t, c, u->names[k], u->limits[k], u->totals[k], alone[k]);
    put_bound(&t, c, "all", 0, 0, packs);
    return print_table(&t, c->form == CONF_TSV);
}
