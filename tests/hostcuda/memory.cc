/*
 * memory.cc - device and pinned memory, and copies.
 *
 * Device memory is taken from one range of addresses.  Allocations lie between
 * inaccessible pages, and addresses are never reused, so freed memory always
 * faults.  The host may access it only while work in a stream is running.
 *
 * SPDX-License-Identifier: MIT
 */
#include "internal.h"

#include <sys/mman.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

using namespace hostcuda;

struct allocation {
    size_t size;
    char *map; /* whole pages; the allocation ends where they end */
    size_t map_size;
};

typedef std::map<char *, allocation> allocations;

static allocations &device = *new allocations, &pinned = *new allocations;
static std::map<char *, size_t> &was_freed = *new std::map<char *, size_t>;
static size_t in_use;
static unsigned opened;

const size_t hostcuda::device_size = (size_t)256 << 30;
char *hostcuda::device_begin;
static char *device_next;

static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

bool hostcuda::in_device_memory(const void *p)
{
    return device_begin && (const char *)p >= device_begin
           && (const char *)p < device_begin + device_size;
}

/* The allocation that contains an address; its end counts, if size is 0. */
static const allocations::value_type *find(const allocations &in,
                                           const void *p)
{
    auto next = in.upper_bound((char *)p);

    if (next == in.begin())
        return nullptr;
    --next;
    return (const char *)p < next->first + next->second.size ? &*next
                                                             : nullptr;
}

void hostcuda::each_allocation(const std::function<void(char *, size_t)> &f)
{
    for (const auto &a : device)
        f(a.first, a.second.size);
}

/* -- access -------------------------------------------------------------- */

static void protect(const allocation &a, int how)
{
    if (mprotect(a.map, a.map_size, how))
        fault("hostcuda", 0, "mprotect fails: too many allocations?");
}

void hostcuda::memory_open()
{
    if (!opened++)
        for (const auto &a : device)
            protect(a.second, PROT_READ | PROT_WRITE);
}

void hostcuda::memory_close()
{
    if (!--opened)
        for (const auto &a : device)
            protect(a.second, PROT_NONE);
}

std::string hostcuda::describe_address(const void *p)
{
    char text[128] = "";

    if (below_stack(p))
        return "a thread's stack overflows";
    if (!in_device_memory(p))
        return "";
    if (find(device, p))
        return "the host touches device memory";
    auto freed = was_freed.upper_bound((char *)p);
    if (freed != was_freed.begin()
        && (char *)p < std::prev(freed)->first + std::prev(freed)->second)
        return "device memory that was freed";
    auto next = device.upper_bound((char *)p);
    if (next != device.end() && (char *)p + 2 * PAGE > next->first)
        std::snprintf(text, sizeof text,
                      "%td bytes before %zu bytes of device memory",
                      next->first - (char *)p, next->second.size);
    else if (next != device.begin())
        std::snprintf(text, sizeof text,
                      "%td bytes past the start of %zu bytes of device memory",
                      (char *)p - std::prev(next)->first,
                      std::prev(next)->second.size);
    return text[0] ? text : "no device memory is there";
}

#if !defined(HOSTCUDA_ASAN) && !defined(HOSTCUDA_TSAN)

static void on_segv(int, siginfo_t *info, void *)
{
    const std::string what = describe_address(info->si_addr);

    std::signal(SIGSEGV, SIG_DFL);
    if (!what.empty())
        fault("memory", 0, "%s, at %p", what.c_str(), info->si_addr);
}

static void explain_faults()
{
    struct sigaction action = {};

    action.sa_sigaction = on_segv;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, nullptr);
}

#else

static void explain_faults() {} /* the sanitizer does */

#endif

/* -- allocations --------------------------------------------------------- */

static void reserve()
{
    device_begin = (char *)mmap(nullptr, device_size, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                                -1, 0);
    if (device_begin == MAP_FAILED)
        fault("hostcuda", 0, "no addresses for device memory");
    device_next = device_begin;
    explain_faults();
}

