/*
 * llmc.c - packs as the rows of a .bin file as llm.c reads them.
 *
 * The header is 256 times i32: a magic number and a version, which say how
 * wide a token is, and the number of tokens; the rest is zero.
 *
 * SPDX-License-Identifier: MIT
 */

#include <string.h>

#include "common/bytes.h"
#include "counted.h"
#include "formats.h"

#define HEADER_BYTES 1024

static uint64_t max(const ps_pack_info *info)
{
    return INT32_MAX / info->capacity;
}

/* Without tokens llm.c takes no file; so it stands while it is written. */
static const char *make_header(const ps_pack_info *info, uint64_t n,
                               char *header)
{
    unsigned char *p = (unsigned char *)header;
    const bool wide = info->schema.token_type == PS_U32;

    memset(header, 0, HEADER_BYTES);
    store_u32(p, wide ? 20240801 : 20240520);
    store_u32(p + 4, wide ? 7 : 1);
    store_u32(p + 8, n == PS_UNKNOWN ? 0 : (uint32_t)(n * info->capacity));
    return NULL;
}

static bool put_row(const input *in, output *out, const ps_pack *pack)
{
    return rows_put(out, input_info(in), pack);
}

void convert_llmc(input *in, output *out)
{
    static const counted form = {"llmc", HEADER_BYTES, make_header, max,
                                 put_row};

    counted_convert(&form, in, out);
}
