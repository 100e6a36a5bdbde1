/*
 * reseal.c - make a pack stream that was tampered with look whole again.
 *
 * `reseal FILE` writes new checksums into header, records and END, and a new
 * digest, so that a test can break one rule and no checksum gives it away.
 * It exits 1 if the file does not end with END.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdio.h>
#include <stdlib.h>

#include "grown.h"
#include "seal.h"

static bytes read_all(FILE *file)
{
    unsigned char part[4096];
    bytes b = {0};
    size_t n;

    while ((n = fread(part, 1, sizeof part, file)) > 0)
        put_bytes(&b, part, n);
    return b;
}

/* Seals what is in the file, in its place. */
static int seal(FILE *file)
{
    bytes b = read_all(file);
    int sealed = b.size > 0 && seal_streams(b.data, b.size) == b.size &&
                 fseek(file, 0, SEEK_SET) == 0 &&
                 fwrite(b.data, b.size, 1, file) == 1;

    free_bytes(&b);
    return sealed;
}

int main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "r+b") : NULL;
    int sealed;

    if (file == NULL) {
        fprintf(stderr, "usage: reseal FILE\n");
        return EXIT_FAILURE;
    }
    sealed = seal(file);
    if (fclose(file) != 0 || !sealed) {
        fprintf(stderr, "reseal: %s: not a pack stream\n", argv[1]);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
