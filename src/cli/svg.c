/*
 * svg.c - a page of pictures, as SVG or as HTML around SVG.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/svg.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/files.h"
#include "cli/report.h"

/* Around panels and sections, in pixels. */
#define MARGIN 10
#define GAP 20
#define HEADING 40 /* and of it below the line that letters stand on: */
#define BELOW 18
#define MAX_COLUMNS 3

/* A heading in SVG is as long as a panel is wide; of a longer one this is its
   beginning, and the end, which tells files of a folder apart, has the rest. */
#define HEADING_WIDTH 38
#define HEADING_BEGIN 14

/*
 * Colours are those that Okabe and Ito (2008) chose for readers who see some
 * of them alike, and lines of like lightness have labels at their ends.
 */
static const char style[] =
    "svg{font:11px/1.2 system-ui,-apple-system,'Segoe UI',sans-serif}\n"
    "text{fill:#57606a;font-variant-numeric:tabular-nums;"
    "unicode-bidi:isolate}\n"
    ".h{font-size:16px;font-weight:600}.t{font-size:13px;font-weight:600}\n"
    ".h,.t,.b{fill:#1f2328}.m{text-anchor:middle}.e{text-anchor:end}\n"
    ".grid{stroke:#d8dee4;stroke-width:.5}.axis{stroke:#8c959f}\n"
    ".bar{fill:#5a9bcb}.line{fill:none;stroke-width:1.5;"
    "stroke-linejoin:round}.dash{stroke-dasharray:4 3}"
    ".dots{stroke-dasharray:1.5 3}\n"
    ".k0{color:#0072b2}.k1{color:#bf5200}.k2{color:#007d5a}"
    ".k3{color:#a5477f}.k4{color:#8a6400}.k5{color:#7a4fc0}"
    ".k6{color:#333333}.k7{color:#6e7781}.k8{color:#9a3412}.k9{color:#1f2328}\n"
    "text.k0,text.k1,text.k2,text.k3,text.k4,text.k5,text.k6,text.k7,text.k8,"
    "text.k9,circle{fill:currentColor}"
    ".line{stroke:currentColor}\n"
    ".w0{stroke:#08519c}.w1{stroke:#3182bd}.w2{stroke:#6baed6}"
    ".w3{stroke:#a6cbe3}.w4{stroke:#d55e00}rect.w1{fill:#3182bd;stroke:none}\n"
    "@media(prefers-color-scheme:dark){text{fill:#9198a1}"
    ".h,.t,.b{fill:#f0f6fc}.grid{stroke:#2f353d}.axis{stroke:#656c76}"
    ".bar{fill:#2f6f9f}.k0{color:#58a6e0}.k1{color:#f28c4b}"
    ".k2{color:#2fbf94}.k3{color:#dc8fbd}.k4{color:#e3b341}"
    ".k5{color:#b79cf0}.k6{color:#d0d7de}.k7{color:#8d96a0}"
    ".k8{color:#e0795a}.k9{color:#f0f6fc}"
    ".w0{stroke:#2171b5}.w1{stroke:#4a98cc}.w2{stroke:#7db8dc}"
    ".w3{stroke:#b3d3e8}.w4{stroke:#f28c4b}rect.w1{fill:#4a98cc}}\n";

/* ---- Text ---- */

static void put_bytes(svg_buffer *out, const char *bytes, size_t n)
{
    if (out->capacity - out->n < n && !out->failed) {
        const size_t capacity = 2 * (out->n + n);
        char *longer = realloc(out->bytes, capacity);

        out->failed = longer == NULL;
        if (longer != NULL) {
            out->bytes = longer;
            out->capacity = capacity;
        }
    }
    if (out->failed || n == 0)
        return;
    memcpy(out->bytes + out->n, bytes, n);
    out->n += n;
}

static void put_text(svg_buffer *out, const char *text)
{
    put_bytes(out, text, strlen(text));
}

static void put_format(svg_buffer *out, const char *format, va_list args)
    MESSAGE_PRINTF(2, 0);

static void put_format(svg_buffer *out, const char *format, va_list args)
{
    char text[512];
    const int n = vsnprintf(text, sizeof text, format, args);

    if (n < 0 || (size_t)n >= sizeof text)
        out->failed = true;
    else
        put_bytes(out, text, (size_t)n);
}

