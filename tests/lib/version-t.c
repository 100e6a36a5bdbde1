/*
 * version-t.c - the header, the library and the build agree on the version.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tap.h"

#include <stdio.h>

#include "packstream.h"

static void test_header(void **state)
{
    char text[64];

    (void)snprintf(text, sizeof text, "%d.%d.%d", PACKSTREAM_VERSION_MAJOR,
                   PACKSTREAM_VERSION_MINOR, PACKSTREAM_VERSION_PATCH);
    assert_string_equal(text, PACKAGE_VERSION);
}

static void test_library(void **state)
{
    assert_string_equal(ps_version(), PACKAGE_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_library),
    };

    return run_as_tap("version", tests, NULL);
}
