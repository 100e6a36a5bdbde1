/*
 * outputs.h - what a form writes: one stream, or several files that are
 * there together or not at all.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKCAT_OUTPUTS_H
#define PACKCAT_OUTPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "input.h"
#include "output.h"

#define OUTPUTS_MAX 3

/* The names of several files: a beginning of -o's value, and endings. */
typedef struct output_names {
    size_t stem; /* bytes of it */
    size_t n;
    const char *endings[OUTPUTS_MAX]; /* static */
} output_names;

/* What -o `name` stands for, for packs of `info`. */
typedef output_names output_namer(const char *name,
                                  const ps_pack_info *info);

typedef struct output_options {
    const char *name;     /* NULL: stdout */
    bool binary;          /* not for a terminal */
    output_namer *namer;  /* of several files, never stdout; or NULL */
    uint32_t predictions; /* as in output */
} output_options;

/*
 * Several files are written under other names, with ".new" behind, and get
 * their own when all of them are whole.
 */
typedef struct outputs {
    output parts[OUTPUTS_MAX];
    size_t n; /* of the parts that were begun */
    bool several;
    char *names[OUTPUTS_MAX]; /* of several */
    char *fresh[OUTPUTS_MAX]; /* under which they are written */
    bool made[OUTPUTS_MAX];   /* there is a file of that name, and ours */
} outputs;

/* Whether several files can be called after `name`; a message if not. */
bool outputs_can_have_name(const char *name);

/* Opens all that `options` ask for, for the packs of `in`; *outs is {0}. */
bool outputs_begin(outputs *outs, const output_options *options,
                   const input *in);

/*
 * Closes all and tells failures.  Without one, and if the `input_status` is
 * none, several files get their names, else they go.  Returns the exit
 * status.
 */
int outputs_end(outputs *outs, int input_status);

#endif
