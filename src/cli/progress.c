/*
 * progress.c - a progress line on stderr.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/progress.h"

#include <stdarg.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/message.h"
#include "files/files.h"

#define SHOW_EVERY_NS UINT64_C(100000000)
/* Time before the first estimate; an earlier one would be unreliable. */
#define LEFT_AFTER_NS UINT64_C(1000000000)
#define CALLS_PER_LOOK 64

/* Monotonic time in nanoseconds; 0 if unavailable. */
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

/* Size of a regular file in bytes; 0 for any other type of file. */
static uint64_t size_of(const char *name)
{
    struct stat st;

    return files_stat(name, STDIN_FILENO, &st) && S_ISREG(st.st_mode) &&
                   st.st_size > 0
               ? (uint64_t)st.st_size
               : 0;
}

void progress_inputs(progress *p, const char *const *names, int n)
{
    uint64_t all = 0;

    for (int i = 0; p->active && i < n; i++) {
        const uint64_t size = size_of(names[i]);

        if (size == 0 || size > INT64_MAX - all)
            return;
        all += size;
    }
    p->names = names;
    p->all = all;
}

void progress_again(progress *p)
{
    p->passed = 0;
    p->n_passed = 0;
    p->first_ns = 0;
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

/* The line being built.  Text that does not fit is cut off. */
typedef struct line {
    char text[MESSAGE_COLUMNS + 1];
    size_t length; /* at most MESSAGE_COLUMNS */
} line;

/* Appends a value, separated from the previous value by two spaces. */
static void append(line *l, const char *format, ...) MESSAGE_PRINTF(2, 3);

static void append(line *l, const char *format, ...)
{
    va_list args;

    for (int i = 0; i < 2 && l->length > 0; i++)
        if (l->length < MESSAGE_COLUMNS)
            l->text[l->length++] = ' ';
    va_start(args, format);
    (void)vsnprintf(l->text + l->length, sizeof l->text - l->length, format,
                    args);
    va_end(args);
    l->length += strlen(l->text + l->length);
}

/* Formats three digits and a prefix: "12.3 M sequences" or "1.21 GB/s". */
static void append_amount(line *l, double amount, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    const size_t last = sizeof prefixes / sizeof prefixes[0] - 1;
    size_t i = 0;

    for (; amount >= 999.5 && i < last; i++)
        amount /= 1000;
    append(l, "%.3g%s%s%s", amount, i == 0 && unit[0] == ' ' ? "" : " ",
           prefixes[i], unit);
}

/* Appends "42%" and, once the time can be estimated, "0:08 left". */
static void append_rest(progress *p, line *l, const progress_figures *figures)
{
    const off_t at = lseek(figures->fd, 0, SEEK_CUR);
    uint64_t done;
    uint64_t left;

    for (; p->n_passed < figures->input; p->n_passed++)
        p->passed += size_of(p->names[p->n_passed]);
    done = p->passed + (at > 0 ? (uint64_t)at : 0);
    /* Files can change size during the run. */
    if (done > p->all)
        done = p->all;
    append(l, "%.0f%%", 100 * (double)done / (double)p->all);

    /*
     * Measure the speed from the first line on, since a resumed job may have
     * skipped the data before.
     */
    if (p->first_ns == 0) {
        p->first_ns = p->shown_ns;
        p->first = done;
    }
    if (p->shown_ns - p->first_ns < LEFT_AFTER_NS || done <= p->first)
        return;
    left = (uint64_t)((double)(p->shown_ns - p->first_ns) / 1e9 *
                      (double)(p->all - done) / (double)(done - p->first));
    if (left < 3600)
        append(l, "%" PRIu64 ":%02u left", left / 60, (unsigned)(left % 60));
    else
        append(l, "%" PRIu64 ":%02u:%02u left", left / 3600,
               (unsigned)(left / 60 % 60), (unsigned)(left % 60));
}

void progress_show(progress *p, const progress_figures *figures)
{
    line l = {.length = 0};
    uint64_t ns;

    if (!p->active)
        return;
    p->shown_ns = now_ns();
    ns = p->shown_ns - p->started_ns;
    if (figures->sequences > 0)
        append_amount(&l, (double)figures->sequences, " sequences");
    if (figures->tokens > 0)
        append_amount(&l, (double)figures->tokens, " tokens");
    if (figures->packs > 0 && figures->capacity > 0)
        append(&l, "%.2f%% full",
               100 * (double)figures->tokens /
                   ((double)figures->packs * (double)figures->capacity));
    else if (figures->packs > 0)
        append_amount(&l, (double)figures->packs, " packs");
    if (figures->bytes > 0 && ns > 0)
        append_amount(&l, (double)figures->bytes / ((double)ns / 1e9), "B/s");
    if (p->all > 0)
        append_rest(p, &l, figures);
    message_line(l.text);
}

void progress_end(progress *p)
{
    message_wipe();
    p->active = false;
}
