/*
 * bert.c - a sample of BERT's pre-training as a sequence with channels.
 *
 * input_ids as far as input_mask is 1 become the tokens, segment_ids the
 * channel token_type_ids, next_sentence_labels next_sentence_label.  The
 * masked_lm_ of weight 1 become labels, which stand at the places of what
 * was masked.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/bert.h"

#include <inttypes.h>
#include <string.h>

#include "common/bytes.h"
#include "tokcat/tf_example.h"

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

/* What becomes a channel; where several features do, the first of them. */
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

/* The label of what was not masked, the fill of the channel. */
#define NO_LABEL UINT32_C(0xffffff9c)

typedef struct sample {
    example_list lists[FEATURES];
    size_t length; /* of input_ids */
    size_t slots;  /* of masked_lm_positions */
    uint32_t n_tok;
} sample;

/* ---------------------------------------------------------------------
 * Is it one?
 */

static bool has(const sample *s, int feature)
{
    return s->lists[feature].kind != EXAMPLE_ABSENT;
}

static int check_kind(const job *j, const sample *s, int feature)
{
    const example_kind wanted =
        feature == WEIGHTS ? EXAMPLE_FLOATS : EXAMPLE_INTEGERS;

    if (s->lists[feature].kind == wanted)
        return STATUS_OK;
    if (!has(s, feature))
        return job_bad(j, "no feature '%s'", names[feature]);
    return job_bad(j, "%s: no list of %s", names[feature],
                   feature == WEIGHTS ? "floats" : "integers");
}

/* The three of masked_lm_ go together. */
static int check_kinds(const job *j, const sample *s)
{
    const bool masked = has(s, PLACES) || has(s, LABELS) || has(s, WEIGHTS);
    int status = check_kind(j, s, IDS);

    for (int i = MASK; i < FEATURES && status == STATUS_OK; i++)
        if (has(s, i) || i == MASK ||
            (masked && i >= PLACES && i <= WEIGHTS))
            status = check_kind(j, s, i);
    return status;
}

/* Counts a list, and compares the count with that of another. */
static int check_count(const job *j, const sample *s, int feature,
                       size_t wanted, int other)
{
    size_t n;

    if (!example_count(&s->lists[feature], &n))
        return job_bad(j, "%s: a broken list", names[feature]);
    if (n != wanted)
        return job_bad(j, "%s has length %zu, %s has length %zu",
                       names[feature], n, names[other], wanted);
    return STATUS_OK;
}

static int check_counts(const job *j, sample *s)
{
    size_t n = 1;
    int status = STATUS_OK;

    if (!example_count(&s->lists[IDS], &s->length))
        return job_bad(j, "%s: a broken list", names[IDS]);
    for (int i = MASK; i <= SEGMENTS && status == STATUS_OK; i++)
        if (has(s, i))
            status = check_count(j, s, i, s->length, IDS);
    if (status == STATUS_OK && has(s, PLACES) &&
        !example_count(&s->lists[PLACES], &s->slots))
        return job_bad(j, "%s: a broken list", names[PLACES]);
    for (int i = LABELS; i <= WEIGHTS && status == STATUS_OK; i++)
        if (has(s, i))
            status = check_count(j, s, i, s->slots, PLACES);
    if (status == STATUS_OK && has(s, NEXT) &&
        (!example_count(&s->lists[NEXT], &n) || n != 1))
        return job_bad(j, "%s: %zu values, and not one", names[NEXT], n);
    return status;
}

/* ---------------------------------------------------------------------
 * The channels
 */

/* The channel of that name, or that of the tokens if there is none. */
static uint32_t find_channel(const job *j, const char *name)
{
    const ps_schema *s = &j->out.schema;

    for (uint32_t i = 0; i < s->n_channels; i++)
        if (strcmp(s->channels[i].name, name) == 0)
            return i;
    return PS_TOKENS;
}

