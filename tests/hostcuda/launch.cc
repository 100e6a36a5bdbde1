/*
 * launch.cc - grids, blocks and the host threads that run them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "internal.h"

#include <link.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <thread>

using namespace hostcuda;

thread_local __align__(128) float4 dynamic_shared[MAX_SHARED / sizeof(float4)];

struct job {
    const cudaLaunchConfig_t *config;
    const std::function<void()> *kernel;
    const void *symbol;
    std::atomic<uint64_t> next;
    uint64_t blocks, seed;
};

/* -- shared memory, all ones at the start of a block --------------------- */

/*
 * Static __shared__ memory is the uninitialised thread-local memory of the
 * module that contains the kernel.
 */
struct static_shared {
    const char *kernel;
    char *begin, *end;
};

static int find_static_shared(struct dl_phdr_info *module, size_t, void *data)
{
    static_shared *s = (static_shared *)data;
    bool here = false;

    for (int i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) &h = module->dlpi_phdr[i];
        const char *begin = (const char *)module->dlpi_addr + h.p_vaddr;

        if (h.p_type == PT_LOAD && s->kernel >= begin
            && s->kernel < begin + h.p_memsz)
            here = true;
    }
    for (int i = 0; here && i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) &h = module->dlpi_phdr[i];

        if (h.p_type == PT_TLS && module->dlpi_tls_data) {
            s->begin = (char *)module->dlpi_tls_data + h.p_filesz;
            s->end = (char *)module->dlpi_tls_data + h.p_memsz;
        }
    }
    return here;
}

static void fill(char *begin, char *end)
{
    if (begin < end)
        std::memset(begin, 0xff, (size_t)(end - begin));
}

/* hostcuda's own variables among the kernels' keep their values. */
static void poison_static(const static_shared &s)
{
    engine *const engine_now = self;
    const uint3 block = blockDim, grid = gridDim;
    const size_t at = (size_t)((char *)dynamic_shared - s.begin);

    if (at < (size_t)(s.end - s.begin)) {
        fill(s.begin, s.begin + at);
        fill(s.begin + at + sizeof dynamic_shared, s.end);
    } else {
        fill(s.begin, s.end);
    }
    self = engine_now;
    blockDim = block;
    gridDim = grid;
}

static void poison_dynamic(size_t size)
{
    HOSTCUDA_UNPOISON(dynamic_shared, sizeof dynamic_shared);
    std::memset((void *)dynamic_shared, 0xff, size);
    HOSTCUDA_POISON((char *)dynamic_shared + size,
                    sizeof dynamic_shared - size);
}

/* -- a grid, divided among host threads ---------------------------------- */

static void run_block(const job *j, const static_shared &s, uint64_t index)
{
    const dim3 grid = j->config->gridDim;

    poison_static(s);
    poison_dynamic(j->config->dynamicSmemBytes);
    blockIdx = {(unsigned)(index % grid.x), (unsigned)(index / grid.x % grid.y),
                (unsigned)(index / grid.x / grid.y)};
    engine_run_block(j->config->blockDim, j->seed + index);
}

static unsigned host_threads()
{
    static const char *const said = std::getenv("HOSTCUDA_THREADS");
    const int count = said ? std::atoi(said)
                           : (int)std::thread::hardware_concurrency();

    return (unsigned)std::min(std::max(count, said ? 1 : 2), 64);
}

/* A host thread's share of a launch. */
static void work(job *j, unsigned which)
{
    const dim3 block = j->config->blockDim, grid = j->config->gridDim;
    static_shared s = {(const char *)j->symbol, nullptr, nullptr};

    dl_iterate_phdr(find_static_shared, &s);
    engine_begin(block.x * block.y * block.z, j->kernel, j->symbol);
    blockDim = {block.x, block.y, block.z};
    gridDim = {grid.x, grid.y, grid.z};
#if defined(HOSTCUDA_TSAN)
    /* Interleaved: races between blocks show if host threads differ. */
    for (uint64_t i = which; i < j->blocks; i += host_threads())
        run_block(j, s, i);
#else
    (void)which;
    for (uint64_t i; (i = j->next++) < j->blocks;)
        run_block(j, s, i);
#endif
    self->symbol = nullptr;
    count_add(self->counters);
}

