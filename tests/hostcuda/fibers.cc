/*
 * fibers.cc - CUDA threads as fibers: barriers and warp exchanges.
 *
 * A block's fibers run on one host thread, so that __shared__ can be
 * thread_local.  A fiber runs until it reaches a barrier, a warp exchange or
 * its end.  ThreadSanitizer sees each fiber as a thread; only barriers,
 * exchanges, fences and atomics order them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "internal.h"
#include "cuda_pipeline_primitives.h"
#include "hostcuda_ptx.h"

#include <sys/mman.h>

#include <algorithm>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#if defined(HOSTCUDA_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(HOSTCUDA_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

static constexpr size_t GUARD = 16 << 10, STACK = GUARD + (128 << 10);

__thread uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace hostcuda {

thread_local engine *self;

void fault(const char *file, int line, const char *format, ...)
{
    va_list arguments;

    std::fflush(stdout);
    if (line)
        std::fprintf(stderr, "%s:%d: ", file, line);
    else
        std::fprintf(stderr, "%s: ", file);
    va_start(arguments, format);
    std::vfprintf(stderr, format, arguments);
    va_end(arguments);
    if (self && self->symbol)
        std::fprintf(stderr, " (%s, block %u,%u,%u thread %u,%u,%u)",
                     kernel_name(self->symbol), blockIdx.x, blockIdx.y,
                     blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
    std::fputc('\n', stderr);
    std::abort();
}

} // namespace hostcuda

using namespace hostcuda;

/* -- switching from one stack to another --------------------------------- */

#if defined(__x86_64__)

/*
 * Saves the registers that the ABI preserves across calls, and switches stacks.
 * It ends with a jump: processors predict that `ret` returns to the caller on
 * the old stack.
 */
extern "C" void hostcuda_switch(void **from, void *to);
asm(R"(
    .text
    .type hostcuda_switch, @function
hostcuda_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    popq %rcx
    jmp *%rcx
    .size hostcuda_switch, . - hostcuda_switch
)");

struct context { void *sp; };

static void begin_context(context *c, char *stack, size_t size, void (*run)())
{
    void **top = (void **)(stack + size);

    *--top = nullptr;     /* aligns the stack of run() as after a call */
    *--top = (void *)run; /* where the switch returns to */
    c->sp = top - 6;
}

static void switch_context(context *from, context *to)
{
    hostcuda_switch(&from->sp, to->sp);
}

#else /* any other processor: slower, because each switch calls the kernel */

#include <ucontext.h>

struct context { ucontext_t u; };

static void begin_context(context *c, char *stack, size_t size, void (*run)())
{
    getcontext(&c->u);
    c->u.uc_stack.ss_sp = stack;
    c->u.uc_stack.ss_size = size;
    c->u.uc_link = nullptr;
    makecontext(&c->u, run, 0);
}

static void switch_context(context *from, context *to)
{
    swapcontext(&from->u, &to->u);
}

#endif

enum state { READY, AT_BARRIER, IN_WARP, DONE };

struct hostcuda::fiber {
    context at;
    char *stack;
    void *fake_stack, *tsan;
    uint3 thread;
    unsigned index;
    state now;
    const char *file;
    int line;
    op what;
    unsigned mask, from;
    uint64_t value;
    std::deque<async_copy> copies;
    uint64_t batches; /* of copies, committed */
    async_copy due;
};

/* The context of a host thread, to which fibers return. */
struct hostcuda::home {
    context at;
    void *fake, *tsan;
    const void *stack;
    size_t size;
};

static void enter(fiber *f)
{
    engine *e = self;

    e->running = f;
    threadIdx = f->thread;
#if defined(HOSTCUDA_ASAN)
    __sanitizer_start_switch_fiber(&e->home->fake, f->stack, STACK);
#elif defined(HOSTCUDA_TSAN)
    __tsan_switch_to_fiber(f->tsan, __tsan_switch_to_fiber_no_sync);
#endif
    switch_context(&e->home->at, &f->at);
#if defined(HOSTCUDA_ASAN)
    __sanitizer_finish_switch_fiber(e->home->fake, nullptr, nullptr);
#endif
}

