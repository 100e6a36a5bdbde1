/*
 * cli-t.c - messages, the progress line and reports, which the programs
 * share; options-t.c has command lines, files-t.c has files.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tap.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "cli/message.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "files/files.h"
#include "packstream.h"

/* ---------------------------------------------------------------------
 * Messages
 */

static void test_message_name(void **state)
{
    char path[3000];
    const char *shown;
    const char *one = message_name("one");
    const char *two = message_name("two");

    /* Two names can be shown in one message. */
    assert_string_equal(one, "one");
    assert_string_equal(two, "two");
    assert_string_equal(message_name(""), "");
    assert_string_equal(message_name("a b/~!.tok"), "a b/~!.tok");
    assert_string_equal(message_name("\033[31m\n\t\x7f"), "?[31m???");
    assert_string_equal(message_name("\xc3\xa9.tok"), "??.tok");
    memset(path, 'x', sizeof path - 1);
    memcpy(path + sizeof path - 5, "\a.op", 5);
    shown = message_name(path);
    assert_in_range(strlen(shown), 100, sizeof path - 2);
    assert_memory_equal(shown, "...x", 4);
    assert_string_equal(shown + strlen(shown) - 5, "x?.op");
}

static int say_everything(const char *argv0)
{
    message_init(argv0);
    message_warning("w%d", 1);
    message_quiet(true);
    message_warning("w%d", 2);
    message_error("%s: %s", "e", "\033[2J");
    errno = ENOENT;
    message_errno("%s", "f");
    return 0;
}

static void test_messages(void **state)
{
    caught c = in_child(say_everything, "/opt/bin/lt-prog");

    assert_exit(&c, 0);
    assert_string_equal(c.err, "prog: w1\n"
                               "prog: e: ?[2J\n"
                               "prog: f: No such file or directory\n");
}

static int fail_with_corrupt(const char *text)
{
    ps_error err = {.code = PS_ERR_CORRUPT};

    message_init("prog");
    (void)snprintf(err.text, sizeof err.text, "%s", text);
    return message_failure("in\n", &err);
}

static void test_message_failure(void **state)
{
    caught c = in_child(fail_with_corrupt, "record 3: no");

    assert_exit(&c, STATUS_DATA);
    assert_string_equal(c.err, "prog: in?: record 3: no\n");
    c = in_child(fail_with_corrupt, "");
    assert_string_equal(c.err, "prog: in?: corrupt data\n");
}

/* The status alone of a failure with the code of that number. */
static int status_of_code(const char *number)
{
    ps_error err = {.code = (ps_result)atoi(number), .text = "x"};

    return message_failure("in", &err);
}

static void test_message_status(void **state)
{
    static const struct {
        ps_result code;
        int status;
    } table[] = {{PS_ERR_ARGUMENT, STATUS_USAGE},
                 {PS_ERR_MEMORY, STATUS_FAILURE},
                 {PS_ERR_IO, STATUS_FAILURE},
                 {PS_ERR_MAGIC, STATUS_DATA},
                 {PS_ERR_UNSUPPORTED, STATUS_DATA},
                 {PS_ERR_TRUNCATED, STATUS_DATA},
                 {PS_ERR_LIMIT, STATUS_DATA},
                 {PS_ERR_RANGE, STATUS_DATA},
                 {PS_ERR_OVERLONG, STATUS_DATA},
                 {PS_ERR_EMPTY, STATUS_DATA}};

    for (size_t i = 0; i < COUNT(table); i++) {
        char number[16];
        caught c;

        (void)snprintf(number, sizeof number, "%d", (int)table[i].code);
        c = in_child(status_of_code, number);
        assert_exit(&c, table[i].status);
    }
}

/* ---------------------------------------------------------------------
 * Progress
 */

/* A progress line as drawn: a return, 79 columns, a return. */
#define LINE 81

static int show_progress(const char *unused)
{
    progress p = {.active = true};
    const progress_figures first = {
        .sequences = 12345678, .tokens = 999, .packs = 2, .capacity = 512};
    const progress_figures second = {.packs = 7, .bytes = 4000};
    const progress_figures third = {.sequences = 5, .capacity = 512};

    progress_show(&p, &first);
    progress_show(&p, &second);
    progress_show(&p, &third);
    progress_end(&p);
    return p.active;
}

static void test_progress_line(void **state)
{
    static const char first[] =
        "\r12.3 M sequences  999 tokens  97.56% full ";
    static const char second[] = "\r7 packs  ";
    static const char third[] = "\r5 sequences   ";
    caught c = in_child(show_progress, NULL);

    assert_exit(&c, 0);
    assert_int_equal(strlen(c.err), 4 * LINE);
    assert_memory_equal(c.err, first, sizeof first - 1);
    assert_memory_equal(c.err + LINE, second, sizeof second - 1);
    assert_non_null(strstr(c.err + LINE, "B/s "));
    assert_memory_equal(c.err + 2 * LINE, third, sizeof third - 1);
    assert_int_equal(strspn(c.err + 3 * LINE + 1, " "), LINE - 2);
}

static int speak_over_progress(const char *unused)
{
    progress p = {.active = true};
    const progress_figures figures = {.sequences = 5};

    message_init("prog");
    progress_show(&p, &figures);
    message_error("one");
    message_error("two");
    progress_end(&p);
    return p.active;
}

