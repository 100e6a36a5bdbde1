/*
 * options.h - table-driven command lines.
 *
 * A program lists its options in a table.  Each entry has the names and the
 * help text of an option.  One of the macros below adds the values that the
 * option accepts and the struct member that it sets.  option_parse parses the
 * command line, reports errors and prints the help:
 *
 *     static const option_entry entries[] = {
 *         {'d', "depth", "N", "the depth (default: 3)",
 *          OPTION_NUMBER(conf, depth, 1, 9)},
 *         {'q', "quiet", NULL, "no warnings", OPTION_FLAG(conf, quiet)},
 *         {0},
 *     };
 *
 * Shell completion is generated from the same table, which `prog
 * --options-table` prints.  It completes the words of an option, file names if
 * the metavar is FILE, directory names if it is DIR, and comma-separated words
 * if it is LIST.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packstream.h"

typedef enum option_type {
    OPTION_TYPE_INTEGER, /* a number, a word that means a number, or a flag */
    OPTION_TYPE_TEXT,    /* a const char *: the value itself */
    OPTION_TYPE_CALL     /* calls `set` with the value */
} option_type;

/* A word that means a number.  Tables end with a NULL name. */
typedef struct option_word {
    const char *name;
    uint64_t number;
} option_word;

/*
 * Sets a member, or several members of the struct, from `value`, which is NULL
 * if the option was given without a value.  Returns NULL on success, otherwise
 * the reason for refusing the value ("must be between 1 and 9"), in static
 * storage.
 */
typedef const char *option_setter(void *member, const char *value);

typedef struct option_entry {
    char letter;         /* 0: no short form */
    const char *name;    /* long name; NULL: no long form */
    const char *metavar; /* "N", "FILE"; NULL: takes no value */
    const char *help;    /* help text of one or two lines, separated by '\n' */

    /* The remaining members are set by the macros below. */
    option_type type;
    size_t at; /* offset of the member in the struct, in bytes */
    /* size of the member, in bytes; it is a bool, uint32_t or uint64_t */
    size_t size;
    uint64_t min; /* range of numbers accepted; max 0: words only */
    uint64_t max; /* inclusive */
    /* words accepted in addition to numbers, or by `set`; NULL: none */
    const option_word *words;
    option_setter *set; /* for OPTION_TYPE_CALL */
    bool optional;      /* the value is optional, given as --long=VALUE */
    uint64_t constant;  /* stored if the option is given without a value */
    size_t given;       /* offset of a bool to set to true; 0: none */
    /* message for a refused value; NULL: built from the range and words */
    const char *why;
} option_entry;

#define OPTION_MEMBER(conf, member)   \
    .at = offsetof(conf, member),     \
    .size = sizeof(((conf *)0)->member)

/* Sets a bool to true, or a member to a constant.  Takes no value. */
#define OPTION_FLAG(conf, member) OPTION_CONSTANT(conf, member, true)
#define OPTION_CONSTANT(conf, member, number) \
    OPTION_MEMBER(conf, member), .constant = (number)

/* A uint32_t or uint64_t, parsed by option_number. */
#define OPTION_NUMBER(conf, member, low, high) \
    OPTION_MEMBER(conf, member), .min = (low), .max = (high)

/* The level of --zstd[=LEVEL].  The default is zstd's own, 3. */
#define OPTION_ZSTD(conf, member)                                        \
    OPTION_NUMBER(conf, member, 1, 22), .optional = true, .constant = 3, \
    .why = "must be a level from 1 to 22"

/* An enum or a bool, chosen from a table of words. */
#define OPTION_WORD(conf, member, table) \
    OPTION_MEMBER(conf, member), .words = (table)

/* A const char * that points into argv. */
#define OPTION_TEXT(conf, member) \
    .type = OPTION_TYPE_TEXT, OPTION_MEMBER(conf, member)

/* A function that sets several members of the struct, or one member. */
#define OPTION_CALL(setter) .type = OPTION_TYPE_CALL, .set = (setter)
#define OPTION_CALL_FOR(conf, member, setter) \
    OPTION_CALL(setter), OPTION_MEMBER(conf, member)

/* Combined with any of the above: sets a bool if the option was given. */
#define OPTION_GIVEN(conf, member) .given = offsetof(conf, member)

/* Token types u16 and u32, as values of ps_type. */
extern const option_word option_token_types[];

/*
 * Checks that the records of the input `name` have the token type `given` by
 * the option -t (0: not given).  Returns an exit status and prints a message on
 * failure.
 */
int option_check_type(ps_type given, const ps_schema *schema,
                      const char *name);

/* Text for --help, and the option table. */
typedef struct option_program {
    const char *usage;           /* "[OPTION]... [FILE]..." */
    const char *summary;         /* one sentence */
    const option_entry *entries; /* ends with an entry without names */
} option_program;

/* Result of option_parse. */
typedef enum option_outcome {
    OPTION_RUN,  /* run the program; operands start at argv[*first] */
    OPTION_DONE, /* printed --help or --version: exit 0 */
    OPTION_BAD,  /* invalid command line, reported: exit STATUS_USAGE */
    /* failed to print --help or --version, reported: exit STATUS_FAILURE */
    OPTION_FAILED
} option_outcome;

/*
 * Parses a command line into `conf`.  --help, -h (unless the table defines it)
 * and --version are added to every table and take effect as soon as they are
 * parsed.  On OPTION_DONE and OPTION_FAILED, stdout has been closed.  Options
 * and operands may be mixed; argv is then reordered.
 */
option_outcome option_parse(const option_program *program, int argc,
                            char **argv, void *conf, int *first);

/* Exit status for an outcome other than OPTION_RUN. */
int option_status(option_outcome outcome);

/* Looks up a word in a table, which may be NULL; false if it is absent. */
bool option_find_word(const option_word *words, const char *name,
                      uint64_t *number);

/* Word for a number in a table, which must contain it. */
const char *option_word_name(const option_word *words, uint64_t number);

/* Words of --overlong, as values of ps_overlong. */
extern const option_word option_overlongs[];

/*
 * Parses a number: decimal digits, optionally followed by k, M, G, T (powers of
 * 1000) or Ki, Mi, Gi, Ti (powers of 1024).  Returns false if the text is
 * malformed or the number is outside [min, max].  All options use this parser.
 */
bool option_number(const char *text, uint64_t min, uint64_t max,
                   uint64_t *number);

/*
 * Returns the operands as file names and sets *n to their number.  Without
 * operands, returns the single name "-".
 */
const char *const *option_files(int argc, char **argv, int first, int *n);

#endif
