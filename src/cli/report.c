/*
 * report.c - totals as JSON.
 *
 * SPDX-License-Identifier: MIT
 */

#include "report.h"

#include <inttypes.h>
#include <stdbool.h>

/* Room for tokens in all packs; false if it is beyond a uint64_t. */
static bool room_in_packs(const ps_pack_info *info, const ps_totals *totals,
                          uint64_t *room)
{
    if (info->capacity > 0 && totals->packs > UINT64_MAX / info->capacity)
        return false;
    *room = totals->packs * info->capacity;
    return true;
}

double report_efficiency(const ps_pack_info *info, const ps_totals *totals)
{
    double room = (double)totals->packs * (double)info->capacity;

    return room > 0 ? (double)totals->tokens / room : 0;
}

/* The escape for a byte that may not stand in a string, or NULL. */
static const char *short_escape(char c)
{
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\b':
        return "\\b";
    case '\f':
        return "\\f";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        return NULL;
    }
}

static bool is_within(unsigned char byte, unsigned min, unsigned max)
{
    return byte >= min && byte <= max;
}

/*
 * How many bytes the character beyond ASCII at `p` has; 0 if it is no
 * well-formed UTF-8.  The second byte tells overlong forms, surrogates and
 * what lies beyond Unicode.  The NUL at the end fits nowhere.
 */
static size_t utf8_bytes(const unsigned char *p)
{
    const unsigned min = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    const unsigned max = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    size_t n = 0;

    if (is_within(p[0], 0xc2, 0xdf))
        n = 2;
    else if (is_within(p[0], 0xe0, 0xef))
        n = 3;
    else if (is_within(p[0], 0xf0, 0xf4))
        n = 4;
    if (n == 0 || !is_within(p[1], min, max))
        return 0;
    for (size_t i = 2; i < n; i++)
        if (!is_within(p[i], 0x80, 0xbf))
            return 0;
    return n;
}

/* Writes the character at `text`; returns how many bytes it has there. */
static size_t put_character(FILE *out, const char *text)
{
    const char *escape = short_escape(*text);
    const unsigned char byte = (unsigned char)*text;
    size_t n = 1;

    if (escape != NULL) {
        (void)fputs(escape, out);
    } else if (byte < 0x20 || byte == 0x7f) {
        (void)fprintf(out, "\\u%04x", byte);
    } else if (byte < 0x7f) {
        (void)putc(byte, out);
    } else {
        n = utf8_bytes((const unsigned char *)text);
        (void)fwrite(text, 1, n, out);
        /* JSON is UTF-8, and a file name need not be. */
        if (n == 0)
            (void)fputs("\\ufffd", out);
    }
    return n == 0 ? 1 : n;
}

void report_json_string(FILE *out, const char *text)
{
    (void)putc('"', out);
    while (*text != '\0')
        text += put_character(out, text);
    (void)putc('"', out);
}

static void put_count(FILE *out, const char *key, uint64_t value)
{
    if (value == PS_UNKNOWN)
        (void)fprintf(out, ", \"%s\": null", key);
    else
        (void)fprintf(out, ", \"%s\": %" PRIu64, key, value);
}

/* A ratio to the packs, which does not exist without any. */
static void put_ratio(FILE *out, const char *key, double value,
                      const ps_totals *totals)
{
    if (totals->packs > 0)
        (void)fprintf(out, ", \"%s\": %.9g", key, value);
    else
        (void)fprintf(out, ", \"%s\": null", key);
}

static void put_padding(FILE *out, const ps_pack_info *info,
                        const ps_totals *totals)
{
    uint64_t room;

    if (room_in_packs(info, totals, &room) && room >= totals->tokens)
        put_count(out, "padding", room - totals->tokens);
    else
        (void)fprintf(out, ", \"padding\": null");
}

/* What a reader looks for first. */
static void put_summary(FILE *out, const ps_pack_info *info,
                        const ps_totals *t)
{
    double packs = (double)t->packs;

    (void)fprintf(out, "\"sequences\": %" PRIu64, t->sequences);
    put_count(out, "tokens", t->tokens);
    put_count(out, "packs", t->packs);
    put_count(out, "capacity", info->capacity);
    put_count(out, "depth", info->depth);
    if (info->align > 1)
        put_count(out, "align", info->align);
    put_count(out, "max_depth", t->max_depth);
    put_ratio(out, "efficiency", report_efficiency(info, t), t);
    put_ratio(out, "packing_factor",
              t->packs > 0 ? (double)t->sequences / packs : 0, t);
    put_count(out, "lower_bound", ps_lower_bound(t->tokens, info->capacity));
    put_padding(out, info, t);
    put_count(out, "max_displacement", t->max_displacement);
    put_count(out, "rejected", t->rejected_sequences);
}

/* The members of ps_totals that the summary does not name. */
static void put_rest(FILE *out, const ps_totals *t)
{
    put_count(out, "input_sequences", t->input_sequences);
    put_count(out, "input_tokens", t->input_tokens);
    put_count(out, "rejected_sequences", t->rejected_sequences);
    put_count(out, "rejected_tokens", t->rejected_tokens);
    put_count(out, "truncated_sequences", t->truncated_sequences);
    put_count(out, "truncated_tokens", t->truncated_tokens);
    put_count(out, "split_sequences", t->split_sequences);
    put_count(out, "extra_pieces", t->extra_pieces);
    put_count(out, "max_seqlen", t->max_seqlen);
    put_count(out, "min_fill", t->min_fill);
}

void report_json_begin(FILE *out, const char *file,
                       const ps_pack_info *info, const ps_totals *totals)
{
    (void)putc('{', out);
    if (file != NULL) {
        (void)fputs("\"file\": ", out);
        report_json_string(out, file);
        (void)fputs(", ", out);
    }
    put_summary(out, info, totals);
    put_rest(out, totals);
}

void report_json_packing(FILE *out, const ps_pack_info *info,
                         const ps_totals *totals,
                         const ps_rejected rejected[PS_REJECTS],
                         uint64_t max_delay, const ps_depth_cost *cost)
{
    report_json_begin(out, NULL, info, totals);
    put_count(out, "max_delay", max_delay);
    (void)fprintf(out, ", \"depth_cost\": %.4f", cost->efficiency);
    put_count(out, "depth_advised",
              cost->depth == 0 ? PS_UNKNOWN : cost->depth);
    for (unsigned i = 0; i < PS_REJECTS; i++)
        (void)fprintf(out,
                      ", \"rejected_%s_sequences\": %" PRIu64
                      ", \"rejected_%s_tokens\": %" PRIu64,
                      ps_reject_name((ps_reject)i), rejected[i].sequences,
                      ps_reject_name((ps_reject)i), rejected[i].tokens);
    (void)fputs("}\n", out);
}
