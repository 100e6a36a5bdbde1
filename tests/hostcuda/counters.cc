/*
 * counters.cc - bytes of device memory that kernels read and write.
 *
 * Kernels are compiled with -fsanitize=thread, which calls __tsan_read4() and
 * the like at each access.  With -DHOSTCUDA_COUNTERS these are defined here
 * instead of in ThreadSanitizer's library, and count.
 *
 * SPDX-License-Identifier: MIT
 */
#include "internal.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>

using namespace hostcuda;

static auto &counts = *new std::map<std::string, hostcuda_count>;
static counters sum; /* of the running launch */
static std::mutex &sum_lock = *new std::mutex;

#if defined(HOSTCUDA_COUNTERS)

/* One bit for each byte of device memory: read, written in this launch. */
static uint64_t *touched[2];

static void forget_touched(uint64_t **bits)
{
    if (!*bits) {
        void *p = mmap(nullptr, device_size / 8, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (p == MAP_FAILED)
            fault("hostcuda", 0, "no addresses for counters");
        *bits = (uint64_t *)p;
    }
    each_allocation([=](char *begin, size_t size) {
        const size_t from = (size_t)(begin - device_begin) / 64;
        const size_t to = (size_t)(begin - device_begin + size - 1) / 64;

        std::memset(*bits + from, 0, (to - from + 1) * sizeof **bits);
    });
}

#endif

void hostcuda::count_begin()
{
    sum = {};
#if defined(HOSTCUDA_COUNTERS)
    forget_touched(&touched[0]);
    forget_touched(&touched[1]);
#endif
}

void hostcuda::count_add(const counters &c)
{
    std::lock_guard<std::mutex> held(sum_lock);

    sum.read += c.read;
    sum.read_distinct += c.read_distinct;
    sum.written += c.written;
    sum.written_distinct += c.written_distinct;
}

void hostcuda::count_end(const char *kernel)
{
    hostcuda_count &c = counts[kernel];

    c.launches++;
    c.read += sum.read;
    c.read_distinct += sum.read_distinct;
    c.written += sum.written;
    c.written_distinct += sum.written_distinct;
}

/* True if name is that of kernel, or of the template it is an instance of. */
static bool is_of(const std::string &name, const char *kernel)
{
    const size_t length = kernel ? std::strlen(kernel) : 0;

    return !kernel
           || (!name.compare(0, length, kernel)
               && (name.size() == length || name[length] == '<'));
}

extern "C" hostcuda_count hostcuda_counts(const char *kernel)
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);
    hostcuda_count all = {};

    for (const auto &c : counts)
        if (is_of(c.first, kernel)) {
            all.launches += c.second.launches;
            all.read += c.second.read;
            all.read_distinct += c.second.read_distinct;
            all.written += c.second.written;
            all.written_distinct += c.second.written_distinct;
        }
    return all;
}

extern "C" void hostcuda_counts_each(void (*f)(const char *,
                                               const hostcuda_count *, void *),
                                     void *data)
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);

    for (const auto &c : counts)
        f(c.first.c_str(), &c.second, data);
}

extern "C" void hostcuda_counts_reset(void)
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);

    counts.clear();
}

#if defined(HOSTCUDA_COUNTERS)

/* -- calls inserted by the compiler -------------------------------------- */

/* Marks bytes [first, first + size); returns how many were not marked yet. */
static uint64_t mark(uint64_t *bits, size_t first, size_t size)
{
    uint64_t fresh = 0;

    while (size) {
        const size_t bit = first % 64, n = std::min(size, 64 - bit);
        const uint64_t mask = (n < 64 ? ((uint64_t)1 << n) - 1 : ~(uint64_t)0)
                              << bit;
        uint64_t *word = bits + first / 64;
        uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);

        if ((old & mask) != mask)
            old = __atomic_fetch_or(word, mask, __ATOMIC_RELAXED);
        fresh += (uint64_t)__builtin_popcountll(mask & ~old);
        first += n;
        size -= n;
    }
    return fresh;
}

static inline void count(const void *p, size_t size, bool is_write)
{
    engine *const e = self;

    if (!e || !e->symbol || !in_device_memory(p))
        return;
    const uint64_t fresh
        = mark(touched[is_write], (size_t)((const char *)p - device_begin),
               size);

    (is_write ? e->counters.written : e->counters.read) += size;
    (is_write ? e->counters.written_distinct : e->counters.read_distinct)
        += fresh;
}

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}
void __tsan_read_range(void *p, size_t size) { count(p, size, false); }
void __tsan_write_range(void *p, size_t size) { count(p, size, true); }

#define PLAIN(size)                                                           \
    void __tsan_read##size(void *p) { count(p, size, false); }                \
    void __tsan_write##size(void *p) { count(p, size, true); }
#define UNALIGNED(size)                                                       \
    void __tsan_unaligned_read##size(void *p) { count(p, size, false); }      \
    void __tsan_unaligned_write##size(void *p) { count(p, size, true); }

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)
UNALIGNED(2)
UNALIGNED(4)
UNALIGNED(8)
UNALIGNED(16)

/*
 * The header's atomics load, then exchange until that succeeds.  As on a GPU,
 * an atomic counts as one read and one write.
 */
#define EXCHANGE(bits, type, name)                                            \
    int __tsan_atomic##bits##_compare_exchange_##name(                        \
        volatile void *p, void *old, type value, int, int)                    \
    {                                                                         \
        const bool done = __atomic_compare_exchange_n(                        \
            (volatile type *)p, (type *)old, value, false, __ATOMIC_SEQ_CST,  \
            __ATOMIC_SEQ_CST);                                                \
                                                                              \
        if (done) {                                                           \
            count((const void *)p, sizeof(type), false);                      \
            count((const void *)p, sizeof(type), true);                       \
        }                                                                     \
        return done;                                                          \
    }
#define FETCH(bits, type, name)                                               \
    type __tsan_atomic##bits##_fetch_##name(volatile void *p, type v, int)    \
    {                                                                         \
        return __atomic_fetch_##name((volatile type *)p, v,                   \
                                     __ATOMIC_SEQ_CST);                       \
    }
#define ATOMIC(bits, type)                                                    \
    type __tsan_atomic##bits##_load(const volatile void *p, int)              \
    {                                                                         \
        return __atomic_load_n((const volatile type *)p, __ATOMIC_SEQ_CST);   \
    }                                                                         \
    void __tsan_atomic##bits##_store(volatile void *p, type v, int)           \
    {                                                                         \
        __atomic_store_n((volatile type *)p, v, __ATOMIC_SEQ_CST);            \
    }                                                                         \
    type __tsan_atomic##bits##_exchange(volatile void *p, type v, int)        \
    {                                                                         \
        return __atomic_exchange_n((volatile type *)p, v, __ATOMIC_SEQ_CST);  \
    }                                                                         \
    EXCHANGE(bits, type, strong)                                              \
    EXCHANGE(bits, type, weak)                                                \
    FETCH(bits, type, add)                                                    \
    FETCH(bits, type, sub)                                                    \
    FETCH(bits, type, and)                                                    \
    FETCH(bits, type, or)                                                     \
    FETCH(bits, type, xor)

ATOMIC(8, unsigned char)
ATOMIC(16, unsigned short)
ATOMIC(32, unsigned)
ATOMIC(64, unsigned long)

void __tsan_atomic_thread_fence(int)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {}

} /* extern "C" */

#endif /* HOSTCUDA_COUNTERS */
