/*
 * repeats.c - how many steps are launched as graphs, of the packs of a file.
 *
 * usage: repeats FILE PACKS ROWS STEPS
 *
 * Batches of PACKS packs are stripped of their padding as ROWS (padded,
 * stripped, unpadded) says, rounded up, staged, and made a step of, in which
 * nothing is computed.  Prints how many of STEPS are graphs, and what rounding
 * adds.
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/open.h"
#include "data/data_loader.h"
#include "model/bucket_pad.h"
#include "model/unpad.h"

/* What all batches come to. */
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

static bert_rows rows_of(const char *word)
{
    static const char *const words[] = {"padded", "stripped", "unpadded"};
    int i = 0;

    while (i < 3 && strcmp(word, words[i]) != 0)
        i++;
    need(i < 3, "ROWS are padded, stripped or unpadded");
    return (bert_rows)i;
}

static void step(bert_device *d, const bert_batch *batch, bert_rows rows,
                 sums *s)
{
    static bert_strip strip;
    static bert_round rounding;
    const bert_batch *const stripped = bert_strip_rows(&strip, batch, rows);
    const bert_batch *rounded, *staged;

    need(stripped != NULL, "no memory");
    rounded = bert_round_batch(&rounding, stripped, rows != BERT_PADDED);
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
    feed_options options = {.n_names = 1, .epochs = 1, .types = 2,
                            .mask_share = -1, .seed = 1};
    sums s = {0};
    bert_results results;
    char why[200] = "no memory";
    const char *failed = NULL;
    bert_device *d;
    bert_rows rows;
    ps_error err;
    feed *f;
    int steps;

    need(argc == 5, "usage: repeats FILE PACKS ROWS STEPS");
    options.names = (const char *const *)argv + 1;
    options.packs = (uint32_t)atoi(argv[2]);
    rows = rows_of(argv[3]);
    need(feed_open(&f, &options, &err) == PS_OK, "the file cannot be read");
    d = bert_cuda_open(0, BERT_BF16, why, sizeof why);
    need(d != NULL, why);
    for (steps = 0; steps < atoi(argv[4]); steps++) {
        if (feed_next(f, &err) != PS_OK)
            break;
        s.tokens += feed_count(f).tokens;
        step(d, feed_batch(f), rows, &s);
    }
    need(steps > 0 && d->ops->finish(d, &results, &failed), failed);
    printf("%d steps of %s packs, %s: %" PRIu64 " are graphs, %.1f %%; rows "
           "+%.2f %%, masked tokens +%.2f %%, rows %.1f %% full\n",
           steps, argv[2], argv[3], results.graphs,
           100 * (double)results.graphs / steps,
           more(s.rounded_rows, s.rows), more(s.rounded_masked, s.masked),
           100 * (double)s.tokens / (double)s.rounded_rows);
    feed_free(f);
    bert_device_close(d);
    return EXIT_SUCCESS;
}
