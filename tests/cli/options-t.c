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
#include "files.h"
#include "message.h"
#include "options.h"
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

/* Twice as wide as it says. */
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

/* Another, for what a table says of values. */
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

/* An argument vector that may be written to, as main's may. */
typedef struct arguments {
    int argc;
    char *argv[12];
    char text[11][40];
} arguments;

/* Splits at blanks: a test reads as the command line it means. */
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

/* Parses a command line that must be good; returns the first operand. */
static const char *parse(arguments *a, conf *c, const char *line)
{
    int first = -1;

    memset(c, 0, sizeof *c);
    split(a, line);
    assert_int_equal(option_parse(&program, a->argc, a->argv, c, &first),
                     OPTION_RUN);
    assert_in_range(first, 1, a->argc);
    return a->argv[first];
}

static conf parse_typed(const char *line)
{
    conf c = {.plain = true};
    arguments a;
    int first;

    split(&a, line);
    assert_int_equal(
        option_parse(&typed_program, a.argc, a.argv, &c, &first),
        OPTION_RUN);
    return c;
}

static int exit_of(const option_program *of, const char *line)
{
    arguments a;
    conf c;
    int first;

    message_init("/usr/bin/prog");
    split(&a, line);
    return option_status(option_parse(of, a.argc, a.argv, &c, &first));
}

static int parse_and_exit(const char *line)
{
    return exit_of(&program, line);
}

static int parse_typed_and_exit(const char *line)
{
    return exit_of(&typed_program, line);
}

/* The command line must be refused for this reason, with a hint. */
static void assert_refused_by(int (*parse_line)(const char *),
                              const char *line, const char *reason)
{
    caught c = in_child(parse_line, line);
    char expected[256];

    assert_exit(&c, STATUS_USAGE);
    assert_string_equal(c.out, "");
    (void)snprintf(expected, sizeof expected,
                   "prog: %s\nprog: try 'prog --help'\n", reason);
    assert_string_equal(c.err, expected);
}

static void assert_refused(const char *line, const char *reason)
{
    assert_refused_by(parse_and_exit, line, reason);
}

/* ---------------------------------------------------------------------
 * Numbers
 */

static void assert_number(const char *text, uint64_t expected)
{
    uint64_t n = 0;

    assert_true(option_number(text, 0, UINT64_MAX, &n));
    assert_true(n == expected);
}

