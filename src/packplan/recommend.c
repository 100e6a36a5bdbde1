/*
 * recommend.c - find a window for a capacity.
 *
 * Windows are tried in ascending order: the library packs sequences of these
 * lengths as packstream would, until the packs are about as full as the bound
 * of packplan allows.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packplan/recommend.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/message.h"
#include "cli/report.h"

/* Maximum number of sequences in a trial. */
#define TRIAL_SEQUENCES 65536

/* Number of random orders packed per trial. */
#define TRIAL_ORDERS 3

/* The first stands for the default window, which can be larger. */
static const uint32_t windows[] = {1024, 4096, 16384};
#define WINDOWS (sizeof windows / sizeof windows[0])

/* Input and work space of the trials. */
typedef struct trial {
    const conf *conf;
    const length_counts *of;
    bool is_all; /* contains every sequence of the histogram */
    uint32_t n;  /* sequences in the trial */
    /* [n], lengths in ascending order, in tokens */
    uint32_t sorted[TRIAL_SEQUENCES];
    uint32_t lengths[TRIAL_SEQUENCES]; /* in the order to be packed */
    /* [n], sequences in the order of their packs */
    uint64_t order[TRIAL_SEQUENCES];
    uint64_t ends[TRIAL_SEQUENCES]; /* end of each pack in `order` */
} trial;

/* ---------------------------------------------------------------------
 * Trials
 */

/*
 * Efficiency (0 to 1) that packstream reaches, in the worst of several random
 * orders.  Stops early once it does not exceed `best`.
 */