/* The first sample tells what channels there are. */
static int learn(job *j, const sample *s)
{
    int status = STATUS_OK;

    for (size_t i = 0; i < CHANNELS && status == STATUS_OK; i++)
        if (has(s, channels[i].feature))
            status = job_add_channel(j, channels[i].name, channels[i].kind);
    if (status == STATUS_OK && has(s, PLACES))
        j->out.schema.labels = PS_LABELS_ALIGNED;
    return status == STATUS_OK ? job_start(j, 2) : status;
}

static int check_channels(job *j, const sample *s)
{
    if (j->out.writer == NULL)
        return learn(j, s);
    for (size_t i = 0; i < CHANNELS; i++) {
        const int feature = channels[i].feature;
        const bool wanted = find_channel(j, channels[i].name) != PS_TOKENS;

        if (wanted && !has(s, feature))
            return job_bad(j, "no feature '%s', which the first record has",
                           names[feature]);
        if (!wanted && has(s, feature))
            return job_bad(j, "the feature '%s' is not in the first record",
                           names[feature]);
    }
    return STATUS_OK;
}

/* What the user does not want is as if it were not there. */
static void ignore(job *j, sample *s)
{
    for (size_t i = 0; i < CHANNELS; i++)
        if (has(s, channels[i].feature) && job_ignores(j, channels[i].name))
            s->lists[channels[i].feature].kind = EXAMPLE_ABSENT;
    if (!has(s, PLACES) && (has(s, LABELS) || has(s, WEIGHTS)) &&
        job_ignores(j, "labels"))
        s->lists[LABELS].kind = s->lists[WEIGHTS].kind = EXAMPLE_ABSENT;
}

/* ---------------------------------------------------------------------
 * Values; lists are known to have as many as are asked for
 */

static uint64_t next(example_list *list)
{
    uint64_t value = 0;

    (void)example_next(list, &value);
    return value;
}

static int bad_value(const job *j, int feature, size_t i, uint64_t value,
                     const char *why)
{
    const char *sign = value > INT64_MAX ? "-" : "";

    if (value > INT64_MAX)
        value = 0 - value;
    return job_bad(j, "%s[%zu]: %s%" PRIu64 " %s", names[feature], i, sign,
                   value, why);
}

/* Ones, and then nothing but zeros. */
static int count_tokens(const job *j, sample *s)
{
    example_list mask = s->lists[MASK];

    s->n_tok = 0;
    for (size_t i = 0; i < s->length; i++) {
        const uint64_t value = next(&mask);

        if (value > 1)
            return bad_value(j, MASK, i, value, "is neither 0 nor 1");
        if (value == 1 && s->n_tok < i)
            return bad_value(j, MASK, i, value, "stands behind a 0");
        if (value == 1 && s->n_tok == job_max_tokens(j))
            return job_too_large(j);
        s->n_tok += value == 1;
    }
    return STATUS_OK;
}

static int bad_id(const job *j, int feature, size_t i, uint64_t value)
{
    const ps_schema *s = &j->out.schema;

    if (value > INT64_MAX)
        return bad_value(j, feature, i, value, "is negative");
    if (s->vocab_size != 0)
        return job_bad(j, "%s[%zu]: %" PRIu64 " is not below the vocabulary "
                       "size %" PRIu32, names[feature], i, value,
                       s->vocab_size);
    return bad_value(j, feature, i, value,
                     s->token_type == PS_U16 ? "does not fit u16 (see --type)"
                                             : "does not fit u32");
}

static int store_tokens(const job *j, sample *s)
{
    const size_t width = ps_type_bytes(j->out.schema.token_type);
    const uint32_t max = job_max_id(j);

    for (uint32_t i = 0; i < s->n_tok; i++) {
        const uint64_t id = next(&s->lists[IDS]);

        if (id > max)
            return bad_id(j, IDS, i, id);
        store_low(j->out.payload + i * width, id, width);
    }
    return STATUS_OK;
}

