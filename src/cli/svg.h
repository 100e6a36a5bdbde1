/*
 * svg.h - a page of pictures, as SVG or as HTML around SVG.
 *
 * A page has sections, and a section panels of one width, which stand in as
 * many columns as the window is wide.  Colours follow the reader's light or
 * dark scheme.  The page needs no other file and holds no script.
 *
 * Places in a panel are in pixels from its upper left corner.  A class names
 * a style of the sheet in svg.c:
 *
 *     t n         text: title, note
 *     b           text as dark as the title
 *     m e         text centred on its place, or ending there; with others
 *     grid axis   lines
 *     bar         filled shapes of a histogram
 *     line        drawn lines; with a colour
 *     k0 to k9    colours for lines, shapes and text
 *     w0 to w3    shades of one colour, from dark to light, for lines
 *     w4          a colour that is none of these
 *     dash dots   a line of these
 *
 * The page is made in memory and written when it is whole, under another name
 * at first, so that no reader sees half of it.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_SVG_H
#define CLI_SVG_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/file_set.h"
#include "cli/message.h"

#define SVG_WIDTH 360 /* of a panel */
#define SVG_HEIGHT 256
#define SVG_SECTIONS 6 /* at most, in a page */
#define SVG_PANELS 8   /* likewise, in a section */

/* Text that grows; without memory it stays as it is, and `failed`. */
typedef struct svg_buffer {
    char *bytes;
    size_t n;
    size_t capacity;
    bool failed;
} svg_buffer;

typedef struct svg_section {
    size_t begin; /* of the heading in the page */
    size_t body;  /* of the first panel */
    unsigned panels;
    int heights[SVG_PANELS]; /* of the panels */
} svg_section;

typedef struct svg {
    const char *name; /* of the file; NULL: not open */
    file_set files;
    int fd;
    bool html;
    svg_buffer page;
    svg_section sections[SVG_SECTIONS];
    unsigned n_sections;
    unsigned n_panels; /* of all sections */
    size_t height;     /* where the page has that of the last panel */
} svg;

/*
 * For option tables: keeps the name of a page, which ends in .svg or .html;
 * it says what the page is.
 */
const char *svg_set_name(void *member, const char *value);

/*
 * Opens the file; a file that is there keeps its bytes until svg_close.  False
 * after a message, also if it is one of the inputs.
 */
bool svg_open(svg *s, const char *name, const char *const *inputs,
              int n_inputs);

/*
 * Writes the page and gives the file its name if `whole`, and frees all.  False
 * after a message; then, and if not `whole`, there is no new file.
 */
bool svg_close(svg *s, bool whole);

/* Begins a section; the heading may be any bytes. */
void svg_begin_section(svg *s, const char *heading);

/* Begins and ends a panel.  The title is what the picture shows. */
void svg_begin_panel(svg *s, const char *title, const char *note);
void svg_end_panel(svg *s);

/* Ends a panel that has nothing below `height`. */
void svg_end_low_panel(svg *s, double height);

void svg_text(svg *s, double x, double y, const char *class,
              const char *format, ...) MESSAGE_PRINTF(5, 6);
void svg_line(svg *s, double x1, double y1, double x2, double y2,
              const char *class);

/* `label` is shown where a mouse points at it. */
void svg_rect(svg *s, double x, double y, double width, double height,
              const char *class, const char *label);

/* A point of a curve, with a label likewise. */
void svg_dot(svg *s, double x, double y, const char *class,
             const char *label);

/* A line through points, one after the other. */
void svg_begin_path(svg *s, const char *class);
void svg_path_to(svg *s, double x, double y);
void svg_end_path(svg *s);

/* Any other element, in short pieces, as it stands in the page. */
void svg_put(svg *s, const char *format, ...) MESSAGE_PRINTF(2, 3);

#endif