/* Returns to the engine's loop, until resumed. */
static void leave()
{
    engine *e = self;
    fiber *f = e->running;

#if defined(HOSTCUDA_ASAN)
    __sanitizer_start_switch_fiber(&f->fake_stack, e->home->stack,
                                   e->home->size);
#elif defined(HOSTCUDA_TSAN)
    __tsan_switch_to_fiber(e->home->tsan, __tsan_switch_to_fiber_no_sync);
#endif
    switch_context(&f->at, &e->home->at);
#if defined(HOSTCUDA_ASAN)
    __sanitizer_finish_switch_fiber(f->fake_stack, nullptr, nullptr);
#endif
}

static void release(void *what)
{
    (void)what;
#if defined(HOSTCUDA_TSAN)
    __tsan_release(what);
#endif
}

static void acquire(void *what)
{
    (void)what;
#if defined(HOSTCUDA_TSAN)
    __tsan_acquire(what);
#endif
}

static void expect_no_copies(const fiber *f);

/* The loop of a fiber: one CUDA thread for each block. */
static void run_fiber()
{
#if defined(HOSTCUDA_ASAN)
    __sanitizer_finish_switch_fiber(nullptr, &self->home->stack,
                                    &self->home->size);
#endif
    for (;;) {
        engine *e = self;

        acquire(e);
        (*e->kernel)();
        expect_no_copies(e->running);
        e->running->now = DONE;
        e->ended[e->running->index / 32] |= 1u << e->running->index % 32;
        e->done++;
        release(&e->done); /* not e: the next fiber to begin must not see it */
        leave();
    }
}

/* -- operations that wait for other threads ------------------------------ */

static void wait_as(state now, const char *file, int line)
{
    fiber *f = self->running;

    f->now = now;
    f->file = file;
    f->line = line;
    leave();
}

unsigned hostcuda::barrier(bool yes, const char *file, int line)
{
    engine *e = self;

    release(&e->at_barrier);
    if (e->done)
        fault(file, line, "__syncthreads() that ended threads never reach");
    e->yes += yes;
    if (++e->at_barrier < e->size) {
        wait_as(AT_BARRIER, file, line);
        acquire(&e->at_barrier);
        return e->yes_last;
    }
    acquire(&e->at_barrier);
    e->at_barrier = 0;
    e->yes_last = e->yes;
    e->yes = 0;
    for (unsigned i = 0; i < e->size; i++) {
        fiber *f = &e->fibers[i];

        if (f == e->running)
            continue;
        if (f->line != line || std::strcmp(f->file, file))
            fault(file, line, "__syncthreads() met another of another line");
        f->now = READY;
    }
    return e->yes_last;
}

unsigned hostcuda::lane() { return self->running->index % 32; }

