/*
 * summary.c - statistics as text for humans.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstat/summary.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "cli/message.h"
#include "cli/report.h"
#include "common/bytes.h"
#include "packstat/bars.h"

enum { LENGTH_ROWS = 16, DEPTH_ROWS = 32, MAX_ROWS = 32 };

void summary_separate(FILE *out, bool *summarised)
{
    if (*summarised)
        putc('\n', out);
    *summarised = true;
}

/* ---- Lines ---- */

/* Prints "  label           TEXT" and a newline. */
static void print_line(FILE *out, const char *label, const char *format, ...)
    MESSAGE_PRINTF(3, 4);

static void print_line(FILE *out, const char *label, const char *format, ...)
{
    va_list args;

    fprintf(out, "  %-14s ", label);
    va_start(args, format);
    vfprintf(out, format, args);
    va_end(args);
    putc('\n', out);
}

/* Prints "  label           1,234 UNIT"; " UNIT" only if `unit` is not NULL. */
static void print_count(FILE *out, const char *label, uint64_t number,
                        const char *unit)
{
    char text[REPORT_DIGITS];

    print_line(out, label, "%s%s%s", report_digits(text, number),
               unit == NULL ? "" : " ", unit == NULL ? "" : unit);
}

/* Appends to a short line.  Text that does not fit is cut off. */
static void append(char *line, size_t size, const char *format, ...)
    MESSAGE_PRINTF(3, 4);

static void append(char *line, size_t size, const char *format, ...)
{
    size_t used = strlen(line);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line + used, size - used, format, args);
    va_end(args);
}

static void print_schema(FILE *out, const ps_schema *schema)
{
    static const char *const specials[PS_SPECIALS] = {
        [PS_PAD] = "pad", [PS_BOS] = "bos", [PS_EOS] = "eos",
        [PS_CLS] = "cls", [PS_SEP] = "sep", [PS_MASK] = "mask",
    };
    const uint8_t *d = schema->tokenizer;
    const char *label = "special ids";
    char line[64] = "";
    char hex[17] = "";

    if (schema->vocab_size != 0)
        print_count(out, "vocabulary", schema->vocab_size, "tokens");

    /* Prints "bos 1, eos 2", three to a line. */
    for (int i = 0; i < PS_SPECIALS; i++) {
        if (schema->special[i] != PS_NO_ID)
            append(line, sizeof(line), "%s%s %" PRIu32,
                   line[0] == '\0' ? "" : ", ", specials[i],
                   schema->special[i]);
        if (i % 3 == 2 && line[0] != '\0') {
            print_line(out, label, "%s", line);
            line[0] = '\0';
            label = "";
        }
    }

    /* The first bytes of the digest suffice to distinguish tokenizers. */
    if (!all_zero(d, sizeof(schema->tokenizer))) {
        for (int i = 0; i < 8; i++)
            append(hex, sizeof(hex), "%02x", d[i]);
        print_line(out, "tokenizer", "%s...", hex);
    }
    for (uint32_t i = 0; i < schema->n_channels; i++) {
        const ps_channel *c = &schema->channels[i];
        char type[PS_TYPE_TEXT];

        ps_channel_type(c, type);
        print_line(out, i == 0 ? "channels" : "", "%-23s %s per %s", c->name,
                   type,
                   c->kind == PS_PER_TOKEN ? "token" : "sequence");
    }
    if (schema->labels != PS_LABELS_UNSTATED)
        print_line(out, "labels", "%s",
                   schema->labels == PS_LABELS_ALIGNED
                       ? "aligned: for their own position"
                       : "shifted: for the next position");
}

/* ---- Histograms ---- */

/* A histogram as rows; row i covers the values [from[i], from[i + 1]). */
typedef struct rows {
    unsigned n; /* number of rows */
    uint64_t from[MAX_ROWS + 1];
    uint64_t count[MAX_ROWS];
    uint64_t sum; /* sum of all counts */
    uint64_t top; /* highest count */
} rows;

/* Formats "7" or "33-64".  Returns the length. */
static int label(char *buffer, size_t size, const rows *r, unsigned row)
{
    uint64_t last = r->from[row + 1] - 1;

    if (r->from[row] == last)
        return snprintf(buffer, size, "%" PRIu64, last);
    return snprintf(buffer, size, "%" PRIu64 "-%" PRIu64, r->from[row],
                    last);
}

