/*
 * next-tokens.c - the input of a training step of a causal language model:
 * batches in memory of its own, labels for the next token, and weights that
 * make the loss a mean over all of them.
 *
 *     next-tokens PACKS <FILE
 *
 * PACKS is the number of packs in a batch.  Prints a line for each batch and,
 * at the end, whether the stream accounts for every token of its input.
 *
 * To compile it: cc next-tokens.c $(pkg-config --cflags --libs libpackstream)
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <packstream.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Arrays of a batch, with one element for each row. */
typedef struct arrays {
    int32_t *tokens;
    int32_t *labels;
    float *weights;
} arrays;

/* The model's input; the weights add up to 1. */
static ps_result step(const ps_loader *loader, const ps_batch *batch,
                      const arrays *a, ps_error *err)
{
    const ps_pack_info *info = ps_loader_info(loader);
    const ps_spans *spans = &batch->spans;
    ps_targets targets;
    double sum = 0;
    ps_result r = ps_spans_gather(spans, info, batch->rows, batch->sequences,
                                  &info->fields[PS_FIELD_TOKENS], PS_I32,
                                  a->tokens, err);

    if (r != PS_OK)
        return r;
    ps_spans_next_labels(spans, PS_LABELS_SHIFTED, a->tokens, a->labels);
    targets = ps_spans_targets(spans, a->labels, PS_NO_LABEL);
    ps_spans_weights(spans, a->labels, PS_NO_LABEL, PS_LOSS_PER_TOKEN,
                     targets.tokens, a->weights);
    for (uint32_t i = 0; i < spans->n_rows; i++)
        sum += (double)a->weights[i];
    printf("%" PRIu32 " packs, %" PRIu32 " tokens, %" PRIu64
           " targets in %" PRIu64 " sequences, weights %.3f\n",
           batch->n_packs, batch->n_tok, targets.tokens, targets.sequences,
           sum);
    return PS_OK;
}

/* Two buffers, as for copies to a device: one is filled while one is copied. */
static ps_result run(ps_pack_reader *reader, uint32_t packs, ps_error *err)
{
    const ps_pack_info *info = ps_pack_reader_info(reader);
    const size_t rows = (size_t)packs * info->capacity;
    ps_loader_options options = {
        .packs = packs, .view = PS_VIEW_GHOST, .last = PS_LAST_SHORT};
    ps_loader_layout layout;
    ps_loader *loader;
    void *buffers[2];
    arrays a;
    ps_result r = ps_loader_plan(info, &options, &layout, err);

    if (r != PS_OK)
        return r;
    a.tokens = calloc(rows, sizeof *a.tokens);
    a.labels = calloc(rows, sizeof *a.labels);
    a.weights = calloc(rows, sizeof *a.weights);
    buffers[0] = aligned_alloc(64, layout.bytes);
    buffers[1] = aligned_alloc(64, layout.bytes);
    if (a.tokens == NULL || a.labels == NULL || a.weights == NULL ||
        buffers[0] == NULL || buffers[1] == NULL) {
        fputs("next-tokens: out of memory\n", stderr);
        exit(1);
    }
    options.buffers = 2;
    options.memory = buffers;
    r = ps_loader_open(&loader, reader, &options, err);
    while (r == PS_OK) {
        ps_batch batch;

        r = ps_loader_next(loader, &batch, err);
        if (r == PS_OK)
            r = step(loader, &batch, &a, err);
    }
    ps_loader_free(loader);
    free(buffers[0]);
    free(buffers[1]);
    free(a.tokens);
    free(a.labels);
    free(a.weights);
    return r;
}

int main(int argc, char **argv)
{
    const int packs = argc == 2 ? atoi(argv[1]) : 0;
    ps_pack_reader *reader;
    ps_error err;
    ps_result r;

    if (packs < 1) {
        fputs("usage: next-tokens PACKS <FILE\n", stderr);
        return 64;
    }
    r = ps_pack_reader_open(&reader, STDIN_FILENO, &err);
    if (r == PS_OK)
        r = run(reader, (uint32_t)packs, &err);
    if (r == PS_END) {
        const ps_totals *totals = ps_pack_reader_totals(reader);

        puts(ps_totals_balance(totals) ? "every token is accounted for"
                                       : "tokens are missing");
    }
    ps_pack_reader_free(reader);
    if (r != PS_END)
        fprintf(stderr, "next-tokens: %s\n", err.text);
    return r == PS_END ? 0 : 65;
}