cudaError_t cudaMalloc(void **p, size_t size)
{
    HOSTCUDA_CALL;
    const size_t limit = memory_limit();

    if (const cudaError_t error = refuse_in_capture())
        return error;
    *p = nullptr;
    if (!size)
        return cudaSuccess;
    if (!device_begin)
        reserve();
    if (size > limit || in_use > limit - size)
        return failed(cudaErrorMemoryAllocation);

    const size_t pages = round_up(size, PAGE);
    allocation a = {size, device_next + PAGE, pages};

    if (pages + 2 * PAGE > (size_t)(device_begin + device_size - device_next))
        return failed(cudaErrorMemoryAllocation);
    if (mprotect(a.map, pages, PROT_READ | PROT_WRITE))
        return failed(cudaErrorMemoryAllocation);
    char *begin = a.map + pages - round_up(size, 256);
    madvise(a.map, pages, MADV_HUGEPAGE); /* optional: for speed alone */
    std::memset(a.map, 0xff, pages);
    HOSTCUDA_POISON(a.map, (size_t)(begin - a.map));
    HOSTCUDA_POISON(begin + size, (size_t)(a.map + pages - begin - size));
    if (!opened)
        protect(a, PROT_NONE);
    device_next += pages + PAGE;
    device[begin] = a;
    in_use += size;
    *p = begin;
    return cudaSuccess;
}

static void check_unused(const char *begin, size_t size)
{
    each_queued([=](const operation &o) {
        for (const void *p : o.pointers)
            if ((const char *)p >= begin && (const char *)p < begin + size)
                fault("memory", 0, "memory is freed that %s, still queued, "
                      "uses", o.name.c_str());
    });
}

/* Bytes up to the next multiple of 256, which must not be written. */
static void check_slack(const char *begin, const allocation &a)
{
    for (const char *p = begin + a.size; p < a.map + a.map_size; p++)
        if (*p != (char)0xff)
            fault("memory", 0, "%td bytes past the end of %zu bytes of device "
                  "memory were written", p - begin - a.size + 1, a.size);
}

cudaError_t cudaFree(void *p)
{
    HOSTCUDA_CALL;
    const auto found = device.find((char *)p);

    if (const cudaError_t error = refuse_in_capture())
        return error;
    if (!p)
        return cudaSuccess;
    if (found == device.end())
        fault("memory", 0, "cudaFree of %p, which cudaMalloc did not give or "
              "which was freed", p);
    check_unused((char *)p, found->second.size);
    const allocation a = found->second;
    memory_open();
    HOSTCUDA_UNPOISON(a.map, a.map_size);
    check_slack((char *)p, a);
    HOSTCUDA_POISON(a.map, a.map_size);
    memory_close();
    protect(a, PROT_NONE);
    madvise(a.map, a.map_size, MADV_DONTNEED);
    was_freed[(char *)p] = a.size;
    in_use -= a.size;
    device.erase(found);
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **p, size_t size, unsigned)
{
    std::lock_guard<std::recursive_mutex> held(hostcuda::lock);

    if (const cudaError_t error = begin("cudaMallocHost"))
        return error;
    if (const cudaError_t error = refuse_in_capture())
        return error;
    *p = size ? std::malloc(size) : nullptr;
    if (size && !*p)
        return failed(cudaErrorMemoryAllocation);
    if (size) {
        std::memset(*p, 0xff, size);
        pinned[(char *)*p] = {size, nullptr, 0};
    }
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *p)
{
    HOSTCUDA_CALL;

    if (const cudaError_t error = refuse_in_capture())
        return error;
    if (!p)
        return cudaSuccess;
    if (!pinned.count((char *)p))
        fault("memory", 0, "cudaFreeHost of %p, which cudaMallocHost did not "
              "give or which was freed", p);
    check_unused((char *)p, pinned[(char *)p].size);
    pinned.erase((char *)p);
    std::free(p);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *unused, size_t *total)
{
    HOSTCUDA_CALL;
    *total = memory_limit();
    *unused = *total - in_use;
    return cudaSuccess;
}

