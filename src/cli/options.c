/*
 * options.c - table-driven command lines.
 *
 * getopt_long splits the command line.  Its option string starts with a colon
 * to suppress its messages, which would print arguments unescaped and in
 * another format.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/options.h"

#include <assert.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/message.h"
#include "files/files.h"
#include "packstream.h"

#define ENTRIES_MAX 64
#define LABEL_BYTES 64

/* Longest label, in columns, with the help text on the same line. */
#define LABEL_COLUMNS 28

/*
 * getopt_long returns LONG_BASE + index for a long name, otherwise the letter.
 */
#define LONG_BASE 256

const option_word option_token_types[] = {
    {"u16", PS_U16}, {"u32", PS_U32}, {NULL, 0}};

/* Options of every program, handled by option_parse itself. */
static const option_entry help_entry = {
    'h', "help", NULL, "show this help and exit", .at = 0};
static const option_entry version_entry = {
    0, "version", NULL, "show the version and exit", .at = 0};

/* The complete table and its translation for getopt_long. */
typedef struct parser {
    const option_entry *entries[ENTRIES_MAX];
    /* letter of each entry; NUL if it has none or an earlier entry has it */
    char letters[ENTRIES_MAX];
    int n_entries; /* including --help and --version */
    struct option longs[ENTRIES_MAX + 1];
    /* a colon, then "x" or "x:" for each letter, then NUL */
    char shorts[2 + 2 * ENTRIES_MAX];
} parser;

static void init_parser(parser *p, const option_entry *entries)
{
    struct option *longs = p->longs;
    char *shorts = p->shorts;
    int n = 0;

    for (; entries->letter != 0 || entries->name != NULL; entries++) {
        assert(n < ENTRIES_MAX - 2);
        p->entries[n++] = entries;
    }
    p->entries[n++] = &help_entry;
    p->entries[n++] = &version_entry;
    p->n_entries = n;

    /*
     * With the colon, getopt_long returns ':' for a missing value and '?' for
     * an unknown option.
     */
    *shorts++ = ':';
    for (int i = 0; i < n; i++) {
        const option_entry *entry = p->entries[i];
        const bool taken = memchr(p->letters, entry->letter, (size_t)i) != NULL;
        const char letter = taken ? '\0' : entry->letter;
        int argument = required_argument;

        p->letters[i] = letter;
        if (entry->metavar == NULL)
            argument = no_argument;
        else if (entry->optional)
            argument = optional_argument;
        if (letter != '\0')
            *shorts++ = letter;
        if (letter != '\0' && argument == required_argument)
            *shorts++ = ':';
        if (entry->name != NULL)
            *longs++ = (struct option){.name = entry->name,
                                       .has_arg = argument,
                                       .val = LONG_BASE + i};
    }
    *shorts = '\0';
    *longs = (struct option){.name = NULL};
}

/* ---------------------------------------------------------------------
 * --help and --version
 */

/* Writes "  -d, --depth=N" and returns its length. */
static int write_label(const parser *p, int i, char label[LABEL_BYTES])
{
    const option_entry *entry = p->entries[i];
    const char *metavar = entry->metavar == NULL ? "" : entry->metavar;
    const char *joint = entry->name == NULL ? " " : "=";
    const char letter = p->letters[i];
    const char dashed[3] = {'-', letter, '\0'};

    if (entry->metavar == NULL)
        joint = "";
    else if (entry->optional)
        joint = "[=";
    return snprintf(label, LABEL_BYTES, "  %s%s%s%s%s%s%s",
                    letter == '\0' ? "  " : dashed,
                    entry->name == NULL ? "" : letter == '\0' ? "  " : ", ",
                    entry->name == NULL ? "" : "--",
                    entry->name == NULL ? "" : entry->name, joint, metavar,
                    entry->optional ? "]" : "");
}

static void print_help(const parser *p, const option_program *program)
{
    char label[LABEL_BYTES];
    int column = 0;

    printf("Usage: %s %s\n%s\n\nOptions:\n", message_program(),
           program->usage, program->summary);

    /* The help text starts two columns after the longest label. */
    for (int i = 0; i < p->n_entries; i++) {
        int length = write_label(p, i, label);

        if (length > column && length <= LABEL_COLUMNS)
            column = length;
    }
    column += 2;

    for (int i = 0; i < p->n_entries; i++) {
        if (write_label(p, i, label) + 2 > column)
            printf("%s\n%*s", label, column, "");
        else
            printf("%-*s", column, label);
        for (const char *c = p->entries[i]->help; *c != '\0'; c++) {
            putchar(*c);
            if (*c == '\n')
                printf("%*s", column, "");
        }
        putchar('\n');
    }
}

