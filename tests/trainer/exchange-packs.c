/*
 * exchange-packs.c - prints the sequences that ranks train on.
 *
 *     exchange-packs PACKS NAME...
 *
 * Makes batches of PACKS packs, and prints for each of a rank's sequences a
 * digest of everything in it that affects training.
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#include "data/data_loader.h"
#include "data/input_files.h"
#include "ranks/workers.h"

/* Tokens, types, the next-sentence label, and masked tokens from `mlm` on. */
static uint64_t digest_of(const tr_batch *b, uint32_t seq, uint32_t span,
                          uint32_t *mlm)
{
    const int32_t row = b->cu[span];
    const size_t bytes = (size_t)(b->cu[span + 1] - row) * sizeof *b->token;
    uint64_t digest = XXH3_64bits(b->token + row, bytes);

    digest = XXH3_64bits_withSeed(b->type + row, bytes, digest);
    digest = XXH3_64bits_withSeed(b->nsp_label + seq, sizeof *b->nsp_label,
                                  digest);
    for (; *mlm < b->n_mlm && b->mlm_row[*mlm] < b->cu[span + 1]; ++*mlm) {
        const int32_t masked[] = {b->mlm_row[*mlm] - row,
                                  b->mlm_label[*mlm]};

        digest = XXH3_64bits_withSeed(masked, sizeof masked, digest);
    }
    return digest;
}

static void print(const tr_batch *b)
{
    uint32_t seq = 0, mlm = 0;

    for (uint32_t i = 0; i < b->n_spans; i++)
        if (b->cu[i + 1] > b->cu[i] && b->segment[b->cu[i]] != 0) {
            (void)printf("%016" PRIx64 "\n", digest_of(b, seq, i, &mlm));
            seq++;
        }
}

static void list(tr_loader_options *options, const tr_workers *w)
{
    tr_loader *f;
    ps_error err = {.text = ""};
    ps_result r = tr_loader_open(&f, options, &err);

    if (r == PS_OK)
        r = tr_loader_join(f, w, &err);
    while (r == PS_OK && (r = tr_loader_next(f, &err)) == PS_OK)
        print(tr_loader_batch(f));
    if (r != PS_END) {
        (void)fprintf(stderr, "exchange-packs: %s: %s\n", tr_loader_name(f),
                      err.text);
        exit(1);
    }
    tr_loader_free(f);
}

int main(int argc, char **argv)
{
    tr_loader_options options = {.names = (const char *const *)argv + 2,
                                 .n_names = (uint32_t)(argc - 2),
                                 .epochs = 1,
                                 .packs = (uint32_t)strtoul(argv[1], NULL, 10),
                                 .types = 2,
                                 .mask_share = -1,
                                 .hidden = 16};
    tr_workers w;

    if (tr_workers_open(&w) != NULL ||
        tr_input_find_kind(options.names, options.n_names, &options.input) !=
            NULL)
        return 1;
    options.rank = w.rank;
    options.ranks = w.ranks;
    list(&options, &w);
    tr_workers_close(&w);
    return fflush(stdout) == 0 ? 0 : 1;
}