/* -- copies -------------------------------------------------------------- */

enum place { PAGEABLE, PINNED, DEVICE };

static place place_of(const void *p, size_t size, const char *call)
{
    const bool is_device = in_device_memory(p);
    const auto *a = find(is_device ? device : pinned, p);

    if (!a && is_device)
        fault("memory", 0, "%s: %s", call, describe_address(p).c_str());
    if (!a)
        return PAGEABLE;
    if (size > a->second.size - (size_t)((const char *)p - a->first))
        fault("memory", 0, "%s of %zu bytes runs past the end of %zu bytes of "
              "%s memory", call, size, a->second.size,
              is_device ? "device" : "pinned");
    return is_device ? DEVICE : PINNED;
}

static void check_kind(cudaMemcpyKind kind, place to, place from,
                       const char *call)
{
    const bool to_device
        = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device
        = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;

    if (kind == cudaMemcpyDefault)
        return;
    if (to_device != (to == DEVICE))
        fault("memory", 0, "%s: the target is %s memory", call,
              to == DEVICE ? "device" : "host");
    if (from_device != (from == DEVICE))
        fault("memory", 0, "%s: the source is %s memory", call,
              from == DEVICE ? "device" : "host");
}

/*
 * As CUDA documents: a copy from pageable memory has read it before it returns
 * but may not have written yet; one to pageable memory is done; all others wait
 * for their turn in the stream.
 */
static cudaError_t copy(void *to, const void *from, size_t size,
                        cudaMemcpyKind kind, cudaStream_t s, bool wait,
                        const char *call)
{
    hostcuda_stream *const stream = checked(s);

    if (!size)
        return cudaSuccess;
    const place target = place_of(to, size, call);
    const place source = place_of(from, size, call);
    operation o;

    check_kind(kind, target, source, call);
    if (target == PAGEABLE || source == PAGEABLE)
        if (const cudaError_t error = refuse_captured(stream))
            return error;
    o.name = call;
    o.pointers = {to, from};
    if (source == PAGEABLE && target == DEVICE) {
        auto staged = std::make_shared<std::vector<char>>(
            (const char *)from, (const char *)from + size);

        o.pointers = {to};
        o.run = [=] { std::memcpy(to, staged->data(), size); };
        wait = false;
    } else {
        o.run = [=] { std::memmove(to, from, size); };
        wait = target == PAGEABLE || source == PAGEABLE
               || (wait && (target != DEVICE || source != DEVICE));
    }
    if (const cudaError_t error = put(s, std::move(o)))
        return error;
    if (wait)
        drain(stream);
    return failed(stayed());
}

static cudaError_t set(void *p, int value, size_t size, cudaStream_t s,
                       const char *call)
{
    operation o;

    checked(s);
    if (!size)
        return cudaSuccess;
    if (place_of(p, size, call) == PAGEABLE)
        fault("memory", 0, "%s: the target is host memory", call);
    o.name = call;
    o.pointers = {p};
    o.run = [=] { std::memset(p, value, size); };
    return put(s, std::move(o));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size,
                            cudaMemcpyKind kind, cudaStream_t s)
{
    HOSTCUDA_CALL;
    return copy(to, from, size, kind, s, false, __func__);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t size,
                       cudaMemcpyKind kind)
{
    HOSTCUDA_CALL;
    if (const cudaError_t error = refuse_in_capture())
        return error;
    return copy(to, from, size, kind, 0, true, __func__);
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t size, cudaStream_t s)
{
    HOSTCUDA_CALL;
    return set(p, value, size, s, __func__);
}

cudaError_t cudaMemset(void *p, int value, size_t size)
{
    HOSTCUDA_CALL;
    if (const cudaError_t error = refuse_in_capture())
        return error;
    return set(p, value, size, 0, __func__);
}
