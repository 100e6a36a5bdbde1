/*
 * tap.h - cmocka with the headers that it needs, and its results as TAP.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* Each test and each callback has a parameter, which few of them use. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/*
 * True in a build that is only another one, where QUICK is set: .ci/run does
 * so once all was done in the default build.
 */
static inline bool is_quick(void)
{
    const char *quick = getenv("QUICK");

    return quick != NULL && *quick != '\0';
}

/* Skips a long test there. */
#define skip_if_quick()  \
    do {                 \
        if (is_quick())  \
            skip();      \
    } while (0)

/* Runs `tests`, an array, behind `set_up` if that is not NULL; for main. */
#define run_as_tap(name, tests, set_up)                                 \
    (cmocka_set_message_output(CM_OUTPUT_TAP),                          \
     cmocka_run_group_tests_name(name, tests, set_up, NULL))

#endif
