/*
 * summary.c - what a stream holds, for a human.
 *
 * SPDX-License-Identifier: MIT
 */

#include "summary.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "cli/report.h"
#include "text.h"

enum { LENGTH_ROWS = 16, DEPTH_ROWS = 32 };

void summary_separate(FILE *out, bool *summarised)
{
    if (*summarised)
        putc('\n', out);
    *summarised = true;
}

/* Appends to a short line; what does not fit is left out. */
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

/* "bos 1, eos 2", three of them on a line. */
static void print_specials(FILE *out, const ps_schema *schema)
{
    static const char *const names[PS_SPECIALS] = {
        [PS_PAD] = "pad", [PS_BOS] = "bos", [PS_EOS] = "eos",
        [PS_CLS] = "cls", [PS_SEP] = "sep", [PS_MASK] = "mask",
    };
    const char *label = "special ids";
    char line[64] = "";

    for (int i = 0; i < PS_SPECIALS; i++) {
        if (schema->special[i] != PS_NO_ID)
            append(line, sizeof(line), "%s%s %" PRIu32,
                   line[0] == '\0' ? "" : ", ", names[i],
                   schema->special[i]);
        if (i % 3 == 2 && line[0] != '\0') {
            text_line(out, label, "%s", line);
            line[0] = '\0';
            label = "";
        }
    }
}

/* The start of the tokenizer's digest suffices to tell tokenizers apart. */
static void print_tokenizer(FILE *out, const ps_schema *schema)
{
    static const uint8_t unknown[sizeof(schema->tokenizer)];
    const uint8_t *d = schema->tokenizer;
    char hex[17] = "";

    if (memcmp(d, unknown, sizeof(unknown)) == 0)
        return;
    for (int i = 0; i < 8; i++)
        append(hex, sizeof(hex), "%02x", d[i]);
    text_line(out, "tokenizer", "%s...", hex);
}

static void print_channels(FILE *out, const ps_schema *schema)
{
    for (uint32_t i = 0; i < schema->n_channels; i++) {
        const ps_channel *c = &schema->channels[i];

        text_line(out, i == 0 ? "channels" : "", "%-23s %s per %s", c->name,
                  ps_type_name(c->type),
                  c->kind == PS_PER_TOKEN ? "token" : "sequence");
    }
    if (schema->labels != PS_LABELS_UNSTATED)
        text_line(out, "labels", "%s",
                  schema->labels == PS_LABELS_ALIGNED
                      ? "aligned: for the position they stand at"
                      : "shifted: for the position after theirs");
}

static void print_schema(FILE *out, const ps_schema *schema)
{
    if (schema->vocab_size != 0)
        text_count(out, "vocabulary", schema->vocab_size, "tokens");
    print_specials(out, schema);
    print_tokenizer(out, schema);
    print_channels(out, schema);
}

static void print_pack_header(FILE *out, const ps_pack_info *info,
                              uint32_t streams)
{
    text_line(out, "format", "pack stream, version %u.%u",
              (unsigned)info->version_major, (unsigned)info->version_minor);
    if (streams > 1)
        text_count(out, "streams", streams, "one after another");
    text_count(out, "record size", info->record_bytes, "bytes");
    text_count(out, "capacity", info->capacity, "tokens");
    text_count(out, "depth cap", info->depth, "sequences");
    if (info->align > 1)
        text_count(out, "alignment", info->align, "tokens");
    text_count(out, "window", info->window, "sequences");
    if (info->seed != 0)
        text_line(out, "seed", "%" PRIu64, info->seed);
    text_line(out, "token type", "%s, padded with %" PRIu32,
              ps_type_name(info->schema.token_type), info->pad_id);
    print_schema(out, &info->schema);
}

/* How well the packs are filled; undefined without packs. */
static void print_efficiency(FILE *out, const ps_pack_info *info,
                             const ps_totals *t)
{
    uint64_t bound = ps_lower_bound(t->tokens, info->capacity);
    double efficiency = report_efficiency(info, t);
    char text[TEXT_NUMBER_BYTES];

    if (t->packs == 0)
        return;
    text_count(out, "padding", t->packs * info->capacity - t->tokens,
               "tokens");
    text_line(out, "efficiency", "%.3f%%", efficiency * 100);
    text_line(out, "lower bound", "%s packs; packs/bound %.4f",
              text_number(text, bound), (double)t->packs / (double)bound);
    text_line(out, "packing factor", "%.3f sequences per pack",
              (double)t->sequences / (double)t->packs);
    text_line(out, "depth", "mean %.2f, max %" PRIu32,
              (double)t->sequences / (double)t->packs, t->max_depth);
    text_line(out, "fill", "mean %.2f, min %" PRIu32 " tokens",
              (double)t->tokens / (double)t->packs, t->min_fill);
}

