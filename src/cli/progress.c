/*
 * progress.c - a live line on stderr.
 *
 * SPDX-License-Identifier: MIT
 */

#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "message.h"

#define SHOW_EVERY_NS UINT64_C(100000000)
#define CALLS_PER_LOOK 64

/* Nanoseconds of the monotonic clock; 0 if there is none. */
static uint64_t now_ns(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_MONOTONIC, &t) == -1)
        return 0;
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

void progress_start(progress *p, bool wanted)
{
    memset(p, 0, sizeof *p);
    p->active = wanted && isatty(STDERR_FILENO) == 1;
    if (!p->active)
        return;
    p->countdown = CALLS_PER_LOOK;
    p->started_ns = now_ns();
    p->shown_ns = p->started_ns;
}

bool progress_due(progress *p)
{
    uint64_t now;

    if (!p->active || --p->countdown > 0)
        return false;
    p->countdown = CALLS_PER_LOOK;
    now = now_ns();
    if (now - p->shown_ns < SHOW_EVERY_NS)
        return false;
    p->shown_ns = now;
    return true;
}

/* A line that is being put together; what does not fit is left out. */
typedef struct line {
    char text[MESSAGE_COLUMNS + 1];
    size_t length;
} line;

static void append(line *l, const char *text)
{
    size_t room = sizeof l->text - 1 - l->length;
    size_t length = strlen(text);

    if (length > room)
        length = room;
    memcpy(l->text + l->length, text, length);
    l->length += length;
    l->text[l->length] = '\0';
}

/* What stands before the next figure. */
static const char *gap(const line *l)
{
    return l->length > 0 ? "  " : "";
}

/* Three digits and a prefix: "12.3 M sequences", or "1.21 GB/s". */
static void append_amount(line *l, double amount, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    const size_t last = sizeof prefixes / sizeof prefixes[0] - 1;
    char text[48];
    size_t i = 0;

    for (; amount >= 999.5 && i < last; i++)
        amount /= 1000;
    (void)snprintf(text, sizeof text, "%s%.3g%s%s%s", gap(l), amount,
                   i == 0 && unit[0] == ' ' ? "" : " ", prefixes[i], unit);
    append(l, text);
}

static void append_fullness(line *l, const progress_figures *f)
{
    double room = (double)f->packs * (double)f->capacity;
    char text[32];

    (void)snprintf(text, sizeof text, "%s%.2f%% full", gap(l),
                   100 * (double)f->tokens / room);
    append(l, text);
}

static void append_rate(line *l, uint64_t bytes, uint64_t ns)
{
    if (ns > 0)
        append_amount(l, (double)bytes / ((double)ns / 1e9), "B/s");
}

void progress_show(progress *p, const progress_figures *figures)
{
    line l = {.length = 0};

    if (!p->active)
        return;
    p->shown_ns = now_ns();
    if (figures->sequences > 0)
        append_amount(&l, (double)figures->sequences, " sequences");
    if (figures->tokens > 0)
        append_amount(&l, (double)figures->tokens, " tokens");
    if (figures->packs > 0 && figures->capacity > 0)
        append_fullness(&l, figures);
    else if (figures->packs > 0)
        append_amount(&l, (double)figures->packs, " packs");
    if (figures->bytes > 0)
        append_rate(&l, figures->bytes, p->shown_ns - p->started_ns);
    message_line(l.text);
}

void progress_end(progress *p)
{
    message_wipe();
    p->active = false;
}
