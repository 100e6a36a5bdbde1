/*
 * output-threads-t.c - every interleaving of the threads of an output: each
 * block is written once, complete and in order, failures reach the caller, and
 * no wakeup is lost.
 *
 * io/output.c is compiled here with the scheduler of interleave.h instead of
 * its threads, with small blocks, and with a compressor that copies.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tap.h"

#include <stdio.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "io/fd.h"
#include "io/seek_table.h"
#include "io/zstd_frame.h"

#include "interleave.h"

/* ---- Replacements for the functions that the output calls ---- */

#define BLOCK 4 /* bytes: one number */
#define MAX_BLOCKS 16

/* The scenario of a run, and its result. */
static struct {
    uint32_t threads;
    uint32_t blocks;
    bool compressed;
    bool pushes;  /* after every block */
    bool flushes; /* in the middle */
    uint32_t drops; /* the block that is not written; MAX_BLOCKS: none */
    uint32_t fails; /* the block whose write fails, likewise */
} plan;

typedef struct run {
    bool writes; /* a thread does */
    bool failed;
    uint32_t written;   /* next block to write */
    uint32_t followed;  /* next block to finalize */
    uint32_t finalized[MAX_BLOCKS];
} run;

static run *now;

static ps_result fake_table_open(ps_seek_table **table, ps_error *err)
{
    *table = interleave_alloc(sizeof **table);
    return PS_OK;
}

static ps_result fake_table_add(ps_seek_table *table, uint64_t bytes,
                                uint64_t plain, ps_error *err)
{
    table->frames++;
    return PS_OK;
}

static void fake_table_encode(ps_seek_table *table,
                              const unsigned char **bytes, size_t *n)
{
    *bytes = NULL;
    *n = 0;
}

static ps_result fake_compressor_open(ps_compressor **c, int level,
                                      ps_error *err)
{
    *c = interleave_alloc(16);
    return PS_OK;
}

static ps_result fake_compress(ps_compressor *c, const void *data, size_t n,
                               const unsigned char **frame, size_t *bytes,
                               ps_error *err)
{
    interleave_step("compresses");
    memcpy(c, data, n);
    *frame = (const unsigned char *)c;
    *bytes = n;
    return PS_OK;
}

#undef PS_IO_BYTES
#define PS_IO_BYTES ((size_t)BLOCK)
#define ps_widen_pipe(fd) ((void)(fd))
#define ps_seek_table_open fake_table_open
#define ps_seek_table_add fake_table_add
#define ps_seek_table_encode fake_table_encode
#define ps_seek_table_free(t) ((void)(t))
#define ps_compressor_open fake_compressor_open
#define ps_compressor_free(c) ((void)(c))
#define ps_compress_frame fake_compress

#include "io/output.c"

/* ---- The scenario ---- */

/* Blocks hold their numbers, from 1; the first is put, not committed. */
static ps_result take(void *context, const void *bytes, size_t n,
                      ps_error *err)
{
    const unsigned char *p = bytes;

    interleave_check(!now->writes, "two threads write");
    now->writes = true;
    interleave_step("writes");
    now->writes = false;
    interleave_check(!now->failed, "something is written after a failure");
    if (now->written == plan.fails) {
        now->failed = true;
        return ps_fail(err, PS_ERR_IO, "the disk is full");
    }
    if (now->written == plan.drops)
        now->written++;
    interleave_check(n == BLOCK, "a part of a block is written");
    for (size_t i = 0; i < n; i++)
        interleave_check(p[i] == (now->written == 0 ? 1
                                                    : now->written + 1 + 100),
                         "what is written is not what comes next");
    now->written++;
    return PS_OK;
}

static void finalize_block(void *context, unsigned char *bytes)
{
    interleave_step("finalizes");
    for (size_t i = 0; i < BLOCK; i++) {
        interleave_check(bytes[i] > 1 && bytes[i] < 100,
                         "what is finalized is no new block");
        now->finalized[bytes[i] - 1]++;
        bytes[i] = (unsigned char)(bytes[i] + 100);
    }
}

static void follow_block(void *context, const unsigned char *bytes)
{
    now->followed++;
    for (size_t i = 0; i < BLOCK; i++)
        interleave_check(bytes[i] == now->followed + 1 + 100,
                         "what follows is not finalized, or not in order");
}

static ps_result put_block(ps_output *out, uint32_t i, ps_error *err)
{
    const unsigned char first[BLOCK] = {1, 1, 1, 1};
    ps_result r;

    if (i > 0) {
        memset(ps_output_block(out), (int)i + 1, BLOCK);
        return ps_output_commit(out, BLOCK, i != plan.drops, err);
    }
    r = ps_output_put(out, first, BLOCK, err);
    return r == PS_OK ? ps_output_cut(out, err) : r;
}

static ps_result put_blocks(ps_output *out, ps_error *err)
{
    ps_result r = PS_OK;

    for (uint32_t i = 0; r == PS_OK && i < plan.blocks; i++) {
        r = put_block(out, i, err);
        if (r == PS_OK && plan.pushes)
            r = ps_output_push(out, err);
        if (r == PS_OK && plan.flushes && i == plan.blocks / 2)
            r = ps_output_flush(out, err);
    }
    return r;
}

static void run_output(void)
{
    static const ps_output_finalizer finalizer = {
        .finalize = finalize_block, .follow = follow_block};
    const ps_output_options options = {.largest = BLOCK,
                                       .threads = plan.threads,
                                       .compressed = plan.compressed,
                                       .finalizer = &finalizer,
                                       .write = take};
    ps_output *out;
    ps_error err;
    ps_result r;

    now = interleave_alloc(sizeof *now);
    r = ps_output_open(&out, -1, &options, &err);
    interleave_check(r == PS_OK, "the output cannot be opened");
    r = put_blocks(out, &err);
    if (r == PS_OK)
        r = ps_output_finish(out, &err);
    interleave_check(now->failed == (r != PS_OK), "a failure is not told");
    interleave_check(r != PS_OK || (now->written == plan.blocks &&
                                    now->followed == plan.blocks - 1),
                     "a block was not written once");
    for (uint32_t i = 1; r == PS_OK && i < plan.blocks; i++)
        interleave_check(now->finalized[i] == BLOCK,
                         "a block was not finalized once");
    ps_output_free(out);
}

/* Bits of a scenario number. */
enum { PUSHES = 1, FLUSHES = 2, COMPRESSED = 4, FAILS = 8, TWO = 16, ALL = 32 };

static bool set_plan(size_t bits, bool spurious)
{
    memset(&plan, 0, sizeof plan);
    plan.compressed = (bits & COMPRESSED) != 0;
    plan.threads = (bits & TWO) != 0 ? 2 : 1;
    /* The ring is one block smaller, so that it fills and wraps. */
    plan.blocks = plan.threads + SPARE_BYTES / BLOCK + 1;
    plan.pushes = (bits & PUSHES) != 0;
    plan.flushes = (bits & FLUSHES) != 0;
    plan.drops = (bits & FAILS) != 0 ? MAX_BLOCKS : 2;
    plan.fails = (bits & FAILS) != 0 ? 3 : MAX_BLOCKS;

    /* With two threads, which only compress, a push has no effect; a flush
       limits the number of states. */
    if (plan.threads == 1)
        return true;
    return plan.compressed && !plan.pushes && (plan.flushes || !spurious);
}

int main(void)
{
    interleave_suite suite = {ALL, set_plan, run_output};

    return interleave_main("output-threads", &suite);
}
