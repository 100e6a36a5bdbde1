/*
 * state_file.h - the file in which a job keeps its state: found, read and
 * compared with the job (--state, --resume).
 *
 * What a state holds is the program's matter, and atomic_file.h replaces it.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_STATE_FILE_H
#define CLI_STATE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/atomic_file.h"

/* No state is as large; what is was put there by mistake. */
#define STATE_FILE_MAX ((uint64_t)1 << 32)

/* Output between two states, in bytes, unless --state-every is given. */
#define STATE_FILE_EVERY ((uint64_t)256 << 20)

/* An option_setter: the name of a file. */
const char *state_file_set_name(void *member, const char *value);

/* Other files of the job, which are all for one use. */
typedef struct state_file_use {
    const char *what; /* "an input" */
    const char *const *names;
    int n;
    int standard; /* the descriptor that "-" stands for */
} state_file_use;

typedef struct state_file_options {
    const char *name;
    bool resume;  /* else no state may be there */
    uint64_t max; /* bytes of it: STATE_FILE_MAX, or less */
    atomic_file_test *is_ours;
    const char *beside[2]; /* what names of files beside it end in, or NULL */
    state_file_use uses[4]; /* unused ones with n = 0 */
} state_file_options;

/*
 * An exit status after a message, here and below, if the state, the new one
 * that is to take its place, or one beside it, is another file of the job, or
 * if the state has the name of a new one itself.  Call it again when all files
 * are there: only then does it show that two names are of one new file, as "A"
 * and "a" are to some file systems.
 */
int state_file_check(const state_file_options *options);

/*
 * The same, and prepares to keep a state under this name, and reads the one
 * that is there.  *state is for the caller to free in any case, and NULL if
 * there is none.
 */
int state_file_open(atomic_file *f, const state_file_options *options,
                    unsigned char **state, size_t *bytes);

/*
 * With --resume, but without a state, a regular file that is not empty must not
 * become the output: it may be that of another job.
 */
int state_file_spares(const char *state, const char *output);

/* What an option was when the state was saved, and what it is now. */
typedef struct state_file_option {
    const char *what; /* "--flush-every ", or "" */
    uint64_t then;
    uint64_t now;
    const char *words[3]; /* for the first numbers; NULL: as a number */
} state_file_option;

/* Says which of `n` options differs first. */
int state_file_compare(const char *name, const state_file_option *options,
                       size_t n);

/*
 * Shares of a whole, such as the weights of sources, in a state and now.  They
 * are reduced to the smallest whole numbers, so equal ratios are equal numbers.
 */
typedef struct state_file_shares {
    const char *what; /* "weight" */
    uint32_t n;
    const unsigned char *then; /* in the state: little-endian u64s, */
    size_t stride;             /* with so many bytes from one to the next */
    const uint64_t *now;
    const char *const *names;
    const char *(*name_shown)(const char *name); /* files_input_name, say */
} state_file_shares;

/* Says which of the shares differs first. */
int state_file_compare_shares(const char *name,
                              const state_file_shares *shares);

/*
 * A state that is a magic of 8 bytes, numbers of 64 bits of which the first is
 * the version, and XXH3-64 of all before.
 */
typedef struct state_file_form {
    const char *program;
    const char *magic;
    uint64_t version;
    size_t min_bytes; /* 24 or more */
} state_file_form;

/* Says in what a state of `n` bytes is not of this form, or is damaged. */
int state_file_check_form(const char *name, const state_file_form *form,
                          const unsigned char *bytes, size_t n);

/* Says that a state is damaged; STATUS_DATA. */
int state_file_damaged(const char *name);

#endif
