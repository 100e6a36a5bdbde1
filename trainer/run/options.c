/*
 * options.c - command lines as tables, for both programs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/fail.h"

/* Decimal digits, and perhaps k or M for powers of 1000. */
static bool parse_whole(const char *text, uint64_t *number)
{
    char *end;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *number = strtoull(text, &end, 10);
    if (errno != 0)
        return false;
    for (; *end == 'k' || *end == 'M'; end++) {
        uint64_t times = *end == 'k' ? 1000 : 1000000;

        if (*number > UINT64_MAX / times || end[1] != '\0')
            return false;
        *number *= times;
    }
    return *end == '\0';
}

static bool parse_real(const char *text, double *number)
{
    char *end;

    if ((*text < '0' || *text > '9') && *text != '.')
        return false;
    *number = strtod(text, &end);
    return *end == '\0' && isfinite(*number);
}

/* Which of the words "a, b or c; ..." it is; -1: none. */
static int choose(const char *words, const char *value)
{
    size_t n = strlen(value);

    for (int i = 0; *words != '\0'; i++) {
        size_t word = strcspn(words, ", ;");

        if (word == n && strncmp(words, value, n) == 0)
            return i;
        words += word;
        if (*words == ';')
            return -1;
        words += strspn(words, ", ");
        if (strncmp(words, "or ", 3) == 0)
            words += 3;
    }
    return -1;
}

static bool set_number(const option_entry *e, const char *value, void *to)
{
    uint64_t whole = 0;
    double number = 0;

    if (e->kind == OPTION_DOUBLE ? !parse_real(value, &number)
                                 : !parse_whole(value, &whole))
        return false;
    if (e->kind != OPTION_DOUBLE)
        number = (double)whole;
    if (number < e->min || number > e->max)
        return false;
    if (e->kind == OPTION_DOUBLE)
        *(double *)to = number;
    else if (e->kind == OPTION_U32)
        *(uint32_t *)to = (uint32_t)whole;
    else
        *(uint64_t *)to = whole;
    return true;
}

static bool set(const option_entry *e, const char *value, void *to)
{
    switch (e->kind) {
    case OPTION_FLAG:
        *(bool *)to = true;
        return true;
    case OPTION_TEXT:
        *(const char **)to = value;
        return true;
    case OPTION_CHOICE:
        *(int *)to = choose(e->help, value);
        return *(int *)to >= 0;
    default:
        return set_number(e, value, to);
    }
}

static int complain(const option_program *p, const option_entry *e,
                    const char *value)
{
    if (e->kind == OPTION_CHOICE)
        say(p->name, "--%s: '%s' is not %.*s", e->name, value,
            (int)strcspn(e->help, ";"), e->help);
    else
        say(p->name, "--%s: '%s' is not a number from %.15g to %.15g",
            e->name, value, e->min, e->max);
    return STATUS_USAGE;
}

/* What getopt gave '?' or ':' for. */
static int refuse(const option_program *p, char **argv, int got)
{
    if (got == ':')
        say(p->name, "%s: wants a value", argv[optind - 1]);
    else if (optopt != 0)
        say(p->name, "-%c: no such option (--help lists them)", optopt);
    else
        say(p->name, "%s: no such option (--help lists them)",
            argv[optind - 1]);
    return STATUS_USAGE;
}

static const char *metavar(option_kind kind)
{
    switch (kind) {
    case OPTION_FLAG:
        return "";
    case OPTION_TEXT:
        return "=FILE";
    case OPTION_CHOICE:
        return "=WORD";
    default:
        return "=N";
    }
}

int option_help(const option_program *p)
{
    char name[32];

    (void)printf("usage: %s %s\n%s\n\n", p->name, p->usage, p->summary);
    for (int i = 0; i < p->n_entries; i++) {
        const option_entry *e = &p->entries[i];

        (void)snprintf(name, sizeof name, "%s%s", e->name, metavar(e->kind));
        (void)printf("  --%-17s %s\n", name, e->help);
    }
    (void)printf("  --%-17s print this and exit\n", "help");
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return STATUS_OK;
    say(p->name, "stdout: %s", strerror(errno));
    return STATUS_FAILURE;
}

static void list_names(const option_program *p, struct option *names)
{
    for (int i = 0; i < p->n_entries; i++) {
        names[i].name = p->entries[i].name;
        names[i].has_arg = p->entries[i].kind == OPTION_FLAG
                               ? no_argument
                               : required_argument;
    }
    names[p->n_entries].name = "help";
}

int option_parse(const option_program *program, int argc, char **argv,
                 void *conf, int *first)
{
    struct option names[OPTION_MAX + 2] = {{0}};
    int at = 0, got;

    list_names(program, names);
    opterr = 0;
    while ((got = getopt_long(argc, argv, ":", names, &at)) != -1) {
        const option_entry *e = &program->entries[at];

        if (got != 0)
            return refuse(program, argv, got);
        if (at == program->n_entries)
            return STATUS_OK;
        if (!set(e, optarg, (char *)conf + e->at))
            return complain(program, e, optarg);
    }
    *first = optind;
    return -1;
}
