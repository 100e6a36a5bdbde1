/*
 * options-t.c - command lines as tables, and numbers in them.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tap.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "cli/message.h"
#include "cli/options.h"
#include "files/files.h"
#include "packstream.h"

/* ---------------------------------------------------------------------
 * A program to parse for
 */

typedef enum colour { RED, GREEN, BLUE } colour;

typedef struct conf {
    uint64_t depth;
    unsigned quiet;
    unsigned stats; /* times given */
    const char *format;
    const char *letter_only;
    uint32_t width;
    bool wide;
    bool plain;
    bool colour_given;
    colour colour;
    uint32_t level;
} conf;

static const char *set_quiet(void *to, const char *value)
{
    conf *c = to;

    c->quiet++;
    return value == NULL ? NULL : "was given a value";
}

static const char *set_stats(void *to, const char *value)
{
    conf *c = to;

    c->stats++;
    c->format = value;
    return NULL;
}

static const char *set_never(void *to, const char *value)
{
    (void)to;
    (void)value;
    return "is not possible here";
}

/* Stores twice the value. */
static const char *set_double(void *member, const char *value)
{
    *(uint32_t *)member = 2 * (uint32_t)strlen(value);
    return NULL;
}

static const option_word colours[] = {
    {"red", RED}, {"green", GREEN}, {"blue", BLUE}, {NULL, 0}};
static const option_word any_level[] = {{"any", UINT32_MAX}, {NULL, 0}};

static const option_entry entries[] = {
    {'d', "depth", "N", "the depth,\n1 to 9",
     OPTION_NUMBER(conf, depth, 1, 9), .why = "must be between 1 and 9"},
    {'q', "quiet", NULL, "say less", OPTION_CALL(set_quiet)},
    {0, "stats", "json", "print totals", OPTION_CALL(set_stats),
     .optional = true},
    {'x', NULL, "FILE", "letter only", OPTION_TEXT(conf, letter_only)},
    {0, "never", NULL, "refused", OPTION_CALL(set_never)},
    {0, "nevermore", NULL, "quiet, too", OPTION_CALL(set_quiet)},
    {0, "a-name-beyond-the-column", "METAVAR", "far away",
     OPTION_TEXT(conf, letter_only)},
    {0}};

static const option_program program = {
    "[OPTION]... [FILE]...", "Does nothing, with options.", entries};

/* A second table, named `typed` in tests, with typed values. */
static const option_entry typed_entries[] = {
    {'w', "width", "N", "a number", OPTION_NUMBER(conf, width, 3, 1000)},
    {'W', "wide", NULL, "a flag", OPTION_FLAG(conf, wide)},
    {0, "plain", NULL, "the opposite", OPTION_CONSTANT(conf, plain, false)},
    {'c', "colour", "NAME", "a word", OPTION_WORD(conf, colour, colours),
     OPTION_GIVEN(conf, colour_given)},
    {0, "blue", NULL, "a constant", OPTION_CONSTANT(conf, colour, BLUE)},
    {'l', "level", "N", "a number, a word or nothing",
     OPTION_NUMBER(conf, level, 1, 5), .words = any_level, .optional = true,
     .constant = 3, .why = "must be a level"},
    {0, "double", "TEXT", "a function for a member",
     OPTION_CALL_FOR(conf, width, set_double)},
    {0}};

static const option_program typed_program = {
    "[OPTION]...", "Does nothing, by types.", typed_entries};

/* A writable argument vector, like that of main. */
typedef struct arguments {
    int argc;
    char *argv[12];
    char text[11][40];
} arguments;

/* Splits at blanks, so that a test reads like its command line. */
static void split(arguments *a, const char *line)
{
    a->argc = 0;
    while (*line != '\0') {
        size_t length = strcspn(line, " ");
        char *word = a->text[a->argc];

        if (a->argc == 11 || length >= sizeof a->text[0])
            abort();
        memcpy(word, line, length);
        word[length] = '\0';
        a->argv[a->argc++] = word;
        line += length + (line[length] == ' ');
    }
    a->argv[a->argc] = NULL;
}

static const option_program *program_of(const arguments *a)
{
    return strcmp(a->argv[0], "typed") == 0 ? &typed_program : &program;
}

/* Parses, and exits with the status of a program. */
static int parse_and_exit(const char *line)
{
    arguments a;
    conf c;
    int first;

    message_init("/usr/bin/prog");
    split(&a, line);
    return option_status(
        option_parse(program_of(&a), a.argc, a.argv, &c, &first));
}

/* ---------------------------------------------------------------------
 * Numbers
 */

