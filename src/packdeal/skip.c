/*
 * skip.c - the sequences that shares omit.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packdeal/skip.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/message.h"
#include "files/files.h"

bool skip_open(skip *s, const conf *c)
{
    *s = (skip){.conf = c};
    if (c->skip != NULL)
        s->status = ids_read(&s->ids, c->skip);
    return s->status == STATUS_OK;
}

/* Makes room for the sequences of a pack.  Returns false if out of memory. */
static bool make_room(skip *s, uint32_t n_seq)
{
    bool *omitted;

    if (n_seq <= s->room)
        return true;
    omitted = realloc(s->omitted, (size_t)n_seq * sizeof *omitted);
    if (omitted == NULL) {
        s->status = message_memory();
        return false;
    }
    s->omitted = omitted;
    s->room = n_seq;
    return true;
}

bool skip_find(skip *s, const input *in, const input_pack *pack, uint64_t step,
               uint32_t rank, const bool **omitted)
{
    const uint32_t n_seq = pack->pack.n_seq;
    uint32_t n = 0;

    *omitted = NULL;
    if (s->ids.n == 0)
        return true;
    if (!make_room(s, n_seq))
        return false;
    for (uint32_t i = 0; i < n_seq; i++) {
        const ps_piece piece = ps_pack_piece(&in->info, &pack->pack, i);
        const size_t at = ids_find(&s->ids, piece.id + pack->raise);

        s->omitted[i] = at < s->ids.n;
        s->ids.found[at] = true; /* there is one more than ids */
        n += s->omitted[i];
    }
    if (n == 0)
        return true;
    *omitted = s->omitted;
    s->n_packs++;
    if (s->conf->quiet)
        return true;
    if (n == n_seq)
        message_note("step %" PRIu64 ", rank %" PRIu32 ", pack %" PRIu64
                     ": omitted all; one token remains",
                     step, rank, pack->all);
    else
        message_note("step %" PRIu64 ", rank %" PRIu32 ", pack %" PRIu64
                     ": omitted %" PRIu32 " of %" PRIu32 " sequences",
                     step, rank, pack->all, n, n_seq);
    return true;
}

void skip_report(const skip *s)
{
    size_t found = 0;

    if (s->conf->skip == NULL || s->conf->quiet)
        return;
    for (size_t i = 0; i < s->ids.n; i++)
        found += s->ids.found[i];
    message_note("omitted %zu of the %zu sequences in %s, from %" PRIu64
                 " pack%s", found, s->ids.n, files_input_name(s->conf->skip),
                 s->n_packs, s->n_packs == 1 ? "" : "s");
}

void skip_close(skip *s)
{
    ids_free(&s->ids);
    free(s->omitted);
}