static void test_number_good(void **state)
{
    assert_number("0", 0);
    assert_number("007", 7);
    assert_number("18446744073709551615", UINT64_MAX);
    assert_number("3k", 3000);
    assert_number("3M", 3000000);
    assert_number("3G", UINT64_C(3000000000));
    assert_number("3T", UINT64_C(3000000000000));
    assert_number("3Ki", 3072);
    assert_number("3Mi", UINT64_C(3) << 20);
    assert_number("3Gi", UINT64_C(3) << 30);
    assert_number("3Ti", UINT64_C(3) << 40);
    assert_number("16777215Ti", UINT64_C(16777215) << 40);
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

static void test_options_forms(void **state)
{
    arguments a;
    conf c;

    assert_string_equal(parse(&a, &c, "prog -d 3 in"), "in");
    assert_true(c.depth == 3);
    (void)parse(&a, &c, "prog -d4");
    assert_true(c.depth == 4);
    (void)parse(&a, &c, "prog --depth=5");
    assert_true(c.depth == 5);
    (void)parse(&a, &c, "prog --depth 6");
    assert_true(c.depth == 6);
    (void)parse(&a, &c, "prog --dep=7");
    assert_true(c.depth == 7);
    (void)parse(&a, &c, "prog --nevermore");
    assert_int_equal(c.quiet, 1);
    (void)parse(&a, &c, "prog -x name");
    assert_string_equal(c.letter_only, "name");
}

static void test_options_clusters(void **state)
{
    arguments a;
    conf c;

    assert_string_equal(parse(&a, &c, "prog -qqd8 -q in"), "in");
    assert_int_equal(c.quiet, 3);
    assert_true(c.depth == 8);
}

static void test_options_optional(void **state)
{
    arguments a;
    conf c;

    assert_string_equal(parse(&a, &c, "prog --stats json"), "json");
    assert_int_equal(c.stats, 1);
    assert_null(c.format);
    assert_null(parse(&a, &c, "prog --stats=json"));
    assert_string_equal(c.format, "json");
}

static void test_options_operands(void **state)
{
    arguments a;
    conf c;

    assert_null(parse(&a, &c, "prog"));
    assert_string_equal(parse(&a, &c, "prog -"), "-");
    assert_string_equal(parse(&a, &c, "prog a -q"), "a");
    assert_int_equal(c.quiet, 1);
    assert_string_equal(parse(&a, &c, "prog -q -- -q"), "-q");
    assert_int_equal(c.quiet, 1);
}

static void test_options_refused(void **state)
{
    assert_refused("prog -z", "-z: unknown option");
    assert_refused("prog -qz", "-z: unknown option");
    assert_refused("prog --zero=1", "--zero=1: unknown option");
    assert_refused("prog in --zero", "--zero: unknown option");
    assert_refused("prog --q=1", "--quiet: takes no value");
    assert_refused("prog --n\033[2J", "--n?[2J: unknown option");
    assert_refused("prog --nev", "--nev: ambiguous option");
}

static void test_options_values_refused(void **state)
{
    assert_refused("prog -d", "-d: needs a value");
    assert_refused("prog -qd", "-d: needs a value");
    assert_refused("prog --depth", "--depth: needs a value");
    assert_refused("prog -d 0", "-d 0: must be between 1 and 9");
    assert_refused("prog -d1x", "-d 1x: must be between 1 and 9");
    assert_refused("prog --dep=", "--depth=: must be between 1 and 9");
    assert_refused("prog --depth=\n", "--depth=?: must be between 1 and 9");
    assert_refused("prog --never", "--never: is not possible here");
}

/* ---------------------------------------------------------------------
 * What a table says of values
 */

static void test_options_typed(void **state)
{
    conf c = parse_typed("prog");

    assert_true(c.plain && !c.wide && !c.colour_given && c.width == 0);
    c = parse_typed("prog -w 1k -W");
    assert_true(c.width == 1000 && c.wide && c.plain);
    c = parse_typed("prog --wide --plain --width=3");
    assert_true(c.width == 3 && c.wide && !c.plain);
    c = parse_typed("prog --colour=green");
    assert_true(c.colour == GREEN && c.colour_given);
    c = parse_typed("prog -cred --blue");
    assert_true(c.colour == BLUE && c.colour_given);
    c = parse_typed("prog --blue");
    assert_true(c.colour == BLUE && !c.colour_given);
    c = parse_typed("prog --level");
    assert_int_equal(c.level, 3);
    c = parse_typed("prog --level=5");
    assert_int_equal(c.level, 5);
    c = parse_typed("prog --level=any");
    assert_true(c.level == UINT32_MAX);
    c = parse_typed("prog --double=four");
    assert_int_equal(c.width, 8);
}

/* The reason is made from the table, unless it has one. */
static void test_options_typed_refused(void **state)
{
    static const char *const refused[][2] = {
        {"prog -w 2", "-w 2: must be a number from 3 to 1000"},
        {"prog --width=1001",
         "--width=1001: must be a number from 3 to 1000"},
        {"prog --width=red", "--width=red: must be a number from 3 to 1000"},
        {"prog -c pink", "-c pink: must be red, green or blue"},
        {"prog --colour=", "--colour=: must be red, green or blue"},
        {"prog --colour=1", "--colour=1: must be red, green or blue"},
        {"prog --level=6", "--level=6: must be a level"},
        {"prog --wide=1", "--wide: takes no value"},
        {"prog --double", "--double: needs a value"},
    };

    for (size_t i = 0; i < COUNT(refused); i++)
        assert_refused_by(parse_typed_and_exit, refused[i][0],
                          refused[i][1]);
}

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

static void test_options_version(void **state)
{
    caught c = in_child(parse_and_exit, "prog --version");
    char expected[64];

    assert_exit(&c, STATUS_OK);
    (void)snprintf(expected, sizeof expected, "prog (packstream) %s\n",
                   ps_version());
    assert_string_equal(c.out, expected);
    assert_string_equal(c.err, "");
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
    static const char *const lines[] = {"prog --help", "prog --version"};

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
        cmocka_unit_test(test_options_forms),
        cmocka_unit_test(test_options_clusters),
        cmocka_unit_test(test_options_optional),
        cmocka_unit_test(test_options_operands),
        cmocka_unit_test(test_options_refused),
        cmocka_unit_test(test_options_values_refused),
        cmocka_unit_test(test_options_typed),
        cmocka_unit_test(test_options_typed_refused),
        cmocka_unit_test(test_options_help),
        cmocka_unit_test(test_options_version),
        cmocka_unit_test(test_options_unwritten),
    };

    return run_as_tap("cli-options", tests, NULL);
}
