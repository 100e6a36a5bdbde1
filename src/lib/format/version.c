/*
 * version.c - the versioning rules that both formats share.
 *
 * SPDX-License-Identifier: MIT
 */

#include "format/version.h"

#include <inttypes.h>
#include <stddef.h>

#include "base/error.h"
#include "bytes.h"

#define ENDIAN_PROBE UINT32_C(0x01020304)

void ps_version_encode(unsigned char *to)
{
    store_u32(to, ENDIAN_PROBE);
    store_u16(to + 4, PS_FORMAT_MAJOR);
    store_u16(to + 6, PS_FORMAT_MINOR);
}

ps_result ps_version_decode(const unsigned char *from, uint16_t *major,
                            uint16_t *minor, ps_error *err)
{
    uint16_t is = load_u16(from + 4);

    if (load_u32(from) != ENDIAN_PROBE || is == 0)
        return ps_fail(err, PS_ERR_CORRUPT, "damaged header");
    if (is > PS_FORMAT_MAJOR)
        return ps_fail(err, PS_ERR_UNSUPPORTED,
                       "format version %u.%u is newer than %d.%d, the newest "
                       "known here",
                       (unsigned)is, (unsigned)load_u16(from + 6),
                       PS_FORMAT_MAJOR, PS_FORMAT_MINOR);
    if (major != NULL)
        *major = is;
    if (minor != NULL)
        *minor = load_u16(from + 6);
    return PS_OK;
}

bool ps_is_version_known(const ps_pack_info *info)
{
    return info->version_minor <= PS_FORMAT_MINOR;
}

ps_result ps_incompat_check(uint64_t incompat, uint64_t known, ps_error *err)
{
    if ((incompat & ~known) == 0)
        return PS_OK;
    return ps_fail(err, PS_ERR_UNSUPPORTED,
                   "the stream uses features that are unknown here "
                   "(incompat flags 0x%" PRIx64 ")",
                   incompat & ~known);
}
