/*
 * replay.c - runs a fuzzing target without a fuzzer.
 *
 *     TARGET [--changes=N] [FILE]...
 *
 * passes each file, or standard input, to the target, and N changed forms of
 * it, the same in every run.  A finding ends it with a signal.  Other fuzzers,
 * such as AFL++, can use it unchanged.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

/* Optional in a target. */
#pragma weak LLVMFuzzerCustomMutator

#define MAX ((size_t)1 << 20)

/* The seed of pseudo-random numbers; libFuzzer's call has no context. */
static uint64_t state = 1;

static uint32_t below(size_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 16) % n);
}

/* A byte that is likely to cause trouble. */
static uint8_t odd_byte(void)
{
    static const uint8_t odd[] = {0, 1, 2, 0x7f, 0x80, 0xfe, 0xff};
    uint32_t i = below(2 * sizeof odd);

    return i < sizeof odd ? odd[i] : (uint8_t)below(256);
}

/* Changes, removes and adds some bytes. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max)
{
    size_t at = below(size + 1);
    size_t n = (size_t)1 << below(4);

    if (n > size - at)
        n = size - at;
    switch (below(6)) {
    case 0: /* remove */
        memmove(data + at, data + at + n, size - at - n);
        return size - n;
    case 1: /* add */
        if (n > max - size)
            n = max - size;
        memmove(data + at + n, data + at, size - at);
        size += n;
        break;
    default:
        break;
    }
    for (size_t i = 0; i < n; i++)
        data[at + i] = odd_byte();
    return size;
}

static size_t change(uint8_t *data, size_t size)
{
    return LLVMFuzzerCustomMutator != NULL
               ? LLVMFuzzerCustomMutator(data, size, MAX, below(UINT32_MAX))
               : LLVMFuzzerMutate(data, size, MAX);
}

/* A copy of the exact size, so that reads past the end are detected. */
static void try_bytes(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);

    must(copy != NULL);
    memcpy(copy, data, size);
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static bool try_file(FILE *file, unsigned long changes)
{
    static uint8_t data[MAX];
    static uint8_t changed[MAX];
    size_t size = fread(data, 1, MAX, file);

    if (ferror(file) != 0 || size == MAX)
        return false;
    try_bytes(data, size);
    for (unsigned long i = 0; i < changes; i++) {
        size_t n = size;

        memcpy(changed, data, size);
        for (uint32_t k = below(3) + 1; k > 0; k--)
            n = change(changed, n);
        try_bytes(changed, n);
    }
    return true;
}

static bool try_name(const char *name, unsigned long changes)
{
    FILE *file = fopen(name, "rb");
    bool done = file != NULL && try_file(file, changes);

    if (file != NULL)
        (void)fclose(file);
    if (!done)
        fprintf(stderr, "replay: %s: cannot be read\n", name);
    return done;
}

int main(int argc, char **argv)
{
    static const char option[] = "--changes=";
    unsigned long changes = 0;
    bool good = true;
    int i = 1;

    if (i < argc && strncmp(argv[i], option, sizeof option - 1) == 0)
        changes = strtoul(argv[i++] + sizeof option - 1, NULL, 10);
    if (i == argc)
        good = try_file(stdin, changes);
    for (; i < argc; i++)
        good = try_name(argv[i], changes) && good;
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