/* Stronger than a GPU's: everything before earlier fences is visible. */
void hostcuda::fence()
{
    static char all;

    acquire(&all);
    release(&all);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* All lanes of mask have arrived: passes on the values and resumes them. */
static void give_out(fiber *warp, unsigned mask, op what)
{
    uint64_t values[32] = {}, ballot = 0;

    for (unsigned l = 0; l < 32; l++)
        if (mask >> l & 1) {
            values[l] = warp[l].value;
            ballot |= (warp[l].value & 1) << l;
        }
    for (unsigned l = 0; l < 32; l++) {
        if (!(mask >> l & 1))
            continue;
        if (what == BALLOT)
            warp[l].value = ballot;
        else if (what == SHUFFLE)
            warp[l].value = values[warp[l].from];
        warp[l].now = READY;
    }
    self->waiting[warp->index / 32] &= ~mask;
    if (what == MEET)
        std::memcpy(self->gathered[warp->index / 32], values, sizeof values);
}

/* Faults unless two lanes have the same mask and operation. */
static void expect_alike(const fiber *f, const fiber *other, const char *file,
                         int line)
{
    if (f->mask != other->mask || f->what != other->what)
        fault(file, line, "lanes met with other masks or operations");
}

uint64_t hostcuda::exchange(op what, unsigned mask, uint64_t value,
                            unsigned from, const char *file, int line)
{
    engine *e = self;
    fiber *f = e->running;
    const unsigned lane = f->index % 32, number = f->index / 32;
    fiber *warp = f - lane;
    const unsigned lanes = std::min(32u, e->size - warp->index);
    const unsigned others = mask & e->waiting[number];

    if (!(mask >> lane & 1))
        fault(file, line, "a lane that its own mask leaves out");
    if (lanes < 32 && mask >> lanes)
        fault(file, line, "a mask with lanes that the block has not");
    if (what == SHUFFLE && !(mask >> from & 1))
        fault(file, line, "a shuffle from a lane that is not in the mask");
    if (mask & e->ended[number])
        fault(file, line, "a mask with lanes that have ended");
    f->what = what;
    f->mask = mask;
    f->value = value;
    f->from = from;
    if (what != MEET)
        release(warp);
    if (others)
        expect_alike(f, warp + __builtin_ctz(others), file, line);
    if ((others | 1u << lane) == mask) {
        for (unsigned l = 0; l < lanes; l++)
            if (mask >> l & 1)
                expect_alike(f, warp + l, file, line);
        give_out(warp, mask, what);
    } else {
        e->waiting[number] |= 1u << lane;
        wait_as(IN_WARP, file, line);
    }
    if (what != MEET)
        acquire(warp);
    return f->value;
}

/* -- tensor cores ------------------------------------------------------- */

const uint64_t *hostcuda::gather(uint64_t value, const char *file, int line)
{
    exchange(MEET, 0xffffffffu, value, 0, file, line);
    return self->gathered[self->running->index / 32];
}

static float half_of(uint32_t pair, unsigned which)
{
    return __uint_as_float(which ? pair & 0xffff0000u : pair << 16);
}

/*
 * A lane has two columns of two rows, and reads the operands of other lanes
 * from their stacks: four of a, then two of b.  All lanes wait until all have
 * read.
 */
void hostcuda::multiply(float (&c)[4], const uint32_t (&ab)[6],
                        const char *file, int line)
{
    const unsigned row = lane() / 4, column = lane() % 4 * 2;
    const uint64_t *const all = gather((uint64_t)(uintptr_t)ab, file, line);
    const auto of = [all](unsigned lane, unsigned which) {
        return ((const uint32_t *)(uintptr_t)all[lane])[which];
    };

    for (unsigned k = 0; k < 16; k++)
        for (unsigned i = 0; i < 4; i++) {
            const unsigned from = k % 8 / 2;

            c[i] += half_of(of(4 * row + from, k / 8 * 2 + i / 2), k % 2)
                    * half_of(of(4 * (column + i % 2) + from, 4 + k / 8),
                              k % 2);
        }
    exchange(MEET, 0xffffffffu, 0, 0, file, line);
}

/* -- asynchronous copies ------------------------------------------------- */

void hostcuda::copy_later(const async_copy &copy)
{
    fiber *f = self->running;

    f->copies.push_back(copy);
    f->copies.back().batch = f->batches;
}

void hostcuda::commit_copies() { self->running->batches++; }

const async_copy *hostcuda::copy_due(size_t prior)
{
    fiber *f = self->running;

    if (f->copies.empty() || f->copies.front().batch + prior >= f->batches)
        return nullptr;
    f->due = f->copies.front();
    f->copies.pop_front();
    return &f->due;
}

static void expect_no_copies(const fiber *f)
{
    if (!f->copies.empty())
        fault(f->copies.front().file, f->copies.front().line,
              "a copy that its thread never waited for");
}

/* -- a block ------------------------------------------------------------- */

/* In the order of $HOSTCUDA_ORDER: forward, reverse or shuffled by a seed. */
static void set_order(engine *e, uint64_t shuffled)
{
    static const char *const how = std::getenv("HOSTCUDA_ORDER");

    e->order.resize(e->size);
    for (unsigned i = 0; i < e->size; i++)
        e->order[i] = i;
    if (!how || !std::strcmp(how, "forward"))
        return;
    if (!std::strcmp(how, "reverse")) {
        std::reverse(e->order.begin(), e->order.end());
        return;
    }
    std::mt19937_64 random(std::strtoull(how, nullptr, 10) + shuffled);
    std::shuffle(e->order.begin(), e->order.end(), random);
}

static void new_stack(fiber *f, unsigned index)
{
    f->stack = (char *)mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (f->stack == MAP_FAILED)
        fault("hostcuda", 0, "no memory for stacks");
    mprotect(f->stack, GUARD, PROT_NONE);
#if defined(HOSTCUDA_TSAN)
    f->tsan = __tsan_create_fiber(0);
#endif
    /* Tops are staggered, or all would compete for the same cache lines. */
    begin_context(&f->at, f->stack, STACK - index % 61 * 320, run_fiber);
}

bool hostcuda::below_stack(const void *address)
{
    const char *stack
        = self && self->running ? self->running->stack : nullptr;

    return stack && (const char *)address >= stack
           && (const char *)address < stack + GUARD;
}

/* Signal handlers need a stack of their own when a fiber's overflows. */
static void new_signal_stack()
{
    stack_t other = {};

    other.ss_size = 64 << 10;
    other.ss_sp = mmap(nullptr, other.ss_size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (other.ss_sp != MAP_FAILED)
        sigaltstack(&other, nullptr);
}

void hostcuda::engine_begin(unsigned size,
                            const std::function<void()> *kernel,
                            const void *symbol)
{
    if (!self) { /* never freed: the pool's threads never end */
        self = new engine();
        self->fibers = new fiber[MAX_THREADS]();
        self->home = new home();
        new_signal_stack();
    }
    self->size = size;
    self->kernel = kernel;
    self->symbol = symbol;
    self->counters = {};
    self->running = nullptr;
#if defined(HOSTCUDA_TSAN)
    self->home->tsan = __tsan_get_current_fiber();
#endif
    for (unsigned i = 0; i < size; i++)
        if (!self->fibers[i].stack)
            new_stack(&self->fibers[i], i);
}

static void fault_stuck(engine *e)
{
    for (unsigned i = 0; i < e->size; i++)
        if (e->fibers[i].now != DONE) {
            threadIdx = e->fibers[i].thread;
            fault(e->fibers[i].file, e->fibers[i].line,
                  "waits for threads that never come");
        }
}

void hostcuda::engine_run_block(dim3 block, uint64_t shuffled)
{
    engine *e = self;

    e->done = 0;
    e->at_barrier = 0;
    e->yes = 0;
    std::fill_n(e->waiting, MAX_THREADS / 32, 0u);
    std::fill_n(e->ended, MAX_THREADS / 32, 0u);
    set_order(e, shuffled);
    for (unsigned i = 0; i < e->size; i++) {
        fiber *f = &e->fibers[i];

        f->now = READY;
        f->index = i;
        f->thread = {i % block.x, i / block.x % block.y,
                     i / block.x / block.y};
    }
    release(e);
    while (e->done < e->size) {
        bool moved = false;

        for (unsigned i : e->order)
            if (e->fibers[i].now == READY) {
                enter(&e->fibers[i]);
                moved = true;
            }
        if (!moved)
            fault_stuck(e);
    }
    e->running = nullptr;
    acquire(&e->done); /* the next block has the same __shared__ */
}
