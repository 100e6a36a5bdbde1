/*
 * loader-threads-t.c - every interleaving of a loader's thread and its user:
 * batches arrive once and in order, none is overwritten while the user may read
 * it, a user can stop at any time, and no wakeup is lost.
 *
 * The loader is compiled here with the scheduler of interleave.h instead of its
 * thread, and with numbers instead of batches.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tap.h"

#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "batch/loader.h"
#include "io/fd.h"

#include "interleave.h"

/* ---- The scenario of a run ---- */

#define NEVER UINT32_MAX

static struct {
    uint32_t buffers;
    uint32_t keep;
    uint32_t batches; /* after which the input ends */
    uint32_t come;    /* after which it blocks for ever */
    uint32_t stops;   /* batches after which the user stops */
} plan;

typedef struct job_state {
    ps_wait_hook *on_wait;
    void *context;
    uint32_t read;
    int quit;   /* bytes in the pipe */
} job_state;

static job_state *job;

/* ---- Replacements for the functions that the loader calls ---- */

static ps_result fake_settle(const ps_pack_info *info,
                             const ps_loader_options *options,
                             ps_loader_options *settled,
                             ps_loader_layout *layout, ps_error *err)
{
    *settled = *options;
    *layout = (ps_loader_layout){.bytes = 16};
    return PS_OK;
}

static void fake_on_wait(ps_pack_reader *reader, ps_wait_hook *on_wait,
                         void *context)
{
    job->on_wait = on_wait;
    job->context = context;
}

static ps_result fake_pipe(int ends[2], ps_error *err)
{
    ends[0] = ends[1] = 10;
    return PS_OK;
}

static void fake_wake(const char *place)
{
    if (interleave_wakes(place))
        job->quit++;
}

static bool has_input(const void *context)
{
    const job_state *j = context;

    return j->quit > 0 || j->read < plan.come;
}

static bool fake_wait_input(int fd, int quit)
{
    interleave_until(has_input, job, "waits for input");
    return job->quit == 0;
}

/* Batches are numbers from 1. */
static void fake_fill(ps_loader *l, ps_slot *slot)
{
    ps_result r = PS_OK;

    slot->memory[0] = 0;
    if (job->read >= plan.come || interleave_choose(2) == 1)
        r = job->on_wait(job->context, &slot->err);
    else
        interleave_step("fills");
    if (r == PS_OK && job->read == plan.batches)
        r = PS_END;
    if (r == PS_OK)
        slot->memory[0] = (unsigned char)++job->read;
    slot->batch.rows = slot->memory;
    slot->result = r;
}

#define ps_loader_settle fake_settle
#define ps_pack_reader_save(reader, mark) ((void)(reader), (void)(mark))
#define ps_pack_reader_on_wait fake_on_wait
#define ps_wakeup_pipe_open fake_pipe
#define ps_wake(ends) fake_wake(INTERLEAVE_PLACE)
#define ps_wait_input fake_wait_input
#define ps_input_descriptor(input) 3
#define ps_loader_places(info, view) 1
#define ps_loader_fill fake_fill
#define close(fd) ((void)(fd))

#include "batch/loader.c"
#include "batch/loader_threads.c"

#undef close

/* ---- The user ---- */

/* Batches that are kept must not change. */
static void check_kept(const ps_batch *kept, uint32_t n)
{
    for (uint32_t i = 0; i < plan.keep && i < n; i++)
        interleave_check(*kept[(n - i) % plan.keep].rows == n - i,
                         "a batch was overwritten");
}

static void use(ps_loader *l)
{
    ps_batch kept[4];

    for (uint32_t i = 1; i <= plan.stops; i++) {
        const ps_result r =
            ps_loader_next(l, &kept[i % plan.keep], NULL);

        interleave_check(r == (i <= plan.batches ? PS_OK : PS_END),
                         "the end is not where it is");
        if (r != PS_OK)
            break;
        check_kept(kept, i);
        interleave_step("looks at a batch");
        check_kept(kept, i);
    }
}

static void run_loader(void)
{
    const ps_loader_options options = {.packs = 1,
                                       .ranks = 1,
                                       .keep = plan.keep,
                                       .buffers = plan.buffers};
    static ps_input input;
    static ps_pack_reader reader = {
        .input = &input, .ranks = 1, .info = {.row_bytes = 64}};
    ps_loader *l;
    ps_error err;

    job = interleave_alloc(sizeof *job);
    interleave_check(ps_loader_open(&l, &reader, &options, &err) ==
                         PS_OK && l->has_thread,
                     "the loader cannot begin");
    use(l);
    ps_loader_free(l);
}

/* The buffers are used in rotation. */
static const struct {
    uint32_t buffers;
    uint32_t keep;
    uint32_t batches;
    uint32_t come;
    uint32_t stops;
} scenarios[] = {
    {2, 1, 7, NEVER, NEVER}, {5, 1, 7, NEVER, NEVER}, {4, 2, 7, NEVER, NEVER},
    {5, 1, 7, 3, 3},         {5, 1, 7, 3, 1},         {5, 1, 7, 0, 0},
    {3, 2, 7, NEVER, 1},
};

static bool set_plan(size_t i, bool spurious)
{
    plan.buffers = scenarios[i].buffers;
    plan.keep = scenarios[i].keep;
    plan.batches = scenarios[i].batches;
    plan.come = scenarios[i].come;
    plan.stops = scenarios[i].stops;
    return true;
}

int main(void)
{
    interleave_suite suite = {COUNT(scenarios), set_plan, run_loader};

    return interleave_main("loader-threads", &suite);
}
