/*
 * compare.c - find the first difference between two schemas or headers.
 *
 * SPDX-License-Identifier: MIT
 *
 * The error text has the value in the first schema or header, then the value in
 * the second: "vocab_size is 50304, not 50257".
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "format/pack_layout.h"
#include "bytes.h"
#include "format/pack_header.h"
#include "format/schema.h"

/* 64 hexadecimal digits of a digest, "..." and a NUL. */
#define VALUE_BYTES 68

/* "WHAT is X, not Y".  The value `none` is printed as "none". */
static ps_result number_differs(ps_error *err, const char *what, uint32_t a,
                                uint32_t b, uint32_t none)
{
    char x[VALUE_BYTES] = "none";
    char y[VALUE_BYTES] = "none";

    if (a != none)
        (void)snprintf(x, sizeof x, "%" PRIu32, a);
    if (b != none)
        (void)snprintf(y, sizeof y, "%" PRIu32, b);
    return ps_fail(err, PS_ERR_ARGUMENT, "%s is %s, not %s", what, x, y);
}

/* Prints the fill of a channel: a number, or the bit pattern of a float. */
static void print_fill(char text[VALUE_BYTES], const ps_channel *c)
{
    if (c->type == PS_I32)
        (void)snprintf(text, VALUE_BYTES, "%" PRId32,
                       (int32_t)(uint32_t)c->fill);
    else if (c->type == PS_I64)
        (void)snprintf(text, VALUE_BYTES, "%" PRId64, (int64_t)c->fill);
    else if (c->type == PS_F32 || c->type == PS_F64)
        (void)snprintf(text, VALUE_BYTES, "0x%" PRIx64, c->fill);
    else
        (void)snprintf(text, VALUE_BYTES, "%" PRIu64, c->fill);
}

static const ps_channel *find_channel(const ps_schema *s, const char *name)
{
    for (uint32_t i = 0; i < s->n_channels; i++)
        if (strcmp(s->channels[i].name, name) == 0)
            return &s->channels[i];
    return NULL;
}

/* Compares the set of names first, then order, then attributes. */
static ps_result compare_channels(const ps_schema *a, const ps_schema *b,
                                  ps_error *err)
{
    for (uint32_t i = 0; i < b->n_channels; i++)
        if (find_channel(a, b->channels[i].name) == NULL)
            return ps_fail(err, PS_ERR_ARGUMENT, "channel '%s' is missing",
                           b->channels[i].name);
    for (uint32_t i = 0; i < a->n_channels; i++)
        if (find_channel(b, a->channels[i].name) == NULL)
            return ps_fail(err, PS_ERR_ARGUMENT, "unexpected channel '%s'",
                           a->channels[i].name);

    for (uint32_t i = 0; i < a->n_channels; i++) {
        const ps_channel *c = &a->channels[i];
        const ps_channel *d = &b->channels[i];
        char x[VALUE_BYTES];
        char y[VALUE_BYTES];

        if (strcmp(c->name, d->name) != 0)
            return ps_fail(err, PS_ERR_ARGUMENT, "channel %u is '%s', not '%s'",
                           (unsigned)i, c->name, d->name);
        ps_channel_type(c, x);
        ps_channel_type(d, y);
        if (strcmp(x, y) != 0)
            return ps_fail(err, PS_ERR_ARGUMENT, "channel '%s' is %s, not %s",
                           c->name, x, y);
        if (c->kind != d->kind)
            return ps_fail(err, PS_ERR_ARGUMENT, "channel '%s' is per %s",
                           c->name,
                           c->kind == PS_PER_TOKEN ? "token, not per sequence"
                                                   : "sequence, not per token");
        if (c->fill != d->fill) {
            print_fill(x, c);
            print_fill(y, d);
            return ps_fail(err, PS_ERR_ARGUMENT,
                           "channel '%s' is filled with %s, not %s", c->name,
                           x, y);
        }
    }
    return PS_OK;
}

