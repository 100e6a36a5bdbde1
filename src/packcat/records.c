/*
 * records.c - sequences as token records, as lines of decimal ids, or as bytes.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>

#include "packcat/elements.h"
#include "packcat/formats.h"

void convert_records(input *in, output *out)
{
    ps_sequence sequence;
    ps_result result = ps_token_writer_open(&out->writer, out->fd,
                                            &in->first.schema, &out->err);

    while (result == PS_OK && input_sequence(in, &sequence))
        result = ps_token_writer_put(out->writer, sequence.n_tok,
                                     sequence.payload, &out->err);
    /*
     * If the input failed, flush but do not finish, so that framed records lack
     * END and readers notice.
     */
    if (in->failed)
        (void)output_flush(out);
    else if (result == PS_OK)
        result = ps_token_writer_finish(out->writer, &out->err);
    ps_token_writer_free(out->writer);
    out->writer = NULL;
}

void convert_ids(input *in, output *out)
{
    ps_sequence sequence;

    while (input_sequence(in, &sequence)) {
        const elements tokens =
            elements_of(&input_info(in)->schema, &sequence, PS_TOKENS);

        if (!elements_print(out, &tokens, ' ') || !output_put(out, "\n", 1))
            return;
    }
}

void convert_bytes(input *in, output *out)
{
    ps_sequence sequence;

    while (input_sequence(in, &sequence)) {
        const elements tokens =
            elements_of(&input_info(in)->schema, &sequence, PS_TOKENS);
        uint32_t wide = 0;
        uint32_t run;

        while (wide < tokens.n && elements_value(&tokens, wide) <= UINT8_MAX)
            wide++;
        if (wide < tokens.n) {
            input_fail(in, "sequence %" PRIu64 ": token %" PRIu32 " is "
                       "%" PRIu32 ", which does not fit a byte",
                       sequence.id, wide, elements_value(&tokens, wide));
            return;
        }
        for (uint32_t done = 0; done < tokens.n; done += run) {
            const uint32_t left = tokens.n - done;
            char *at;

            run = left < OUTPUT_BUFFER_BYTES ? left : OUTPUT_BUFFER_BYTES;
            at = output_reserve(out, run);
            if (at == NULL)
                return;
            for (uint32_t i = 0; i < run; i++)
                at[i] = (char)elements_value(&tokens, done + i);
            out->used += run;
        }
    }
}
