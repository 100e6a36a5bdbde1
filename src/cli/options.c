/*
 * options.c - command lines as tables.
 *
 * getopt_long does the parsing.  Its own messages are switched off, by a
 * leading colon: they would show what the user typed unmasked, and not in
 * our form.
 *
 * SPDX-License-Identifier: MIT
 */

#include "options.h"

#include <assert.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "files.h"
#include "message.h"

#define ENTRIES_MAX 64
#define LABEL_BYTES 64

/* A label longer than that has its help begin on the next line. */
#define LABEL_COLUMNS 28

/* getopt_long gives LONG_BASE + index for a long name, else the letter. */
#define LONG_BASE 256

/* The options of every program; obeyed here, so they need no setter. */
static const option_entry help_entry = {
    'h', "help", OPTION_FLAG, NULL, "show this help and exit", NULL};
static const option_entry version_entry = {
    0, "version", OPTION_FLAG, NULL, "show the version and exit", NULL};

/* The whole table, and what getopt_long makes of it. */
typedef struct parser {
    const option_entry *entries[ENTRIES_MAX];
    int n_entries;
    struct option longs[ENTRIES_MAX + 1];
    char shorts[2 + 2 * ENTRIES_MAX]; /* ':', then "x" or "x:" each, NUL */
} parser;

static int find_letter(const parser *p, char letter)
{
    for (int i = 0; i < p->n_entries; i++)
        if (letter != 0 && p->entries[i]->letter == letter)
            return i;
    return -1;
}

/* The letter of entry `i`, unless an earlier one has taken it. */
static char letter_of(const parser *p, int i)
{
    char letter = p->entries[i]->letter;

    return find_letter(p, letter) == i ? letter : '\0';
}

static void collect_entries(parser *p, const option_entry *entries)
{
    int n = 0;

    for (; entries->letter != 0 || entries->name != NULL; entries++) {
        assert(n < ENTRIES_MAX - 2);
        p->entries[n++] = entries;
    }
    p->entries[n++] = &help_entry;
    p->entries[n++] = &version_entry;
    p->n_entries = n;
}

static int argument_kind(option_value value)
{
    switch (value) {
    case OPTION_FLAG:
        return no_argument;
    case OPTION_VALUE:
        return required_argument;
    case OPTION_OPTIONAL:
        break;
    }
    return optional_argument;
}

static void build_shorts(parser *p)
{
    char *end = p->shorts;

    /* It also tells a missing value from an unknown option. */
    *end++ = ':';
    for (int i = 0; i < p->n_entries; i++) {
        char letter = letter_of(p, i);

        if (letter == '\0')
            continue;
        *end++ = letter;
        if (p->entries[i]->value == OPTION_VALUE)
            *end++ = ':';
    }
    *end = '\0';
}

static void build_longs(parser *p)
{
    struct option *end = p->longs;

    for (int i = 0; i < p->n_entries; i++) {
        const option_entry *entry = p->entries[i];

        if (entry->name != NULL)
            *end++ = (struct option){.name = entry->name,
                                     .has_arg = argument_kind(entry->value),
                                     .val = LONG_BASE + i};
    }
    *end = (struct option){.name = NULL};
}

/* ---------------------------------------------------------------------
 * --help and --version
 */

/* "  -d, --depth=N" */
static void write_label(const parser *p, int i, char label[LABEL_BYTES])
{
    static const char *const forms[][3] = {
        [OPTION_FLAG] = {"", "", ""},
        [OPTION_VALUE] = {" ", "=", ""},
        [OPTION_OPTIONAL] = {"[=", "[=", "]"}};
    const option_entry *entry = p->entries[i];
    const char *const *form = forms[entry->value];
    const char *metavar = entry->metavar == NULL ? "" : entry->metavar;
    char letter = letter_of(p, i);
    char dashed[3] = {'-', letter, '\0'};

    if (entry->name == NULL)
        (void)snprintf(label, LABEL_BYTES, "  %s%s%s%s", dashed, form[0],
                       metavar, form[2]);
    else
        (void)snprintf(label, LABEL_BYTES, "  %s%s--%s%s%s%s",
                       letter == '\0' ? "  " : dashed,
                       letter == '\0' ? "  " : ", ", entry->name, form[1],
                       metavar, form[2]);
}

/* Where the help texts begin: two columns after the longest label. */
static int help_column(const parser *p)
{
    size_t longest = 0;

    for (int i = 0; i < p->n_entries; i++) {
        char label[LABEL_BYTES];
        size_t length;

        write_label(p, i, label);
        length = strlen(label);
        if (length > longest && length <= LABEL_COLUMNS)
            longest = length;
    }
    return (int)longest + 2;
}

static void print_entry(const char *label, int column, const char *help)
{
    if (strlen(label) + 2 > (size_t)column)
        printf("%s\n%*s", label, column, "");
    else
        printf("%-*s", column, label);
    for (; *help != '\0'; help++) {
        putchar(*help);
        if (*help == '\n')
            printf("%*s", column, "");
    }
    putchar('\n');
}

static option_outcome print_help(const parser *p,
                                 const option_program *program)
{
    int column = help_column(p);

    printf("Usage: %s %s\n%s\n\nOptions:\n", message_program(),
           program->usage, program->summary);
    for (int i = 0; i < p->n_entries; i++) {
        char label[LABEL_BYTES];

        write_label(p, i, label);
        print_entry(label, column, p->entries[i]->help);
    }
    return files_close_stdout() ? OPTION_DONE : OPTION_FAILED;
}