static void test_number_good(void **state)
{
    static const struct {
        const char *text;
        uint64_t number;
    } cases[] = {
        {"0", 0}, {"007", 7},
        {"18446744073709551615", UINT64_MAX}, {"3k", 3000},
        {"3M", 3000000}, {"3G", UINT64_C(3000000000)},
        {"3T", UINT64_C(3000000000000)}, {"3Ki", 3072},
        {"3Mi", UINT64_C(3) << 20}, {"3Gi", UINT64_C(3) << 30},
        {"3Ti", UINT64_C(3) << 40}, {"16777215Ti", UINT64_C(16777215) << 40},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t n = 77;

        assert_true(option_number(cases[i].text, 0, UINT64_MAX, &n));
        assert_true(n == cases[i].number);
    }
}

static void test_number_bad(void **state)
{
    static const char *const bad[] = {
        "",     " 1",   "1 ",   "-1",  "+1",  "0x10", "1.5", "k",
        "1kk",  "1K",   "1ki",  "1m",  "1KiB", "1e3", "1i",  "one",
        "18446744073709551616", "99999999999999999999999",
        "16777216Ti", "18446744073709552k"};

    for (size_t i = 0; i < COUNT(bad); i++) {
        uint64_t n = 77;

        if (option_number(bad[i], 0, UINT64_MAX, &n) || n != 77)
            fail_msg("'%s' was taken", bad[i]);
    }
}

static void test_number_range(void **state)
{
    uint64_t n = 0;

    assert_false(option_number("9", 10, 20, &n));
    assert_true(option_number("10", 10, 20, &n));
    assert_true(option_number("20", 10, 20, &n));
    assert_true(n == 20);
    assert_false(option_number("21", 10, 20, &n));
    assert_false(option_number("1k", 10, 999, &n));
}

/* ---------------------------------------------------------------------
 * Command lines
 */

/* The same text, or none. */
static void assert_text(const char *text, const char *wanted)
{
    assert_string_equal(text == NULL ? "(none)" : text,
                        wanted == NULL ? "(none)" : wanted);
}

/* Members that a command line does not set keep the values of `plain`. */
static void test_taken(void **state)
{
    static const struct {
        const char *line;
        const char *operand; /* the first one, or NULL */
        conf conf;
    } cases[] = {
        {"prog", NULL, {.plain = true}},
        {"prog -d 3 in", "in", {.plain = true, .depth = 3}},
        {"prog -d4", NULL, {.plain = true, .depth = 4}},
        {"prog --depth=5", NULL, {.plain = true, .depth = 5}},
        {"prog --depth 6", NULL, {.plain = true, .depth = 6}},
        {"prog --dep=7", NULL, {.plain = true, .depth = 7}},
        {"prog --nevermore", NULL, {.plain = true, .quiet = 1}},
        {"prog -x name", NULL, {.plain = true, .letter_only = "name"}},
        {"prog -qqd8 -q in", "in", {.plain = true, .quiet = 3, .depth = 8}},
        {"prog --stats json", "json", {.plain = true, .stats = 1}},
        {"prog --stats=json", NULL,
         {.plain = true, .stats = 1, .format = "json"}},
        {"prog -", "-", {.plain = true}},
        {"prog a -q", "a", {.plain = true, .quiet = 1}},
        {"prog -q -- -q", "-q", {.plain = true, .quiet = 1}},

        {"typed", NULL, {.plain = true}},
        {"typed -w 1k -W", NULL, {.plain = true, .width = 1000, .wide = true}},
        {"typed --wide --plain --width=3", NULL, {.width = 3, .wide = true}},
        {"typed --colour=green", NULL,
         {.plain = true, .colour = GREEN, .colour_given = true}},
        {"typed -cred --blue", NULL,
         {.plain = true, .colour = BLUE, .colour_given = true}},
        {"typed --blue", NULL, {.plain = true, .colour = BLUE}},
        {"typed --level", NULL, {.plain = true, .level = 3}},
        {"typed --level=5", NULL, {.plain = true, .level = 5}},
        {"typed --level=any", NULL, {.plain = true, .level = UINT32_MAX}},
        {"typed --double=four", NULL, {.plain = true, .width = 8}},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const conf *wanted = &cases[i].conf;
        conf c = {.plain = true};
        arguments a;
        int first = -1;

        print_message("# %s\n", cases[i].line);
        split(&a, cases[i].line);
        assert_int_equal(
            option_parse(program_of(&a), a.argc, a.argv, &c, &first),
            OPTION_RUN);
        assert_in_range(first, 1, a.argc);
        assert_text(a.argv[first], cases[i].operand);
        assert_text(c.format, wanted->format);
        assert_text(c.letter_only, wanted->letter_only);
        assert_true(c.depth == wanted->depth);
        assert_int_equal(c.quiet, wanted->quiet);
        assert_int_equal(c.stats, wanted->stats);
        assert_int_equal(c.width, wanted->width);
        assert_int_equal(c.wide, wanted->wide);
        assert_int_equal(c.plain, wanted->plain);
        assert_int_equal(c.colour_given, wanted->colour_given);
        assert_int_equal(c.colour, wanted->colour);
        assert_int_equal(c.level, wanted->level);
    }
}

