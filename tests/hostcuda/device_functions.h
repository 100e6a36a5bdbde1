/*
 * device_functions.h - functions that a kernel calls.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOSTCUDA_DEVICE_FUNCTIONS_H
#define HOSTCUDA_DEVICE_FUNCTIONS_H

#include "vector_types.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __constant__
#define __shared__ thread_local /* in a function this implies static */
#define __align__(n) __attribute__((aligned(n)))

/* Set whenever a fiber is resumed. */
extern __thread uint3 threadIdx, blockIdx, blockDim, gridDim;
extern thread_local __align__(128) float4 dynamic_shared[];
static constexpr int warpSize = 32;

/* Passes the source location of a call. */
#define HOSTCUDA_AT                                                           \
    const char *file = __builtin_FILE(), int line = __builtin_LINE()

/* -- operations that wait for other threads ------------------------------ */

namespace hostcuda {

enum op { SYNC, SHUFFLE, BALLOT, MEET };

/* Waits for the whole block; returns how many threads voted yes. */
unsigned barrier(bool yes, const char *file, int line);
/* Exchanges values with the lanes of mask; returns another lane's value. */
uint64_t exchange(op what, unsigned mask, uint64_t value, unsigned from,
                  const char *file, int line);
unsigned lane();
void fence();
[[noreturn]] void fault(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

template <typename T>
inline T shuffle(unsigned mask, T value, unsigned from, int width,
                 const char *file, int line)
{
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value, "");
    uint64_t bits = 0;

    if (width <= 0 || width > 32 || (width & (width - 1)))
        fault(file, line, "a shuffle's width is not a power of two up to 32");
    std::memcpy(&bits, &value, sizeof value);
    bits = exchange(SHUFFLE, mask, bits, from, file, line);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

template <typename T> struct same { typedef T type; };

template <typename T, typename F> inline T atomic(T *p, F &&f)
{
    static_assert(std::is_same<T, int>::value
                  || std::is_same<T, unsigned>::value
                  || std::is_same<T, unsigned long long>::value
                  || std::is_same<T, float>::value
                  || std::is_same<T, double>::value,
                  "CUDA has no atomics of this type");
    T old, now;

    __atomic_load(p, &old, __ATOMIC_RELAXED);
    do
        now = f(old);
    while (!__atomic_compare_exchange(p, &old, &now, true, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED));
    return old;
}

} // namespace hostcuda

static inline void __syncthreads(HOSTCUDA_AT)
{
    hostcuda::barrier(false, file, line);
}

static inline int __syncthreads_count(int yes, HOSTCUDA_AT)
{
    return (int)hostcuda::barrier(yes != 0, file, line);
}

static inline int __syncthreads_or(int yes, HOSTCUDA_AT)
{
    return hostcuda::barrier(yes != 0, file, line) != 0;
}

static inline int __syncthreads_and(int yes, HOSTCUDA_AT)
{
    return hostcuda::barrier(yes == 0, file, line) == 0;
}

static inline void __syncwarp(unsigned mask = 0xffffffffu, HOSTCUDA_AT)
{
    hostcuda::exchange(hostcuda::SYNC, mask, 0, 0, file, line);
}

template <typename T>
inline T __shfl_sync(unsigned mask, T v, int from, int width = 32,
                     HOSTCUDA_AT)
{
    const unsigned base = hostcuda::lane() & ~(unsigned)(width - 1);

    return hostcuda::shuffle(mask, v,
                             base + ((unsigned)from & (unsigned)(width - 1)),
                             width, file, line);
}

template <typename T>
inline T __shfl_xor_sync(unsigned mask, T v, int by, int width = 32,
                         HOSTCUDA_AT)
{
    const unsigned self = hostcuda::lane();
    const unsigned from = self ^ (unsigned)by;
    /* PTX: a lane above the segment's end gets its own value. */
    const bool out = from > (self | (unsigned)(width - 1));

    return hostcuda::shuffle(mask, v, out ? self : from, width, file, line);
}

template <typename T>
inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32,
                          HOSTCUDA_AT)
{
    const unsigned self = hostcuda::lane();
    const bool out = (self & (unsigned)(width - 1)) + by >= (unsigned)width;

    return hostcuda::shuffle(mask, v, out ? self : self + by, width, file,
                             line);
}

template <typename T>
inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32,
                        HOSTCUDA_AT)
{
    const unsigned self = hostcuda::lane();
    const bool out = (self & (unsigned)(width - 1)) < by;

    return hostcuda::shuffle(mask, v, out ? self : self - by, width, file,
                             line);
}

static inline unsigned __ballot_sync(unsigned mask, int yes, HOSTCUDA_AT)
{
    return (unsigned)hostcuda::exchange(hostcuda::BALLOT, mask, yes != 0, 0,
                                        file, line);
}

