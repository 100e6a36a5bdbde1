/*
 * plot.c - the page of --plot: a section for each file.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstat/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/chart.h"
#include "cli/files.h"
#include "cli/report.h"

/* Room for a title or a note. */
#define LINE 96

/* First packs have a column each, of these many at least. */
#define MIN_PACKS 20

/* Columns overlap by so many pixels, or what is below would shine through. */
#define OVERLAP 0.2

/* Values of a channel that have a row. */
#define ROWS 12

/* More lengths than these are rounded for the bound, which takes time. */
#define BOUND_LENGTHS 1024

/* ---- Key figures ---- */

typedef struct list {
    svg *page;
    double y;
} list;

/* A row: what it is, and the figure at the right. */
static void put(list *l, const char *what, const char *format, ...)
    MESSAGE_PRINTF(3, 4);

static void put(list *l, const char *what, const char *format, ...)
{
    char text[LINE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    svg_line(l->page, 0, l->y + 4, SVG_WIDTH - 40, l->y + 4, "grid");
    svg_text(l->page, 0, l->y, "", "%s", what);
    svg_text(l->page, SVG_WIDTH - 40, l->y, "b e", "%s", text);
    l->y += 15;
}

static void put_count(list *l, const char *what, uint64_t number)
{
    char text[REPORT_DIGITS];

    put(l, what, "%s", report_digits(text, number));
}

/* As put_count, but only what is known and not 0. */
static void put_odd(list *l, const char *what, uint64_t number)
{
    if (number != 0 && number != PS_UNKNOWN)
        put_count(l, what, number);
}

static void draw_pack_list(svg *page, const ps_pack_info *info,
                           const ps_totals *t, const pack_figures *found)
{
    list l = {.page = page, .y = 48};
    char sequences[REPORT_DIGITS];
    char packs[REPORT_DIGITS];
    char title[LINE];

    if (t->packs == 0)
        (void)strcpy(title, "No packs: nothing to draw");
    else
        (void)snprintf(title, sizeof title, "%s sequence%s in %s pack%s",
                       report_digits(sequences, t->sequences),
                       t->sequences == 1 ? "" : "s",
                       report_digits(packs, t->packs),
                       t->packs == 1 ? "" : "s");
    svg_begin_panel(page, title,
                    found->ranged ? "a range of a pack stream"
                    : info->share ? "a share of a pack stream"
                                  : "a pack stream");
    put_count(&l, "tokens", t->tokens);
    put_count(&l, "capacity, tokens", info->capacity);
    put_odd(&l, "depth cap, sequences", info->depth);
    put_count(&l, "max delay, records", info->window);
    if (t->packs > 0) {
        put(&l, "sequences per pack", "%.3f",
            (double)t->sequences / (double)t->packs);
        put(&l, "efficiency", "%.3f%%", 100 * report_efficiency(info, t));
        put_count(&l, "padding, tokens", t->packs * info->capacity - t->tokens);
        put_count(&l, "fewest tokens in a pack", t->min_fill);
        put_count(&l, "packs that the tokens need",
                  ps_lower_bound(t->tokens, info->capacity));
    }
    if (t->input_sequences != PS_UNKNOWN) {
        put_odd(&l, info->share ? "sequences not in it" : "rejected",
                t->rejected_sequences);
        put_odd(&l, "truncated", t->truncated_sequences);
        put_odd(&l, "split", t->split_sequences);
    }
    if (found->streams > 1)
        put_count(&l, "streams, one after another", found->streams);
    svg_end_low_panel(page, l.y);
}

static void draw_token_list(svg *page, const ps_schema *schema,
                            const token_figures *found)
{
    list l = {.page = page, .y = 48};
    char digits[REPORT_DIGITS];
    char mean[REPORT_MEAN];
    char title[LINE];

    (void)snprintf(title, sizeof title, "%s sequence%s%s",
                   report_digits(digits, found->sequences),
                   found->sequences == 1 ? "" : "s",
                   found->sequences == 0 ? ": nothing to draw" : "");
    svg_begin_panel(page, title, schema->framed ? "token records, framed"
                                                : "token records, raw");
    put_count(&l, "tokens", found->tokens);
    if (found->sequences > 0) {
        put_count(&l, "shortest, tokens", found->min_seqlen);
        put(&l, "mean", "%s",
            report_mean(mean, found->tokens, found->sequences));
        put_count(&l, "longest", found->max_seqlen);
    }
    put(&l, "token type", "%s", ps_type_name(schema->token_type));
    if (schema->vocab_size != 0)
        put_count(&l, "vocabulary", schema->vocab_size);
    put_count(&l, "channels", schema->n_channels);
    svg_end_low_panel(page, l.y);
}

/* ---- Histograms ---- */

static void draw_histograms(svg *page, const ps_pack_info *info,
                            const ps_totals *t, const pack_figures *found)
{
    const plot_figures *p = found->plot;
    char digits[REPORT_DIGITS];
    char text[LINE];

    chart_draw_lengths(page, found->lengths.all);

    (void)snprintf(text, sizeof text,
                   "%.2f sequences in a pack, at most %" PRIu32,
                   (double)t->sequences / (double)t->packs, t->max_depth);
    chart_draw_histogram(page, text, "packs; line: share up to a depth",
                         found->depths.all, "sequences in a pack", "packs");

    (void)snprintf(text, sizeof text,
                   "%.1f%% of packs are full; at most %s empty",
                   100 * (double)p->full / (double)t->packs,
                   report_digits(digits, info->capacity - t->min_fill));
    svg_begin_panel(page, text,
                    "packs; a bar ends before a power of 2; line: share");
    (void)snprintf(text, sizeof text, "empty places of %s",
                   report_digits(digits, info->capacity));
    chart_draw_powers(page, p->empty, text, "packs");
    svg_end_panel(page);

    /* In a range the sequences are not known that should have come before. */
    if (found->ranged)
        return;
    if (p->displacement == 0)
        (void)strcpy(text, "Sequences come in their order");
    else
        (void)snprintf(text, sizeof text,
                       "Sequences come at most %s place%s late",
                       report_digits(digits, p->displacement),
                       p->displacement == 1 ? "" : "s");
    svg_begin_panel(page, text,
                    "sequences; a bar ends before a power of 2; line: share");
    chart_draw_powers(page, p->displaced,
                      "displacement, sequences", "sequences");
    svg_end_panel(page);
}

/* ---- Along the stream ---- */

/*
 * The efficiency that no packing of these pieces exceeds.  Aligned pieces take
 * up more places than they have tokens.  Where there are many lengths they are
 * rounded down, which never needs more packs.  `depth` caps that of all packs,
 * unless it is 0.  False without memory.
 */
static bool bound_efficiency(double *efficiency, const ps_pack_info *info,
                             uint32_t depth, const ps_totals *t,
                             const ps_histogram *h)
{
    const uint32_t align = info->align > 1 ? info->align : 1;
    const size_t n = ps_histogram_size(h);
    const uint32_t step =
        n > BOUND_LENGTHS
            ? (info->capacity / BOUND_LENGTHS / align + 1) * align
            : align;
    double packs = (double)ps_lower_bound(t->tokens, info->capacity);
    double least = 0;
    ps_histogram *rounded = NULL;
    ps_error err;
    bool made = ps_histogram_open(&rounded, &err) == PS_OK;

    for (size_t i = 0; made && i < n; i++) {
        const uint32_t length =
            (ps_histogram_length(h, i) + align - 1) / align * align;

        if (length >= step)
            made = ps_histogram_add(rounded, length - length % step,
                                    ps_histogram_count(h, i), &err) == PS_OK;
    }
    if (made && ps_histogram_size(rounded) > 0)
        made = ps_plan_bound(rounded, info->capacity,
                             depth == 0 ? UINT32_MAX : depth, &least,
                             &err) == PS_OK;
    ps_histogram_free(rounded);
    packs = fmax(packs, (double)report_bound_packs(least));
    *efficiency = (double)t->tokens / packs / (double)info->capacity;
    return made;
}

/* Per cent, of a bin of packs. */
static double get_efficiency(const chart_bin *packs, const void *context)
{
    const ps_pack_info *info = context;

    return 100 * packs->sums[0] / (double)packs->n / info->capacity;
}

static void draw_efficiency(svg *page, const ps_pack_info *info,
                            const ps_totals *t, const plot_figures *p,
                            double bound)
{
    const chart_axis x = chart_across(0, (double)t->packs, false);
    double least = 100 * fmin(bound, report_efficiency(info, t));
    chart_axis y;
    char digits[REPORT_DIGITS];
    char title[LINE];
    char note[LINE];

    for (unsigned i = 0; i < p->bins.n; i++)
        least = fmin(least, get_efficiency(&p->bins.of[i], info));
    y = chart_up_from(least, 100);
    (void)snprintf(title, sizeof title, "%.3f%% full; %.3f%% is possible",
                   100 * report_efficiency(info, t), 100 * bound);
    if (p->bins.step > 1)
        (void)snprintf(note, sizeof note,
                       "efficiency of %s packs each; dashes: best for all",
                       report_digits(digits, p->bins.step));
    else
        (void)strcpy(note, "efficiency of each pack; dashes: best for all");
    svg_begin_panel(page, title, note);
    chart_draw_up(page, &y, "%");
    svg_line(page, CHART_LEFT, chart_place(&y, 100 * bound), CHART_RIGHT,
             chart_place(&y, 100 * bound), "line dash k1");
    (void)chart_draw_bins(page, &p->bins, &x, &y, "line k0", get_efficiency,
                          info);
    chart_draw_across(page, &x, "packs");
    svg_end_panel(page);
}

static void draw_first(svg *page, const ps_pack_info *info,
                       const plot_figures *p)
{
    const unsigned n = p->n_packs > MIN_PACKS ? p->n_packs : MIN_PACKS;
    const chart_axis x = chart_across(0, n, false);
    const chart_axis y = chart_up(0, info->capacity);
    const double width = (x.high - x.low) / n;
    char digits[REPORT_DIGITS];
    char title[LINE];
    char note[LINE];

    if (p->n_packs == 1 && !p->has_more)
        (void)strcpy(title, "The only pack");
    else
        (void)snprintf(title, sizeof title, "The %s%u pack%s",
                       p->has_more ? "first " : "", p->n_packs,
                       p->n_packs == 1 ? "" : "s");
    (void)snprintf(note, sizeof note,
                   "0 to %s tokens; shades: sequences; orange: padding",
                   report_digits(digits, info->capacity));
    svg_begin_panel(page, title, note);
    chart_draw_up(page, &y, "");
    /* What shines through where sequences meet is of their colours. */
    svg_rect(page, CHART_LEFT, CHART_TOP, width * p->n_packs,
             CHART_BOTTOM - CHART_TOP, "w1", NULL);
    for (unsigned shade = 0; shade <= PLOT_PADDING; shade++) {
        svg_put(page,
                "<path class=\"w%u\" stroke-width=\"%.3f\""
                " transform=\"translate(%d,%d) scale(%.4f,%.5f)\" d=\"",
                shade, 1 + OVERLAP / width, CHART_LEFT, CHART_BOTTOM, width,
                -(double)(CHART_BOTTOM - CHART_TOP) / PLOT_COLUMN);
        for (unsigned i = 0; i < p->n_parts; i++) {
            const plot_part *part = &p->parts[i];

            if (part->shade == shade)
                svg_put(page, "M%u.5 %uv%u", part->pack, part->from,
                        part->to - part->from);
        }
        svg_put(page, "\"/>\n");
    }
    chart_draw_across(page, &x, "packs");
    svg_end_panel(page);
}

/* ---- Channels ---- */

static int by_tokens(const void *a, const void *b)
{
    const value_count *const x = a;
    const value_count *const y = b;

    if (x->tokens != y->tokens)
        return x->tokens < y->tokens ? 1 : -1;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* A row: a value of a channel or "others", and a bar for its tokens. */
static void draw_value(svg *page, double y, const char *name,
                       const value_count *v, double share, double longest)
{
    char digits[REPORT_DIGITS];

    svg_text(page, 126, y + 10, "b e", "%s", name);
    svg_rect(page, 132, y, fmax(0.5, 95 * share / longest), 12, "bar", NULL);
    svg_text(page, 276, y + 10, "b e", "%.2f%%", 100 * share);
    svg_text(page, SVG_WIDTH, y + 10, "e", "%s",
             report_digits(digits, v->sequences));
}

/* The values with most tokens, and the others as one. */
static void draw_values(svg *page, const channel_figures *c, uint64_t tokens)
{
    static value_count sorted[MAX_VALUES];
    const double all = (double)tokens;
    const unsigned n = c->n_values < ROWS ? c->n_values : ROWS;
    value_count others = c->others;
    double longest;
    char value[VALUE_BYTES];
    char title[LINE];
    char note[LINE];

    memcpy(sorted, c->values, sizeof sorted);
    qsort(sorted, c->n_values, sizeof *sorted, by_tokens);
    for (unsigned i = n; i < c->n_values; i++) {
        others.sequences += sorted[i].sequences;
        others.tokens += sorted[i].tokens;
    }
    longest = fmax((double)sorted[0].tokens, (double)others.tokens) / all;

    (void)snprintf(title, sizeof title, "%s %s has %.1f%% of the tokens",
                   c->by->name,
                   channel_figures_value(c->by, sorted[0].value, value),
                   100 * (double)sorted[0].tokens / all);
    (void)snprintf(note, sizeof note,
                   "of %" PRIu32 "%s values; share of tokens, sequences",
                   c->n_values, c->others.sequences > 0 ? " and more" : "");
    svg_begin_panel(page, title, note);
    for (unsigned i = 0; i < n; i++)
        draw_value(page, CHART_TOP + 15 * i,
                   channel_figures_value(c->by, sorted[i].value, value),
                   &sorted[i], (double)sorted[i].tokens / all, longest);
    if (others.sequences > 0)
        draw_value(page, CHART_TOP + 15 * n, "others", &others,
                   (double)others.tokens / all, longest);
    svg_end_low_panel(page, CHART_TOP + 15 * (n + (others.sequences > 0)));
}

/* ---- Files ---- */

bool plot_packs(svg *page, const char *name, const ps_pack_info *info,
                const ps_totals *t, const pack_figures *found)
{
    const plot_figures *p = found->plot;
    /* Joined streams may have other caps than the first. */
    const uint32_t depth = found->streams > 1 ? 0 : info->depth;
    double bound = 1;

    svg_begin_section(page, files_is_standard(name) ? "stdin" : name);
    draw_pack_list(page, info, t, found);
    if (t->packs == 0)
        return true;
    if (!bound_efficiency(&bound, info, depth, t, found->lengths.all))
        return false;
    draw_efficiency(page, info, t, p, bound);
    draw_histograms(page, info, t, found);
    draw_first(page, info, p);
    if (found->channels.by != NULL)
        draw_values(page, &found->channels, t->tokens);
    return true;
}

void plot_tokens(svg *page, const char *name, const ps_schema *schema,
                 const token_figures *found)
{
    svg_begin_section(page, files_is_standard(name) ? "stdin" : name);
    draw_token_list(page, schema, found);
    if (found->sequences == 0)
        return;
    chart_draw_lengths(page, found->lengths.all);
    if (found->channels.by != NULL)
        draw_values(page, &found->channels, found->tokens);
}
