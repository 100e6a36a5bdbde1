/*
 * bert_state.c - prints the model's results for a toy batch.
 *
 * usage: bert_state varlen|dense
 *
 * Prints lines of text, whose first word is the kind of line:
 *   config VOCAB HIDDEN LAYERS HEADS INTERMEDIATE POSITIONS TYPES
 *   sequence FIRST-ROW LENGTH NSP-LABEL NSP-WEIGHT MLM-LOSS NSP-LOSS
 *   tokens ID...              of that sequence
 *   types TYPE...             of that sequence
 *   masked PLACE ID WEIGHT    of that sequence, any number
 *   total LOSS
 *   numbers BYTES-OF-A-NUMBER
 *   hidden ROWS COLUMNS
 *   tensor NAME ROWS COLUMNS  any number, in the order of the arenas
 *   end
 * and then, in the byte order and the floating-point format of the machine:
 * the encoder's output, all weights and all gradients.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "toy.h"

static void print_row(const char *word, const int32_t *x, uint32_t n)
{
    fputs(word, stdout);
    for (uint32_t i = 0; i < n; i++)
        printf(" %d", (int)x[i]);
    putchar('\n');
}

static void print_masked(const tr_batch *b, uint32_t seq)
{
    for (uint32_t i = 0; i < b->n_mlm; i++) {
        if (b->mlm_seq[i] == (int32_t)seq)
            printf("masked %d %d %.17g\n",
                   (int)(b->mlm_row[i] - b->cls_row[seq]),
                   (int)b->mlm_label[i], (double)b->mlm_weight[i]);
    }
}

static void print_sequences(const toy_batch *toy, const toy_result *result)
{
    const tr_batch *const b = &toy->batch;

    for (uint32_t i = 0; i < b->n_seq; i++) {
        const uint32_t n = toy->sequences[i].length;

        printf("sequence %d %u %d %.17g %.17g %.17g\n", (int)b->cls_row[i],
               (unsigned)n, (int)b->nsp_label[i], (double)b->nsp_weight[i],
               result->seq_mlm[i], result->seq_nsp[i]);
        print_row("tokens", b->token + b->cls_row[i], n);
        print_row("types", b->type + b->cls_row[i], n);
        print_masked(b, i);
    }
}

static void print_tensors(const tr_model *model, const tr_batch *b)
{
    printf("numbers %zu\n", sizeof(real));
    printf("hidden %u %u\n", (unsigned)b->n_rows,
           (unsigned)tr_model_config(model)->hidden);
    for (size_t i = 0; i < tr_model_tensors(model); i++) {
        const tr_tensor *const t = tr_model_tensor(model, i);

        printf("tensor %s %u %u\n", t->name, (unsigned)t->rows,
               (unsigned)t->columns);
    }
}

static void print_numbers(tr_model *model, const toy_batch *toy)
{
    const size_t n = tr_model_numbers(model);
    real *const hidden = toy_hidden(model, toy);

    fputs("end\n", stdout);
    fwrite(hidden, sizeof(real),
           (size_t)toy->batch.n_rows * tr_model_config(model)->hidden,
           stdout);
    free(hidden);
    fwrite(tr_model_weights(model), sizeof(real), n, stdout);
    fwrite(tr_model_gradients(model), sizeof(real), n, stdout);
}

static void print_all(const tr_step *step)
{
    const toy_plan plan = toy_packed_plan();
    const tr_config c = toy_config(plan.vocab_size, plan.capacity);
    tr_model *const model = toy_model(&c, 31);
    toy_batch toy = toy_open(&plan);
    const toy_result result = toy_run(model, &toy, step);

    printf("config %u %u %u %u %u %u %u\n", (unsigned)c.vocab_size,
           (unsigned)c.hidden, (unsigned)c.layers, (unsigned)c.heads,
           (unsigned)c.intermediate, (unsigned)c.positions,
           (unsigned)c.types);
    print_sequences(&toy, &result);
    printf("total %.17g\n", result.losses.total);
    print_tensors(model, &toy.batch);
    print_numbers(model, &toy);
    toy_free(&toy);
    tr_model_free(model);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 64;
    print_all(&(tr_step){.attention = strcmp(argv[1], "dense") == 0
                                            ? TR_DENSE
                                            : TR_VARLEN});
    return fflush(stdout) || ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
