/*
 * tfrecord.c - TFRecord files of BERT pre-training samples.  Each sample, a
 * tf.train.Example, becomes a sequence with channels.
 *
 * The input_ids where input_mask is 1 become the tokens.  segment_ids become
 * the channel token_type_ids, and next_sentence_labels the channel
 * next_sentence_label.  The masked_lm_ids of weight 1 become labels at the
 * masked positions.  The first sample determines the channels.
 *
 * SPDX-License-Identifier: MIT
 */

#include "wire/tfrecord.h"

#include <inttypes.h>
#include <string.h>

#include "common/bytes.h"
#include "tokcat/reader.h"
#include "tokcat/tf_example.h"

/* Maximum size of a record; a sample of 512 tokens has about 5000 bytes. */
#define MAX_RECORD ((uint64_t)64 * 1024 * 1024)

enum { IDS, MASK, SEGMENTS, PLACES, LABELS, WEIGHTS, NEXT, FEATURES };

static const char *const names[FEATURES] = {
    [IDS] = "input_ids",
    [MASK] = "input_mask",
    [SEGMENTS] = "segment_ids",
    [PLACES] = "masked_lm_positions",
    [LABELS] = "masked_lm_ids",
    [WEIGHTS] = "masked_lm_weights",
    [NEXT] = "next_sentence_labels",
};

/*
 * The channels and their features.  `labels` has three features; only the first
 * is listed.
 */
static const struct {
    int feature;
    const char *name;
    ps_kind kind;
} channels[] = {
    {SEGMENTS, "token_type_ids", PS_PER_TOKEN},
    {PLACES, "labels", PS_PER_TOKEN},
    {NEXT, "next_sentence_label", PS_PER_SEQUENCE},
};

#define CHANNELS (sizeof channels / sizeof channels[0])

/* Label of tokens that are not masked: -100, the fill of the channel. */
#define NO_LABEL UINT32_C(0xffffff9c)

typedef struct sample {
    example_list lists[FEATURES];
    size_t length;  /* elements of input_ids */
    size_t slots;   /* elements of masked_lm_positions */
    uint32_t n_tok; /* ones in input_mask */
} sample;

static bool has(const sample *s, int feature)
{
    return s->lists[feature].kind != EXAMPLE_ABSENT;
}

/* ---------------------------------------------------------------------
 * Checks
 */

/*
 * Checks that ids and mask are present, that either all or none of the
 * masked_lm_ lists are present, and that lengths match.
 */
static int check_lists(const reader *r, sample *s)
{
    const bool masked = has(s, PLACES) || has(s, LABELS) || has(s, WEIGHTS);
    size_t n[FEATURES] = {0};

    for (int i = 0; i < FEATURES; i++) {
        const bool floats = i == WEIGHTS;

        if (!has(s, i)) {
            if (i <= MASK || (masked && i >= PLACES && i <= WEIGHTS))
                return reader_bad(r, "no feature '%s'", names[i]);
        } else if (s->lists[i].kind !=
                   (floats ? EXAMPLE_FLOATS : EXAMPLE_INTEGERS)) {
            return reader_bad(r, "%s: not a list of %s", names[i],
                              floats ? "floats" : "integers");
        }
    }

    for (int i = 0; i < FEATURES; i++) {
        const int other = i <= SEGMENTS ? IDS : PLACES;
        bool good;

        if (!has(s, i))
            continue;
        good = example_count(&s->lists[i], &n[i]);
        if (i == NEXT && (!good || n[i] != 1))
            return reader_bad(r, "%s: %zu values, expected one", names[i],
                              n[i]);
        if (!good)
            return reader_bad(r, "%s: malformed list", names[i]);
        if (i != NEXT && n[i] != n[other])
            return reader_bad(r, "%s has length %zu, but %s has length %zu",
                              names[i], n[i], names[other], n[other]);
    }
    s->length = n[IDS];
    s->slots = n[PLACES];
    return STATUS_OK;
}

