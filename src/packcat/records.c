/*
 * records.c - packs back to the token records that they were made of.
 *
 * SPDX-License-Identifier: MIT
 */

#include "formats.h"

/*
 * A stream whose input failed is flushed but not finished: framed records
 * then lack their END, so that the next reader notices too.
 */
static bool copy(input *in, output *out)
{
    ps_sequence sequence;

    while (input_sequence(in, &sequence)) {
        if (ps_token_writer_put(out->writer, sequence.n_tok,
                                sequence.payload, &out->err) != PS_OK)
            return false;
    }
    if (in->failed)
        return output_flush(out);
    return ps_token_writer_finish(out->writer, &out->err) == PS_OK;
}

void convert_records(input *in, output *out)
{
    if (ps_token_writer_open(&out->writer, out->fd, &in->first.schema,
                             &out->err) == PS_OK)
        (void)copy(in, out);
    ps_token_writer_free(out->writer);
    out->writer = NULL;
}
