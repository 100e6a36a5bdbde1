/*
 * digest.c - the digest by which a stream names its tokenizer.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/digest.h"

#include <stddef.h>
#include <string.h>
#include <sys/types.h>
#include <xxhash.h>

#include "cli/files.h"
#include "cli/message.h"
#include "tokcat/input.h"

int digest_file(const char *name, unsigned char digest[32])
{
    XXH3_state_t *state = XXH3_createState();
    const int fd = files_open_input(name);
    unsigned char block[65536];
    XXH128_canonical_t canonical;
    ssize_t n = -1;

    if (state == NULL)
        message_error("%s: out of memory", files_input_name(name));
    if (fd >= 0 && state != NULL) {
        (void)XXH3_128bits_reset(state);
        while ((n = input_read(fd, block, sizeof block)) > 0)
            (void)XXH3_128bits_update(state, block, (size_t)n);
        if (n < 0)
            message_errno("%s: cannot read", files_input_name(name));
        XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
        memset(digest, 0, 32);
        memcpy(digest, canonical.digest, sizeof canonical.digest);
    }
    if (fd >= 0)
        files_close_input(fd);
    (void)XXH3_freeState(state);
    return n == 0 ? STATUS_OK : STATUS_FAILURE;
}
