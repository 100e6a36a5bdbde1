/*
 * digest.c - the digest of the packs, and the proof that packs that
 * are made anew are those that were made before.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>

#include "base/error.h"
#include "format/digest.h"
#include "packer/packer.h"

/* The digest is a chain of the checksums, so one link proves all before. */
void ps_packer_follow(void *context, const unsigned char *bytes, size_t n)
{
    ps_packer *p = context;
    ps_proof *proof = &p->proof;

    for (size_t at = 0; at < n; at += p->info.record_bytes) {
        p->digest = ps_pack_digest(p->digest, bytes + at);
        proof->followed++;
        if (proof->followed == proof->packs && p->digest != proof->digest)
            proof->differs = true;
    }
}

ps_result ps_packer_is_proved(const ps_packer *p, ps_error *err)
{
    if (p->proof.packs <= p->proof.followed && !p->proof.differs)
        return PS_OK;
    return ps_fail(err, PS_ERR_CORRUPT,
                   "the input is not what it was when the state was saved, "
                   "or was flushed elsewhere: the first %" PRIu64
                   " packs are other ones",
                   p->proof.packs);
}

ps_result ps_packer_proved(ps_packer *p, ps_error *err)
{
    ps_result r = ps_packer_flush(p, err);

    return r == PS_OK ? ps_packer_is_proved(p, err) : r;
}
