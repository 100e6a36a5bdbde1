/*
 * tfrecord.c - sequences as TFRecord examples with the features of BERT's
 * pre-training.
 *
 * An example is a Protocol Buffers message.  Its field 1 is a message that
 * contains a map, with one field 1 per entry.  An entry has a name in field 1
 * and a feature in field 2.  A feature has a list of i64 in field 3 or of f32
 * in field 2; the numbers of a list are a packed field 1.
 *
 * SPDX-License-Identifier: MIT
 */

#include "wire/tfrecord.h"

#include <inttypes.h>
#include <string.h>

#include "common/bytes.h"
#include "packcat/elements.h"
#include "packcat/formats.h"
#include "wire/protobuf.h"

/* Label of a token that is not masked. */
#define NO_LABEL PS_NO_LABEL

/* 1.0 as the bits of an f32. */
#define ONE UINT32_C(0x3f800000)

enum { MAP = 1, ENTRY = 1, KEY = 1, VALUE = 2, NUMBERS = 1 };

typedef enum list_type {
    FLOATS = 2,
    INTEGERS = 3
} list_type;

/* An example being built.  The index of an absent channel is PS_TOKENS. */
typedef struct example {
    proto_out message;
    uint32_t capacity;    /* tokens per example, with padding */
    uint32_t predictions; /* masked tokens per example, with padding */
    uint32_t pad_id;
    uint32_t types;  /* index of the channel token_type_ids */
    uint32_t labels; /* index of the channel labels */
    uint32_t next;   /* index of the channel next_sentence_label */
} example;

/* Marks for proto_end, one for each nested field of a feature. */
typedef struct feature {
    size_t entry;
    size_t value;
    size_t list;
    size_t numbers;
} feature;

static feature begin_feature(proto_out *to, const char *name, list_type type)
{
    feature f;

    f.entry = proto_begin(to, ENTRY);
    proto_put_bytes(to, KEY, name, strlen(name));
    f.value = proto_begin(to, VALUE);
    f.list = proto_begin(to, (uint32_t)type);
    f.numbers = proto_begin(to, NUMBERS);
    return f;
}

static void end_feature(proto_out *to, const feature *f)
{
    proto_end(to, f->numbers);
    proto_end(to, f->list);
    proto_end(to, f->value);
    proto_end(to, f->entry);
}

/* Writes the values, padded with `fill` to `n` values. */
static void put_values(proto_out *to, const char *name, const elements *list,
                       uint32_t n, uint32_t fill)
{
    const feature f = begin_feature(to, name, INTEGERS);

    for (uint32_t i = 0; i < list->n; i++)
        proto_put_varint(to, (uint64_t)elements_integer(list, i));
    for (uint32_t i = list->n; i < n; i++)
        proto_put_varint(to, fill);
    end_feature(to, &f);
}

typedef enum masked {
    POSITIONS,
    IDS,
    WEIGHTS
} masked;

/* Writes one value per masked token, padded with zeros to e->predictions. */
static void put_masked(example *e, const char *name, masked which,
                       const elements *labels)
{
    proto_out *const to = &e->message;
    const feature f = begin_feature(to, name,
                                    which == WEIGHTS ? FLOATS : INTEGERS);
    uint32_t n = 0;

    for (uint32_t i = 0; i < labels->n; i++) {
        const int64_t label = elements_integer(labels, i);

        if (label == NO_LABEL)
            continue;
        if (which == WEIGHTS)
            proto_put_fixed32(to, ONE);
        else
            proto_put_varint(to, which == IDS ? (uint64_t)label : i);
        n++;
    }
    for (; n < e->predictions; n++) {
        if (which == WEIGHTS)
            proto_put_fixed32(to, 0);
        else
            proto_put_varint(to, 0);
    }
    end_feature(to, &f);
}

/* Elements of a channel of the sequence; none if the channel is absent. */
static elements channel_of(const ps_schema *schema,
                           const ps_sequence *sequence, uint32_t channel)
{
    if (channel == PS_TOKENS)
        return (elements){.type = PS_U8};
    return elements_of(schema, sequence, channel);
}

static void make_example(example *e, const ps_schema *schema,
                         const ps_sequence *sequence)
{
    const elements tokens = elements_of(schema, sequence, PS_TOKENS);
    const elements types = channel_of(schema, sequence, e->types);
    const elements labels = channel_of(schema, sequence, e->labels);
    const elements next = channel_of(schema, sequence, e->next);
    proto_out *const to = &e->message;
    feature mask;
    size_t map;

    to->n = 0;
    map = proto_begin(to, MAP);
    put_values(to, "input_ids", &tokens, e->capacity, e->pad_id);
    mask = begin_feature(to, "input_mask", INTEGERS);
    for (uint32_t i = 0; i < e->capacity; i++)
        proto_put_varint(to, i < tokens.n);
    end_feature(to, &mask);
    put_values(to, "segment_ids", &types, e->capacity, 0);
    put_masked(e, "masked_lm_positions", POSITIONS, &labels);
    put_masked(e, "masked_lm_ids", IDS, &labels);
    put_masked(e, "masked_lm_weights", WEIGHTS, &labels);
    put_values(to, "next_sentence_labels", &next, 1, 0);
    proto_end(to, map);
}

