/*
 * raw.c - fuzzing target: raw token records.
 *
 * The input: how to read (tokens.h), then the stream.  The reader accepts a
 * stream exactly if the few lines here do.
 *
 * SPDX-License-Identifier: MIT
 */

#include "bytes.h"
#include "io/zstd_frame.h"
#include "tokens.h"

/* Walks over whole records; false if anything is wrong with one. */
static bool walk(const token_way *way, input in, token_yield *y)
{
    size_t width = ps_type_bytes(way->raw_type);

    while (in.left > 0) {
        uint32_t count = in.left >= 4 ? load_u32(in.at) : 0;
        size_t got;

        if (in.left < 4 || count > (in.left - 4) / width ||
            (count == 0 && !way->flushes && !way->goes_on))
            return false;
        (void)take_bytes(&in, 4, &got);
        for (uint32_t i = 0; i < count; i++) {
            const unsigned char *p = take_bytes(&in, width, &got);
            uint32_t token = width == 2 ? load_u16(p) : load_u32(p);

            if (way->vocab_size > 0 && token >= way->vocab_size &&
                !way->goes_on)
                return false;
        }
        y->sequences += count > 0 || !way->flushes;
        y->flushes += count == 0 && way->flushes;
        y->tokens += count;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    token_way way = take_token_way(&in);
    token_yield y = read_tokens_twice(&way, in.at, in.left);
    token_yield own = {.hash = 0};

    if (in.left >= 4 && ps_is_frame_magic(in.at))
        return 0;
    must(walk(&way, in, &own) == (y.result == PS_END));
    if (y.result == PS_END)
        must(own.sequences == y.sequences && own.tokens == y.tokens &&
             own.flushes == y.flushes && y.read == in.left);
    return 0;
}
