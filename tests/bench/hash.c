/*
 * hash.c - how long XXH3 takes over a file, for throughput.py.
 *
 *     hash PIECE <FILE
 *
 * reads the file in pieces of so many bytes and prints bytes and seconds.
 * The time is that of hashing alone; a piece was copied to memory just
 * before, as the pack had been whose checksum packstream makes.
 *
 * SPDX-License-Identifier: MIT
 */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <xxhash.h>

/* Pieces between two looks at the clock, which takes as long as 1 KiB. */
#define BLOCK_BYTES ((size_t)1 << 18)
#define PIECE_MAX ((size_t)1 << 28)

static void die(const char *what, const char *why)
{
    fprintf(stderr, "hash: %s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

static double seconds(void)
{
    struct timespec now;

    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        die("clock", strerror(errno));
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static size_t parse(int argc, char **argv)
{
    char *end;
    unsigned long long piece;

    if (argc != 2)
        die("usage", "hash PIECE <FILE");
    errno = 0;
    piece = strtoull(argv[1], &end, 10);
    if (argv[1][0] < '0' || argv[1][0] > '9' || *end != '\0' || errno != 0 ||
        piece < 1 || piece > PIECE_MAX)
        die(argv[1], "not a number of bytes");
    return (size_t)piece;
}

/* One digest of all pieces, so that none of them is left out as unused. */
static uint64_t hash_pieces(const unsigned char *block, size_t got,
                            size_t piece)
{
    uint64_t digest = 0;

    for (size_t at = 0; at < got; at += piece)
        digest ^= XXH3_64bits(block + at, got - at < piece ? got - at : piece);
    return digest;
}

int main(int argc, char **argv)
{
    const size_t piece = parse(argc, argv);
    const size_t size = piece * (piece < BLOCK_BYTES ? BLOCK_BYTES / piece : 1);
    unsigned char *block = malloc(size);
    uint64_t digest = 0;
    uint64_t bytes = 0;
    double took = 0;
    size_t got;

    if (block == NULL)
        die("memory", strerror(errno));
    setvbuf(stdin, NULL, _IONBF, 0);
    while ((got = fread(block, 1, size, stdin)) > 0) {
        double start = seconds();

        digest ^= hash_pieces(block, got, piece);
        took += seconds() - start;
        bytes += got;
    }
    if (ferror(stdin))
        die("stdin", strerror(errno));
    printf("%llu %.6f %016llx\n", (unsigned long long)bytes, took,
           (unsigned long long)digest);
    free(block);
    return fclose(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
