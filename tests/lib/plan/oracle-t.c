/*
 * oracle-t.c - on the published histograms, the published algorithms make the
 * same packs as their authors' program.
 *
 * The histograms and the expected numbers are not part of the project.  They
 * are read from the folder SHARED_DATA, or from ../shared/data beside the
 * source tree; without them the test is skipped.
 *
 * SPDX-License-Identifier: MIT
 */

#include "plan-naive.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 1024

/* A line of the table. */
typedef struct row {
    char histogram[64];
    char algorithm[32];
    char match[32];
    uint32_t capacity;
    char depth[16];
    uint64_t packs;
    size_t strategies;
    uint32_t max_depth;
} row;

/* Opens a file of the data folder, or returns NULL. */
static FILE *open_shared(const char *name, const char *ending)
{
    const char *folder = getenv("SHARED_DATA");
    const char *source = getenv("abs_top_srcdir");
    char path[PATH_BYTES];

    if (source == NULL)
        source = getenv("srcdir");
    if (folder != NULL)
        (void)snprintf(path, sizeof path, "%s/%s%s", folder, name, ending);
    else
        (void)snprintf(path, sizeof path, "%s/../shared/data/%s%s",
                       source == NULL ? "." : source, name, ending);
    return fopen(path, "r");
}

static ps_histogram *read_histogram(const char *name)
{
    FILE *f = open_shared(name, ".hist");
    char line[256];
    ps_histogram *h = open_histogram();

    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL) {
        uint32_t length;
        uint64_t count;

        if (line[0] == '#')
            continue;
        assert_int_equal(
            sscanf(line, "%" SCNu32 " %" SCNu64, &length, &count), 2);
        add_lengths(h, length, count);
    }
    (void)fclose(f);
    return h;
}

/* False for a line without expected numbers of packs. */
static bool parse_row(const char *line, row *r)
{
    return sscanf(line,
                  "%63s %" SCNu32 " %31s %15s %" SCNu64 " %zu %" SCNu32
                  " %31s",
                  r->histogram, &r->capacity, r->algorithm, r->depth,
                  &r->packs, &r->strategies, &r->max_depth, r->match) == 8 &&
           strcmp(r->match, "exact") == 0;
}

static ps_algorithm algorithm_of(const row *r)
{
    if (strcmp(r->algorithm, "none") == 0)
        return PS_PLAN_NONE;
    if (strcmp(r->algorithm, "spfhp") == 0)
        return PS_PLAN_SPFHP;
    assert_string_equal(r->algorithm, "lpfhp");
    return PS_PLAN_LPFHP;
}

static void try_row(const row *r)
{
    ps_histogram *h = read_histogram(r->histogram);
    ps_plan_options o = {.capacity = r->capacity,
                         .depth = (uint32_t)strtoul(r->depth, NULL, 10),
                         .distribute = true};
    ps_plan *plan;
    ps_error err;

    assert_ok(ps_plan_make(&plan, h, algorithm_of(r), &o, &err), &err);
    print_message("# %s %s %s: %" PRIu64 " packs\n", r->histogram,
                  r->algorithm, r->depth, ps_plan_packs(plan));
    assert_ok(ps_plan_check(plan, h, &o, &err), &err);
    assert_int_equal(ps_plan_packs(plan), r->packs);
    assert_int_equal(ps_plan_strategies(plan), r->strategies);
    assert_int_equal(ps_plan_max_depth(plan), r->max_depth);
    ps_plan_free(plan);
    ps_histogram_free(h);
}

static void test_oracle(void **state)
{
    FILE *f = open_shared("oracle", ".tsv");
    char line[512];
    unsigned rows = 0;
    row r;

    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL)
        if (parse_row(line, &r)) {
            try_row(&r);
            rows++;
        }
    (void)fclose(f);
    /* A table that was not parsed must not pass. */
    assert_int_equal(rows, 20);
}

/* The relaxation's optimum at depth 3, and nnlshp's required packs. */
static void try_target(const char *name, uint32_t capacity, double optimum,
                       uint64_t max)
{
    ps_histogram *h = read_histogram(name);
    ps_plan_options o = plan_options(capacity, 3);
    double bound;
    uint64_t packs;
    ps_error err;

    assert_ok(ps_plan_bound(h, capacity, 3, &bound, &err), &err);
    assert_true(bound > optimum - 0.5 && bound < optimum + 0.5);
    packs = packs_of(h, PS_PLAN_NNLSHP, &o);
    print_message("# %s nnlshp 3: %" PRIu64 " packs\n", name, packs);
    assert_true((double)packs >= optimum && packs <= max);
    for (o.depth = 4; o.depth <= 16; o.depth *= 2)
        assert_true(packs_of(h, PS_PLAN_NNLSHP, &o) <=
                    packs_of(h, PS_PLAN_LPFHP, &o));
    ps_histogram_free(h);
}

static void test_targets(void **state)
{
    try_target("wikipedia-bert-512", 512, 8143828.857, 8144500);
    try_target("squad-1.1-384", 384, 40194.246, 40215);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_oracle),
                                       cmocka_unit_test(test_targets)};

    FILE *f = open_shared("oracle", ".tsv");

    if (f == NULL) {
        puts("1..0 # SKIP no oracle.tsv in SHARED_DATA or ../shared/data");
        return EXIT_SUCCESS;
    }
    (void)fclose(f);
    return run_as_tap("plan-oracle", tests, NULL);
}