static int store_types(const job *j, sample *s, unsigned char *to)
{
    for (uint32_t i = 0; i < s->n_tok; i++) {
        const uint64_t type = next(&s->lists[SEGMENTS]);

        if (type > UINT8_MAX)
            return bad_value(j, SEGMENTS, i, type, "does not fit u8");
        to[i] = (unsigned char)type;
    }
    return STATUS_OK;
}

/* One prediction: its label, if it counts, at its place. */
static int store_label(const job *j, sample *s, size_t i, unsigned char *to)
{
    const uint64_t place = next(&s->lists[PLACES]);
    const uint64_t label = next(&s->lists[LABELS]);
    const uint32_t bits = (uint32_t)next(&s->lists[WEIGHTS]);
    const uint32_t max = job_max_id(j);
    float weight;

    memcpy(&weight, &bits, sizeof weight);
    if (weight == 0)
        return STATUS_OK;
    if (weight != 1)
        return job_bad(j, "%s[%zu]: %g is neither 0 nor 1, and labels have "
                       "no weights", names[WEIGHTS], i, (double)weight);
    if (place >= s->n_tok)
        return bad_value(j, PLACES, i, place, "is no place of a token");
    if (load_u32(to + 4 * place) != NO_LABEL)
        return bad_value(j, PLACES, i, place, "stands there twice");
    if (label > max || label > INT32_MAX)
        return bad_id(j, LABELS, i, label);
    store_u32(to + 4 * place, (uint32_t)label);
    return STATUS_OK;
}

static int store_labels(const job *j, sample *s, unsigned char *to)
{
    int status = STATUS_OK;

    for (uint32_t i = 0; i < s->n_tok; i++)
        store_u32(to + 4 * (size_t)i, NO_LABEL);
    for (size_t i = 0; i < s->slots && status == STATUS_OK; i++)
        status = store_label(j, s, i, to);
    return status;
}

static int store_next(const job *j, sample *s, unsigned char *to)
{
    const uint64_t value = next(&s->lists[NEXT]);

    /* From -2^31 on to 2^31 - 1, moved to begin with 0. */
    if (value + (UINT64_C(1) << 31) > UINT32_MAX)
        return bad_value(j, NEXT, 0, value, "does not fit i32");
    store_u32(to, (uint32_t)(value & UINT32_MAX));
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * All of it
 */

static int store_channel(const job *j, sample *s, size_t i)
{
    const uint32_t channel = find_channel(j, channels[i].name);
    unsigned char *to;

    if (channel == PS_TOKENS)
        return STATUS_OK;
    to = j->out.payload +
         ps_payload_offset(&j->out.schema, channel, s->n_tok);
    switch (channels[i].feature) {
    case SEGMENTS:
        return store_types(j, s, to);
    case PLACES:
        return store_labels(j, s, to);
    default:
        return store_next(j, s, to);
    }
}

static int put(job *j, sample *s)
{
    int status = records_room(&j->out, (size_t)ps_payload_bytes(
                                  &j->out.schema, s->n_tok));

    if (status == STATUS_OK)
        status = store_tokens(j, s);
    for (size_t i = 0; i < CHANNELS && status == STATUS_OK; i++)
        status = store_channel(j, s, i);
    return status == STATUS_OK ? records_put(&j->out, s->n_tok) : status;
}

int bert_put(job *j, const unsigned char *bytes, size_t n)
{
    sample s = {.length = 0};
    int status;

    if (!example_find(bytes, n, names, FEATURES, s.lists))
        return job_bad(j, "no tf.train.Example");
    ignore(j, &s);
    status = check_kinds(j, &s);
    if (status == STATUS_OK)
        status = check_counts(j, &s);
    if (status == STATUS_OK)
        status = count_tokens(j, &s);
    if (status == STATUS_OK && s.n_tok == 0)
        return job_empty(j);
    if (status == STATUS_OK)
        status = check_channels(j, &s);
    return status == STATUS_OK ? put(j, &s) : status;
}
