/*
 * mma.h - WMMA: products of 16 x 16 tiles of bfloat16, summed in float.
 *
 * A fragment is spread over a warp's lanes: element i of lane l is number
 * 8 * l + i of the tile by rows, which CUDA leaves open.  All 32 lanes must
 * come to each call, with the same pointer and stride; as on a GPU that does
 * not order their memory accesses.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HOSTCUDA_MMA_H
#define HOSTCUDA_MMA_H

#include "cuda_bf16.h"

namespace hostcuda {

/* Waits for the warp; faults unless all lanes come with that value. */
void meet(uint64_t value, const char *file, int line);
/* c += a * b, where each is a lane's 8 elements. */
void multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c,
              const char *file, int line);

template <typename T>
inline void check_tile(const T *p, unsigned stride, const char *file, int line)
{
    if ((uintptr_t)p % 32)
        fault(file, line, "a tile that does not lie at 32 bytes");
    if (stride * sizeof(T) % 16)
        fault(file, line, "a tile's stride is no multiple of 16 bytes");
    meet((uint64_t)(uintptr_t)p, file, line);
}

inline unsigned tile_offset(int i, unsigned stride, bool by_rows)
{
    const unsigned at = 8 * lane() + (unsigned)i;

    return by_rows ? at / 16 * stride + at % 16 : at % 16 * stride + at / 16;
}

} // namespace hostcuda

namespace nvcuda {
namespace wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major { static constexpr bool by_rows = true; };
struct col_major { static constexpr bool by_rows = false; };
enum layout_t { mem_row_major, mem_col_major };

template <typename Use, int m, int n, int k, typename T,
          typename Layout = void>
struct fragment {
    static_assert(m == 16 && n == 16 && k == 16, "of tiles, 16 x 16 x 16 only");
    static_assert(std::is_same<T, __nv_bfloat16>::value
                  || (std::is_same<T, float>::value
                      && std::is_same<Use, accumulator>::value),
                  "of types, bfloat16 and a float accumulator only");
    static constexpr int num_elements = 8;
    typedef T element_type;
    T x[num_elements];
};

template <typename Use, typename T, typename Layout>
inline void fill_fragment(fragment<Use, 16, 16, 16, T, Layout> &f,
                          const typename hostcuda::same<T>::type &value)
{
    for (T &x : f.x)
        x = value;
}

template <typename Use, typename T, typename Layout>
inline void load_matrix_sync(fragment<Use, 16, 16, 16, T, Layout> &f,
                             const T *p, unsigned stride, HOSTCUDA_AT)
{
    hostcuda::check_tile(p, stride, file, line);
    for (int i = 0; i < 8; i++)
        f.x[i] = p[hostcuda::tile_offset(i, stride, Layout::by_rows)];
}

template <typename T>
inline void load_matrix_sync(fragment<accumulator, 16, 16, 16, T> &f,
                             const T *p, unsigned stride, layout_t layout,
                             HOSTCUDA_AT)
{
    hostcuda::check_tile(p, stride, file, line);
    for (int i = 0; i < 8; i++)
        f.x[i] = p[hostcuda::tile_offset(i, stride, layout == mem_row_major)];
}

template <typename T>
inline void store_matrix_sync(T *p,
                              const fragment<accumulator, 16, 16, 16, T> &f,
                              unsigned stride, layout_t layout, HOSTCUDA_AT)
{
    hostcuda::check_tile(p, stride, file, line);
    for (int i = 0; i < 8; i++)
        p[hostcuda::tile_offset(i, stride, layout == mem_row_major)] = f.x[i];
}

template <typename LayoutA, typename LayoutB>
inline void
mma_sync(fragment<accumulator, 16, 16, 16, float> &d,
         const fragment<matrix_a, 16, 16, 16, __nv_bfloat16, LayoutA> &a,
         const fragment<matrix_b, 16, 16, 16, __nv_bfloat16, LayoutB> &b,
         const fragment<accumulator, 16, 16, 16, float> &c, HOSTCUDA_AT)
{
    d = c;
    hostcuda::multiply(a.x, b.x, d.x, file, line);
}

} // namespace wmma
} // namespace nvcuda

#endif /* HOSTCUDA_MMA_H */
