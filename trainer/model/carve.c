/*
 * carve.c - lay out arrays in one block of device memory.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model/carve.h"

#include "model/sizes.h"

#define LINE ((size_t)TR_LINE_BYTES)

/* Largest size of a block, in bytes. */
#define MAX (PTRDIFF_MAX / LINE * LINE - LINE)

void *tr_carve_bytes(tr_carve *carve, size_t bytes)
{
    unsigned char *const place =
        carve->block ? carve->block + carve->used : NULL;

    if (bytes > MAX - carve->used)
        carve->too_large = true;
    else
        carve->used += (bytes + LINE - 1) / LINE * LINE;
    return place;
}

void *tr_carve_values(tr_carve *carve, size_t rows, size_t columns)
{
    return tr_carve_bytes(carve, tr_times(tr_times(rows, columns),
                                          carve->value));
}

void tr_carve_norm(tr_carve *carve, tr_norm_kept *norm, size_t rows,
                   size_t columns)
{
    norm->hat = tr_carve_values(carve, rows, columns);
    norm->inverse = tr_carve_bytes(carve, tr_times(rows, sizeof(real)));
}

size_t tr_carve_stride(const tr_carve *carve, size_t columns)
{
    const size_t multiple = TR_ROW_BYTES / carve->value;

    return (columns + multiple - 1) / multiple * multiple;
}

void tr_block_room_free(tr_block_room *r)
{
    if (r->block)
        r->device->ops->release(r->device, r->block);
    r->block = NULL;
    r->room = 0;
}

bool tr_block_room_fit(tr_block_room *r, size_t bytes)
{
    const size_t ample = tr_plus(r->room, r->room / 2);

    if (r->block && r->room >= bytes)
        return true;
    tr_block_room_free(r);
    if (ample > bytes)
        r->block = r->device->ops->alloc(r->device, ample);
    if (r->block) {
        r->room = ample;
        return true;
    }
    r->block = r->device->ops->alloc(r->device, bytes);
    r->room = r->block ? bytes : 0;
    return r->block;
}
