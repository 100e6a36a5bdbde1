/*
 * input_files.c - decide which rank reads which files.
 *
 * SPDX-License-Identifier: MIT
 */
#include "data/input_files.h"

#include <string.h>
#include <sys/stat.h>

#include "cli/pattern.h"

bool tr_input_is_stdin(const char *name)
{
    return strcmp(name, "-") == 0;
}

static bool is_pattern(const char *name)
{
    unsigned places;

    return pattern_places(name, &places) && places > 0;
}

/* True for input that can be read only once.  Ignores missing files. */
static bool is_stream(const char *name)
{
    struct stat st;

    return tr_input_is_stdin(name) ||
           (stat(name, &st) == 0 && !S_ISREG(st.st_mode) &&
            !S_ISDIR(st.st_mode));
}

const char *tr_input_find_kind(const char *const *names, uint32_t n,
                               tr_input_kind *input)
{
    const char *plain = NULL;

    *input = TR_INPUT_SHARED;
    for (uint32_t i = 0; i < n; i++) {
        if (is_pattern(names[i]))
            *input = TR_INPUT_SHARDS;
        else
            plain = names[i];
        if (*input == TR_INPUT_SHARED && is_stream(names[i]))
            *input = TR_INPUT_RANK0;
    }
    return *input == TR_INPUT_SHARDS ? plain : NULL;
}

char *tr_input_name(const tr_loader_options *options, uint32_t file,
                    uint32_t rank)
{
    const char *name = options->names[file];

    return options->input == TR_INPUT_SHARDS ? pattern_name(name, rank)
                                         : strdup(name);
}
