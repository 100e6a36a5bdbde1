/*
 * input.c - pack streams from several files, read as one.
 *
 * SPDX-License-Identifier: MIT
 */

#include "input.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/files.h"

static const char *current(const input *in)
{
    return in->options.names[in->next - 1];
}

static bool is_stdin(const char *name)
{
    return strcmp(name, "-") == 0;
}

/* Closes the file that is open, if any. */
static void leave(input *in)
{
    if (in->reader != NULL)
        in->bytes_before += ps_pack_reader_offset(in->reader);
    ps_unpacker_free(in->unpacker);
    ps_pack_reader_free(in->reader);
    in->unpacker = NULL;
    in->reader = NULL;
    if (in->fd >= 0)
        files_close_input(in->fd);
    in->fd = -1;
}

void input_blame(input *in, const char *format, ...)
{
    va_list args;

    in->failed = true;
    in->err.code = PS_ERR_CORRUPT;
    in->err.sys_errno = 0;
    va_start(args, format);
    (void)vsnprintf(in->err.text, sizeof in->err.text, format, args);
    va_end(args);
}

const ps_pack_info *input_info(const input *in)
{
    return ps_pack_reader_info(in->reader);
}

/* Keeps a failure that was told already. */
static bool told(input *in)
{
    in->failed = true;
    in->status = STATUS_FAILURE;
    return false;
}

/* A file that cannot be joined to the first one is at fault itself. */
static void check_match(input *in)
{
    const char *why = NULL;

    if (in->options.match != NULL)
        why = in->options.match(&in->first, input_info(in));
    if (why != NULL)
        input_blame(in, "cannot follow %.100s: %s",
                    files_input_name(in->options.names[0]), why);
}

/* Calls the hook of the options and remembers that it failed. */
static ps_result before_wait(void *context, ps_error *err)
{
    input *in = context;
    const ps_result result = in->options.on_wait(in->options.context, err);

    if (result != PS_OK)
        in->failed = in->blameless = true;
    return result;
}

/* Opens the next file; false after a failure. */
static bool enter(input *in)
{
    const char *name = in->options.names[in->next++];

    in->fd = files_open_input(name);
    if (in->fd < 0)
        return told(in);
    if (is_stdin(name) && in->start < 0)
        in->start = lseek(in->fd, 0, SEEK_CUR);
    in->failed =
        ps_pack_reader_open(&in->reader, in->fd, &in->err) != PS_OK;
    if (in->failed)
        return false;
    ps_pack_reader_on_wait(in->reader, before_wait, in);
    if (in->next == 1) {
        in->first = *input_info(in);
        in->figures.capacity = in->first.capacity;
    }
    check_match(in);
    return !in->failed;
}

bool input_begin(input *in, const input_options *options)
{
    *in = (input){.options = *options, .fd = -1, .start = -1};
    progress_start(&in->progress, options->progress);
    return enter(in);
}

/* After the end of a file: goes on with the next one, if there is one. */
static bool advance(input *in)
{
    if (in->next == in->options.n_names)
        return false;
    leave(in);
    /* To open a file may mean to wait for one who writes to it. */
    return before_wait(in, &in->err) == PS_OK && enter(in);
}

/* What `result` of the open file means for the input as a whole. */
static bool settle(input *in, ps_result result)
{
    if (result != PS_OK && result != PS_END)
        in->failed = true;
    return result == PS_OK;
}

static void show_progress(input *in)
{
    if (!progress_due(&in->progress))
        return;
    in->figures.bytes = in->bytes_before + ps_pack_reader_offset(in->reader);
    progress_show(&in->progress, &in->figures);
}

static ps_result next_sequence(input *in, ps_sequence *sequence)
{
    if (in->unpacker == NULL) {
        const ps_result result = ps_unpacker_open(
            &in->unpacker, in->reader, in->options.order, &in->err);

        if (result != PS_OK)
            return result;
    }
    return ps_unpacker_next(in->unpacker, sequence, &in->err);
}

bool input_sequence(input *in, ps_sequence *sequence)
{
    ps_result result = next_sequence(in, sequence);

    while (result == PS_END && advance(in))
        result = next_sequence(in, sequence);
    if (!settle(in, result))
        return false;
    in->figures.sequences++;
    in->figures.tokens += sequence->n_tok;
    show_progress(in);
    return true;
}

bool input_pack(input *in, ps_pack *pack)
{
    ps_result result = ps_pack_reader_next(in->reader, pack, &in->err);

    while (result == PS_END && advance(in))
        result = ps_pack_reader_next(in->reader, pack, &in->err);
    if (!settle(in, result))
        return false;
    in->figures.packs++;
    in->figures.sequences += pack->n_seq;
    in->figures.tokens += pack->n_tok;
    show_progress(in);
    return true;
}

bool input_rereadable(const input *in)
{
    int n_stdin = 0;

    for (int i = 0; i < in->options.n_names; i++) {
        const char *name = in->options.names[i];
        const bool standard = is_stdin(name);
        struct stat st;

        n_stdin += standard;
        if ((standard ? fstat(STDIN_FILENO, &st) : stat(name, &st)) != 0)
            return false;
        if (!S_ISREG(st.st_mode))
            return false;
    }
    /* The second mention of stdin finds what the first one left: nothing. */
    return n_stdin <= 1;
}

bool input_rewind(input *in)
{
    leave(in);
    if (in->start >= 0 && lseek(STDIN_FILENO, in->start, SEEK_SET) < 0) {
        message_errno("%s: cannot be read again", files_input_name("-"));
        return told(in);
    }
    in->next = 0;
    in->bytes_before = 0;
    in->figures = (progress_figures){0};
    return enter(in);
}

int input_end(input *in)
{
    progress_end(&in->progress);
    if (in->failed && !in->blameless && in->status == STATUS_OK)
        in->status = message_failure(files_input_name(current(in)),
                                     &in->err);
    leave(in);
    return in->status;
}
