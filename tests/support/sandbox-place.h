/*
 * sandbox-place.h - a folder with targets that a sandbox must protect, and
 * attempts to reach them.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_SANDBOX_PLACE_H
#define TESTS_SANDBOX_PLACE_H

#define TRIED_BYTES 2048

/*
 * Changes to a new folder with the files `input`, `other`, `open` and
 * `state/FILE`, and the link `name` to `input`; and back, deleting it.
 */
int place_set_up(void **state);
int place_tear_down(void **state);

/* A descriptor to read and write `open`. */
int place_descriptor(void);

/* A descriptor of `state`. */
int place_folder(void);

/* 0, or the errno of opening the file, which is closed again. */
int try_open(const char *name, int flags);

/* Makes all attempts and prints their results on stdout. */
void try_all(void);

/*
 * Fails the test unless `out` is the output of try_all in a sandbox of that
 * Landlock version whose only input is `input`; 0: no sandbox.
 */
void assert_tried(const char *out, int version);

#endif