/* The first sample defines the channels; all others must match it. */
static int check_channels(reader *r, const sample *s)
{
    const bool first = r->out.writer == NULL;

    for (size_t i = 0; i < CHANNELS; i++) {
        const int feature = channels[i].feature;
        const bool wanted =
            reader_find_channel(r, channels[i].name) != PS_TOKENS;
        int status = STATUS_OK;

        if (first && has(s, feature))
            status = reader_add_channel(r, channels[i].name,
                                        channels[i].kind);
        else if (wanted && !has(s, feature))
            status = reader_bad(r, "no feature '%s', which the first record "
                                "has: use --ignore", names[feature]);
        else if (!wanted && has(s, feature))
            status = reader_bad(r, "the feature '%s' is not in the first "
                                "record: use --ignore", names[feature]);
        if (status != STATUS_OK)
            return status;
    }
    if (first && has(s, PLACES))
        r->out.schema.labels = PS_LABELS_ALIGNED;
    return reader_start(r, 2);
}

/* ---------------------------------------------------------------------
 * Values, whose number check_lists has verified
 */

static uint64_t next(example_list *list)
{
    uint64_t value = 0;

    (void)example_next(list, &value);
    return value;
}

static int bad_value(const reader *r, int feature, size_t i, uint64_t value,
                     const char *why)
{
    const char *sign = value > INT64_MAX ? "-" : "";

    if (value > INT64_MAX)
        value = 0 - value;
    return reader_bad(r, "%s[%zu]: %s%" PRIu64 " %s", names[feature], i,
                      sign, value, why);
}

static int bad_id(const reader *r, int feature, size_t i, uint64_t value)
{
    char why[READER_WHY_BYTES];

    return bad_value(r, feature, i, value,
                     value > INT64_MAX ? "is negative"
                                       : reader_above_max(r, why));
}

/* Stores the label of each prediction of weight 1 at its position. */
static int store_labels(const reader *r, sample *s, unsigned char *to)
{
    const uint32_t max = reader_max_id(r);

    for (uint32_t i = 0; i < s->n_tok; i++)
        store_u32(to + 4 * (size_t)i, NO_LABEL);
    for (size_t i = 0; i < s->slots; i++) {
        const uint64_t place = next(&s->lists[PLACES]);
        const uint64_t label = next(&s->lists[LABELS]);
        const uint32_t bits = (uint32_t)next(&s->lists[WEIGHTS]);
        float weight;

        memcpy(&weight, &bits, sizeof weight);
        if (weight == 0)
            continue;
        if (weight != 1)
            return reader_bad(r, "%s[%zu]: %g is not 0 or 1: labels have no "
                              "weights", names[WEIGHTS], i,
                              (double)weight);
        if (place >= s->n_tok)
            return bad_value(r, PLACES, i, place, "is not the position of a "
                             "token");
        if (load_u32(to + 4 * place) != NO_LABEL)
            return bad_value(r, PLACES, i, place, "is listed twice");
        if (label > max || label > INT32_MAX)
            return bad_id(r, LABELS, i, label);
        store_u32(to + 4 * place, (uint32_t)label);
    }
    return STATUS_OK;
}

/* Stores the channel of a feature. */
static int store_channel(const reader *r, sample *s, int feature,
                         unsigned char *to)
{
    uint64_t value;

    if (feature == PLACES)
        return store_labels(r, s, to);
    if (feature == NEXT) {
        value = next(&s->lists[NEXT]);
        /* Shift the range of i32 so that it starts at 0. */
        if (value + (UINT64_C(1) << 31) > UINT32_MAX)
            return bad_value(r, NEXT, 0, value, "does not fit i32");
        store_u32(to, (uint32_t)(value & UINT32_MAX));
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < s->n_tok; i++) {
        value = next(&s->lists[SEGMENTS]);
        if (value > UINT8_MAX)
            return bad_value(r, SEGMENTS, i, value, "does not fit u8");
        to[i] = (unsigned char)value;
    }
    return STATUS_OK;
}