static int try(trial *t, uint32_t window, double best, double *efficiency)
{
    const ps_packer_options options = {.capacity = t->of->capacity,
                                       .window = window == windows[0]
                                                     ? 0
                                                     : window,
                                       .align = t->conf->align};

    *efficiency = 1;
    for (uint64_t order = 0; order < TRIAL_ORDERS && *efficiency > best;
         order++) {
        uint64_t tokens = 0;
        uint64_t packs;
        ps_error err;

        for (uint32_t i = 0; i < t->n; i++)
            t->lengths[ps_shuffled(t->n, 1, order, i)] = t->sorted[i];
        if (ps_pack_lengths(t->lengths, NULL, t->n, &options, t->order, t->ends,
                            &packs, &err) != PS_OK)
            return message_failure("--recommend", &err);

        /* In a part of a stream, the last pack may be nearly empty. */
        if (!t->is_all && packs > 1)
            packs--;
        for (uint64_t i = 0; i < t->ends[packs - 1]; i++)
            tokens += t->lengths[t->order[i]];
        *efficiency = fmin((double)tokens /
                               ((double)packs * t->of->capacity),
                           *efficiency);
    }
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * The search
 */

/* Efficiency with as few packs as the bound allows, 0 to 1. */
static int bound_of(double *efficiency, const length_counts *of,
                    const ps_histogram *aligned)
{
    double packs;
    ps_error err;

    if (ps_plan_bound(aligned, of->capacity, CONF_NO_CAP, &packs, &err) !=
        PS_OK)
        return message_failure("bound", &err);
    *efficiency = (double)ps_histogram_tokens(of->histogram) /
                  ((double)report_bound_packs(packs) * of->capacity);
    return STATUS_OK;
}

/* Efficiency that is good enough: near the bound, or one pack more. */
static double enough(const recommendation *r)
{
    const double packs = (double)ps_histogram_tokens(r->lengths->histogram) /
                         (r->bound * r->lengths->capacity);

    return r->bound * fmin(1 - RECOMMEND_WITHIN, packs / (packs + 1));
}

/* Tries windows in ascending order. */
static int search(recommendation *r, trial *t)
{
    for (size_t w = 0; w < WINDOWS && r->efficiency < enough(r); w++) {
        double efficiency;
        int status = try(t, windows[w], r->efficiency, &efficiency);

        if (status != STATUS_OK)
            return status;
        /* try() may have omitted the last pack, which the bound counts. */
        efficiency = fmin(efficiency, r->bound);
        if (efficiency > r->efficiency) {
            r->efficiency = efficiency;
            r->window = windows[w];
        }
        /* A larger window would hold the same sequences. */
        if (t->is_all && t->n <= windows[w])
            break;
    }
    return STATUS_OK;
}

int recommend(recommendation *r, const conf *c, const length_counts *of,
              const ps_histogram *aligned)
{
    const ps_histogram *h = of->histogram;
    const uint64_t all = ps_histogram_sequences(h);
    uint64_t behind = 0; /* sequences of the first i lengths */
    size_t i = 0;
    trial *t;
    int status;

    *r = (recommendation){.lengths = of, .window = windows[0]};
    if (ps_histogram_size(h) == 0)
        return STATUS_OK;
    status = bound_of(&r->bound, of, aligned);
    if (status != STATUS_OK)
        return status;
    t = malloc(sizeof *t);
    if (t == NULL)
        return message_memory();
    t->conf = c;
    t->of = of;
    t->is_all = all <= TRIAL_SEQUENCES;
    t->n = t->is_all ? (uint32_t)all : TRIAL_SEQUENCES;
    /* Take all sequences, or a sample that is evenly spaced in sorted order. */
    for (uint32_t k = 0; k < t->n; k++) {
        /* k * all / n, rounded down, without overflow as `all` is below 2^63 */
        const uint64_t at = all / t->n * k + all % t->n * k / t->n;

        while (at >= behind)
            behind += ps_histogram_count(h, i++);
        t->sorted[k] = ps_histogram_length(h, i - 1);
    }
    status = search(r, t);
    free(t);
    return status;
}

/* ---------------------------------------------------------------------
 * The report
 */

static bool is_empty(const recommendation *r)
{
    return ps_histogram_size(r->lengths->histogram) == 0;
}

/* Prints a command that works as printed; the caller adds the redirections. */
static void print_command(const conf *c, const recommendation *r)
{
    printf("packstream -L %" PRIu32, r->lengths->capacity);
    if (r->window != windows[0])
        printf(" -w %" PRIu32, r->window);
    if (c->align > 1)
        printf(" --align=%" PRIu32, c->align);
    if (c->overlong != PS_OVERLONG_ERROR)
        printf(" --overlong=%s",
               option_word_name(option_overlongs, c->overlong));
}

static void report_text(const conf *c, const recommendation *of)
{
    bool any = false;

    printf("capacity  window    full%%   bound%%     overlong  "
           "lost tokens\n");
    for (unsigned i = 0; i < c->n_capacities; i++) {
        const recommendation *r = &of[i];

        printf("%8" PRIu32, r->lengths->capacity);
        if (is_empty(r))
            printf("  %6s  %7s  %7s", "-", "-", "-");
        else
            printf("  %6" PRIu32 "  %7.3f  %7.3f", r->window,
                   100 * r->efficiency, 100 * r->bound);
        printf("  %11" PRIu64 "  %11" PRIu64 "\n",
               r->lengths->long_sequences, r->lengths->lost_tokens);
    }
    for (unsigned i = 0; i < c->n_capacities; i++) {
        if (is_empty(&of[i]))
            continue;
        if (!any)
            putchar('\n');
        any = true;
        print_command(c, &of[i]);
        putchar('\n');
    }
}

static void report_tsv(const conf *c, const recommendation *of)
{
    printf("capacity\twindow\tefficiency\tbound_efficiency\t"
           "overlong_sequences\tlost_tokens\tcommand\n");
    for (unsigned i = 0; i < c->n_capacities; i++) {
        const recommendation *r = &of[i];

        printf("%" PRIu32, r->lengths->capacity);
        if (is_empty(r))
            printf("\t-\t-\t-");
        else
            printf("\t%" PRIu32 "\t%.9g\t%.9g", r->window, r->efficiency,
                   r->bound);
        printf("\t%" PRIu64 "\t%" PRIu64 "\t", r->lengths->long_sequences,
               r->lengths->lost_tokens);
        if (is_empty(r))
            putchar('-');
        else
            print_command(c, r);
        putchar('\n');
    }
}

static void report_json(const conf *c, const recommendation *of)
{
    printf("{\"within\": %.9g, \"rows\": [", RECOMMEND_WITHIN);
    for (unsigned i = 0; i < c->n_capacities; i++) {
        const recommendation *r = &of[i];
        const length_counts *l = r->lengths;

        printf("%s{\"capacity\": %" PRIu32 ", \"sequences\": %" PRIu64
               ", \"tokens\": %" PRIu64 ", \"overlong_sequences\": %" PRIu64
               ", \"lost_tokens\": %" PRIu64,
               i > 0 ? ", " : "", l->capacity,
               ps_histogram_sequences(l->histogram),
               ps_histogram_tokens(l->histogram), l->long_sequences,
               l->lost_tokens);
        if (is_empty(r)) {
            printf(", \"command\": null}");
            continue;
        }
        printf(", \"window\": %" PRIu32
               ", \"efficiency\": %.9g, \"bound_efficiency\": %.9g"
               ", \"is_within\": %s, \"command\": \"",
               r->window, r->efficiency, r->bound,
               r->efficiency >= enough(r) ? "true" : "false");
        print_command(c, r);
        printf("\"}");
    }
    printf("]}\n");
}

void recommend_report(const conf *c, const recommendation *of)
{
    if (c->form == CONF_JSON)
        report_json(c, of);
    else if (c->form == CONF_TSV)
        report_tsv(c, of);
    else
        report_text(c, of);
}
