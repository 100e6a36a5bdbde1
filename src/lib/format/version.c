/*
 * version.c - the library's version, and the versioning rules of both formats.
 *
 * SPDX-License-Identifier: MIT
 */

#include "format/version.h"

#include <inttypes.h>
#include <stddef.h>

#include "base/error.h"
#include "bytes.h"

#define ENDIAN_PROBE UINT32_C(0x01020304)

#define STRING_OF(x) #x
#define VERSION_OF(a, b, c) STRING_OF(a) "." STRING_OF(b) "." STRING_OF(c)

const char *ps_version(void)
{
    return VERSION_OF(PACKSTREAM_VERSION_MAJOR, PACKSTREAM_VERSION_MINOR,
                      PACKSTREAM_VERSION_PATCH);
}

/* Offsets from the end of the magic.  The probe detects a wrong byte order. */
enum { AT_PROBE = 0, AT_MAJOR = 4, AT_MINOR = 6 };

void ps_version_encode(unsigned char *to, uint16_t major)
{
    store_u32(to + AT_PROBE, ENDIAN_PROBE);
    store_u16(to + AT_MAJOR, major);
    store_u16(to + AT_MINOR, PS_FORMAT_MINOR);
}

ps_result ps_version_decode(const unsigned char *from, uint16_t newest,
                            uint16_t *major, uint16_t *minor, ps_error *err)
{
    uint16_t is_major = load_u16(from + AT_MAJOR);
    uint16_t is_minor = load_u16(from + AT_MINOR);

    if (load_u32(from + AT_PROBE) != ENDIAN_PROBE || is_major == 0)
        return ps_fail(err, PS_ERR_CORRUPT, "damaged header");
    if (is_major > newest)
        return ps_fail(err, PS_ERR_UNSUPPORTED,
                       "format version %u.%u is newer than %u.%d: use a newer "
                       "packstream",
                       (unsigned)is_major, (unsigned)is_minor,
                       (unsigned)newest, PS_FORMAT_MINOR);
    if (major != NULL)
        *major = is_major;
    if (minor != NULL)
        *minor = is_minor;
    return PS_OK;
}

bool ps_is_version_known(const ps_pack_info *info)
{
    return info->version_minor <= PS_FORMAT_MINOR;
}

bool ps_is_minor_known(const unsigned char *from)
{
    return load_u16(from + AT_MINOR) <= PS_FORMAT_MINOR;
}

ps_result ps_incompat_check(uint64_t incompat, uint64_t known, ps_error *err)
{
    if ((incompat & ~known) == 0)
        return PS_OK;
    return ps_fail(err, PS_ERR_UNSUPPORTED,
                   "the stream uses unknown features (incompat flags "
                   "0x%" PRIx64 "): use a newer packstream",
                   incompat & ~known);
}
