/*
 * rows.c - the tokens of each pack as a row of fixed length.
 *
 * SPDX-License-Identifier: MIT
 */

#include "formats.h"

void convert_rows(input *in, output *out)
{
    ps_pack pack;

    while (input_pack(in, &pack)) {
        /* Files with rows of one length may differ in all the rest. */
        const ps_pack_info *info = input_info(in);
        const ps_field *tokens = &info->fields[info->tokens_field];
        const size_t size =
            tokens->count * ps_type_bytes(tokens->channel.type);

        if (!output_put(out, pack.record + tokens->offset, size))
            return;
    }
    (void)output_flush(out);
}
