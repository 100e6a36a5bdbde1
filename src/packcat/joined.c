/*
 * joined.c - pack streams, one behind the other, as one stream.
 *
 * Packs stay as they are, but for their index and the ids of their sequences,
 * which go on behind those of the streams before.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>

#include "packcat/formats.h"

/*
 * Whether the next pack can be written.  The header says how far packs disturb
 * the order, and was written when no other stream was known.
 */
static bool can_follow(input *in, uint64_t before)
{
    const uint32_t window = input_info(in)->window;

    if (window > in->first.window)
        return input_fail(in, "its window is %" PRIu32 ", and that of the "
                          "first stream only %" PRIu32 ": name it first",
                          window, in->first.window);
    if (before > INT64_MAX)
        return input_fail(in, "the streams before it count %" PRIu64
                          " sequences, more than there can be", before);
    return true;
}

void convert_packs(input *in, output *out)
{
    const ps_pack_writer_options options = {
        .compressed = out->zstd_level != 0,
        .level = (int)out->zstd_level,
        .threads = out->zstd_level != 0,
        .joined = true,
    };
    ps_pack pack;
    ps_totals before;
    ps_result r = ps_pack_writer_open(&out->packs, out->fd, &in->first,
                                      &options, &out->err);

    /* What is wrong with a header is wrong with the input. */
    if (r == PS_ERR_UNSUPPORTED) {
        in->failed = true;
        in->err = out->err;
        out->err = (ps_error){0};
    }
    while (r == PS_OK && input_pack(in, &pack)) {
        before = input_totals(in);
        if (!can_follow(in, before.input_sequences))
            break;
        ps_pack_writer_raise_ids(out->packs, before.input_sequences);
        r = ps_pack_writer_put(out->packs, &pack, &out->err);
    }

    /* A stream whose input failed has no END: readers notice it, too. */
    if (in->failed && out->packs != NULL)
        (void)output_flush(out);
    if (!in->failed && r == PS_OK) {
        before = input_totals(in);
        r = ps_pack_writer_end(out->packs, &before, NULL, &out->err);
        if (r == PS_OK)
            r = ps_pack_writer_finish(out->packs, &out->err);
    }
    ps_pack_writer_free(out->packs);
    out->packs = NULL;
}