static void draw(FILE *out, const char *values, const char *counts,
                 const rows *r)
{
    const bar_style style = bars_style(out);
    char text[48];
    char number[REPORT_DIGITS];
    int left = (int)strlen(values);
    int middle = (int)strlen(counts);
    const int number_width = (int)strlen(report_digits(number, r->top));
    unsigned row;

    middle = number_width > middle ? number_width : middle;
    for (row = 0; row < r->n; row++) {
        const int width = label(text, sizeof(text), r, row);

        left = width > left ? width : left;
    }
    fprintf(out, "\n  %*s  %*s\n", left, values, middle, counts);

    /* Skip the empty rows before the first value. */
    for (row = 0; row < r->n && r->count[row] == 0; row++)
        ;
    for (; row < r->n; row++) {
        const double share = (double)r->count[row] / (double)r->top;
        const int width = style.columns - left - middle - 15;

        (void)label(text, sizeof(text), r, row);
        fprintf(out, "  %*s  %*s  %6.2f%% |", left, text, middle,
                report_digits(number, r->count[row]),
                100.0 * (double)r->count[row] / (double)r->sum);
        bars_draw(out, &style, share, width > 1 ? width : 1);
        putc('\n', out);
    }
}

/*
 * Draws a histogram under the headings `values` and `counts`, in at most
 * `max_rows` rows.  The rows are equal ranges, of one value each if there are
 * few values.  If most counts would be in the first range, the ranges grow by a
 * power of two instead.
 */
static void print_histogram(FILE *out, const char *values, const char *counts,
                            const histogram *found, unsigned max_rows)
{
    const ps_histogram *h = found->all;
    const size_t n = ps_histogram_size(h);
    rows r = {.sum = ps_histogram_sequences(h)};
    uint64_t below = 0; /* sum of counts in the first range */
    uint64_t greatest;
    uint64_t first;
    unsigned bits = 1;
    unsigned row = 0;

    if (r.sum == 0)
        return;
    greatest = ps_histogram_length(h, n - 1);
    first = greatest / max_rows;
    for (size_t i = 0; i < n && ps_histogram_length(h, i) <= first; i++)
        below += ps_histogram_count(h, i);
    if (first > 1 && below > r.sum - below) {
        /* Use powers of 2, or of 4 and so on, until the rows suffice. */
        while (greatest >> (bits * max_rows < 63 ? bits * max_rows : 63) != 0)
            bits++;
        for (uint64_t from = 1; from <= greatest; from <<= bits)
            r.from[r.n++] = from;
    } else {
        const uint64_t step = (greatest + max_rows - 1) / max_rows;

        for (uint64_t from = 1; from <= greatest; from += step)
            r.from[r.n++] = from;
    }
    r.from[r.n] = greatest + 1;

    for (size_t i = 0; i < n; i++) {
        while (ps_histogram_length(h, i) >= r.from[row + 1])
            row++;
        r.count[row] += ps_histogram_count(h, i);
        if (r.count[row] > r.top)
            r.top = r.count[row];
    }
    draw(out, values, counts, &r);
}

/* ---- Channels ---- */

static void print_targets(FILE *out, const channel_figures *c, uint64_t tokens)
{
    const char *label = "targets";
    char text[REPORT_DIGITS];

    for (uint32_t i = 0; i < c->schema->n_channels && tokens > 0; i++) {
        const ps_channel *channel = &c->schema->channels[i];

        if (!channel_has_targets(channel))
            continue;
        print_line(out, label, "%-23s %s, %.2f%%", channel->name,
                   report_digits(text, c->targets[i]),
                   100.0 * (double)c->targets[i] / (double)tokens);
        label = "";
    }
}

