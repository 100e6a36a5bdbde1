/*
 * datatrove.c - tokens, sequence ends and a loss mask in datatrove's format.
 *
 * NAME contains the tokens of all sequences.  NAME.index has one u64 per
 * sequence: the number of tokens up to its end.  NAME.loss, which exists only
 * if there is a loss mask, has one byte per token: 1 if the token counts in the
 * loss, otherwise 0.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/message.h"
#include "packcat/elements.h"
#include "packcat/formats.h"

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

/* Refuses an old NAME.loss, which datatrove would apply to the new NAME. */
static bool check_no_old_mask(output *out)
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
        message_error("%s: exists already, but the packs have no channel '"
                      LOSS_CHANNEL "' to replace it: remove it first",
                      message_name(name));
        out->status = STATUS_FAILURE;
    }
    free(name);
    return out->status == STATUS_OK;
}

void convert_datatrove(input *in, output *out)
{
    const ps_schema *schema = &in->first.schema;
    const uint32_t loss = elements_channel(schema, LOSS_CHANNEL);
    const bool has_loss = loss != PS_TOKENS;
    const size_t width = ps_type_bytes(schema->token_type);
    ps_sequence sequence;
    uint64_t end = 0;

    if (!has_loss && !check_no_old_mask(out))
        return;
    if (has_loss && (schema->channels[loss].type != PS_U8 ||
                     schema->channels[loss].kind != PS_PER_TOKEN ||
                     schema->channels[loss].count != 0)) {
        input_fail(in, "channel '" LOSS_CHANNEL "' must be u8 per token for "
                   "--to=datatrove");
        return;
    }
    while (input_sequence(in, &sequence)) {
        const elements tokens = elements_of(schema, &sequence, PS_TOKENS);
        elements mask;

        end += sequence.n_tok;
        if (!output_put(out, tokens.bytes, tokens.n * width) ||
            !output_u64(out + 1, end))
            return;
        if (!has_loss)
            continue;
        mask = elements_of(schema, &sequence, loss);
        for (uint32_t i = 0; i < mask.n; i++)
            if (mask.bytes[i] > 1) {
                input_fail(in, "sequence %" PRIu64 ": '" LOSS_CHANNEL
                           "' of token %" PRIu32 " is %u, not 0 or 1",
                           sequence.id, i, (unsigned)mask.bytes[i]);
                return;
            }
        if (!output_put(out + 2, mask.bytes, mask.n))
            return;
    }
    if (!in->failed && output_flush(out) && output_flush(out + 1) && has_loss)
        output_flush(out + 2);
}