static inline int __any_sync(unsigned mask, int yes, HOSTCUDA_AT)
{
    return __ballot_sync(mask, yes, file, line) != 0;
}

static inline int __all_sync(unsigned mask, int yes, HOSTCUDA_AT)
{
    return __ballot_sync(mask, yes, file, line) == mask;
}

static inline void __threadfence() { hostcuda::fence(); }
static inline void __threadfence_block() { hostcuda::fence(); }

/* -- atomics ------------------------------------------------------------- */

template <typename T>
inline T atomicAdd(T *p, typename hostcuda::same<T>::type v)
{
    return hostcuda::atomic(p, [v](T old) { return (T)(old + v); });
}

template <typename T>
inline T atomicMax(T *p, typename hostcuda::same<T>::type v)
{
    static_assert(std::is_integral<T>::value, "CUDA has none of this type");
    return hostcuda::atomic(p, [v](T old) { return old < v ? v : old; });
}

template <typename T>
inline T atomicMin(T *p, typename hostcuda::same<T>::type v)
{
    static_assert(std::is_integral<T>::value, "CUDA has none of this type");
    return hostcuda::atomic(p, [v](T old) { return v < old ? v : old; });
}

template <typename T>
inline T atomicOr(T *p, typename hostcuda::same<T>::type v)
{
    static_assert(std::is_integral<T>::value, "CUDA has none of this type");
    return hostcuda::atomic(p, [v](T old) { return old | v; });
}

template <typename T>
inline T atomicExch(T *p, typename hostcuda::same<T>::type v)
{
    return hostcuda::atomic(p, [v](T) { return v; });
}

template <typename T>
inline T atomicCAS(T *p, typename hostcuda::same<T>::type compare,
                   typename hostcuda::same<T>::type v)
{
    static_assert(std::is_integral<T>::value, "CUDA has none of this type");
    return hostcuda::atomic(p,
                            [=](T old) { return old == compare ? v : old; });
}

/* -- bits and numbers ---------------------------------------------------- */

template <typename T> inline T __ldg(const T *p) { return *p; }

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x)
{
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }

static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}
static inline int __mulhi(int a, int b)
{
    return (int)((int64_t)a * b >> 32);
}

namespace hostcuda {
template <typename To, typename From> inline To bits_as(From from)
{
    static_assert(sizeof(To) == sizeof(From), "");
    To to;

    std::memcpy(&to, &from, sizeof to);
    return to;
}
}

static inline unsigned __float_as_uint(float x)
{
    return hostcuda::bits_as<unsigned>(x);
}
static inline int __float_as_int(float x) { return hostcuda::bits_as<int>(x); }
static inline float __uint_as_float(unsigned x)
{
    return hostcuda::bits_as<float>(x);
}
static inline float __int_as_float(int x)
{
    return hostcuda::bits_as<float>(x);
}

static inline float __fmaf_rn(float a, float b, float c)
{
    return std::fma(a, b, c);
}
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fsqrt_rn(float x) { return std::sqrt(x); }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __frsqrt_rn(float x) { return 1.0f / std::sqrt(x); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __saturatef(float x)
{
    return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
}
static inline float __uint2float_rn(unsigned x) { return (float)x; }
static inline float __int2float_rn(int x) { return (float)x; }
static inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
static inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }

/* The sine and cosine of pi x. */
static inline void sincospi(double x, double *sine, double *cosine)
{
    const double angle = 3.14159265358979323846 * (x - 2 * std::rint(x / 2));

    *sine = std::sin(angle);
    *cosine = std::cos(angle);
}
static inline void sincospi(float x, float *sine, float *cosine)
{
    double s, c;

    sincospi((double)x, &s, &c);
    *sine = (float)s;
    *cosine = (float)c;
}

/* The C library uses these names itself. */
#define __expf(x) std::exp((float)(x))
#define __exp2f(x) std::exp2((float)(x))
#define __logf(x) std::log((float)(x))
#define __log2f(x) std::log2((float)(x))
#define __sinf(x) std::sin((float)(x))
#define __cosf(x) std::cos((float)(x))
#define __powf(x, y) std::pow((float)(x), (float)(y))

/* As in CUDA: for mixed types, and double if one argument is. */
template <typename A, typename B>
inline typename std::common_type<A, B>::type min(A a, B b)
{
    typedef typename std::common_type<A, B>::type T;

    if constexpr (std::is_floating_point<T>::value)
        return std::fmin((T)a, (T)b);
    else
        return (T)b < (T)a ? (T)b : (T)a;
}

template <typename A, typename B>
inline typename std::common_type<A, B>::type max(A a, B b)
{
    typedef typename std::common_type<A, B>::type T;

    if constexpr (std::is_floating_point<T>::value)
        return std::fmax((T)a, (T)b);
    else
        return (T)a < (T)b ? (T)b : (T)a;
}

#endif /* HOSTCUDA_DEVICE_FUNCTIONS_H */
