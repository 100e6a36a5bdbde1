/*
 * text.c - the pieces that summaries are made of: labelled lines, grouped
 * numbers, histograms drawn as bars.
 *
 * SPDX-License-Identifier: MIT
 */

#include "text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum { COLUMNS = 80 };

const char *text_number(char buffer[TEXT_NUMBER_BYTES], uint64_t number)
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

void text_line(FILE *out, const char *label, const char *format, ...)
{
    va_list args;

    fprintf(out, "  %-14s ", label);
    va_start(args, format);
    vfprintf(out, format, args);
    va_end(args);
    putc('\n', out);
}

void text_count(FILE *out, const char *label, uint64_t number,
                const char *unit)
{
    char text[TEXT_NUMBER_BYTES];

    text_line(out, label, "%s%s%s", text_number(text, number),
              unit == NULL ? "" : " ", unit == NULL ? "" : unit);
}

/* A histogram as rows: row i covers the values [from[i], from[i + 1]). */
typedef struct rows {
    unsigned n;
    uint64_t from[TEXT_MAX_ROWS + 1];
    uint64_t count[TEXT_MAX_ROWS];
    uint64_t sum; /* of all counts */
    uint64_t top; /* the highest of them */
} rows;

/* True if equal ranges would put most of the counts into the first one. */
static bool is_skewed(const histogram *h, unsigned max_rows)
{
    uint32_t first = histogram_greatest(h) / max_rows;
    uint64_t below = 0;
    uint64_t above = 0;

    for (size_t i = 0; i < h->n_used; i++) {
        if (h->bins[i].value <= first)
            below += h->bins[i].count;
        else
            above += h->bins[i].count;
    }
    return first > 1 && below > above;
}

static void divide_equally(rows *r, uint64_t greatest, unsigned max_rows)
{
    uint64_t step = (greatest + max_rows - 1) / max_rows;

    for (uint64_t from = 1; from <= greatest; from += step)
        r->from[r->n++] = from;
}

/* Powers of 2, or of 4 and so on, until the rows suffice. */
static void divide_by_powers(rows *r, uint64_t greatest, unsigned max_rows)
{
    unsigned bits = 1;

    while (greatest >> (bits * max_rows < 63 ? bits * max_rows : 63) != 0)
        bits++;
    for (uint64_t from = 1; from <= greatest; from <<= bits)
        r->from[r->n++] = from;
}

static void divide(rows *r, const histogram *h, unsigned max_rows)
{
    uint64_t greatest = histogram_greatest(h);

    if (is_skewed(h, max_rows))
        divide_by_powers(r, greatest, max_rows);
    else
        divide_equally(r, greatest, max_rows);
    r->from[r->n] = greatest + 1;
}

static void fill(rows *r, const histogram *h)
{
    unsigned row = 0;

    for (size_t i = 0; i < h->n_used; i++) {
        while (h->bins[i].value >= r->from[row + 1])
            row++;
        r->count[row] += h->bins[i].count;
        r->sum += h->bins[i].count;
    }
    for (row = 0; row < r->n; row++) {
        if (r->count[row] > r->top)
            r->top = r->count[row];
    }
}

/* "7", or "33-64". */
static int label(char *buffer, size_t size, const rows *r, unsigned row)
{
    uint64_t last = r->from[row + 1] - 1;

    if (r->from[row] == last)
        return snprintf(buffer, size, "%" PRIu64, last);
    return snprintf(buffer, size, "%" PRIu64 "-%" PRIu64, r->from[row],
                    last);
}

static int max(int a, int b)
{
    return a > b ? a : b;
}

static void draw_bar(FILE *out, uint64_t count, uint64_t top, int width)
{
    double share = (double)count / (double)top;
    int length = (int)(share * width + 0.5);

    /* What occurs is seen, however rare it is. */
    if (length == 0 && count > 0)
        length = 1;
    while (length-- > 0)
        putc('#', out);
    putc('\n', out);
}

static void draw(FILE *out, const char *values, const char *counts,
                 const rows *r)
{
    char text[48];
    char number[TEXT_NUMBER_BYTES];
    int left = (int)strlen(values);
    int middle = (int)strlen(counts);
    unsigned row;

    for (row = 0; row < r->n; row++)
        left = max(left, label(text, sizeof(text), r, row));
    middle = max(middle, (int)strlen(text_number(number, r->top)));
    fprintf(out, "\n  %*s  %*s\n", left, values, middle, counts);
    /* Empty rows are left out before the first value, kept after it. */
    for (row = 0; row < r->n && r->count[row] == 0; row++)
        ;
    for (; row < r->n; row++) {
        (void)label(text, sizeof(text), r, row);
        fprintf(out, "  %*s  %*s  %6.2f%% |", left, text, middle,
                text_number(number, r->count[row]),
                100.0 * (double)r->count[row] / (double)r->sum);
        draw_bar(out, r->count[row], r->top, COLUMNS - left - middle - 15);
    }
}

void text_histogram(FILE *out, const char *values, const char *counts,
                    const histogram *h, unsigned max_rows)
{
    rows r = {0};

    if (h->n_used == 0)
        return;
    divide(&r, h, max_rows);
    fill(&r, h);
    draw(out, values, counts, &r);
}
