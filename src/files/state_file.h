/*
 * state_file.h - find and read the state file of a job and compare it with the
 * job's options (--state, --resume).
 *
 * The contents are defined by each program; atomic_file.h replaces the file.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef FILES_STATE_FILE_H
#define FILES_STATE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/options.h"
#include "files/atomic_file.h"
#include "packstream.h"

/* Maximum size of a state, in bytes.  A larger file is not a state. */
#define STATE_FILE_MAX ((uint64_t)1 << 32)

/* Default of --state-every: bytes of output between two checkpoints. */
#define STATE_FILE_EVERY ((uint64_t)256 << 20)

/*
 * Entries of an option table for --state, --state-every and --resume, which set
 * `state`, `state_every` and `resume`.  The other arguments are words for the
 * help: the names of the files, the units of --state-every, and the other times
 * at which a checkpoint is saved.
 */
#define STATE_FILE_ENTRIES(conf, files, units, moments)                       \
    {0, "state", "FILE", "save checkpoints for --resume in " files,           \
     OPTION_CALL_FOR(conf, state, state_file_set_name)},                      \
    {0, "state-every", "N",                                                   \
     "save a checkpoint every N " units " (default:\n"                        \
     "256 MiB), and " moments,                                                \
     OPTION_NUMBER(conf, state_every, 1, UINT64_MAX),                         \
     .why = "must be a number of " units " from 1"},                          \
    {0, "resume", NULL,                                                       \
     "continue from the last checkpoint, or start if\n"                       \
     "there is no FILE",                                                      \
     OPTION_FLAG(conf, resume)}

/* An option_setter for a file name. */
const char *state_file_set_name(void *member, const char *value);

/*
 * Checks the options of a job whose `n` outputs must be regular files to be
 * resumed.  Returns an exit status and prints a message on failure.
 */
int state_file_check_options(const char *state, bool resume, uint64_t every,
                             const char *const *outputs, size_t n);

/* Files that the job uses for one purpose.  They must not be the state file. */
typedef struct state_file_use {
    const char *what; /* for messages: "an input" */
    const char *const *names;
    int n;
    int standard; /* descriptor that "-" means */
} state_file_use;

typedef struct state_file_options {
    const char *name;
    bool resume; /* if false, the state must not exist */
    /* limit on its size in bytes, at most STATE_FILE_MAX */
    uint64_t max;
    const char *magic; /* first 8 bytes of a state */
    /* suffixes of companion files of the state; NULL: none */
    const char *beside[2];
    state_file_use uses[4]; /* unused entries have n = 0 */
} state_file_options;

/*
 * Checks that the state, its temporary file and its companions are not other
 * files of the job, and that the state's name does not end in the suffix of
 * temporary files.  Like the functions below, returns an exit status and prints
 * a message on failure.
 *
 * Call it again once all files exist, because two different names can denote
 * the same file, such as "A" and "a" on some file systems.
 */
int state_file_check(const state_file_options *options);

/*
 * Does the same checks, prepares to replace the state, and reads it if it
 * exists.  *state is NULL if the state does not exist.  The caller frees it,
 * also after an error.
 */
int state_file_open(atomic_file *f, const state_file_options *options,
                    unsigned char **state, size_t *bytes);

/*
 * With --resume but no state, refuses a nonempty regular file as output:
 * another job may have written it.
 */
int state_file_check_new(const char *state, const char *output);

/* An option's value when the state was saved, and its value now. */
typedef struct state_file_option {
    /* prefix for the message, such as "--flush-every ", or "" */
    const char *what;
    uint64_t then;
    uint64_t now;
    /* words for the values 0, 1, 2; NULL: print the number */
    const char *words[3];
} state_file_option;

/* Reports the first of `n` options that differs. */
int state_file_compare(const char *name, const state_file_option *options,
                       size_t n);

/*
 * Parts of a whole, such as the weights of sources, in the state and now.  Both
 * sets of numbers are in lowest terms, so equal ratios have equal numbers.
 */
typedef struct state_file_shares {
    const char *what;          /* for messages: "weight" */
    uint32_t n;                /* number of shares */
    const unsigned char *then; /* in the state: little-endian 64-bit numbers */
    size_t stride;             /* distance between them, in bytes */
    const uint64_t *now;
    const char *const *names; /* names of the shares, for messages */
    /* formats a name for messages, as files_input_name does */
    const char *(*name_shown)(const char *name);
} state_file_shares;

/* Reports the first share that differs. */
int state_file_compare_shares(const char *name,
                              const state_file_shares *shares);

/* Compares the format of token records in the state with the current format. */
int state_file_compare_schema(const char *name, uint64_t framed, uint64_t type,
                              const ps_schema *now);

/* Reports that a state is damaged; returns STATUS_DATA. */
int state_file_damaged(const char *name);

#endif
