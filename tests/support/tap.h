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

/* True unless LONG is set, as in `make nightly`: then tests try fewer cases. */
static inline bool is_short(void)
{
    const char *is_long = getenv("LONG");

    return is_long == NULL || *is_long == '\0';
}

/* Skips a test that only the nightly run needs. */
#define skip_if_short()  \
    do {                 \
        if (is_short())  \
            skip();      \
    } while (0)

/* Runs the array `tests`, after `set_up` if that is not NULL; for main. */
#define run_as_tap(name, tests, set_up)                                 \
    (cmocka_set_message_output(CM_OUTPUT_TAP),                          \
     cmocka_run_group_tests_name(name, tests, set_up, NULL))

#endif
