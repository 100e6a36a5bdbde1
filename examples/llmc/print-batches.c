/*
 * print-batches.c - prints the batches that pks_loader.h gives to llm.c.
 *
 *     print-batches FILE B T RANK RANKS SHUFFLE BATCHES [EPOCH SAMPLE]
 *
 * Each batch is five lines: inputs, targets, positions, cu_seqlens without the
 * empty sequences at its end, and the number of sequences.  With EPOCH and
 * SAMPLE, the loader resumes there.
 *
 * To compile it: cc print-batches.c $(pkg-config --cflags --libs libpackstream)
 *
 * SPDX-License-Identifier: MIT
 */

#include "pks_loader.h"

static void print(const char *name, const int *values, size_t n)
{
    printf("%s", name);
    for (size_t i = 0; i < n; i++)
        printf(" %d", values[i]);
    putchar('\n');
}

int main(int argc, char **argv)
{
    PksLoader loader;
    size_t n;

    if (argc != 8 && argc != 10) {
        fputs("usage: print-batches FILE B T RANK RANKS SHUFFLE BATCHES "
              "[EPOCH SAMPLE]\n", stderr);
        return 64;
    }
    n = (size_t)atoi(argv[2]) * (size_t)atoi(argv[3]);
    pksloader_init(&loader, argv[1], (size_t)atoi(argv[2]),
                   (size_t)atoi(argv[3]), atoi(argv[4]), atoi(argv[5]),
                   atoi(argv[6]));
    if (argc == 10)
        pksloader_resume(&loader, (size_t)atoi(argv[8]),
                         (size_t)atoi(argv[9]));
    for (int i = 0; i < atoi(argv[7]); i++) {
        size_t seqs = 0;

        pksloader_next_batch(&loader);
        while (loader.cu_seqlens[seqs] < (int)n)
            seqs++;
        print("inputs", loader.inputs, n);
        print("targets", loader.targets, n);
        print("positions", loader.positions, n);
        print("cu_seqlens", loader.cu_seqlens, seqs + 1);
        printf("sequences %d\n", loader.num_seqs);
    }
    pksloader_free(&loader);
    return fclose(stdout) == 0 ? 0 : 1;
}