/* Host threads that wait for launches; they never end. */
static struct threads {
    std::mutex lock;
    std::condition_variable come, gone;
    std::vector<std::thread> threads;
    job *now;
    uint64_t number;
    unsigned busy;
} &pool = *new threads;

static void wait_for_jobs(unsigned which, uint64_t seen)
{
    std::unique_lock<std::mutex> held(pool.lock);

    for (;;) {
        pool.come.wait(held, [&] { return pool.number > seen; });
        seen = pool.number;
        held.unlock();
        work(pool.now, which);
        held.lock();
        if (!--pool.busy)
            pool.gone.notify_one();
    }
}

void hostcuda::run_grid(const cudaLaunchConfig_t &config, const void *symbol,
                        const std::function<void()> &kernel)
{
    const dim3 grid = config.gridDim;
    std::unique_lock<std::mutex> held(pool.lock);
    job j = {&config, &kernel, symbol, {0},
             (uint64_t)grid.x * grid.y * grid.z, pool.number << 32};

    while (pool.threads.size() + 1 < host_threads()) {
        pool.threads.emplace_back(wait_for_jobs, pool.threads.size() + 1,
                                  pool.number);
        pool.threads.back().detach();
    }
    count_begin();
    pool.now = &j;
    pool.number++;
    pool.busy = (unsigned)pool.threads.size();
    pool.come.notify_all();
    held.unlock();
    work(&j, 0);
    held.lock();
    pool.gone.wait(held, [] { return !pool.busy; });
    count_end(kernel_name(symbol));
}

/* -- a launch ------------------------------------------------------------ */

static std::map<const void *, size_t> &allowed
    = *new std::map<const void *, size_t>;

cudaError_t hostcuda::allow_shared(const void *kernel, size_t size)
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);

    if (const cudaError_t error = begin("cudaFuncSetAttribute"))
        return error;
    if (size > MAX_SHARED)
        fault("launch", 0, "%s wants %zu bytes of shared memory, a block has "
              "%zu", kernel_name(kernel), size, MAX_SHARED);
    allowed[kernel] = std::max(size, allowed[kernel]);
    return cudaSuccess;
}

static void check_shape(const cudaLaunchConfig_t &c, const void *kernel)
{
    const dim3 g = c.gridDim, b = c.blockDim;
    const size_t most = std::max((size_t)48 << 10, allowed[kernel]);

    if (!g.x || !g.y || !g.z || g.x > 0x7fffffff || g.y > 65535 || g.z > 65535)
        fault("launch", 0, "%s: no GPU takes a grid of %u x %u x %u",
              kernel_name(kernel), g.x, g.y, g.z);
    if (!b.x || !b.y || !b.z || b.x > MAX_THREADS || b.y > MAX_THREADS
        || b.z > 64 || (uint64_t)b.x * b.y * b.z > MAX_THREADS)
        fault("launch", 0, "%s: no GPU takes a block of %u x %u x %u",
              kernel_name(kernel), b.x, b.y, b.z);
    if (c.dynamicSmemBytes > most)
        fault("launch", 0, "%s: %zu bytes of shared memory, more than the %zu "
              "that were asked for", kernel_name(kernel), c.dynamicSmemBytes,
              most);
}

cudaError_t hostcuda::launch(const cudaLaunchConfig_t *c, const void *kernel,
                             std::function<void()> thread,
                             std::vector<const void *> pointers)
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);
    const cudaLaunchConfig_t config = *c;
    const cudaError_t error = begin("cudaLaunchKernelEx");
    operation o;

    if (error == cudaErrorLaunchFailure)
        stay_failed(error);
    if (error)
        return error;
    check_shape(config, kernel);
    o.name = kernel_name(kernel);
    o.run = [=] { run_grid(config, kernel, thread); };
    o.pointers = std::move(pointers);
    o.is_kernel = true;
    return put(c->stream, std::move(o));
}
