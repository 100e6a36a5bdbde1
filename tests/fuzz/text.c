/*
 * text.c - tokcat in memory; text.h.
 *
 * The calls that open and close files are replaced, and messages go to a file
 * in memory (messages.c); the rest is the program's own code.
 *
 * SPDX-License-Identifier: MIT
 */

#include "text.h"

#include <string.h>

#include "cli/message.h"
#include "files/file_set.h"
#include "files/files.h"
#include "files/state_file.h"
#include "tokcat/decompress.h"
#include "tokcat/job.h"
#include "tokcat/state.h"

/* ------------------------------------------------------------------- files */

/* Static because these calls have no context; 0: none. */
static int files[2];

void give_files(int idx, int bin)
{
    files[0] = idx;
    files[1] = bin;
}

static bool is_input(int fd)
{
    return fd == FEED_FD ||
           (files[0] != 0 && (fd == files[0] || fd == files[1]));
}

int files_open_input(const char *name)
{
    const size_t n = strlen(name);

    if (files[0] == 0 || n < 4)
        return FEED_FD;
    return files[strcmp(name + n - 4, ".bin") == 0];
}

const char *files_input_name(const char *name)
{
    return message_name(name);
}

const char *files_output_name(const char *name)
{
    return message_name(name);
}

/* No input has a known size, so progress is not reported. */
bool files_stat(const char *name, int standard, struct stat *st)
{
    (void)name;
    (void)standard;
    (void)st;
    return false;
}

int file_set_open(file_set *set, const char *name, bool binary,
                  const char *const *inputs, int n_inputs)
{
    (void)name;
    (void)inputs;
    must(set->n == 0 && binary && n_inputs > 0);
    return FEED_FD;
}

int file_set_check_input(const char *name, const char *in)
{
    (void)name;
    (void)in;
    return STATUS_OK;
}

/* No job saves a state. */
int state_file_check_options(const char *name, bool resume, uint64_t every,
                             const char *const *outputs, size_t n)
{
    (void)outputs;
    must(name == NULL && !resume && every == 0 && n > 0);
    return STATUS_OK;
}

const char *state_file_set_name(void *member, const char *value)
{
    (void)member;
    (void)value;
    return NULL;
}

int state_open(state *s, const conf *c, const char *const *names, int n)
{
    (void)s;
    (void)names;
    must(c->state == NULL && n > 0);
    return STATUS_OK;
}

int state_open_output(state *s, records *out)
{
    (void)s;
    (void)out;
    return STATUS_FAILURE;
}

int state_leave(state *s, records *out)
{
    (void)s;
    (void)out;
    return STATUS_FAILURE;
}

int state_start(state *s, records *out)
{
    (void)s;
    return records_start(out);
}

int state_put(state *s, records *out, uint32_t n_tok,
              const unsigned char *payload)
{
    (void)s;
    return records_put(out, n_tok, payload);
}

int state_finish(state *s, records *out)
{
    (void)s;
    return records_finish(out);
}

void state_close(state *s)
{
    (void)s;
}

bool file_set_publish(file_set *set)
{
    return set->n == 0;
}

void file_set_free(file_set *set)
{
    must(set->n == 0);
}

bool files_begin(int fd, const char *name)
{
    (void)name;
    return fd == FEED_FD;
}

int files_check_readable(const char *const *names, int n)
{
    (void)names;
    return n > 0 ? STATUS_OK : STATUS_FAILURE;
}

int files_check_input(const char *name, const char *in)
{
    (void)name;
    (void)in;
    return STATUS_OK;
}

int files_check_inputs(const char *name, const char *const *inputs, int n)
{
    (void)name;
    (void)inputs;
    return n > 0 ? STATUS_OK : STATUS_FAILURE;
}

void files_close_input(int fd)
{
    must(is_input(fd));
}

bool files_close_output(int fd, const char *name)
{
    (void)name;
    must(fd == FEED_FD);
    return true;
}

void files_abandon_output(int fd)
{
    must(fd == FEED_FD);
}

/* Only --help prints. */
bool files_close_stdout(void)
{
    return true;
}

/* --------------------------------------------------------------------- job */

/* Output is complete on success; after a failure it may end anywhere. */
static token_yield read_written(const conf *c, int status)
{
    const token_way way = {.raw_type = c->schema.token_type,
                           .max_tokens = UINT32_MAX};
    const bytes *written = feed_written();
    token_yield y;

    feed(written->data, written->size, FEED_WHOLE);
    y = read_tokens(&way);
    if (status == STATUS_OK || !c->schema.framed || written->size == 0)
        must(y.result == PS_END);
    else
        must(y.result == PS_ERR_TRUNCATED);
    return y;
}

int settle(conf *c)
{
    int status;

    hear_messages();
    status = conf_settle(c);
    check_messages(status);
    return status;
}

bool is_too_much(const unsigned char *p, size_t n)
{
    static unsigned char text[1 << 16];
    const compression c = n > 0 ? compression_of(p, n) : COMPRESSION_NONE;
    decompress_buffers b = {p, n, text, sizeof text};
    decompressor *d;
    size_t before;

    if (c != COMPRESSION_GZIP && c != COMPRESSION_ZSTD)
        return false;
    d = decompress_open(c);
    must(d != NULL);
    do
        before = b.n_in + b.n_out;
    while (decompress_step(d, &b) == NULL && b.n_in + b.n_out < before);
    decompress_free(d);
    return b.n_out == 0;
}

int run_tokcat(const conf *c, const unsigned char *p, size_t n,
               unsigned manner, token_yield *yield)
{
    static const char *const names[] = {"text"};
    int status;

    hear_messages();
    feed(p, n, manner);
    feed_clear();
    status = job_run(c, names, 1);
    must(status == STATUS_OK || status == STATUS_DATA);
    check_messages(status);
    *yield = read_written(c, status);
    return status;
}