/* ---- Requirements on a stream and a sequence ---- */

static bool check_schema(input *in, const example *e)
{
    const ps_schema *schema = &in->first.schema;
    const struct {
        uint32_t channel;
        ps_kind kind;
    } used[] = {{e->types, PS_PER_TOKEN},
                {e->labels, PS_PER_TOKEN},
                {e->next, PS_PER_SEQUENCE}};
    char shown[PS_TYPE_TEXT];
    ps_type type;

    for (size_t i = 0; i < sizeof used / sizeof used[0]; i++) {
        const bool per_token = used[i].kind == PS_PER_TOKEN;
        const ps_channel *c;

        if (used[i].channel == PS_TOKENS)
            continue;
        c = &schema->channels[used[i].channel];
        ps_channel_type(c, shown);
        if (c->type == PS_F32 || c->type == PS_F64 || c->type == PS_U64 ||
            c->count != 0)
            return input_fail(in, "channel '%s' has type %s, which "
                              "--to=tfrecord cannot write",
                              c->name, shown);
        if (c->kind != used[i].kind)
            return input_fail(in, "channel '%s' is per %s, but --to=tfrecord "
                              "needs one per %s", c->name,
                              per_token ? "sequence" : "token",
                              per_token ? "token" : "sequence");
    }
    if (e->labels == PS_TOKENS)
        return true;

    if (schema->labels == PS_LABELS_SHIFTED)
        return input_fail(in, "its labels are shifted to the next token, but "
                          "--to=tfrecord needs labels of masked tokens");
    /* Without -100, every token would count as masked. */
    type = schema->channels[e->labels].type;
    if (type != PS_I32 && type != PS_I64)
        return input_fail(in, "channel 'labels' has type %s, which cannot hold "
                          "the %d of unmasked tokens: it must be i32 or i64",
                          ps_type_name(type), NO_LABEL);
    return true;
}

static bool check_sequence(input *in, const example *e,
                           const ps_sequence *sequence)
{
    const ps_schema *schema = &in->first.schema;
    const struct {
        uint32_t channel;
        int64_t max;
    } used[] = {{e->types, INT32_MAX}, {e->labels, INT32_MAX}, {e->next, 1}};
    uint32_t n = 0;

    /* Check all values, and count the labels of masked tokens. */
    for (size_t k = 0; k < sizeof used / sizeof used[0]; k++) {
        const uint32_t c = used[k].channel;
        const elements list = channel_of(schema, sequence, c);

        for (uint32_t i = 0; i < list.n; i++) {
            const int64_t value = elements_integer(&list, i);

            if (c == e->labels && value == NO_LABEL)
                continue;
            if (value < 0 || value > used[k].max)
                return input_fail(in, "sequence %" PRIu64 ": channel '%s' "
                                  "has %" PRId64 ", which --to=tfrecord "
                                  "cannot write", sequence->id,
                                  schema->channels[c].name, value);
            n += c == e->labels;
        }
    }
    if (sequence->n_tok > e->capacity)
        return input_fail(in, "sequence %" PRIu64 " was split: it has "
                          "%" PRIu32 " tokens, but an example has at most "
                          "%" PRIu32 ": use --order=pack", sequence->id,
                          sequence->n_tok, e->capacity);
    if (n > e->predictions)
        return input_fail(in, "sequence %" PRIu64 " has %" PRIu32 " masked "
                          "tokens, more than --max-predictions=%" PRIu32,
                          sequence->id, n, e->predictions);
    return true;
}

void convert_tfrecord(input *in, output *out)
{
    const ps_schema *schema = &in->first.schema;
    example e = {.capacity = in->first.capacity,
                 .predictions = out->predictions,
                 .pad_id = in->first.pad_id,
                 .types = elements_channel(schema, "token_type_ids"),
                 .labels = elements_channel(schema, "labels"),
                 .next = elements_channel(schema, "next_sentence_label")};
    const proto_out *message = &e.message;
    unsigned char head[TFRECORD_HEAD_BYTES];
    unsigned char tail[TFRECORD_TAIL_BYTES];
    ps_sequence sequence;
    bool more = check_schema(in, &e);

    while (more && input_sequence(in, &sequence) &&
           check_sequence(in, &e, &sequence)) {
        make_example(&e, schema, &sequence);
        if (message->failed) {
            out->err = (ps_error){.code = PS_ERR_MEMORY};
            break;
        }
        tfrecord_make_head(message->n, head);
        store_u32(tail, tfrecord_checksum(message->bytes, message->n));
        output_put(out, head, sizeof head);
        output_put(out, message->bytes, message->n);
        more = output_put(out, tail, sizeof tail);
    }
    proto_free(&e.message);
}
