/*
 * reseal.c - make a pack stream that was tampered with look whole again.
 *
 * `reseal FILE` writes new checksums into header, records and END, and a new
 * digest, so that a test can break one rule and no checksum gives it away.
 * It knows the format from packstream(5), not from the library, and exits 1
 * if the file does not end with END.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <xxhash.h>

enum {
    HEADER = 4096,
    AT_RECORD_BYTES = 20,
    AT_FLAGS = 12,
    AT_DIGEST = 64 + 3 * 8
};

static uint32_t load_u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static void store_u64(unsigned char *p, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        p[i] = (unsigned char)(value >> 8 * i);
}

static void seal_header(unsigned char *header, uint64_t *digest)
{
    unsigned char *checksum = header + HEADER - 8;

    *digest = XXH3_64bits(header, HEADER - 8);
    store_u64(checksum, *digest);
}

/* Seals a record and tells whether it is END. */
static int seal_record(unsigned char *record, size_t n, uint64_t *digest)
{
    int is_end = (load_u32(record + AT_FLAGS) & 1) != 0;

    if (is_end)
        store_u64(record + AT_DIGEST, *digest);
    store_u64(record, XXH3_64bits(record + 8, n - 8));
    if (!is_end)
        *digest = XXH3_64bits_withSeed(record, 8, *digest);
    return is_end;
}

/* Seals one stream after another. */
static int seal(FILE *file)
{
    static unsigned char header[HEADER];
    static unsigned char record[1 << 20];
    uint64_t digest;
    int ended = 0;

    while (fread(header, HEADER, 1, file) == 1) {
        size_t n = load_u32(header + AT_RECORD_BYTES);

        if (n > sizeof(record))
            return 0;
        seal_header(header, &digest);
        if (fseek(file, -HEADER, SEEK_CUR) != 0 ||
            fwrite(header, HEADER, 1, file) != 1)
            return 0;
        for (ended = 0; !ended;) {
            if (fseek(file, 0, SEEK_CUR) != 0 ||
                fread(record, n, 1, file) != 1)
                return 0;
            ended = seal_record(record, n, &digest);
            if (fseek(file, -(long)n, SEEK_CUR) != 0 ||
                fwrite(record, n, 1, file) != 1)
                return 0;
        }
        (void)fseek(file, 0, SEEK_CUR);
    }
    return ended;
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