static void test_message_wipes(void **state)
{
    caught c = in_child(speak_over_progress, NULL);

    assert_exit(&c, 0);
    assert_true(strlen(c.err) > 2 * LINE);
    assert_int_equal(strspn(c.err + LINE + 1, " "), LINE - 2);
    assert_string_equal(c.err + 2 * LINE, "prog: one\nprog: two\n");
}

static void test_progress_due(void **state)
{
    progress p = {.active = true, .countdown = 3};

    assert_false(progress_due(&p));
    assert_false(progress_due(&p));
    assert_true(progress_due(&p));
    /* A tenth of a second is far longer than these calls take. */
    for (int i = 0; i < 100; i++)
        assert_false(progress_due(&p));
}

/* A child's stderr is a file, where no progress may be shown. */
static int start_without_terminal(const char *unused)
{
    const progress_figures figures = {.sequences = 1};
    progress p;

    progress_start(&p, true);
    progress_show(&p, &figures);
    progress_end(&p);
    return p.active || progress_due(&p);
}

static void test_progress_without_terminal(void **state)
{
    caught c = in_child(start_without_terminal, NULL);

    assert_exit(&c, 0);
    assert_string_equal(c.err, "");
}

/* ---------------------------------------------------------------------
 * Reports
 */

#define BAD "\\ufffd"

/* The first and last character of each UTF-8 length, and their neighbours. */
static void test_json_string(void **state)
{
    static const struct {
        const char *text;
        const char *json; /* NULL: the text as it is */
    } cases[] = {
        {"", NULL},
        {"a/b c", NULL},
        {"\"\\", "\\\"\\\\"},
        {"\b\f\n\r\t", "\\b\\f\\n\\r\\t"},
        {"\x01\x1f\x7f", "\\u0001\\u001f\\u007f"},
        {"\xc3\xa9", NULL},
        {"\xc2\x80\xdf\xbf", NULL},
        {"\xe0\xa0\x80\xec\xbf\xbf\xed\x9f\xbf", NULL},
        {"\xee\x80\x80\xef\xbf\xbf", NULL},
        {"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", NULL},
        {"\x80\xbf", BAD BAD},
        {"\xc1\xbf", BAD BAD},
        {"\xdf\xc0", BAD BAD},
        {"\xe0\x9f\xbf", BAD BAD BAD},
        {"\xed\xa0\x80", BAD BAD BAD},
        {"\xf0\x8f\xbf\xbf", BAD BAD BAD BAD},
        {"\xf4\x90\x80\x80", BAD BAD BAD BAD},
        {"\xf5\x80\x80\x80", BAD BAD BAD BAD},
        {"\xff.x", BAD ".x"},
        {"\xe2\x82.x", BAD BAD ".x"},
        {"\xe2\x82", BAD BAD},
        {"\xc3", BAD},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *json = cases[i].json;
        FILE *f = tmpfile();
        char expected[128];
        char got[128] = "";

        assert_non_null(f);
        report_json_string(f, cases[i].text);
        rewind(f);
        (void)fread(got, 1, sizeof got - 1, f);
        (void)fclose(f);
        (void)snprintf(expected, sizeof expected, "\"%s\"",
                       json == NULL ? cases[i].text : json);
        assert_string_equal(got, expected);
    }
}

/* Reports on a file. */
static int report(const char *file)
{
    const ps_pack_info info = {.capacity = 512, .depth = 8};
    const ps_totals totals = {.packs = 4,
                              .sequences = 10,
                              .tokens = 1792,
                              .input_sequences = 11,
                              .input_tokens = 2800,
                              .rejected_sequences = 2,
                              .rejected_tokens = 1000,
                              .truncated_sequences = 1,
                              .truncated_tokens = 8,
                              .split_sequences = 1,
                              .extra_pieces = 1,
                              .max_displacement = 3,
                              .max_seqlen = 500,
                              .max_depth = 5,
                              .min_fill = 300};

    report_json_begin(stdout, file, &info, &totals);
    puts("}");
    return !files_close_stdout();
}

static void test_report(void **state)
{
    caught c = in_child(report, "a\"b");

    assert_exit(&c, 0);
    assert_string_equal(
        c.out,
        "{\"file\": \"a\\\"b\", \"sequences\": 10, \"tokens\": 1792, "
        "\"packs\": 4, \"capacity\": 512, \"depth\": 8, \"max_depth\": 5, "
        "\"efficiency\": 0.875, \"packing_factor\": 2.5, "
        "\"lower_bound\": 4, \"padding\": 256, \"max_displacement\": 3, "
        "\"rejected\": 2, \"input_sequences\": 11, \"input_tokens\": 2800, "
        "\"rejected_sequences\": 2, \"rejected_tokens\": 1000, "
        "\"truncated_sequences\": 1, \"truncated_tokens\": 8, "
        "\"split_sequences\": 1, \"extra_pieces\": 1, \"max_seqlen\": 500, "
        "\"min_fill\": 300}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_message_name),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_message_failure),
        cmocka_unit_test(test_message_status),
        cmocka_unit_test(test_progress_line),
        cmocka_unit_test(test_message_wipes),
        cmocka_unit_test(test_progress_due),
        cmocka_unit_test(test_progress_without_terminal),
        cmocka_unit_test(test_json_string),
        cmocka_unit_test(test_report),
    };

    return run_as_tap("cli", tests, NULL);
}
