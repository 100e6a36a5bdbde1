/*
 * report.c - what packplan prints.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packplan/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli/message.h"
#include "packplan/table.h"

/* ---------------------------------------------------------------------
 * Cells
 */

/* For reading, with so many decimals; for programs, all that is known. */
static void put_value(table *t, const conf *c, int decimals, double value)
{
    if (c->form == CONF_TEXT)
        table_put(t, "%.*f", decimals, value);
    else
        table_put(t, "%.9g", value);
}

/* A ratio to the packs, which does not exist without any. */
static void put_ratio(table *t, const conf *c, const row *r, int decimals,
                      double value)
{
    if (r->packs == 0)
        table_put(t, "-");
    else
        put_value(t, c, decimals, value);
}

/*
 * A decay of LAMB for packs: it is applied once for as many sequences as
 * are in a pack.  Sorted batches hold as many sequences as others.
 */
static double packed_beta(const conf *c, const row *r, unsigned i)
{
    return r->algorithm == PS_PLAN_SORTED ? c->betas[i]
                                          : pow(c->betas[i], r->factor);
}

/* What the user asked to see besides; the same in all tables. */
static void put_extras(table *t, const conf *c, const row *r)
{
    if (c->n_overheads > 0) {
        put_value(t, c, 3, r->overhead);
        put_ratio(t, c, r, 4, r->speed_up);
    }
    for (unsigned i = 0; c->betas_given && i < 2; i++)
        put_ratio(t, c, r, 5, packed_beta(c, r, i));
}

static void put_names(table *t, const char *const *names, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        table_put(t, "%s", names[i]);
}

static void put_extra_names(table *t, const conf *c)
{
    static const char *const speed_up[] = {"overhead", "speed_up"};
    static const char *const betas[] = {"beta1", "beta2"};

    if (c->n_overheads > 0)
        put_names(t, speed_up, 2);
    if (c->betas_given)
        put_names(t, betas, 2);
}

/* ---------------------------------------------------------------------
 * Rows, for reading and for programs
 */

static void put_text_heading(table *t, const conf *c)
{
    static const char *const names[] = {"depth",  "algorithm", "packs",
                                        "full%",  "factor",    "strat.",
                                        "time",   "bound",     "above%"};

    put_names(t, names, sizeof names / sizeof names[0]);
    put_extra_names(t, c);
    table_end_heading(t);
}

/* A cap, or the depth that was reached without one. */
static void put_reached(table *t, const row *r)
{
    if (r->depth == CONF_NO_CAP)
        table_put(t, "%" PRIu32 "/max", r->max_depth);
    else
        table_put(t, "%" PRIu32, r->depth);
}

static void put_time(table *t, double seconds)
{
    if (seconds < 1e-3)
        table_put(t, "%.0f us", 1e6 * seconds);
    else if (seconds < 1)
        table_put(t, "%.1f ms", 1e3 * seconds);
    else
        table_put(t, "%.2f s", seconds);
}

/* What is possible, and how far above it this is, in per cent. */
static void put_bound(table *t, const conf *c, const row *r)
{
    double bound = (double)row_bound_packs(r);

    if (r->bound < 0) {
        table_put(t, "-");
        table_put(t, "-");
        return;
    }
    table_put(t, "%" PRIu64, row_bound_packs(r));
    put_ratio(t, c, r, 4,
              bound > 0 ? 100 * ((double)r->packs / bound - 1) : 0);
}

static void put_text_row(table *t, const conf *c, const row *r)
{
    put_reached(t, r);
    table_put(t, "%s", algorithm_name(r->algorithm));
    table_put(t, "%" PRIu64, r->packs);
    put_ratio(t, c, r, 3, 100 * r->efficiency);
    put_ratio(t, c, r, 4, r->factor);
    table_put(t, "%zu", r->strategies);
    put_time(t, r->seconds);
    put_bound(t, c, r);
    put_extras(t, c, r);
}

static void put_tsv_heading(table *t, const conf *c)
{
    static const char *const names[] = {
        "algorithm",  "depth",          "packs",   "strategies", "max_depth",
        "efficiency", "packing_factor", "seconds", "bound"};

    put_names(t, names, sizeof names / sizeof names[0]);
    put_extra_names(t, c);
    table_end_heading(t);
}

static void put_tsv_row(table *t, const conf *c, const row *r)
{
    table_put(t, "%s", algorithm_name(r->algorithm));
    if (r->depth == CONF_NO_CAP)
        table_put(t, "max");
    else
        table_put(t, "%" PRIu32, r->depth);
    table_put(t, "%" PRIu64, r->packs);
    table_put(t, "%zu", r->strategies);
    table_put(t, "%" PRIu32, r->max_depth);
    put_ratio(t, c, r, 0, r->efficiency);
    put_ratio(t, c, r, 0, r->factor);
    table_put(t, "%.9f", r->seconds);
    if (r->bound < 0)
        table_put(t, "-");
    else
        table_put(t, "%.3f", r->bound);
    put_extras(t, c, r);
}

