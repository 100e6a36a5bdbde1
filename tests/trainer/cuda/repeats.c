/*
 * repeats.c - how many steps on the packs of a file are launched as graphs.
 *
 * usage: repeats FILE PACKS ROWS STEPS
 *
 * Batches of PACKS packs are stripped of their padding as ROWS (padded,
 * stripped, unpadded) selects, rounded up, staged, and made into a step that
 * computes nothing.  Prints how many of STEPS are graphs, and how much rounding
 * adds.  SPDX-License-Identifier: MIT
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/open.h"
#include "data/data_loader.h"
#include "model/bucket_pad.h"
#include "model/unpad.h"

/* Totals over all batches. */
typedef struct sums {
    uint64_t tokens, rows, rounded_rows;
    uint64_t masked, rounded_masked;
} sums;

static void need(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "repeats: %s\n", what);
    exit(1);
}

static tr_rows rows_of(const char *word)
{
    static const char *const words[] = {"padded", "stripped", "unpadded"};
    int i = 0;

    while (i < 3 && strcmp(word, words[i]) != 0)
        i++;
    need(i < 3, "ROWS are padded, stripped or unpadded");
    return (tr_rows)i;
}

static void step(tr_device *d, const tr_batch *batch, tr_rows rows,
                 sums *s)
{
    static tr_unpad strip;
    static tr_bucket_pad rounding;
    const tr_batch *const stripped = tr_unpad_rows(&strip, batch, rows);
    const tr_batch *rounded, *staged;

    need(stripped != NULL, "no memory");
    rounded = tr_bucket_pad_batch(&rounding, stripped, rows != TR_PADDED);
    need(rounded != NULL, "no memory");
    s->rows += stripped->n_rows;
    s->rounded_rows += rounded->n_rows;
    s->masked += stripped->n_mlm;
    s->rounded_masked += rounded->n_mlm;
    staged = d->ops->stage(d, rounded);
    need(staged != NULL, "a batch cannot be staged");
    (void)d->ops->step_begin(d, staged, 1);
    d->ops->step_end(d);
}

static double more(uint64_t now, uint64_t before)
{
    return 100 * ((double)now / (double)before - 1);
}

int main(int argc, char **argv)
{
    tr_loader_options options = {.n_names = 1, .epochs = 1, .types = 2,
                                 .mask_share = -1, .seed = 1};
    sums s = {0};
    tr_results results;
    char why[200] = "no memory";
    const char *failed = NULL;
    tr_device *d;
    tr_rows rows;
    ps_error err;
    tr_loader *f;
    int steps;

    need(argc == 5, "usage: repeats FILE PACKS ROWS STEPS");
    options.names = (const char *const *)argv + 1;
    options.packs = (uint32_t)atoi(argv[2]);
    rows = rows_of(argv[3]);
    need(tr_loader_open(&f, &options, &err) == PS_OK,
         "the file cannot be read");
    d = tr_cuda_open(0, TR_BF16, why, sizeof why);
    need(d != NULL, why);
    for (steps = 0; steps < atoi(argv[4]); steps++) {
        if (tr_loader_next(f, &err) != PS_OK)
            break;
        s.tokens += tr_loader_counts(f).tokens;
        step(d, tr_loader_batch(f), rows, &s);
    }
    need(steps > 0 && d->ops->finish(d, &results, &failed), failed);
    printf("%d steps of %s packs, %s: %" PRIu64 " are graphs, %.1f %%; rows "
           "+%.2f %%, masked tokens +%.2f %%, rows %.1f %% full\n",
           steps, argv[2], argv[3], results.graphs,
           100 * (double)results.graphs / steps,
           more(s.rounded_rows, s.rows), more(s.rounded_masked, s.masked),
           100 * (double)s.tokens / (double)s.rounded_rows);
    tr_loader_free(f);
    tr_device_close(d);
    return EXIT_SUCCESS;
}
