/*
 * jsonl.c - sequences as JSON, an object per line.
 *
 * The keys stand in the order of the channel table, and names need no
 * escapes, because the format allows letters, digits and underscores only.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>

#include "elements.h"
#include "formats.h"

static bool put_channel(output *out, const ps_channel *channel,
                        const elements *list)
{
    if (!output_text(out, ",\"") || !output_text(out, channel->name) ||
        !output_text(out, "\":"))
        return false;
    if (channel->kind == PS_PER_SEQUENCE)
        return elements_print(out, list, ',');
    return elements_print_list(out, list);
}

static bool put_object(output *out, const ps_schema *schema,
                       const ps_sequence *sequence)
{
    elements list = elements_of(schema, sequence, PS_TOKENS);

    if (!output_text(out, "{\"input_ids\":") ||
        !elements_print_list(out, &list))
        return false;
    for (uint32_t c = 0; c < schema->n_channels; c++) {
        list = elements_of(schema, sequence, c);
        if (!put_channel(out, &schema->channels[c], &list))
            return false;
    }
    return output_text(out, "}\n");
}

/* JSON has no word for an infinity; better none of it than a wrong one. */
static bool check_finite(input *in, const ps_sequence *sequence)
{
    const ps_schema *schema = &in->first.schema;

    for (uint32_t c = 0; c < schema->n_channels; c++) {
        const elements list = elements_of(schema, sequence, c);

        if (elements_find_infinity(&list) < list.n) {
            input_blame(in, "sequence %" PRIu64 ": channel '%s' holds an "
                        "infinity, which JSON cannot say",
                        sequence->id, schema->channels[c].name);
            return false;
        }
    }
    return true;
}

void convert_jsonl(input *in, output *out)
{
    ps_sequence sequence;

    while (input_sequence(in, &sequence) && check_finite(in, &sequence)) {
        if (!put_object(out, &in->first.schema, &sequence))
            return;
    }
    (void)output_flush(out);
}
