/*
 * options.h - command lines as tables.
 *
 * A program lists its options in a table of entries.  An entry has the names
 * of an option, its help, and, by one of the macros below, what a value looks
 * like and which member of the program's own struct it sets.  option_parse
 * reads the command line by the table, reports what is wrong with it, and
 * prints --help from it:
 *
 *     static const option_entry entries[] = {
 *         {'d', "depth", "N", "the depth (default: 3)",
 *          OPTION_NUMBER(conf, depth, 1, 9)},
 *         {'q', "quiet", NULL, "say less", OPTION_FLAG(conf, quiet)},
 *         {0},
 *     };
 *
 * Completion in shells is made from the same table, which `prog
 * --options-table` prints.  It offers the words of an option; for a metavar
 * of FILE or DIR the names of files or folders; and for LIST its words with
 * commas between them.
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
    OPTION_TYPE_INTEGER, /* a number, a word for one, or a flag */
    OPTION_TYPE_TEXT,    /* a const char *, the value itself */
    OPTION_TYPE_CALL     /* what `set` makes of the value */
} option_type;

/* A word that stands for a number; tables of them end with a NULL name. */
typedef struct option_word {
    const char *name;
    uint64_t number;
} option_word;

/*
 * Sets a member, or the whole struct, from a value, which is NULL if the
 * option was given without one.  Returns NULL, or why the value is refused
 * ("must be between 1 and 9"), in static storage.
 */
typedef const char *option_setter(void *member, const char *value);

typedef struct option_entry {
    char letter;         /* 0: long only */
    const char *name;    /* long name; NULL: letter only */
    const char *metavar; /* "N", "FILE"; NULL: takes no value */
    const char *help;    /* one line or two, '\n' between them */

    /* The rest is set by name, most of it by the macros below. */
    option_type type;
    size_t at; /* offset and size of the member */
    size_t size;
    uint64_t min; /* numbers that are taken; max 0: none, only words */
    uint64_t max;
    const option_word *words; /* taken besides numbers, or known to `set`;
                                 NULL: none */
    option_setter *set;
    bool optional;     /* the value can be left out; given as "--long=V" */
    uint64_t constant; /* what an option without its value stores */
    size_t given;      /* offset of a bool that becomes true; 0: none */
    const char *why;   /* a value is refused; NULL: made from the above */
} option_entry;

#define OPTION_MEMBER(conf, member)   \
    .at = offsetof(conf, member),     \
    .size = sizeof(((conf *)0)->member)

/* A bool becomes true; or, without a value, a member becomes a constant. */
#define OPTION_FLAG(conf, member) OPTION_CONSTANT(conf, member, true)
#define OPTION_CONSTANT(conf, member, number) \
    OPTION_MEMBER(conf, member), .constant = (number)

/* A uint32_t or uint64_t, by option_number. */
#define OPTION_NUMBER(conf, member, low, high) \
    OPTION_MEMBER(conf, member), .min = (low), .max = (high)

/* The level of --zstd[=LEVEL], and what zstd itself takes without one. */
#define OPTION_ZSTD(conf, member)                                        \
    OPTION_NUMBER(conf, member, 1, 22), .optional = true, .constant = 3, \
    .why = "must be a level from 1 to 22"

/* An enum or a bool, by a table of words. */
#define OPTION_WORD(conf, member, table) \
    OPTION_MEMBER(conf, member), .words = (table)

/* A const char *: a name, kept where the command line is. */
#define OPTION_TEXT(conf, member) \
    .type = OPTION_TYPE_TEXT, OPTION_MEMBER(conf, member)

/* What a function sets: the whole struct, or a member. */
#define OPTION_CALL(setter) .type = OPTION_TYPE_CALL, .set = (setter)
#define OPTION_CALL_FOR(conf, member, setter) \
    OPTION_CALL(setter), OPTION_MEMBER(conf, member)

/* Besides any of these: a bool says that the option was given. */
#define OPTION_GIVEN(conf, member) .given = offsetof(conf, member)

/* u16 and u32, the types of tokens, as numbers of ps_type. */
extern const option_word option_token_types[];

/*
 * Whether the records of the input `name` have tokens of the type that -t gave;
 * 0: it was not given.  An exit status, after a message if it is not STATUS_OK.
 */
int option_check_type(ps_type given, const ps_schema *schema,
                      const char *name);

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
 * Sets `conf` from a command line.  --help, -h (unless the table has it) and
 * --version are added to every table.  They take effect where they stand, and
 * stdout has been flushed and closed when this returns OPTION_DONE or
 * OPTION_FAILED.  Operands may stand between options; argv is reordered then.
 */
option_outcome option_parse(const option_program *program, int argc,
                            char **argv, void *conf, int *first);

/* The exit status for an outcome other than OPTION_RUN. */
int option_status(option_outcome outcome);

/* Looks for a word in a table, which may be NULL; false: it is not there. */
bool option_find_word(const option_word *words, const char *name,
                      uint64_t *number);

/* The word for a number of such a table, which has it. */
const char *option_word_name(const option_word *words, uint64_t number);

/* The words of --overlong, for a ps_overlong. */
extern const option_word option_overlongs[];

/*
 * The one number parser: decimal digits only, then optionally k, M, G or T
 * (powers of 1000) or Ki, Mi, Gi, Ti (of 1024).  False if it is no such
 * number or lies outside [min, max].
 */
bool option_number(const char *text, uint64_t min, uint64_t max,
                   uint64_t *number);

/* The operands as names of files, `n` of them: "-" alone if none is given. */
const char *const *option_files(int argc, char **argv, int first, int *n);

#endif