/* "12 sequences, 3,456 tokens", if there are any. */
static void print_pair(FILE *out, const char *label, uint64_t sequences,
                       uint64_t others, const char *unit)
{
    char a[TEXT_NUMBER_BYTES];
    char b[TEXT_NUMBER_BYTES];

    if (sequences != 0 || others != 0)
        text_line(out, label, "%s sequences, %s %s",
                  text_number(a, sequences), text_number(b, others), unit);
}

/* Whether lengths are mixed; what does not exist is left out. */
static void print_order(FILE *out, const order *o)
{
    char line[64] = "";
    double value;

    if (order_by_place(o, &value))
        append(line, sizeof(line), "%.4f with place", value);
    if (order_by_neighbour(o, &value))
        append(line, sizeof(line), "%s%.4f between neighbours",
               line[0] == '\0' ? "" : ", ", value);
    if (line[0] != '\0')
        text_line(out, "correlation", "%s", line);
}

/* Which packs of the file were read. */
static void print_range(FILE *out, const pack_figures *found)
{
    const uint64_t end = found->first + found->so_far.packs;
    char text[TEXT_NUMBER_BYTES];

    if (found->packs == PS_UNKNOWN)
        text_line(out, "range", "%" PRIu64 ":%" PRIu64, found->first, end);
    else
        text_line(out, "range", "%" PRIu64 ":%" PRIu64 " of %s packs",
                  found->first, end, text_number(text, found->packs));
}

static void print_totals(FILE *out, const ps_pack_info *info,
                         const ps_totals *t, const order *o)
{
    putc('\n', out);
    text_count(out, "packs", t->packs, NULL);
    text_count(out, "sequences", t->sequences, NULL);
    text_count(out, "tokens", t->tokens, NULL);
    print_efficiency(out, info, t);
    if (t->packs != 0 && t->max_displacement != PS_UNKNOWN)
        text_count(out, "displacement", t->max_displacement, "at most");
    print_order(out, o);
    if (t->input_sequences == PS_UNKNOWN)
        return;
    print_pair(out, "rejected", t->rejected_sequences, t->rejected_tokens,
               "tokens");
    print_pair(out, "truncated", t->truncated_sequences,
               t->truncated_tokens, "tokens cut away");
    print_pair(out, "split", t->split_sequences, t->extra_pieces,
               "more pieces");
}

void summary_packs(FILE *out, const char *name, const ps_pack_info *info,
                   const ps_totals *totals, const pack_figures *found)
{
    fprintf(out, "%s\n", name);
    print_pack_header(out, info, found->streams);
    if (found->ranged)
        print_range(out, found);
    print_totals(out, info, totals, &found->order);
    text_histogram(out, "depth", "packs", &found->depths, DEPTH_ROWS);
    text_histogram(out, "length", "sequences", &found->lengths,
                   LENGTH_ROWS);
}

void summary_tokens(FILE *out, const char *name, const ps_schema *schema,
                    const token_figures *found)
{
    fprintf(out, "%s\n", name);
    text_line(out, "format", "token records, %s",
              schema->framed ? "framed" : "raw");
    text_line(out, "token type", "%s", ps_type_name(schema->token_type));
    print_schema(out, schema);
    putc('\n', out);
    text_count(out, "sequences", found->sequences, NULL);
    text_count(out, "tokens", found->tokens, NULL);
    if (found->sequences != 0)
        text_line(out, "length",
                  "min %" PRIu32 ", mean %.2f, max %" PRIu32,
                  histogram_min(&found->lengths),
                  (double)found->tokens / (double)found->sequences,
                  histogram_greatest(&found->lengths));
    text_histogram(out, "length", "sequences", &found->lengths,
                   LENGTH_ROWS);
}