static option_outcome print_version(void)
{
    printf("%s (packstream) %s\n", message_program(), ps_version());
    return files_close_stdout() ? OPTION_DONE : OPTION_FAILED;
}

/* ---------------------------------------------------------------------
 * Parsing
 */

/* An option as it was given: "-d" or "--depth". */
static void write_given(const parser *p, int code, char given[LABEL_BYTES])
{
    if (code >= LONG_BASE)
        (void)snprintf(given, LABEL_BYTES, "--%s",
                       p->entries[code - LONG_BASE]->name);
    else
        (void)snprintf(given, LABEL_BYTES, "-%c", code);
}

/* True if `word`, up to a '=', is the beginning of several long names. */
static bool is_ambiguous(const parser *p, const char *word)
{
    size_t length = strcspn(word, "=");
    int found = 0;

    for (const struct option *o = p->longs; o->name != NULL; o++)
        if (strncmp(o->name, word, length) == 0)
            found++;
    return found > 1;
}

/* Reports what getopt_long answered with '?'; `word` is the argument. */
static option_outcome refuse(const parser *p, const char *word)
{
    char given[LABEL_BYTES];

    if (optopt == 0) {
        const char *why = is_ambiguous(p, word + 2) ? "ambiguous" : "unknown";

        (void)message_usage("%s: %s option", message_name(word), why);
    } else {
        write_given(p, optopt, given);
        (void)message_usage("%s: %s", given,
                            optopt >= LONG_BASE ? "takes no value"
                                                : "unknown option");
    }
    return OPTION_BAD;
}

/* Hands an option to its setter, and reports a value that will not do. */
static option_outcome set_option(const parser *p, int code,
                                 const option_entry *entry, void *conf)
{
    const char *why = entry->set(conf, optarg);
    const char *joint = code >= LONG_BASE ? "=" : " ";
    char given[LABEL_BYTES];

    if (why == NULL)
        return OPTION_RUN;
    write_given(p, code, given);
    if (optarg == NULL)
        (void)message_usage("%s: %s", given, why);
    else
        (void)message_usage("%s%s%s: %s", given, joint, message_name(optarg),
                            why);
    return OPTION_BAD;
}

/* Does what one answer of getopt_long asks for. */
static option_outcome obey(const parser *p, int code,
                           const option_program *program, void *conf)
{
    int i = code >= LONG_BASE ? code - LONG_BASE : find_letter(p, (char)code);
    const option_entry *entry = p->entries[i];

    if (entry == &help_entry)
        return print_help(p, program);
    if (entry == &version_entry)
        return print_version();
    return set_option(p, code, entry, conf);
}

static option_outcome report_missing_value(const parser *p)
{
    char given[LABEL_BYTES];

    write_given(p, optopt, given);
    (void)message_usage("%s: needs a value", given);
    return OPTION_BAD;
}

option_outcome option_parse(const option_program *program, int argc,
                            char **argv, void *conf, int *first)
{
    option_outcome outcome = OPTION_RUN;
    parser p;
    int code;

    collect_entries(&p, program->entries);
    build_shorts(&p);
    build_longs(&p);
    /* 0 makes every getopt_long begin anew; 1 only the first time. */
    optind = 0;
    while (outcome == OPTION_RUN &&
           (code = getopt_long(argc, argv, p.shorts, p.longs, NULL)) != -1)
        if (code == '?')
            outcome = refuse(&p, argv[optind - 1]);
        else if (code == ':')
            outcome = report_missing_value(&p);
        else
            outcome = obey(&p, code, program, conf);
    *first = optind;
    return outcome;
}

int option_status(option_outcome outcome)
{
    switch (outcome) {
    case OPTION_RUN:
    case OPTION_DONE:
        break;
    case OPTION_BAD:
        return STATUS_USAGE;
    case OPTION_FAILED:
        return STATUS_FAILURE;
    }
    return STATUS_OK;
}

const char *const *option_files(int argc, char **argv, int first, int *n)
{
    static const char *const only_stdin[] = {"-"};

    *n = first < argc ? argc - first : 1;
    return first < argc ? (const char *const *)(argv + first) : only_stdin;
}

/* ---------------------------------------------------------------------
 * Values
 */

const char *option_token_type(const char *value, ps_type *type)
{
    ps_type named;

    if (!ps_type_from_name(value, &named) ||
        (named != PS_U16 && named != PS_U32))
        return "must be u16 or u32";
    *type = named;
    return NULL;
}


/* What a number is multiplied by for its suffix; 0 for an unknown one. */
static uint64_t suffix_factor(const char *suffix)
{
    static const struct {
        char text[3];
        uint64_t factor;
    } table[] = {
        {"", 1},
        {"k", UINT64_C(1000)},
        {"M", UINT64_C(1000000)},
        {"G", UINT64_C(1000000000)},
        {"T", UINT64_C(1000000000000)},
        {"Ki", UINT64_C(1) << 10},
        {"Mi", UINT64_C(1) << 20},
        {"Gi", UINT64_C(1) << 30},
        {"Ti", UINT64_C(1) << 40},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(suffix, table[i].text) == 0)
            return table[i].factor;
    return 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool option_number(const char *text, uint64_t min, uint64_t max,
                   uint64_t *number)
{
    uint64_t value = 0;
    uint64_t factor;

    if (!is_digit(*text))
        return false;
    for (; is_digit(*text); text++) {
        uint64_t digit = (uint64_t)(*text - '0');

        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    factor = suffix_factor(text);
    if (factor == 0 || value > UINT64_MAX / factor)
        return false;
    value *= factor;
    if (value < min || value > max)
        return false;
    *number = value;
    return true;
}