/* Prints one row per value, and one row for all values beyond MAX_VALUES. */
static void print_values(FILE *out, const channel_figures *c, uint64_t tokens)
{
    int widths[3] = {(int)strlen(c->by->name), 9, 6};
    value_count sum = c->others;
    char text[VALUE_BYTES];
    char sequences[REPORT_DIGITS];
    char counted[REPORT_DIGITS];
    int width;

    for (uint32_t i = 0; i < c->n_values; i++) {
        sum.sequences += c->values[i].sequences;
        sum.tokens += c->values[i].tokens;
        width = (int)strlen(
            channel_figures_value(c->by, c->values[i].value, text));
        widths[0] = width > widths[0] ? width : widths[0];
    }
    width = (int)strlen(report_digits(sequences, sum.sequences));
    widths[1] = width > widths[1] ? width : widths[1];
    width = (int)strlen(report_digits(counted, sum.tokens));
    widths[2] = width > widths[2] ? width : widths[2];

    fprintf(out, "\n  %*s  %*s  %*s\n", widths[0], c->by->name, widths[1],
            "sequences", widths[2], "tokens");
    for (uint32_t i = 0; i <= c->n_values; i++) {
        const bool last = i == c->n_values;
        const value_count *v = last ? &c->others : &c->values[i];

        if (v->sequences > 0)
            fprintf(out, "  %*s  %*s  %*s  %6.2f%%\n", widths[0],
                    last ? "others"
                         : channel_figures_value(c->by, v->value, text),
                    widths[1], report_digits(sequences, v->sequences),
                    widths[2], report_digits(counted, v->tokens),
                    100.0 * (double)v->tokens / (double)tokens);
    }
    if (c->n_later > 0)
        fprintf(out, "  %.2f%% of the other sequences of a pack have the value "
                     "of its first\n",
                100.0 * (double)c->n_same / (double)c->n_later);
}

/* ---- Pack streams ---- */

static void print_pack_header(FILE *out, const ps_pack_info *info,
                              const pack_figures *found)
{
    char packs[REPORT_DIGITS];
    char bytes[REPORT_DIGITS];

    print_line(out, "format", "pack stream, version %u.%u",
               (unsigned)info->version_major, (unsigned)info->version_minor);
    if (info->share)
        print_line(out, "share", "other packs are in other shares");
    if (found->streams > 1)
        print_count(out, "streams", found->streams, "joined");
    print_count(out, "row", info->row_bytes, "bytes");
    print_count(out, "sequence row", info->seq_bytes, "bytes");
    print_line(out, "block", "%s packs, %s bytes at most",
               report_digits(packs, info->block_packs),
               report_digits(bytes, info->block_bytes));
    print_count(out, "capacity", info->capacity, "tokens");
    if (info->depth != 0)
        print_count(out, "depth cap", info->depth, "sequences");
    if (info->align > 1)
        print_count(out, "alignment", info->align, "tokens");
    print_count(out, "max delay", info->max_displacement, "records");
    if (info->seed != 0)
        print_line(out, "seed", "%" PRIu64, info->seed);
    print_line(out, "token type", "%s, padded with %" PRIu32,
               ps_type_name(info->schema.token_type), info->pad_id);
    print_schema(out, &info->schema);

    if (found->ranged) {
        const uint64_t end = found->first + found->so_far.packs;
        char text[REPORT_DIGITS];

        if (found->packs == PS_UNKNOWN)
            print_line(out, "range", "%" PRIu64 ":%" PRIu64, found->first,
                       end);
        else
            print_line(out, "range", "%" PRIu64 ":%" PRIu64 " of %s packs",
                       found->first, end, report_digits(text, found->packs));
    }
}

/* Bytes stored per byte of tokens, without block headers and the index. */
static double bytes_of_tokens(const ps_pack_info *info, const ps_totals *t)
{
    const double width = (double)ps_type_bytes(info->schema.token_type);

    return ((double)t->packs * (info->row_bytes + PS_PACK_HEAD_BYTES) +
            (double)t->sequences * info->seq_bytes) /
           ((double)t->tokens * width);
}

/* Prints statistics on how full the packs are, if there are packs. */
static void print_efficiency(FILE *out, const ps_pack_info *info,
                             const ps_totals *t)
{
    uint64_t bound = ps_lower_bound(t->tokens, info->capacity);
    double efficiency = report_efficiency(info, t);
    char text[REPORT_DIGITS];
    char mean[REPORT_MEAN];

    if (t->packs == 0)
        return;
    print_count(out, "padding", t->packs * info->capacity - t->tokens,
                "tokens");
    print_line(out, "efficiency", "%.3f%%", efficiency * 100);
    print_line(out, "bytes", "%.3f per byte of tokens",
               bytes_of_tokens(info, t));
    print_line(out, "lower bound", "%s packs; packs/bound %.4f",
               report_digits(text, bound), (double)t->packs / (double)bound);
    print_line(out, "packing factor", "%.3f sequences per pack",
               (double)t->sequences / (double)t->packs);
    print_line(out, "depth", "mean %.2f, max %" PRIu32,
               (double)t->sequences / (double)t->packs, t->max_depth);
    print_line(out, "fill", "mean %s, min %s tokens",
               report_mean(mean, t->tokens, t->packs),
               report_digits(text, t->min_fill));
}