/*
 * Prints the table for build-aux/completion.awk, with fields separated by tabs.
 * The first line has the program's name and usage.  A line for each option
 * follows, with its letter, name, metavar (in brackets if the value is
 * optional), words and help text.
 */
static void print_table(const parser *p, const option_program *program)
{
    printf("%s\t%s\n", message_program(), program->usage);
    for (int i = 0; i < p->n_entries; i++) {
        const option_entry *entry = p->entries[i];
        const char *metavar = entry->metavar == NULL ? "" : entry->metavar;
        const option_word *word = entry->words;

        printf("%.1s\t%s\t", &p->letters[i],
               entry->name == NULL ? "" : entry->name);
        printf(entry->optional ? "[%s]\t" : "%s\t", metavar);
        for (; word != NULL && word->name != NULL; word++)
            printf("%s%s", word == entry->words ? "" : " ", word->name);
        putchar('\t');
        for (const char *c = entry->help; *c != '\0'; c++)
            putchar(*c == '\n' ? ' ' : *c);
        putchar('\n');
    }
}

/* ---------------------------------------------------------------------
 * Values
 */

typedef enum number_kind {
    NUMBER_GOOD,
    NUMBER_BAD,
    NUMBER_TOO_LARGE
} number_kind;

static number_kind read_number(const char *text, uint64_t min, uint64_t max,
                               uint64_t *number)
{
    static const struct {
        char text[3];
        uint64_t factor;
    } suffixes[] = {
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
    const size_t n = sizeof suffixes / sizeof suffixes[0];
    const char *const digits = text;
    uint64_t value = 0;
    bool too_large = false;
    size_t i = 0;

    for (; *text >= '0' && *text <= '9'; text++) {
        uint64_t digit = (uint64_t)(*text - '0');

        too_large = too_large || value > (UINT64_MAX - digit) / 10;
        value = value * 10 + digit;
    }

    while (i < n && strcmp(text, suffixes[i].text) != 0)
        i++;
    if (text == digits || i == n)
        return NUMBER_BAD;
    if (too_large || value > UINT64_MAX / suffixes[i].factor)
        return NUMBER_TOO_LARGE;
    value *= suffixes[i].factor;
    if (value > max)
        return NUMBER_TOO_LARGE;
    if (value < min)
        return NUMBER_BAD;
    *number = value;
    return NUMBER_GOOD;
}

bool option_number(const char *text, uint64_t min, uint64_t max,
                   uint64_t *number)
{
    return read_number(text, min, max, number) == NUMBER_GOOD;
}

bool option_find_word(const option_word *words, const char *name,
                      uint64_t *number)
{
    for (; words != NULL && words->name != NULL; words++)
        if (strcmp(name, words->name) == 0) {
            *number = words->number;
            return true;
        }
    return false;
}

const option_word option_overlongs[] = {{"error", PS_OVERLONG_ERROR},
                                        {"drop", PS_OVERLONG_DROP},
                                        {"truncate", PS_OVERLONG_TRUNCATE},
                                        {"split", PS_OVERLONG_SPLIT},
                                        {NULL, 0}};

const char *option_word_name(const option_word *words, uint64_t number)
{
    while (words->number != number)
        words++;
    return words->name;
}

/*
 * Builds "must be a number from 1 to 9" or "must be this, that or another".
 * Returns a static buffer.
 */
static const char *describe_values(const option_entry *entry)
{
    static char text[128];
    const option_word *word = entry->words;
    size_t n = 0;

    if (word == NULL) {
        (void)snprintf(text, sizeof text,
                       "must be a number from %" PRIu64 " to %" PRIu64,
                       entry->min, entry->max);
        return text;
    }
    for (; word->name != NULL && n < sizeof text; word++) {
        const char *joint = ", ";

        if (word == entry->words)
            joint = "must be ";
        else if (word[1].name == NULL)
            joint = " or ";
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", joint,
                              word->name);
    }
    return text;
}

/* Stores a number in a bool, an enum, a uint32_t or a uint64_t, by its size. */
static void store(void *member, size_t size, uint64_t number)
{
    const bool truth = number != 0;
    const uint32_t narrow = (uint32_t)number;

    if (size == sizeof truth) {
        memcpy(member, &truth, sizeof truth);
    } else if (size == sizeof narrow) {
        memcpy(member, &narrow, sizeof narrow);
    } else {
        assert(size == sizeof number);
        memcpy(member, &number, sizeof number);
    }
}

/* ---------------------------------------------------------------------
 * Parsing
 */