static void put(svg_buffer *out, const char *format, ...)
    MESSAGE_PRINTF(2, 3);

static void put(svg_buffer *out, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    put_format(out, format, args);
    va_end(args);
}

void svg_put(svg *s, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    put_format(&s->page, format, args);
    va_end(args);
}

/* Bytes of the character at `p`; 0 if XML cannot hold it. */
static size_t character_bytes(const char *p)
{
    const unsigned char byte = (unsigned char)p[0];
    const size_t n = byte < 0x80 ? 1 : report_utf8_bytes(p);

    if (byte < 0x20 || byte == 0x7f || (byte == 0xc2 && (p[1] & 0x60) == 0))
        return 0; /* a control character; those from U+0080 on, too */
    if (n == 3 && memcmp(p, "\xef\xbf", 2) == 0 && (p[2] & 0x7e) == 0x3e)
        return 0; /* U+FFFE, U+FFFF */
    return n;
}

/*
 * Text as XML has it, up to `end`: what is not well-formed UTF-8, or no
 * character of XML, becomes U+FFFD.
 */
static void escape_to(svg_buffer *out, const char *text, const char *end)
{
    while (text < end) {
        const size_t n = character_bytes(text);

        if (*text == '&')
            put_text(out, "&amp;");
        else if (*text == '<')
            put_text(out, "&lt;");
        else if (*text == '>')
            put_text(out, "&gt;");
        else if (*text == '"')
            put_text(out, "&quot;");
        else if (n > 0)
            put_bytes(out, text, n);
        else
            put_text(out, "\xef\xbf\xbd");
        text += n > 0 ? n : 1;
    }
}

static void escape(svg_buffer *out, const char *text)
{
    escape_to(out, text, text + strlen(text));
}

/* About how wide a text is, in letters: others than European ones have two. */
static unsigned letters(const char *text)
{
    unsigned n = 0;

    for (size_t bytes; *text != '\0'; text += bytes > 0 ? bytes : 1) {
        bytes = character_bytes(text);
        n += bytes == 1 || bytes == 2 ? 1 : 2;
    }
    return n;
}

/* Where the part of a text begins behind which there are at most so many. */
static const char *last_letters(const char *text, unsigned most)
{
    while (letters(text) > most) {
        const size_t bytes = character_bytes(text);

        text += bytes > 0 ? bytes : 1;
    }
    return text;
}

/* A heading without its middle, if it is too long; a mouse shows it whole. */
static void put_short(svg_buffer *out, const char *heading)
{
    const unsigned all = letters(heading);
    const char *end;

    if (all <= HEADING_WIDTH) {
        escape(out, heading);
        return;
    }
    end = last_letters(heading, all - HEADING_BEGIN);
    escape_to(out, heading, end);
    put_text(out, "\xe2\x80\xa6"); /* ... */
    escape(out, last_letters(end, HEADING_WIDTH - HEADING_BEGIN - 2));
    put_text(out, "<title>");
    escape(out, heading);
    put_text(out, "</title>");
}

void svg_text(svg *s, double x, double y, const char *class,
              const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    svg_put(s, "<text x=\"%.1f\" y=\"%.1f\"", x, y);
    if (class[0] != '\0')
        svg_put(s, " class=\"%s\"", class);
    put_text(&s->page, ">");
    escape(&s->page, text);
    put_text(&s->page, "</text>\n");
}

/* ---- Shapes ---- */

void svg_line(svg *s, double x1, double y1, double x2, double y2,
              const char *class)
{
    svg_put(s,
            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\""
            " class=\"%s\"/>\n",
            x1, y1, x2, y2, class);
}

void svg_rect(svg *s, double x, double y, double width, double height,
              const char *class, const char *label)
{
    svg_put(s,
            "<rect x=\"%.1f\" y=\"%.2f\" width=\"%.1f\" height=\"%.2f\""
            " class=\"%s\"",
            x, y, width, height, class);
    if (label == NULL) {
        put_text(&s->page, "/>\n");
        return;
    }
    put_text(&s->page, "><title>");
    escape(&s->page, label);
    put_text(&s->page, "</title></rect>\n");
}