/* Prints how much of each budget the packs use. */
static void print_budgets(FILE *out, const ps_pack_info *info,
                          const pack_figures *found)
{
    const double packs = (double)found->so_far.packs;
    const char *label = "budgets";
    char limit[REPORT_DIGITS];
    char most[REPORT_DIGITS];

    for (uint32_t b = 0; b < info->n_budgets && packs > 0; b++) {
        const double mean = found->budget_sums[b] / packs;

        print_line(out, label, "%-23s %s, %.2f%% used, max %s",
                   report_budget(info, b),
                   report_digits(limit, info->budgets[b].limit),
                   100 * mean / (double)info->budgets[b].limit,
                   report_digits(most, found->budget_most[b]));
        label = "";
    }
}

/* Prints "12 sequences, 3,456 tokens" unless both are 0. */
static void print_pair(FILE *out, const char *label, uint64_t sequences,
                       uint64_t others, const char *unit)
{
    char a[REPORT_DIGITS];
    char b[REPORT_DIGITS];

    if (sequences != 0 || others != 0)
        print_line(out, label, "%s sequences, %s %s",
                   report_digits(a, sequences), report_digits(b, others), unit);
}

void summary_packs(FILE *out, const char *name, const ps_pack_info *info,
                   const ps_totals *t, const pack_figures *found, bool read)
{
    char line[64] = "";
    double value;

    fprintf(out, "%s\n", name);
    print_pack_header(out, info, found);

    putc('\n', out);
    print_count(out, "packs", t->packs, NULL);
    print_count(out, "sequences", t->sequences, NULL);
    print_count(out, "tokens", t->tokens, NULL);
    print_efficiency(out, info, t);
    if (read)
        print_budgets(out, info, found);
    if (t->packs != 0 && t->max_displacement != PS_UNKNOWN)
        print_count(out, "displacement", t->max_displacement, "at most");

    /* Print the correlations of lengths that are defined. */
    if (order_stats_place(&found->order, &value))
        append(line, sizeof(line), "%.4f with place", value);
    if (order_stats_neighbour(&found->order, &value))
        append(line, sizeof(line), "%s%.4f between neighbours",
               line[0] == '\0' ? "" : ", ", value);
    if (line[0] != '\0')
        print_line(out, "correlation", "%s", line);

    if (t->input_sequences != PS_UNKNOWN) {
        print_pair(out, info->share ? "not in it" : "rejected",
                   t->rejected_sequences, t->rejected_tokens, "tokens");
        print_pair(out, "truncated", t->truncated_sequences,
                   t->truncated_tokens, "tokens removed");
        print_pair(out, "split", t->split_sequences, t->extra_pieces,
                   "more pieces");
    }
    if (read)
        print_targets(out, &found->channels, t->tokens);
    if (found->channels.by != NULL)
        print_values(out, &found->channels, t->tokens);
    print_histogram(out, "depth", "packs", &found->depths, DEPTH_ROWS);
    print_histogram(out, "length", "sequences", &found->lengths,
                    LENGTH_ROWS);
}

/* ---- Token records ---- */

void summary_tokens(FILE *out, const char *name, const ps_schema *schema,
                    const token_figures *found, bool read)
{
    char least[REPORT_DIGITS];
    char mean[REPORT_MEAN];
    char most[REPORT_DIGITS];

    fprintf(out, "%s\n", name);
    print_line(out, "format", "token records, %s",
               schema->framed ? "framed" : "raw");
    print_line(out, "token type", "%s", ps_type_name(schema->token_type));
    print_schema(out, schema);

    putc('\n', out);
    print_count(out, "sequences", found->sequences, NULL);
    print_count(out, "tokens", found->tokens, NULL);
    if (found->sequences != 0)
        print_line(out, "length", "min %s, mean %s, max %s",
                   report_digits(least, found->min_seqlen),
                   report_mean(mean, found->tokens, found->sequences),
                   report_digits(most, found->max_seqlen));
    if (read)
        print_targets(out, &found->channels, found->tokens);
    if (found->channels.by != NULL)
        print_values(out, &found->channels, found->tokens);
    print_histogram(out, "length", "sequences", &found->lengths,
                    LENGTH_ROWS);
}
