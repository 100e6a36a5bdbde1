/*
 * lib-alloc.c - an allocator that counts, and fails on request.
 *
 * A block's size is stored before it.  The header's magic detects a free of
 * other memory, and a write before the start of a block.
 *
 * SPDX-License-Identifier: MIT
 */

/* For ZSTD_createCCtx_advanced and its like. */
#define ZSTD_STATIC_LINKING_ONLY

#include "lib-alloc.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>
#include <zstd.h>

#define MAGIC UINT64_C(0x6d656d6f72792121)

typedef union header {
    struct {
        uint64_t magic;
        size_t size;
    } is;
    max_align_t alignment;
} header;

static struct {
    alloc_counts counts;
    uint64_t fail_at; /* of counts.calls; 0 for never */
    bool for_ever;
} memory;

/* The linker's names for wrapped functions and for their replacements. */
void *__real_malloc(size_t n);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
XXH3_state_t *__real_XXH3_createState(void);

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t count, size_t n);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);
XXH3_state_t *__wrap_XXH3_createState(void);
ZSTD_CCtx *__wrap_ZSTD_createCCtx(void);
ZSTD_DCtx *__wrap_ZSTD_createDCtx(void);

alloc_counts alloc_so_far(void)
{
    return memory.counts;
}

void alloc_watch(void)
{
    memory.counts.calls = 0;
    memory.counts.failed = 0;
    memory.counts.peak = memory.counts.bytes;
}

void alloc_fail(uint64_t nth, bool for_ever)
{
    memory.fail_at = nth == 0 ? 0 : memory.counts.calls + nth;
    memory.for_ever = for_ever;
}

/* Counts a call; true if it must fail. */
static bool is_to_fail(void)
{
    uint64_t call = ++memory.counts.calls;
    bool fails = memory.fail_at != 0 &&
                 (call == memory.fail_at ||
                  (memory.for_ever && call > memory.fail_at));

    memory.counts.failed += fails;
    return fails;
}

static void *register_block(header *h, size_t n)
{
    alloc_counts *c = &memory.counts;

    if (h == NULL)
        return NULL;
    h->is.magic = MAGIC;
    h->is.size = n;
    c->blocks++;
    c->bytes += n;
    if (c->bytes > c->peak)
        c->peak = c->bytes;
    return h + 1;
}

static header *unregister_block(void *p)
{
    header *h = (header *)p - 1;

    if (h->is.magic != MAGIC)
        abort();
    h->is.magic = 0;
    memory.counts.blocks--;
    memory.counts.bytes -= h->is.size;
    return h;
}

void *__wrap_malloc(size_t n)
{
    if (is_to_fail() || n > SIZE_MAX - sizeof(header))
        return NULL;
    return register_block(__real_malloc(sizeof(header) + n), n);
}

void *__wrap_calloc(size_t count, size_t n)
{
    void *p;

    if (n != 0 && count > SIZE_MAX / n)
        return NULL;
    p = __wrap_malloc(count * n);
    return p == NULL ? NULL : memset(p, 0, count * n);
}

/* A block that cannot grow is unchanged. */
void *__wrap_realloc(void *p, size_t n)
{
    header *h;
    size_t old;

    if (p == NULL)
        return __wrap_malloc(n);
    if (is_to_fail() || n > SIZE_MAX - sizeof(header))
        return NULL;
    h = unregister_block(p);
    old = h->is.size;
    h = __real_realloc(h, sizeof(header) + n);
    if (h == NULL) {
        (void)register_block((header *)p - 1, old);
        return NULL;
    }
    return register_block(h, n);
}

void __wrap_free(void *p)
{
    if (p != NULL)
        __real_free(unregister_block(p));
}

/* xxHash's own call to malloc stays inside its library. */
XXH3_state_t *__wrap_XXH3_createState(void)
{
    return is_to_fail() ? NULL : __real_XXH3_createState();
}

static void *zstd_malloc(void *context, size_t n)
{
    (void)context;
    return __wrap_malloc(n);
}

static void zstd_free(void *context, void *p)
{
    (void)context;
    __wrap_free(p);
}

ZSTD_CCtx *__wrap_ZSTD_createCCtx(void)
{
    ZSTD_customMem ours = {zstd_malloc, zstd_free, NULL};

    return ZSTD_createCCtx_advanced(ours);
}

ZSTD_DCtx *__wrap_ZSTD_createDCtx(void)
{
    ZSTD_customMem ours = {zstd_malloc, zstd_free, NULL};

    return ZSTD_createDCtx_advanced(ours);
}
