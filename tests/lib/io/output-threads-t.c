/*
 * output-threads-t.c - every interleaving of the threads of an output: each
 * block is written once, whole and in order, a failure reaches the caller, and
 * no wakeup is lost.
 *
 * io/output.c is compiled here with the scheduler of interleave.h in place of
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

/* ---- What the output calls, as this test has it ---- */

#define BLOCK 4 /* bytes: one number */
#define MAX_BLOCKS 16

/* The scenario of a run, and what it came to. */
static struct {
    uint32_t threads;
    uint32_t blocks;
    bool compressed;
    bool pushes;  /* part of the blocks, before they are full */
    bool flushes; /* in the middle */
    uint32_t fails; /* the block that cannot be written; MAX_BLOCKS: none */
} plan;

typedef struct run {
    bool writes; /* a thread does */
    bool failed;
    uint32_t n;
    uint32_t written[MAX_BLOCKS];
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

/* Blocks hold their numbers, from 1 on; some bytes of a plain one may come
   before the others. */
static ps_result take(void *context, const void *bytes, size_t n,
                      ps_error *err)
{
    const unsigned char *p = bytes;

    interleave_check(!now->writes, "two threads write");
    now->writes = true;
    interleave_step("writes");
    now->writes = false;
    interleave_check(!now->failed, "something is written after a failure");
    if (now->n / BLOCK == plan.fails) {
        now->failed = true;
        return ps_fail(err, PS_ERR_IO, "the disk is full");
    }
    for (size_t i = 0; i < n; i++, now->n++) {
        interleave_check(p[i] == now->n / BLOCK + 1 + 100,
                         "what is written is not what comes next");
        now->written[now->n / BLOCK]++;
    }
    return PS_OK;
}

static void finalize_bytes(void *context, unsigned char *bytes, size_t n)
{
    interleave_step("finalizes");
    for (size_t i = 0; i < n; i++) {
        interleave_check(bytes[i] > 0 && bytes[i] < 100,
                         "what is finalized is no new block");
        now->finalized[bytes[i] - 1]++;
        bytes[i] = (unsigned char)(bytes[i] + 100);
    }
}

static void follow_bytes(void *context, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        interleave_check(bytes[i] > 100, "what follows is not finalized");
}

static ps_result put_blocks(ps_output *out, ps_error *err)
{
    ps_result r = PS_OK;

    for (uint32_t i = 0; r == PS_OK && i < plan.blocks; i++) {
        for (uint32_t k = 0; r == PS_OK && k < BLOCK; k += BLOCK / 2) {
            unsigned char *to;

            r = ps_output_reserve(out, BLOCK / 2, &to, err);
            if (r == PS_OK)
                memset(to, (int)i + 1, BLOCK / 2);
            if (r == PS_OK && plan.pushes && k == 0)
                r = ps_output_push(out, err);
        }
        if (r == PS_OK && plan.flushes && i == plan.blocks / 2)
            r = ps_output_flush(out, err);
    }
    return r;
}

static void run_output(void)
{
    static const ps_output_finalizer finalizer = {
        .finalize = finalize_bytes, .follow = follow_bytes};
    const ps_output_options options = {.largest = BLOCK,
                                       .threads = plan.threads,
                                       .compressed = plan.compressed,
                                       .frame = BLOCK,
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
    for (uint32_t i = 0; r == PS_OK && i < plan.blocks; i++)
        interleave_check(now->written[i] == BLOCK &&
                             now->finalized[i] == BLOCK,
                         "a block was not written once");
    ps_output_free(out);
}

/* The bits of a scenario's number. */
enum { PUSHES = 1, FLUSHES = 2, COMPRESSED = 4, FAILS = 8, TWO = 16, ALL = 32 };

static bool set_plan(size_t bits, bool spurious)
{
    memset(&plan, 0, sizeof plan);
    plan.compressed = (bits & COMPRESSED) != 0;
    plan.threads = (bits & TWO) != 0 ? 2 : 1;
    /* The ring has a block less, so it gets full and is begun again. */
    plan.blocks = plan.threads + SPARE_BLOCKS + 1;
    plan.pushes = (bits & PUSHES) != 0;
    plan.flushes = (bits & FLUSHES) != 0;
    plan.fails = (bits & FAILS) != 0 ? 3 : MAX_BLOCKS;

    /* Two threads only compress, and nothing comes of a push then; a flush
       keeps the number of their states down. */
    if (plan.threads == 1)
        return true;
    return plan.compressed && !plan.pushes && (plan.flushes || !spurious);
}

int main(void)
{
    interleave_suite suite = {ALL, set_plan, run_output};

    return interleave_main("output-threads", &suite);
}
