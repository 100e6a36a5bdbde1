/*
 * deal.c - assigns items to ranks, for deal.py.
 *
 *     deal R B <costs >ranks
 *
 * Reads the costs of global batches of R x B items, u64 in the machine's order,
 * and writes the rank of each as a u32.  Prints to stderr the seconds of each
 * assignment, and its bound.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "packstream.h"

static double seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int deal_all(ps_deal *deal, uint32_t n, uint64_t *costs,
                    uint32_t *ranks)
{
    ps_error err;

    while (fread(costs, sizeof *costs, n, stdin) == n) {
        double before = seconds();

        if (ps_deal_make(deal, costs, ranks, &err) != PS_OK) {
            fprintf(stderr, "deal: %s\n", err.text);
            return EXIT_FAILURE;
        }
        fprintf(stderr, "%.9f %" PRIu64 "\n", seconds() - before,
                ps_deal_bound(deal));
        if (fwrite(ranks, sizeof *ranks, n, stdout) != n)
            return EXIT_FAILURE;
    }
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    uint32_t r = argc == 3 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    uint32_t b = argc == 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    ps_deal *deal;
    ps_error err;
    uint64_t *costs;
    uint32_t *ranks;
    int status = EXIT_FAILURE;

    if (ps_deal_open(&deal, r, b, &err) != PS_OK) {
        fprintf(stderr, "usage: deal R B <costs >ranks: %s\n", err.text);
        return EXIT_FAILURE;
    }
    costs = calloc((size_t)r * b, sizeof *costs);
    ranks = calloc((size_t)r * b, sizeof *ranks);
    if (costs != NULL && ranks != NULL)
        status = deal_all(deal, r * b, costs, ranks);
    free(costs);
    free(ranks);
    ps_deal_free(deal);
    return status;
}