/* Prints the first `n` bytes of a digest in hexadecimal, or "none". */
static void print_digest(char text[VALUE_BYTES], const uint8_t digest[32],
                         size_t n)
{
    if (all_zero(digest, 32)) {
        (void)snprintf(text, VALUE_BYTES, "none");
        return;
    }
    for (size_t i = 0; i < n; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", (unsigned)digest[i]);
    if (n < 32)
        (void)snprintf(text + 2 * n, 4, "...");
}

static const char *convention_name(ps_label_convention labels)
{
    return labels == PS_LABELS_ALIGNED   ? "aligned"
           : labels == PS_LABELS_SHIFTED ? "shifted"
                                         : "unstated";
}

ps_result ps_schema_compare(const ps_schema *a, const ps_schema *b,
                            ps_error *err)
{
    const size_t digest = sizeof a->tokenizer;
    char x[VALUE_BYTES];
    char y[VALUE_BYTES];
    size_t n = 8;
    ps_result r;

    if (a->framed != b->framed)
        return ps_fail(err, PS_ERR_ARGUMENT, "records are %s",
                       a->framed ? "framed, not raw" : "raw, not framed");
    if (a->token_type != b->token_type)
        return ps_fail(err, PS_ERR_ARGUMENT, "tokens are %s, not %s",
                       ps_type_name(a->token_type),
                       ps_type_name(b->token_type));
    if (a->vocab_size != b->vocab_size)
        return number_differs(err, "vocab_size", a->vocab_size, b->vocab_size,
                              0);
    r = compare_channels(a, b, err);
    if (r != PS_OK)
        return r;
    for (int i = 0; i < PS_SPECIALS; i++)
        if (a->special[i] != b->special[i])
            return number_differs(err, ps_special_name(i), a->special[i],
                                  b->special[i], PS_NO_ID);
    if (a->labels != b->labels)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the label convention is %s, not %s",
                       convention_name(a->labels), convention_name(b->labels));
    if (memcmp(a->tokenizer, b->tokenizer, digest) == 0)
        return PS_OK;
    if (memcmp(a->tokenizer, b->tokenizer, n) == 0)
        n = digest;
    print_digest(x, a->tokenizer, n);
    print_digest(y, b->tokenizer, n);
    return ps_fail(err, PS_ERR_ARGUMENT, "the tokenizer digest is %s, not %s",
                   x, y);
}

bool ps_schema_equal(const ps_schema *a, const ps_schema *b)
{
    return ps_schema_compare(a, b, NULL) == PS_OK;
}

bool ps_budgets_equal(const ps_pack_info *a, const ps_pack_info *b)
{
    bool equal = a->n_budgets == b->n_budgets;

    for (uint32_t i = 0; equal && i < a->n_budgets; i++)
        equal = a->budgets[i].channel == b->budgets[i].channel &&
                a->budgets[i].limit == b->budgets[i].limit;
    return equal;
}

ps_result ps_pack_info_compare(const ps_pack_info *a, const ps_pack_info *b,
                               ps_error *err)
{
    const struct {
        const char *name;
        uint32_t a;
        uint32_t b;
    } numbers[] = {
        {"capacity", a->capacity, b->capacity},
        {"align", a->align, b->align},
        {"group", a->group, b->group},
        {"pad_id", a->pad_id, b->pad_id},
        {"split", a->split, b->split},
        {"share", a->share, b->share},
        {"n_fields", a->n_fields, b->n_fields},
        {"row_bytes", a->row_bytes, b->row_bytes},
        {"seq_bytes", a->seq_bytes, b->seq_bytes},
    };
    /*
     * Compare the schema and the budgets first, since the last three numbers
     * and the fields are derived from them.
     */
    ps_result r = ps_schema_compare(&a->schema, &b->schema, err);

    if (r == PS_OK && !ps_budgets_equal(a, b))
        r = ps_fail(err, PS_ERR_ARGUMENT, "the budgets differ");
    for (size_t i = 0; r == PS_OK && i < sizeof numbers / sizeof numbers[0];
         i++)
        if (numbers[i].a != numbers[i].b)
            r = ps_fail(err, PS_ERR_ARGUMENT, "%s is %" PRIu32 ", not %" PRIu32,
                        numbers[i].name, numbers[i].a, numbers[i].b);
    for (uint32_t i = 0; r == PS_OK && i < a->n_fields; i++) {
        const ps_field *f = &a->fields[i];
        const ps_field *g = &b->fields[i];

        if (strcmp(f->channel.name, g->channel.name) != 0)
            r = ps_fail(err, PS_ERR_ARGUMENT, "field %u is '%s', not '%s'",
                        (unsigned)i, f->channel.name, g->channel.name);
        else if (f->offset != g->offset)
            r = ps_fail(err, PS_ERR_ARGUMENT,
                        "field '%s' is at byte %" PRIu32 ", not %" PRIu32,
                        f->channel.name, f->offset, g->offset);
    }
    return r;
}
