/*
 * rows.c - the tokens of each pack as a row of fixed length.
 *
 * SPDX-License-Identifier: MIT
 */

#include "formats.h"

/* Files with rows of one length may differ in all the rest. */
bool rows_put(output *out, const ps_pack_info *info, const ps_pack *pack)
{
    const ps_field *tokens = &info->fields[info->tokens_field];
    const size_t size = tokens->count * ps_type_bytes(tokens->channel.type);

    return output_put(out, pack->record + tokens->offset, size);
}

void convert_rows(input *in, output *out)
{
    ps_pack pack;

    while (input_pack(in, &pack))
        if (!rows_put(out, input_info(in), &pack))
            return;
    (void)output_flush(out);
}
