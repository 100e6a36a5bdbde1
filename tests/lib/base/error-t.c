/*
 * error-t.c - names of results, and the ps_error after a failure.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

#define RESULT_CODE(code, text) code,
#define RESULT_WORDS(code, text) text,

static const ps_result codes[] = {PS_RESULTS(RESULT_CODE)};
static const char *const words[] = {PS_RESULTS(RESULT_WORDS)};

#define N_CODES COUNT(codes)

static void test_words(void **state)
{
    for (size_t i = 0; i < N_CODES; i++) {
        assert_int_equal(codes[i], i);
        assert_string_equal(ps_result_text(codes[i]), words[i]);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(words[i], words[j]);
    }
}

static void test_words_for_any_value(void **state)
{
    static const int odd[] = {-1, (int)N_CODES, 1000, INT32_MAX, INT32_MIN};

    for (size_t i = 0; i < COUNT(odd); i++) {
        ps_result code;

        memcpy(&code, &odd[i], sizeof code);
        assert_true(strlen(ps_result_text(code)) > 0);
    }
}

static void test_fail(void **state)
{
    ps_error err = {PS_ERR_IO, EIO, "old"};

    assert_result(ps_fail(&err, PS_ERR_RANGE, "token %d of %s", 7, "x"),
                  PS_ERR_RANGE, &err);
    assert_int_equal(err.sys_errno, 0);
    assert_string_equal(err.text, "token 7 of x");
    assert_int_equal(ps_fail(NULL, PS_ERR_RANGE, "x"), PS_ERR_RANGE);
}

/* A text that is too long is truncated, and terminated. */
static void test_long_text(void **state)
{
    char longest[1000];
    ps_error err;

    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_result(ps_fail(&err, PS_ERR_LIMIT, "%s", longest), PS_ERR_LIMIT,
                  &err);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

/* A text is printable and a single line, whatever is formatted into it. */
static void test_odd_text(void **state)
{
    ps_error err;

    assert_result(ps_fail(&err, PS_ERR_LIMIT, "a\n\177%s~ b", "\xc3\xa9"),
                  PS_ERR_LIMIT, &err);
    assert_string_equal(err.text, "a????~ b");
}

static void test_errno(void **state)
{
    ps_error err;

    errno = ENOSPC;
    assert_result(ps_fail_errno(&err, "cannot write"), PS_ERR_IO, &err);
    assert_int_equal(err.sys_errno, ENOSPC);
    assert_true(strncmp(err.text, "cannot write: ", 14) == 0);
    assert_string_equal(err.text + 14, strerror(ENOSPC));
    errno = 99999; /* an unknown error: still a sentence */
    assert_result(ps_fail_errno(&err, "cannot write"), PS_ERR_IO, &err);
    assert_int_equal(err.sys_errno, 99999);
    assert_int_equal(ps_fail_errno(NULL, "x"), PS_ERR_IO);
}

static void test_memory(void **state)
{
    ps_error err;

    assert_result(ps_fail_memory(&err), PS_ERR_MEMORY, &err);
    assert_int_equal(ps_fail_memory(NULL), PS_ERR_MEMORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_words_for_any_value),
        cmocka_unit_test(test_fail),
        cmocka_unit_test(test_long_text),
        cmocka_unit_test(test_odd_text),
        cmocka_unit_test(test_errno),
        cmocka_unit_test(test_memory),
    };

    return run_as_tap("error", tests, NULL);
}