void svg_dot(svg *s, double x, double y, const char *class,
             const char *label)
{
    svg_put(s,
            "<circle cx=\"%.1f\" cy=\"%.2f\" r=\"2\" class=\"%s\">"
            "<title>",
            x, y, class);
    escape(&s->page, label);
    put_text(&s->page, "</title></circle>\n");
}

void svg_begin_path(svg *s, const char *class)
{
    svg_put(s, "<polyline class=\"%s\" points=\"", class);
}

void svg_path_to(svg *s, double x, double y)
{
    svg_put(s, "%.1f,%.2f ", x, y);
}

void svg_end_path(svg *s)
{
    put_text(&s->page, "\"/>\n");
}

/* ---- Pages ---- */

/* How high a row is, whose first panel has this number in its section. */
static int row_height(const svg_section *section, int first, int columns)
{
    int height = 0;

    for (int k = first; k < first + columns && k < (int)section->panels; k++)
        height = section->heights[k] > height ? section->heights[k] : height;
    return height;
}

/*
 * Where headings and panels stand in so many columns, as rules of a style
 * sheet if `out` is not NULL.  Returns the height.
 */
static int place(const svg *s, svg_buffer *out, int columns)
{
    unsigned panel = 0;
    int y = MARGIN;

    for (unsigned i = 0; i < s->n_sections; i++) {
        const int n = (int)s->sections[i].panels;

        if (out != NULL)
            put(out, "#s%u{transform:translate(%dpx,%dpx)}\n", i,
                MARGIN, y + HEADING - BELOW);
        y += HEADING;
        for (int k = 0; k < n; k++) {
            const int x = MARGIN + k % columns * (SVG_WIDTH + GAP);

            if (out != NULL)
                put(out, "#p%u{transform:translate(%dpx,%dpx)}\n",
                    panel, x, y);
            panel++;
            if (k % columns == columns - 1 || k == n - 1)
                y += GAP +
                     row_height(&s->sections[i], k - k % columns, columns);
        }
    }
    return y;
}

void svg_begin_section(svg *s, const char *heading)
{
    svg_section *section = &s->sections[s->n_sections++];

    *section = (svg_section){.begin = s->page.n};
    if (s->html)
        put_text(&s->page, "<h2>");
    else
        svg_put(s,
                "<text id=\"s%u\" class=\"h\""
                " transform=\"translate(%d,%d)\">",
                s->n_sections - 1, MARGIN, place(s, NULL, 1) - BELOW);
    if (s->html)
        escape(&s->page, heading);
    else
        put_short(&s->page, heading);
    put_text(&s->page, s->html ? "</h2>\n" : "</text>\n");
    section->body = s->page.n;
}

void svg_begin_panel(svg *s, const char *title, const char *note)
{
    svg_section *section = &s->sections[s->n_sections - 1];

    if (s->html) {
        svg_put(s,
                "<svg xmlns=\"http://www.w3.org/2000/svg\""
                " role=\"group\" viewBox=\"0 0 %d ",
                SVG_WIDTH);
        s->height = s->page.n;
        svg_put(s, "%3d\">\n", SVG_HEIGHT);
    } else {
        svg_put(s,
                "<g id=\"p%u\" transform=\"translate(%d,%d)\">\n",
                s->n_panels, MARGIN, place(s, NULL, 1));
    }
    section->heights[section->panels++] = SVG_HEIGHT;
    s->n_panels++;
    svg_text(s, 0, 14, "t", "%s", title);
    svg_text(s, 0, 30, "n", "%s", note);
}

void svg_end_panel(svg *s)
{
    put_text(&s->page, s->html ? "</svg>\n" : "</g>\n");
}

void svg_end_low_panel(svg *s, double height)
{
    svg_section *section = &s->sections[s->n_sections - 1];
    char digits[16];
    int *const own = &section->heights[section->panels - 1];

    if (height < SVG_HEIGHT)
        *own = (int)ceil(height);
    /* In place of the number that was put when it began. */
    (void)snprintf(digits, sizeof digits, "%3d", *own);
    if (s->html && !s->page.failed)
        memcpy(s->page.bytes + s->height, digits, 3);
    svg_end_panel(s);
}

