/*
 * loader-threads-t.c - every interleaving of the threads of a loader and its
 * user: batches come once and in order, none is overwritten while the user may
 * look at it, a user who stops is not kept, and no wakeup is lost.
 *
 * The loader is compiled here with the scheduler of interleave.h in place of
 * its threads, and filled with numbers.
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
    bool direct;
    uint32_t group;
    uint32_t buffers;
    uint32_t keep;
    uint32_t batches; /* after which the input ends, */
    uint32_t come;    /* and after which nothing comes for ever */
    uint32_t stops;   /* the user, after so many batches */
} plan;

typedef struct job_state {
    ps_wait_hook *on_wait;
    void *context;
    uint32_t read;
    bool fills; /* a thread does */
    int quit;   /* bytes in the pipe */
} job_state;

static job_state *job;

/* ---- What the loader calls, as this test has it ---- */

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

/* What is there is overwritten; what comes is not ready yet. */
static void fake_read_direct(const ps_loader *l, ps_slot *slot)
{
    slot->memory[0] = 0;
    interleave_step("reads");
}

/* Batches are numbers from 1 on. */
static void fake_fill(ps_loader *l, ps_slot *slot)
{
    ps_result r = PS_OK;

    interleave_check(!job->fills, "two threads have their turn");
    job->fills = true;
    slot->memory[0] = 0;
    /* A file that can be read at several places never makes it wait. */
    if (!plan.direct &&
        (job->read >= plan.come || interleave_choose(2) == 1))
        r = job->on_wait(job->context, &slot->err);
    else
        interleave_step("fills");
    job->fills = false;
    if (r == PS_OK && job->read == plan.batches)
        r = PS_END;
    if (r == PS_OK)
        slot->memory[0] = (unsigned char)++job->read;
    slot->batch.records = slot->memory;
    slot->result = r;
}

#define ps_loader_settle fake_settle
#define ps_pack_reader_save(reader, mark) ((void)(reader), (void)(mark))
#define ps_pack_reader_on_wait fake_on_wait
#define ps_wakeup_pipe_open fake_pipe
#define ps_wake(ends) fake_wake(INTERLEAVE_PLACE)
#define ps_wait_input fake_wait_input
#define ps_input_descriptor(input) 3
#define ps_input_can_skip(input) (plan.direct)
#define ps_loader_group(bytes) (plan.group)
#define ps_loader_read_direct fake_read_direct
#define ps_loader_take_direct fake_fill
#define ps_loader_fill fake_fill
#define lseek(fd, to, whence) 0
#define close(fd) ((void)(fd))

#include "batch/loader.c"
#include "batch/loader_threads.c"

#undef lseek
#undef close

/* ---- The user ---- */

/* The batches that are kept are as they were. */
static void check_kept(const ps_batch *kept, uint32_t n)
{
    for (uint32_t i = 0; i < plan.keep && i < n; i++)
        interleave_check(*kept[(n - i) % plan.keep].records == n - i,
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
        .input = &input, .ranks = 1, .info = {.record_bytes = 64}};
    ps_loader *l;
    ps_error err;

    job = interleave_alloc(sizeof *job);
    interleave_check(ps_loader_open(&l, &reader, &options, &err) ==
                         PS_OK && l->n_threads == (plan.direct ? 2 : 1),
                     "the loader cannot begin");
    use(l);
    ps_loader_free(l);
}

/* Batches go round the buffers; two threads have many more states. */
static const struct {
    bool direct;
    uint32_t group;
    uint32_t buffers;
    uint32_t keep;
    uint32_t batches;
    uint32_t come;
    uint32_t stops;
} scenarios[] = {
    {false, 1, 2, 1, 7, NEVER, NEVER}, {false, 1, 5, 1, 7, NEVER, NEVER},
    {false, 1, 4, 2, 7, NEVER, NEVER}, {false, 1, 5, 1, 7, 3, 3},
    {false, 1, 5, 1, 7, 3, 1},         {false, 1, 5, 1, 7, 0, 0},
    {true, 1, 2, 1, 3, NEVER, NEVER},  {true, 1, 3, 1, 4, NEVER, NEVER},
    {true, 1, 3, 2, 4, NEVER, NEVER},  {true, 2, 5, 1, 4, NEVER, NEVER},
    {true, 1, 3, 1, 4, NEVER, 1},      {true, 1, 3, 1, 4, NEVER, 0},
};

static bool set_plan(size_t i, bool spurious)
{
    plan.batches = scenarios[i].batches;
    plan.direct = scenarios[i].direct;
    plan.group = scenarios[i].group;
    plan.buffers = scenarios[i].buffers;
    plan.keep = scenarios[i].keep;
    plan.come = scenarios[i].come;
    plan.stops = scenarios[i].stops;
    return true;
}

int main(void)
{
    interleave_suite suite = {COUNT(scenarios), set_plan, run_loader};

    return interleave_main("loader-threads", &suite);
}
