/*
 * options.h - command lines as tables: an entry and a small setter for each
 * option; --help is printed from the same table.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "packstream.h"

/* Whether an option takes a value: "-x V", "--long=V". */
typedef enum option_value {
    OPTION_FLAG,
    OPTION_VALUE,
    OPTION_OPTIONAL /* only as "--long=V" */
} option_value;

/*
 * Sets an option in the program's own struct.  `value` is NULL for a flag.
 * Returns NULL, or why the value will not do ("must be between 1 and 9"),
 * in static storage.
 */
typedef const char *option_setter(void *conf, const char *value);

typedef struct option_entry {
    char letter;         /* 0: long only */
    const char *name;    /* long name; NULL: letter only */
    option_value value;
    const char *metavar; /* "N", "FILE"; NULL for a flag */
    const char *help;    /* one line or two, '\n' between them */
    option_setter *set;
} option_entry;

/* What `--help` and `--version` print besides the table. */
typedef struct option_program {
    const char *usage;   /* "[OPTION]... [FILE]..." */
    const char *summary; /* a sentence */
    const option_entry *entries; /* ended by an entry without any name */
} option_program;

/* What became of the command line. */
typedef enum option_outcome {
    OPTION_RUN,   /* go on; operands start at *first */
    OPTION_DONE,  /* --help or --version was printed: exit 0 */
    OPTION_BAD,   /* reported on stderr: exit STATUS_USAGE */
    OPTION_FAILED /* --help or --version could not be written, and that was
                     reported: exit STATUS_FAILURE */
} option_outcome;

/*
 * --help, -h (unless the table has it) and --version are added to every
 * table by themselves.  They are obeyed when they are met, and stdout has
 * been flushed and closed when this returns OPTION_DONE or OPTION_FAILED.
 * Operands may stand between options; argv is reordered then.
 */
option_outcome option_parse(const option_program *program, int argc,
                            char **argv, void *conf, int *first);

/* The exit status for an outcome other than OPTION_RUN. */
int option_status(option_outcome outcome);

/*
 * The one number parser: decimal digits only, then optionally k, M, G or T
 * (powers of 1000) or Ki, Mi, Gi, Ti (of 1024).  False if it is no such
 * number or lies outside [least, most].
 */
bool option_number(const char *text, uint64_t min, uint64_t max,
                   uint64_t *number);

/* For setters: the type of tokens, u16 or u32; returns what a setter does. */
const char *option_token_type(const char *value, ps_type *type);

/* The operands as names of files, `n` of them: "-" alone if none is given. */
const char *const *option_files(int argc, char **argv, int first, int *n);

#endif
