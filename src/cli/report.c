/*
 * report.c - formatting of numbers and strings, and totals as JSON.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/report.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "files/files.h"

double report_efficiency(const ps_pack_info *info, const ps_totals *totals)
{
    double capacity = (double)totals->packs * (double)info->capacity;

    return capacity > 0 ? (double)totals->tokens / capacity : 0;
}

uint64_t report_bound_packs(double bound)
{
    const double packs = ceil(bound * (1 - 1e-15) - 1e-6);

    return bound > 0 ? (uint64_t)fmax(packs, 1) : 0;
}

static bool is_within(unsigned char byte, unsigned min, unsigned max)
{
    return byte >= min && byte <= max;
}

/*
 * The allowed range of the second byte excludes overlong forms, surrogates and
 * code points above U+10FFFF.  The terminating NUL is never in range, so
 * nothing past it is read.
 */
size_t report_utf8_bytes(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
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

void report_json_string(FILE *out, const char *text)
{
    static const char escaped[] = "\"\\\b\f\n\r\t";
    static const char letters[] = "\"\\bfnrt";

    (void)putc('"', out);
    while (*text != '\0') {
        const char *escape = strchr(escaped, *text);
        const unsigned char byte = (unsigned char)*text;
        const size_t n =
            byte < 0x80 ? 1 : report_utf8_bytes(text);

        if (escape != NULL)
            (void)fprintf(out, "\\%c", letters[escape - escaped]);
        else if (byte < 0x20 || byte == 0x7f)
            (void)fprintf(out, "\\u%04x", byte);
        else if (n > 0)
            (void)fwrite(text, 1, n, out);
        else /* a file name need not be valid UTF-8 */
            (void)fputs("\\ufffd", out);
        text += n > 0 ? n : 1;
    }
    (void)putc('"', out);
}

void report_location(FILE *out, bool json, const ps_location *at,
                     uint32_t stream, const char *file)
{
    const ps_piece *piece = &at->piece;
    const uint64_t numbers[] = {piece->id,    stream,       at->pack,
                                at->slot,     piece->begin, piece->n_tok,
                                piece->seq_off};
    static const char *const keys[] = {"id",    "stream", "pack",  "slot",
                                       "start", "tokens", "offset"};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (json)
            (void)fprintf(out, "%s\"%s\": %" PRIu64, i == 0 ? "" : ", ",
                          keys[i], numbers[i]);
        else
            (void)fprintf(out, "%" PRIu64 " ", numbers[i]);
    if (!json) {
        (void)fputs(files_input_name(file), out);
        return;
    }
    (void)fprintf(out, ", \"length\": %" PRIu32, piece->seq_len);
    if (!files_is_standard(file)) {
        (void)fputs(", \"file\": ", out);
        report_json_string(out, file);
    }
}

const char *report_digits(char buffer[REPORT_DIGITS], uint64_t number)
{
    char digits[21];
    int n = snprintf(digits, sizeof(digits), "%" PRIu64, number);
    char *to = buffer;

    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return buffer;
}

const char *report_mean(char buffer[REPORT_MEAN], uint64_t sum, uint64_t n)
{
    char digits[REPORT_DIGITS];
    const uint64_t hundredths =
        (uint64_t)rint(100 * ((double)sum / (double)n));

    (void)snprintf(buffer, REPORT_MEAN, "%s.%02u",
                   report_digits(digits, hundredths / 100),
                   (unsigned)(hundredths % 100));
    return buffer;
}

static void put_count(FILE *out, const char *key, uint64_t value)
{
    if (value == PS_UNKNOWN)
        (void)fprintf(out, ", \"%s\": null", key);
    else
        (void)fprintf(out, ", \"%s\": %" PRIu64, key, value);
}

const char *report_budget(const ps_pack_info *info, uint32_t budget)
{
    const uint32_t channel = info->budgets[budget].channel;

    return channel == PS_BUDGET_ATTENTION ? PS_ATTENTION
                                          : info->schema.channels[channel].name;
}

void report_json_ratio(FILE *out, const char *key, bool exists, double value)
{
    if (exists)
        (void)fprintf(out, ", \"%s\": %.9g", key, value);
    else
        (void)fprintf(out, ", \"%s\": null", key);
}

void report_json_begin(FILE *out, const char *file,
                       const ps_pack_info *info, const ps_totals *t)
{
    const double packs = (double)t->packs;
    uint64_t padding = PS_UNKNOWN;

    if (info->capacity == 0 || t->packs <= UINT64_MAX / info->capacity) {
        uint64_t capacity = t->packs * info->capacity;

        if (capacity >= t->tokens)
            padding = capacity - t->tokens;
    }
    (void)putc('{', out);
    if (file != NULL) {
        (void)fputs("\"file\": ", out);
        report_json_string(out, file);
        (void)fputs(", ", out);
    }

    /* The most useful keys come first. */
    (void)fprintf(out, "\"sequences\": %" PRIu64, t->sequences);
    put_count(out, "tokens", t->tokens);
    put_count(out, "packs", t->packs);
    put_count(out, "capacity", info->capacity);
    put_count(out, "depth", info->depth == 0 ? PS_UNKNOWN : info->depth);
    if (info->align > 1)
        put_count(out, "align", info->align);
    if (info->share)
        (void)fputs(", \"share\": true", out);
    put_count(out, "max_depth", t->max_depth);
    report_json_ratio(out, "efficiency", t->packs > 0,
                      report_efficiency(info, t));
    report_json_ratio(out, "packing_factor", t->packs > 0,
                      t->packs > 0 ? (double)t->sequences / packs : 0);
    put_count(out, "lower_bound", ps_lower_bound(t->tokens, info->capacity));
    put_count(out, "padding", padding);
    put_count(out, "max_displacement", t->max_displacement);
    put_count(out, "rejected", t->rejected_sequences);

    /* The other members of ps_totals. */
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

void report_json_packing(FILE *out, const ps_pack_info *info,
                         const ps_totals *totals,
                         const ps_rejected rejected[PS_REJECTS],
                         uint64_t max_delay, const ps_groups *groups)
{
    report_json_begin(out, NULL, info, totals);
    put_count(out, "max_delay", max_delay);
    for (unsigned i = 0; i < PS_REJECTS; i++)
        (void)fprintf(out,
                      ", \"rejected_%s_sequences\": %" PRIu64
                      ", \"rejected_%s_tokens\": %" PRIu64,
                      ps_reject_name((ps_reject)i), rejected[i].sequences,
                      ps_reject_name((ps_reject)i), rejected[i].tokens);
    if (groups != NULL) {
        put_count(out, "groups", groups->groups);
        put_count(out, "overlong_groups", groups->overlong);
    }
    (void)fputs("}\n", out);
}
