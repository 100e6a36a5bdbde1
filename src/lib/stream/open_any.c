/*
 * open_any.c - finding out which kind of stream an input holds.
 *
 * SPDX-License-Identifier: MIT
 */

#include "base/error.h"
#include "format/pack_header.h"
#include "stream/pack_reader.h"
#include "stream/token_reader.h"

ps_result ps_open_any(int fd, ps_type raw_type, ps_pack_reader **packs,
                      ps_token_reader **tokens, ps_error *err)
{
    const unsigned char *head;
    size_t got;
    ps_input *input;
    ps_result r;

    *packs = NULL;
    *tokens = NULL;
    if (raw_type != PS_U16 && raw_type != PS_U32)
        return ps_fail(err, PS_ERR_ARGUMENT, "tokens must be u16 or u32");
    r = ps_input_open(&input, fd, err);
    if (r != PS_OK)
        return r;
    ps_input_set_head(input, ps_is_pack_head);
    r = ps_input_peek(input, 8, &head, &got, err);
    if (r != PS_OK) {
        ps_input_free(input);
        return r;
    }
    if (got == 8 && ps_is_pack_magic_prefix(head, got))
        return ps_pack_reader_start(packs, input, err);
    return ps_token_reader_start(tokens, input, raw_type, err);
}
