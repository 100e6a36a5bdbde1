/*
 * datatrove.c - tokens, ends and a loss mask as datatrove keeps them.
 *
 * NAME is the tokens of all sequences; NAME.index has a u64 for each
 * sequence, the number of tokens up to its end; NAME.loss, if there is a
 * loss mask, a byte for each token, 1 where it counts and 0 where not.
 *
 * SPDX-License-Identifier: MIT
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "elements.h"
#include "formats.h"

#define LOSS_CHANNEL "loss_mask"
#define LOSS_ENDING ".loss"

output_names datatrove_names(const char *name, const ps_pack_info *info)
{
    const bool loss =
        elements_channel(&info->schema, LOSS_CHANNEL) != PS_TOKENS;

    return (output_names){.stem = strlen(name),
                          .n = loss ? 3 : 2,
                          .endings = {"", ".index", LOSS_ENDING}};
}

/* A mask that an older NAME had would be taken for that of this one. */
static bool check_no_loss(output *out)
{
    struct stat st;
    char *name = malloc(strlen(out->name) + sizeof LOSS_ENDING);

    if (name == NULL) {
        message_errno("%s", message_name(out->name));
        out->status = STATUS_FAILURE;
        return false;
    }
    (void)strcpy(name, out->name);
    (void)strcat(name, LOSS_ENDING);
    if (lstat(name, &st) == 0) {
        message_error("%s: is there, but the packs have no channel '"
                      LOSS_CHANNEL "' to replace it: remove it first",
                      message_name(name));
        out->status = STATUS_FAILURE;
    }
    free(name);
    return out->status == STATUS_OK;
}

static bool check_channel(input *in, uint32_t loss)
{
    const ps_channel *channel = &in->first.schema.channels[loss];

    if (channel->type == PS_U8 && channel->kind == PS_PER_TOKEN)
        return true;
    input_blame(in, "channel '" LOSS_CHANNEL "' is not u8 per token, as "
                "--to=datatrove needs it");
    return false;
}

static bool put_end(output *out, uint64_t end)
{
    unsigned char bytes[8];

    store_u64(bytes, end);
    return output_put(out, bytes, sizeof bytes);
}

static bool put_loss(input *in, output *out, const ps_sequence *sequence,
                     uint32_t channel)
{
    const elements loss =
        elements_of(&in->first.schema, sequence, channel);
    uint32_t i = 0;

    while (i < loss.n && loss.bytes[i] <= 1)
        i++;
    if (i < loss.n) {
        input_blame(in, "sequence %" PRIu64 ": '" LOSS_CHANNEL "' of token "
                    "%" PRIu32 " is %u, neither 0 nor 1",
                    sequence->id, i, (unsigned)loss.bytes[i]);
        return false;
    }
    return output_put(out, loss.bytes, loss.n);
}

static bool put_tokens(output *out, const ps_schema *schema,
                       const ps_sequence *sequence)
{
    const elements tokens = elements_of(schema, sequence, PS_TOKENS);

    return output_put(out, tokens.bytes,
                      tokens.n * ps_type_bytes(tokens.type));
}

static void put_all(input *in, output *out, uint32_t loss)
{
    ps_sequence sequence;
    uint64_t end = 0;

    while (input_sequence(in, &sequence)) {
        end += sequence.n_tok;
        if (!put_tokens(out, &in->first.schema, &sequence) ||
            !put_end(out + 1, end))
            return;
        if (loss != PS_TOKENS && !put_loss(in, out + 2, &sequence, loss))
            return;
    }
    if (!in->failed && output_flush(out) && output_flush(out + 1) &&
        loss != PS_TOKENS)
        (void)output_flush(out + 2);
}

void convert_datatrove(input *in, output *out)
{
    const uint32_t loss =
        elements_channel(&in->first.schema, LOSS_CHANNEL);

    if (loss == PS_TOKENS ? check_no_loss(out) : check_channel(in, loss))
        put_all(in, out, loss);
}
