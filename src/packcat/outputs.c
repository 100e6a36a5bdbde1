/*
 * outputs.c - what a form writes: one stream, or several files.
 *
 * The first of several files is the one that the others tell about.  Those
 * of an older one would be wrong of it, so they go before it comes: at no
 * time do files stand side by side that do not belong together.
 *
 * SPDX-License-Identifier: MIT
 */

#include "outputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/files.h"
#include "cli/message.h"

#define FRESH ".new"

/* The first `n` bytes of `stem`, and the ending; NULL without memory. */
static char *join(const char *stem, size_t n, const char *ending)
{
    const size_t rest = strlen(ending) + 1;
    char *text = malloc(n + rest);

    if (text == NULL)
        return NULL;
    memcpy(text, stem, n);
    memcpy(text + n, ending, rest);
    return text;
}

static bool fail(outputs *outs)
{
    outs->parts[0].status = STATUS_FAILURE;
    return false;
}

/* A rename puts away whatever has the name, be it a device. */
static bool may_replace(const char *name)
{
    struct stat st;

    if (stat(name, &st) == 0 && !S_ISREG(st.st_mode)) {
        message_error("%s: is there and no regular file",
                      message_name(name));
        return false;
    }
    return true;
}

static bool check_name(const char *name, const input *in)
{
    return may_replace(name) &&
           files_spare_inputs(name, in->options.names, in->options.n_names);
}

/*
 * What is there under the name itself is most likely where the user wants
 * the output to go: into a folder, or to /dev/null.
 */
bool outputs_can_have_name(const char *name)
{
    const size_t n = strlen(name);
    struct stat st;

    if (stat(name, &st) == 0 && !S_ISREG(st.st_mode)) {
        message_error("%s: is there and no regular file, so several files "
                      "cannot be called after it", message_name(name));
        return false;
    }
    if (n == 0 || name[n - 1] == '/') {
        message_error("%s: no name that several files can be called after",
                      n == 0 ? "-o" : message_name(name));
        return false;
    }
    return true;
}

static bool begin_part(outputs *outs, const char *stem, size_t n,
                       const char *ending, const input *in)
{
    const size_t i = outs->n++;
    char *name = join(stem, n, ending);

    outs->parts[i].fd = -1;
    outs->names[i] = name;
    if (name != NULL)
        outs->fresh[i] = join(name, strlen(name), FRESH);
    if (name == NULL || outs->fresh[i] == NULL) {
        message_errno("%s", message_name(stem));
        return fail(outs);
    }
    if (!check_name(name, in) || !check_name(outs->fresh[i], in))
        return fail(outs);
    outs->made[i] =
        output_begin_file(&outs->parts[i], name, outs->fresh[i]);
    return outs->made[i];
}

static bool begin_several(outputs *outs, const output_options *options,
                          const input *in)
{
    const output_names names = options->namer(options->name, &in->first);

    outs->several = true;
    for (size_t i = 0; i < names.n; i++)
        if (!begin_part(outs, options->name, names.stem, names.endings[i],
                        in))
            return false;
    return true;
}

bool outputs_begin(outputs *outs, const output_options *options,
                   const input *in)
{
    bool begun;

    if (options->namer != NULL) {
        begun = begin_several(outs, options, in);
    } else {
        outs->n = 1;
        begun = output_begin(&outs->parts[0], options->name,
                             options->binary, in->fd);
    }
    outs->parts[0].predictions = options->predictions;
    return begun;
}

/* There need not have been an older one. */
static bool forget(const char *name)
{
    if (unlink(name) == 0 || errno == ENOENT)
        return true;
    message_errno("%s", message_name(name));
    return false;
}

/* What cannot all get their names get none. */
static bool give_name(const outputs *outs, size_t i)
{
    if (rename(outs->fresh[i], outs->names[i]) == 0)
        return true;
    message_errno("%s", message_name(outs->names[i]));
    while (i-- > 0)
        (void)unlink(outs->names[i]);
    return false;
}

static bool publish(const outputs *outs)
{
    for (size_t i = 1; i < outs->n; i++)
        if (!forget(outs->names[i]))
            return false;
    for (size_t i = 0; i < outs->n; i++)
        if (!give_name(outs, i))
            return false;
    return true;
}

static void release(outputs *outs, bool published)
{
    for (size_t i = 0; i < outs->n; i++) {
        if (outs->made[i] && !published)
            (void)unlink(outs->fresh[i]);
        free(outs->fresh[i]);
        free(outs->names[i]);
    }
}

int outputs_end(outputs *outs, int input_status)
{
    int status = STATUS_OK;
    bool published = false;

    for (size_t i = 0; i < outs->n; i++) {
        const int part = output_end(&outs->parts[i]);

        status = status == STATUS_OK ? part : status;
    }
    if (outs->several && status == STATUS_OK && input_status == STATUS_OK) {
        published = publish(outs);
        status = published ? STATUS_OK : STATUS_FAILURE;
    }
    release(outs, published);
    return status;
}
