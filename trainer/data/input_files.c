/*
 * input_files.c - which rank reads which files.
 *
 * SPDX-License-Identifier: MIT
 */
#include "data/input_files.h"

#include <string.h>
#include <sys/stat.h>

#include "cli/pattern.h"

bool inputs_is_stdin(const char *name)
{
    return strcmp(name, "-") == 0;
}

static bool is_pattern(const char *name)
{
    unsigned places;

    return pattern_places(name, &places) && places > 0;
}

/* Who cannot read a name finds out when it is opened. */
static bool is_stream(const char *name)
{
    struct stat st;

    return inputs_is_stdin(name) ||
           (stat(name, &st) == 0 && !S_ISREG(st.st_mode) &&
            !S_ISDIR(st.st_mode));
}

const char *inputs_tell(const char *const *names, uint32_t n,
                        feed_input *input)
{
    const char *plain = NULL;

    *input = FEED_SHARED;
    for (uint32_t i = 0; i < n; i++) {
        if (is_pattern(names[i]))
            *input = FEED_SHARDS;
        else
            plain = names[i];
        if (*input == FEED_SHARED && is_stream(names[i]))
            *input = FEED_FIRST;
    }
    return *input == FEED_SHARDS ? plain : NULL;
}

char *inputs_name(const feed_options *options, uint32_t file, uint32_t rank)
{
    const char *name = options->names[file];

    return options->input == FEED_SHARDS ? pattern_name(name, rank)
                                         : strdup(name);
}
