/*
 * text.c - tokens without anything else: decimal ids, or bytes.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>

#include "elements.h"
#include "formats.h"

void convert_ids(input *in, output *out)
{
    ps_sequence sequence;

    while (input_sequence(in, &sequence)) {
        const elements tokens =
            elements_of(&input_info(in)->schema, &sequence, PS_TOKENS);

        if (!elements_print(out, &tokens, ' ') || !output_put(out, "\n", 1))
            return;
    }
    (void)output_flush(out);
}

/* The first token that is no byte; n if there is none. */
static uint32_t find_wide(const elements *tokens)
{
    uint32_t seen = 0;
    uint32_t i = 0;

    /* Without a way out of the loop compilers make it a vector one. */
    for (uint32_t k = 0; k < tokens->n; k++)
        seen |= elements_value(tokens, k);
    if (seen <= UINT8_MAX)
        return tokens->n;
    while (elements_value(tokens, i) <= UINT8_MAX)
        i++;
    return i;
}

static bool put_bytes(output *out, const elements *tokens)
{
    for (uint32_t done = 0; done < tokens->n;) {
        const uint32_t left = tokens->n - done;
        const uint32_t run = left < OUTPUT_ROOM ? left : OUTPUT_ROOM;
        char *at = output_room(out, run);

        if (at == NULL)
            return false;
        for (uint32_t i = 0; i < run; i++)
            at[i] = (char)elements_value(tokens, done + i);
        output_took(out, at + run);
        done += run;
    }
    return true;
}

void convert_bytes(input *in, output *out)
{
    ps_sequence sequence;

    while (input_sequence(in, &sequence)) {
        const elements tokens =
            elements_of(&input_info(in)->schema, &sequence, PS_TOKENS);
        const uint32_t wide = find_wide(&tokens);

        if (wide < tokens.n) {
            input_blame(in, "sequence %" PRIu64 ": token %" PRIu32
                        " of it is %" PRIu32 ", more than a byte holds",
                        sequence.id, wide, elements_value(&tokens, wide));
            break;
        }
        if (!put_bytes(out, &tokens))
            return;
    }
    (void)output_flush(out);
}
