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

static bool digest_all(int fd, const char *name, XXH3_state_t *state)
{
    unsigned char block[65536];
    ssize_t n;

    while ((n = input_read(fd, block, sizeof block)) > 0)
        (void)XXH3_128bits_update(state, block, (size_t)n);
    if (n < 0)
        message_errno("%s: cannot read", files_input_name(name));
    return n == 0;
}

int digest_file(const char *name, unsigned char digest[32])
{
    XXH3_state_t *state = XXH3_createState();
    XXH128_canonical_t canonical;
    const int fd = files_open_input(name);
    int status = STATUS_FAILURE;

    if (state == NULL)
        message_error("%s: out of memory", files_input_name(name));
    if (fd >= 0 && state != NULL) {
        (void)XXH3_128bits_reset(state);
        if (digest_all(fd, name, state))
            status = STATUS_OK;
        XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
        memset(digest, 0, 32);
        memcpy(digest, canonical.digest, sizeof canonical.digest);
    }
    if (fd >= 0)
        files_close_input(fd);
    (void)XXH3_freeState(state);
    return status;
}