/* Reserves memory for the sample, and stores its tokens and channels. */
static int store_sample(reader *r, sample *s)
{
    const ps_schema *schema = &r->out.schema;
    const size_t width = ps_type_bytes(schema->token_type);
    const uint32_t max = reader_max_id(r);
    int status = records_reserve(&r->out, (size_t)ps_payload_bytes(
                                     schema, s->n_tok));

    if (status != STATUS_OK)
        return status;
    for (uint32_t i = 0; i < s->n_tok; i++) {
        const uint64_t id = next(&s->lists[IDS]);

        if (id > max)
            return bad_id(r, IDS, i, id);
        store_low(r->out.payload + i * width, id, width);
    }
    for (size_t i = 0; i < CHANNELS && status == STATUS_OK; i++) {
        const uint32_t k = reader_find_channel(r, channels[i].name);

        if (k != PS_TOKENS)
            status = store_channel(r, s, channels[i].feature,
                                   r->out.payload +
                                       ps_payload_offset(schema, k,
                                                         s->n_tok));
    }
    return status;
}

static int put_sample(reader *r, const unsigned char *bytes, size_t n)
{
    sample s = {.length = 0};
    int status;

    if (!example_find(bytes, n, names, FEATURES, s.lists))
        return reader_bad(r, "not a tf.train.Example");

    /* Treat ignored channels as absent. */
    for (size_t i = 0; i < CHANNELS; i++)
        if (has(&s, channels[i].feature) &&
            reader_ignores(r, channels[i].name))
            s.lists[channels[i].feature].kind = EXAMPLE_ABSENT;
    if (!has(&s, PLACES) && (has(&s, LABELS) || has(&s, WEIGHTS)) &&
        reader_ignores(r, "labels"))
        s.lists[LABELS].kind = s.lists[WEIGHTS].kind = EXAMPLE_ABSENT;

    status = check_lists(r, &s);
    if (status != STATUS_OK)
        return status;

    /* Count the ones of the mask.  After the first 0, only zeros are valid. */
    for (size_t i = 0; i < s.length; i++) {
        const uint64_t value = next(&s.lists[MASK]);

        if (value > 1)
            return bad_value(r, MASK, i, value, "is not 0 or 1");
        if (value == 1 && s.n_tok < i)
            return bad_value(r, MASK, i, value, "comes after a 0");
        if (value == 1 && s.n_tok == reader_max_tokens(r))
            return reader_too_large(r);
        s.n_tok += value == 1;
    }
    if (s.n_tok == 0)
        return reader_empty(r, 1);

    status = check_channels(r, &s);
    if (status == STATUS_OK)
        status = store_sample(r, &s);
    if (status == STATUS_OK)
        status = state_put(&r->state, &r->out, s.n_tok, r->out.payload);
    return status;
}

/* ---------------------------------------------------------------------
 * The file
 */

static int cut_off(const reader *r)
{
    return reader_bad(r, "the file ends within the record, at byte %" PRIu64,
                      r->in.next);
}

static int read_tfrecord(reader *r)
{
    input_file *in = &r->in;

    for (r->place = (reader_place){.unit = "record"};; r->place.number++) {
        const unsigned char *p;
        uint64_t n;
        size_t bytes;
        size_t ready;
        int status;

        r->place.offset = input_offset(in);
        status = input_need(in, TFRECORD_HEAD_BYTES, &ready);
        if (status != STATUS_OK || ready == 0)
            return status;
        if (ready < TFRECORD_HEAD_BYTES)
            return cut_off(r);
        p = input_at(in);
        if (!tfrecord_take_head(p, &n))
            return reader_bad(r, "the length's checksum does not match");
        if (n > MAX_RECORD)
            return reader_bad(r, "a record of %" PRIu64 " bytes exceeds the "
                              "limit of %" PRIu64, n, MAX_RECORD);

        bytes = TFRECORD_HEAD_BYTES + (size_t)n + TFRECORD_TAIL_BYTES;
        status = input_need(in, bytes, &ready);
        if (status != STATUS_OK)
            return status;
        if (ready < bytes)
            return cut_off(r);
        p = input_at(in) + TFRECORD_HEAD_BYTES;
        if (tfrecord_checksum(p, (size_t)n) != load_u32(p + n))
            return reader_bad(r, "the record's checksum does not match");
        status = put_sample(r, p, (size_t)n);
        if (status != STATUS_OK)
            return status;
        input_take(in, bytes);
        r->out.figures.bytes += bytes;
    }
}

const form_reader reader_tfrecord = {
    .unit = "record",
    .learns = true,
    .expected = "TFRecord",
    .read = read_tfrecord,
};
