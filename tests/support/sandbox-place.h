/*
 * sandbox-place.h - a place with all that a sandbox is to keep a program
 * from, and attempts at it.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_SANDBOX_PLACE_H
#define TESTS_SANDBOX_PLACE_H

#define TRIED_BYTES 2048

/*
 * Goes to a new folder with the files `input`, `other`, `open` and
 * `state/FILE`, and the link `name` to `input`; and back, leaving nothing.
 */
int place_set_up(void **state);
int place_tear_down(void **state);

/* One to read and write `open`. */
int place_descriptor(void);

/* That of `state`. */
int place_folder(void);

/* 0, or why the file cannot be opened; it is closed again. */
int try_open(const char *name, int flags);

/* Tries all that is refused and says on stdout what came of it. */
void try_all(void);

/*
 * Fails the test unless `out` is what try_all says in a sandbox of that
 * version of Landlock, whose one input is `input`; 0 is for none.
 */
void assert_tried(const char *out, int version);

#endif
