/*
 * options.h - command lines as tables, for both programs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_OPTIONS_H
#define BERT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where and how a value is kept. */
typedef enum option_kind {
    OPTION_FLAG,   /* bool */
    OPTION_U32,    /* from `min` to `max` */
    OPTION_U64,
    OPTION_DOUBLE,
    OPTION_TEXT,   /* const char * */
    OPTION_CHOICE  /* int: which of `help`'s words up to ';', from 0 */
} option_kind;

typedef struct option_entry {
    const char *name;
    option_kind kind;
    double min, max;
    size_t at;        /* its offset in the program's own struct */
    const char *help; /* a line */
} option_entry;

typedef struct option_program {
    const char *name;
    const char *usage;
    const char *summary;
    const option_entry *entries;
    int n_entries; /* at most OPTION_MAX */
} option_program;

#define OPTION_MAX 40

/*
 * Sets what the command line says; operands start at *first.  Returns -1, or
 * the status to exit with when what is wrong was told; STATUS_OK: --help wants
 * option_help.
 */
int option_parse(const option_program *program, int argc, char **argv,
                 void *conf, int *first);

/* Prints the help; returns the status to exit with. */
int option_help(const option_program *program);

#endif /* BERT_OPTIONS_H */