static void write_svg(const svg *s, svg_buffer *out)
{
    put(out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\""
        " height=\"%d\">\n",
        2 * MARGIN + SVG_WIDTH, place(s, NULL, 1));
    /* A phone would take the page for one that is made for a wide window. */
    put_text(out, "<meta xmlns=\"http://www.w3.org/1999/xhtml\""
                  " name=\"viewport\" content=\"width=device-width,"
                  " initial-scale=1\"/>\n<style>\n");
    put_text(out, style);
    put_text(out, "svg{background:#fff}\n@media(prefers-color-scheme:dark)"
                  "{svg{background:#0d1117}}\n");
    for (int columns = 2; columns <= MAX_COLUMNS; columns++) {
        const int width =
            2 * MARGIN + columns * SVG_WIDTH + (columns - 1) * GAP;

        put(out, "@media(min-width:%dpx){svg{width:%dpx;height:%dpx}\n",
            width, width, place(s, NULL, columns));
        (void)place(s, out, columns);
        put_text(out, "}\n");
    }
    put_text(out, "</style>\n");
    put_bytes(out, s->page.bytes, s->page.n);
    put_text(out, "</svg>\n");
}

static void write_html(const svg *s, svg_buffer *out)
{
    put_text(out,
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
             "<meta charset=\"utf-8\"/>\n<meta name=\"viewport\""
             " content=\"width=device-width, initial-scale=1\"/>\n"
             "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
             "<title>");
    escape(out, message_program());
    put_text(out, "</title>\n<style>\n");
    put_text(out, style);
    put(out,
        "body{margin:%dpx;background:#fff}\n"
        "section{display:grid;gap:%dpx;"
        "grid-template-columns:repeat(auto-fill,minmax(min(100%%,%dpx),1fr))}"
        "\nsection svg{width:100%%;max-width:%dpx}\n",
        MARGIN, GAP, SVG_WIDTH, SVG_WIDTH * 3 / 2);
    put_text(out,
             "h2{font:600 16px system-ui,-apple-system,'Segoe UI',sans-serif;"
             "color:#1f2328;margin:12px 0;overflow-wrap:anywhere}\n"
             "@media(prefers-color-scheme:dark){body{background:#0d1117}"
             "h2{color:#f0f6fc}}\n"
             "</style>\n</head>\n<body>\n");
    for (unsigned i = 0; i < s->n_sections; i++) {
        const svg_section *at = &s->sections[i];
        const size_t end =
            i + 1 < s->n_sections ? at[1].begin : s->page.n;

        put_bytes(out, s->page.bytes + at->begin, at->body - at->begin);
        put_text(out, "<section>\n");
        put_bytes(out, s->page.bytes + at->body, end - at->body);
        put_text(out, "</section>\n");
    }
    put_text(out, "</body>\n</html>\n");
}

/* ---- Files ---- */

static bool ends_with(const char *name, const char *ending)
{
    const size_t n = strlen(name);
    const size_t k = strlen(ending);

    return n > k && strcmp(name + n - k, ending) == 0;
}

const char *svg_set_name(void *member, const char *value)
{
    const char **name = member;

    if (!ends_with(value, ".svg") && !ends_with(value, ".html"))
        return "must be the name of a file that ends in .svg or .html";
    *name = value;
    return NULL;
}

bool svg_open(svg *s, const char *name, const char *const *inputs,
              int n_inputs)
{
    *s = (svg){.name = name, .fd = -1, .html = ends_with(name, ".html")};
    if (files_are_distinct(name, NULL))
        s->fd = file_set_open(&s->files, name, true, inputs, n_inputs);
    if (s->fd >= 0)
        return true;
    file_set_free(&s->files);
    *s = (svg){0};
    return false;
}

bool svg_close(svg *s, bool whole)
{
    svg_buffer text = {.failed = s->page.failed};

    /* Puts the page together and writes it. */
    if (whole && !text.failed && s->html)
        write_html(s, &text);
    else if (whole && !text.failed)
        write_svg(s, &text);
    if (whole && text.failed) {
        (void)message_memory();
        whole = false;
    } else if (whole && !files_write(s->fd, text.bytes, text.n)) {
        message_errno("%s", message_name(s->name));
        whole = false;
    }
    free(text.bytes);

    if (whole)
        whole = files_close_output(s->fd, s->name) &&
                file_set_publish(&s->files);
    else
        files_abandon_output(s->fd);
    file_set_free(&s->files);
    free(s->page.bytes);
    *s = (svg){0};
    return whole;
}