/* Writes the option as the user gave it: "-d" or "--depth". */
static void write_given(const parser *p, int code, char given[LABEL_BYTES])
{
    if (code >= LONG_BASE)
        (void)snprintf(given, LABEL_BYTES, "--%s",
                       p->entries[code - LONG_BASE]->name);
    else
        (void)snprintf(given, LABEL_BYTES, "-%c", code);
}

/* Reports why getopt_long returned '?' for the argument `word`. */
static void report_unknown(const parser *p, const char *word)
{
    char given[LABEL_BYTES];
    size_t length;
    int found = 0;

    if (optopt != 0) {
        write_given(p, optopt, given);
        (void)message_usage("%s: %s", given,
                            optopt >= LONG_BASE ? "takes no value"
                                                : "unknown option");
        return;
    }
    /* The long name is unknown, or an ambiguous prefix. */
    length = strcspn(word + 2, "=");
    for (const struct option *o = p->longs; o->name != NULL; o++)
        if (strncmp(o->name, word + 2, length) == 0)
            found++;
    (void)message_usage("%s: %s option", message_name(word),
                        found > 1 ? "ambiguous" : "unknown");
}

/* Applies an option found by getopt_long. */
static option_outcome obey(const parser *p, int code,
                           const option_program *program, void *conf)
{
    const char *letter = memchr(p->letters, code, (size_t)p->n_entries);
    const option_entry *entry =
        p->entries[code >= LONG_BASE ? code - LONG_BASE : letter - p->letters];
    void *member = (char *)conf + entry->at;
    uint64_t number = entry->constant;
    char given[LABEL_BYTES];
    number_kind kind = NUMBER_BAD;
    const char *why = NULL;

    if (entry == &help_entry || entry == &version_entry) {
        if (entry == &help_entry)
            print_help(p, program);
        else
            printf("%s (packstream) %s\n", message_program(), ps_version());
        return files_close_stdout() ? OPTION_DONE : OPTION_FAILED;
    }

    switch (entry->type) {
    case OPTION_TYPE_INTEGER:
        if (optarg == NULL || option_find_word(entry->words, optarg, &number))
            kind = NUMBER_GOOD;
        else if (entry->max != 0)
            kind = read_number(optarg, entry->min, entry->max, &number);
        if (kind == NUMBER_GOOD)
            store(member, entry->size, number);
        else if (kind == NUMBER_TOO_LARGE && entry->max == UINT64_MAX)
            why = "exceeds the maximum, 18446744073709551615";
        else
            why = entry->why != NULL ? entry->why : describe_values(entry);
        break;
    case OPTION_TYPE_TEXT:
        memcpy(member, &optarg, sizeof optarg);
        break;
    case OPTION_TYPE_CALL:
        why = entry->set(member, optarg);
        break;
    }
    if (entry->given != 0)
        store((char *)conf + entry->given, sizeof(bool), true);
    if (why == NULL)
        return OPTION_RUN;

    write_given(p, code, given);
    if (optarg == NULL)
        (void)message_usage("%s: %s", given, why);
    else
        (void)message_usage("%s%s%s: %s", given,
                            code >= LONG_BASE ? "=" : " ",
                            message_name(optarg), why);
    return OPTION_BAD;
}

option_outcome option_parse(const option_program *program, int argc,
                            char **argv, void *conf, int *first)
{
    option_outcome outcome = OPTION_RUN;
    char given[LABEL_BYTES];
    parser p;
    int code;

    init_parser(&p, program->entries);
    if (argc == 2 && strcmp(argv[1], "--options-table") == 0) {
        print_table(&p, program);
        return files_close_stdout() ? OPTION_DONE : OPTION_FAILED;
    }
    /* 0 makes getopt_long restart, even if it was used before; 1 does not. */
    optind = 0;
    while (outcome == OPTION_RUN &&
           (code = getopt_long(argc, argv, p.shorts, p.longs, NULL)) != -1)
        if (code == '?') {
            report_unknown(&p, argv[optind - 1]);
            outcome = OPTION_BAD;
        } else if (code == ':') {
            write_given(&p, optopt, given);
            (void)message_usage("%s: needs a value", given);
            outcome = OPTION_BAD;
        } else {
            outcome = obey(&p, code, program, conf);
        }
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

int option_check_type(ps_type given, const ps_schema *schema,
                      const char *name)
{
    if (given == 0 || given == schema->token_type)
        return STATUS_OK;
    return message_usage("%s: the records have %s tokens, not %s",
                         files_input_name(name),
                         ps_type_name(schema->token_type),
                         ps_type_name(given));
}

const char *const *option_files(int argc, char **argv, int first, int *n)
{
    static const char *const only_stdin[] = {"-"};

    *n = first < argc ? argc - first : 1;
    return first < argc ? (const char *const *)(argv + first) : only_stdin;
}