static int print_table(table *t, bool tabs)
{
    bool failed = t->failed;

    if (failed)
        message_error("out of memory");
    else
        table_print(t, stdout, tabs);
    table_free(t);
    return failed ? STATUS_FAILURE : STATUS_OK;
}

static void print_totals(const conf *c, const ps_histogram *h)
{
    uint64_t tokens = ps_histogram_tokens(h);
    uint32_t capacity = c->options.capacity;

    printf("%" PRIu64 " sequences, %" PRIu64 " tokens; packs of %" PRIu32
           " tokens, at least %" PRIu64 "\n",
           ps_histogram_sequences(h), tokens, capacity,
           ps_lower_bound(tokens, capacity));
    if (c->align > 1)
        printf("sequences begin at multiples of %" PRIu32 "\n", c->align);
    putchar('\n');
}

static int report_text(const conf *c, const ps_histogram *h, const rows *rs)
{
    table t = {0};

    put_text_heading(&t, c);
    for (size_t i = 0; i < rs->n; i++)
        put_text_row(&t, c, &rs->of[i]);
    print_totals(c, h);
    return print_table(&t, false);
}

static int report_tsv(const conf *c, const rows *rs)
{
    table t = {0};

    put_tsv_heading(&t, c);
    for (size_t i = 0; i < rs->n; i++)
        put_tsv_row(&t, c, &rs->of[i]);
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

static void print_json_row(const conf *c, const row *r)
{
    bool packed = r->packs > 0;

    printf("{\"algorithm\": \"%s\"", algorithm_name(r->algorithm));
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
    if (c->betas_given) {
        print_ratio("beta1", packed_beta(c, r, 0), packed);
        print_ratio("beta2", packed_beta(c, r, 1), packed);
    }
    putchar('}');
}

static void report_json(const conf *c, const ps_histogram *h, const rows *rs)
{
    uint64_t tokens = ps_histogram_tokens(h);

    printf("{\"capacity\": %" PRIu32, c->options.capacity);
    if (c->align > 1)
        printf(", \"align\": %" PRIu32, c->align);
    printf(", \"sequences\": %" PRIu64 ", \"tokens\": %" PRIu64
           ", \"lower_bound\": %" PRIu64 ", \"rows\": [",
           ps_histogram_sequences(h), tokens,
           ps_lower_bound(tokens, c->options.capacity));
    for (size_t i = 0; i < rs->n; i++) {
        if (i > 0)
            printf(", ");
        print_json_row(c, &rs->of[i]);
    }
    printf("]}\n");
}

int report_rows(const conf *c, const ps_histogram *h, const rows *rs)
{
    switch (c->form) {
    case CONF_TSV:
        return report_tsv(c, rs);
    case CONF_JSON:
        report_json(c, h, rs);
        return STATUS_OK;
    case CONF_TEXT:
        break;
    }
    return report_text(c, h, rs);
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

static void put_scaling(table *t, const conf *c, const scaling *s,
                        const row *packing)
{
    static const char *const names[] = {"devices", "unpadding", "slowdown",
                                        "packing"};

    put_names(t, names, 4);
    table_end_heading(t);
    for (unsigned i = 0; i < c->n_devices; i++) {
        table_put(t, "%" PRIu32, c->devices[i]);
        put_value(t, c, 4, scaling_speed_up(s, c->devices[i]));
        put_value(t, c, 4, scaling_fullest(s, c->devices[i]) / s->mean);
        put_value(t, c, 4, packing->speed_up);
    }
}

static void scaling_json(const conf *c, const scaling *s, const row *packing)
{
    printf("{\"capacity\": %" PRIu32 ", \"batch\": %" PRIu32
           ", \"algorithm\": \"%s\", \"rows\": [",
           s->capacity, s->batch, algorithm_name(packing->algorithm));
    for (unsigned i = 0; i < c->n_devices; i++) {
        printf("%s{\"devices\": %" PRIu32, i > 0 ? ", " : "", c->devices[i]);
        print_ratio("unpadding", scaling_speed_up(s, c->devices[i]), true);
        print_ratio("slowdown",
                    scaling_fullest(s, c->devices[i]) / s->mean, true);
        print_ratio("packing", packing->speed_up, true);
        putchar('}');
    }
    printf("]}\n");
}

int report_scaling(const conf *c, const scaling *s, const row *packing)
{
    table t = {0};

    if (c->form == CONF_JSON) {
        scaling_json(c, s, packing);
        return STATUS_OK;
    }
    if (c->form == CONF_TEXT)
        printf("How many times faster than with padding: un-padding batches "
               "of %" PRIu32 ", and\npacking with %s\n\n",
               s->batch, algorithm_name(packing->algorithm));
    put_scaling(&t, c, s, packing);
    return print_table(&t, c->form == CONF_TSV);
}
