/*
 * joined.c - join pack streams into one.
 *
 * Packs are copied unchanged except for their index and the ids of their
 * sequences, which continue from the previous streams.  The maximum depth is
 * known only after the last header, so the depth in the new header is unknown;
 * END has it.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>

#include "packcat/formats.h"

/*
 * Checks that the next pack can be written after the sequences counted in
 * `sums`; otherwise ends the input with an error.  The output's header, with
 * its max_displacement, was written before later streams were known.
 */
static bool check_can_follow(input *in, const ps_totals *sums)
{
    const uint32_t displacement = input_info(in)->max_displacement;

    if (displacement > in->first.max_displacement)
        return input_fail(in, "its max_displacement is %" PRIu32 ", but the "
                          "first stream has only %" PRIu32 ": name this file "
                          "first",
                          displacement, in->first.max_displacement);
    if (sums->input_sequences > INT64_MAX)
        return input_fail(in, "the streams before it have %" PRIu64 " "
                          "sequences, more than a stream can have",
                          sums->input_sequences);
    return true;
}

/* Checks that END can store the sums; otherwise ends the input. */
static bool check_sums(input *in, const ps_totals *sums)
{
    return (sums->input_sequences < UINT64_MAX &&
            sums->input_tokens < UINT64_MAX &&
            sums->truncated_sequences < UINT64_MAX &&
            sums->truncated_tokens < UINT64_MAX) ||
           input_fail(in, "together with the streams before it, the input "
                      "counts exceed 64 bits");
}

void convert_packs(input *in, output *out)
{
    const ps_pack_writer_options options = {
        .compressed = out->zstd_level != 0,
        .level = (int)out->zstd_level,
        .threads = out->zstd_level != 0,
        .joined = true,
    };
    ps_pack_info info = in->first;
    ps_pack pack;
    ps_totals sums;
    ps_result r;

    info.depth = 0;
    r = ps_pack_writer_open(&out->packs, out->fd, &info, &options, &out->err);

    /* An unsupported header is an error of the input. */
    if (r == PS_ERR_UNSUPPORTED) {
        in->failed = true;
        in->err = out->err;
        out->err = (ps_error){0};
    }
    while (r == PS_OK && input_pack(in, &pack)) {
        sums = input_totals(in);
        if (!check_can_follow(in, &sums))
            break;
        ps_pack_writer_raise_ids(out->packs, sums.input_sequences);
        r = ps_pack_writer_put(out->packs, &pack, &out->err);
    }

    /* If the input failed, omit END, so that readers notice. */
    sums = input_totals(in);
    if (!in->failed)
        (void)check_sums(in, &sums);
    if (in->failed && out->packs != NULL)
        (void)output_flush(out);
    if (!in->failed && r == PS_OK) {
        r = ps_pack_writer_end(out->packs, &sums, NULL, &out->err);
        if (r == PS_OK)
            r = ps_pack_writer_finish(out->packs, &out->err);
    }
    ps_pack_writer_free(out->packs);
    out->packs = NULL;
}
