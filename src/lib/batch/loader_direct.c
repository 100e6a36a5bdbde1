/*
 * loader_direct.c - batches of a plain regular file, read straight into
 * their buffers by several threads.
 *
 * To read a file that the system has in memory is to copy it, and who copies
 * a pack had better check it as well, while its cache has it.  So threads
 * read different batches at the same time, each from where it must lie if
 * nothing but packs is before it; what remains to be done in order is little.
 * Whatever is no pack, such as END and damage, is left to the reader, which
 * reads it again and says what it is.
 *
 * SPDX-License-Identifier: MIT
 */

#include "batch/loader.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* Read at once, so that they are in the cache when they are checked. */
#define CACHED_BYTES ((size_t)64 << 10)

bool ps_loader_can_read_direct(ps_loader *l)
{
    const ps_input *input = l->reader->input;
    const off_t here = lseek(ps_input_descriptor(input), 0, SEEK_CUR);

    if (l->options.ranks != 1 || here < 0 || !ps_input_can_skip(input))
        return false;
    l->next_offset = l->likely_start = ps_input_offset(input);
    l->input_start = (int64_t)here - (int64_t)input->left -
                     (int64_t)l->next_offset;
    return true;
}

/* All `n` bytes at a place in the input, or false. */
static bool read_at(const ps_loader *l, unsigned char *to, size_t n,
                    uint64_t at)
{
    const int fd = ps_input_descriptor(l->reader->input);

    if (at > (uint64_t)INT64_MAX / 2 - n || l->input_start > INT64_MAX / 2)
        return false;
    while (n > 0) {
        ssize_t got = pread(fd, to, n, (off_t)(l->input_start + (int64_t)at));

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return true;
}

static bool check_record(const ps_loader *l, const unsigned char *bytes,
                         ps_pack *pack)
{
    bool is_end;

    return ps_record_open(&l->info, bytes, &is_end, NULL) == PS_OK &&
           !is_end && ps_record_decode(&l->info, bytes, pack, NULL) == PS_OK;
}

/* Reads packs `p` to `end`; false if they must be read again. */
static bool read_some(const ps_loader *l, ps_slot *slot, uint32_t p,
                      uint32_t end)
{
    const size_t size = l->info.record_bytes;

    if (!read_at(l, slot->memory + p * size, (end - p) * size,
                 slot->offset + p * size))
        return false;
    for (; p < end; p++) {
        if (!check_record(l, slot->memory + p * size, &slot->heads[p]))
            return false;
        slot->heads[p].offset = slot->offset + p * size;
    }
    return true;
}

void ps_loader_read_direct(const ps_loader *l, ps_slot *slot)
{
    const uint32_t n = l->options.packs;
    uint32_t some = (uint32_t)(CACHED_BYTES / l->info.record_bytes);

    if (some == 0)
        some = 1;
    slot->must_reread = false;
    for (uint32_t p = 0; !slot->must_reread && p < n; p += some) {
        if (some > n - p)
            some = n - p;
        slot->must_reread = !read_some(l, slot, p, p + some);
    }
}

/* Whether they are the next packs of the stream, all of them. */
static bool are_next(const ps_loader *l, const ps_slot *slot)
{
    const uint64_t next = l->reader->place.seen.packs;

    for (uint32_t p = 0; p < l->options.packs; p++)
        if (slot->heads[p].index != next + p)
            return false;
    return true;
}

/* The reader goes to where the last batch ended, and reads. */
static void read_as_ever(ps_loader *l, ps_slot *slot)
{
    ps_input *input = l->reader->input;

    slot->result = ps_input_skip(
        input, l->next_offset - ps_input_offset(input), &slot->err);
    if (slot->result == PS_OK)
        ps_loader_fill(l, slot);
    l->next_offset = ps_input_offset(input);
}

void ps_loader_take_direct(ps_loader *l, ps_slot *slot)
{
    if (slot->must_reread || slot->offset != l->next_offset ||
        !are_next(l, slot)) {
        read_as_ever(l, slot);
        return;
    }
    ps_loader_begin(l, slot);
    slot->batch.n_packs = l->options.packs;
    for (uint32_t p = 0; p < l->options.packs; p++) {
        slot->heads[p].stream = l->reader->place.stream;
        ps_pack_reader_count(l->reader, &slot->heads[p]);
    }
    l->next_offset += l->bytes;
    slot->result = PS_OK;
    ps_loader_finish(l, slot);
}