/* Refused with a reason, which can be the table's own, and a hint. */
static void test_refused(void **state)
{
    static const struct {
        const char *line;
        const char *reason;
    } cases[] = {
        {"prog -z", "-z: unknown option"},
        {"prog -qz", "-z: unknown option"},
        {"prog --zero=1", "--zero=1: unknown option"},
        {"prog -q --options-table", "--options-table: unknown option"},
        {"prog in --zero", "--zero: unknown option"},
        {"prog --q=1", "--quiet: takes no value"},
        {"prog --n\033[2J", "--n?[2J: unknown option"},
        {"prog --nev", "--nev: ambiguous option"},
        {"prog -d", "-d: needs a value"},
        {"prog -qd", "-d: needs a value"},
        {"prog --depth", "--depth: needs a value"},
        {"prog -d 0", "-d 0: must be between 1 and 9"},
        {"prog -d1x", "-d 1x: must be between 1 and 9"},
        {"prog --dep=", "--depth=: must be between 1 and 9"},
        {"prog --depth=\n", "--depth=?: must be between 1 and 9"},
        {"prog --never", "--never: is not possible here"},

        {"typed -w 2", "-w 2: must be a number from 3 to 1000"},
        {"typed --width=1001",
         "--width=1001: must be a number from 3 to 1000"},
        {"typed --width=red", "--width=red: must be a number from 3 to 1000"},
        {"typed --width=18446744073709551616",
         "--width=18446744073709551616: must be a number from 3 to 1000"},
        {"typed --width=99999999999999999999x",
         "--width=99999999999999999999x: must be a number from 3 to 1000"},
        {"typed -c pink", "-c pink: must be red, green or blue"},
        {"typed --colour=", "--colour=: must be red, green or blue"},
        {"typed --colour=1", "--colour=1: must be red, green or blue"},
        {"typed --level=6", "--level=6: must be a level"},
        {"typed --wide=1", "--wide: takes no value"},
        {"typed --double", "--double: needs a value"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        caught c = in_child(parse_and_exit, cases[i].line);
        char expected[256];

        assert_exit(&c, STATUS_USAGE);
        assert_string_equal(c.out, "");
        (void)snprintf(expected, sizeof expected,
                       "prog: %s\nprog: try 'prog --help'\n",
                       cases[i].reason);
        assert_string_equal(c.err, expected);
    }
}

/* ---------------------------------------------------------------------
 * Help and version
 */

static const char help_text[] =
    "Usage: prog [OPTION]... [FILE]...\n"
    "Does nothing, with options.\n"
    "\n"
    "Options:\n"
    "  -d, --depth=N       the depth,\n"
    "                      1 to 9\n"
    "  -q, --quiet         say less\n"
    "      --stats[=json]  print totals\n"
    "  -x FILE             letter only\n"
    "      --never         refused\n"
    "      --nevermore     quiet, too\n"
    "      --a-name-beyond-the-column=METAVAR\n"
    "                      far away\n"
    "  -h, --help          show this help and exit\n"
    "      --version       show the version and exit\n";

static void test_options_help(void **state)
{
    static const char *const lines[] = {"prog --help", "prog -h",
                                        "prog in -qh", "prog --help -d 0"};

    for (size_t i = 0; i < COUNT(lines); i++) {
        caught c = in_child(parse_and_exit, lines[i]);

        assert_exit(&c, STATUS_OK);
        assert_string_equal(c.out, help_text);
        assert_string_equal(c.err, "");
    }
}

static int parse_to_full(const char *line)
{
    int fd = open("/dev/full", O_WRONLY);

    (void)dup2(fd, STDOUT_FILENO);
    return parse_and_exit(line);
}

static int parse_to_nowhere(const char *line)
{
    (void)close(STDOUT_FILENO);
    files_init();
    return parse_and_exit(line);
}

static void test_options_unwritten(void **state)
{
    static const char *const lines[] = {"prog --help", "prog --version",
                                        "prog --options-table"};

    for (size_t i = 0; i < COUNT(lines); i++) {
        caught c = in_child(parse_to_nowhere, lines[i]);

        assert_exit(&c, STATUS_FAILURE);
        assert_string_equal(c.err, "prog: stdout: Bad file descriptor\n");
        if (access("/dev/full", W_OK) == -1)
            continue;
        c = in_child(parse_to_full, lines[i]);
        assert_exit(&c, STATUS_FAILURE);
        assert_string_equal(c.err, "prog: stdout: No space left on device\n");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_number_good),
        cmocka_unit_test(test_number_bad),
        cmocka_unit_test(test_number_range),
        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_options_help),
        cmocka_unit_test(test_options_unwritten),
    };

    return run_as_tap("cli-options", tests, NULL);
}
