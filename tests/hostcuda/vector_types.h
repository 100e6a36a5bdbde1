/*
 * vector_types.h - CUDA's small vectors, and dim3.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOSTCUDA_VECTOR_TYPES_H
#define HOSTCUDA_VECTOR_TYPES_H

#define HOSTCUDA_VECTORS(name, type, align2, align4)                          \
    struct name##1 { type x; };                                               \
    struct alignas(align2) name##2 { type x, y; };                            \
    struct name##3 { type x, y, z; };                                         \
    struct alignas(align4) name##4 { type x, y, z, w; };                      \
    static inline name##1 make_##name##1(type x) { return {x}; }              \
    static inline name##2 make_##name##2(type x, type y) { return {x, y}; }   \
    static inline name##3 make_##name##3(type x, type y, type z)              \
    {                                                                         \
        return {x, y, z};                                                     \
    }                                                                         \
    static inline name##4 make_##name##4(type x, type y, type z, type w)      \
    {                                                                         \
        return {x, y, z, w};                                                  \
    }

HOSTCUDA_VECTORS(char, signed char, 2, 4)
HOSTCUDA_VECTORS(uchar, unsigned char, 2, 4)
HOSTCUDA_VECTORS(short, short, 4, 8)
HOSTCUDA_VECTORS(ushort, unsigned short, 4, 8)
HOSTCUDA_VECTORS(int, int, 8, 16)
HOSTCUDA_VECTORS(uint, unsigned, 8, 16)
HOSTCUDA_VECTORS(longlong, long long, 16, 16)
HOSTCUDA_VECTORS(ulonglong, unsigned long long, 16, 16)
HOSTCUDA_VECTORS(float, float, 8, 16)
HOSTCUDA_VECTORS(double, double, 16, 16)

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1)
        : x(x_), y(y_), z(z_) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

#endif /* HOSTCUDA_VECTOR_TYPES_H */
