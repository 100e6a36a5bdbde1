/*
 * resume.c - the state of a job, kept in a file.
 *
 * The library saves its packer; its note holds what the job adds to that:
 * where in which input the first record lies that is needed again, where the
 * rejects are, and the options that only the job knows.
 *
 * SPDX-License-Identifier: MIT
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/files.h"
#include "cli/message.h"
#include "packstream/distinct_files.h"
#include "packstream/resume_parts.h"

/* No state is as large; what is was put there by mistake. */
#define MAX_BYTES ((uint64_t)1 << 32)

/* ---- Begun again ---- */

/* Whether a file may be a state, by what it begins with. */
static bool is_state(const unsigned char *bytes, size_t n)
{
    ps_state summary;
    ps_error err;

    return ps_state_read(bytes, n, &summary, &err) != PS_ERR_MAGIC;
}

/* Two of them are in the memory at once. */
static uint64_t max_bytes(const conf *c)
{
    return c->memory == 0 ? MAX_BYTES : c->memory / 2;
}

static int read_state(resume *r)
{
    ps_error err;

    if (!atomic_file_read(&r->file, max_bytes(r->conf), &r->state, &r->bytes))
        return STATUS_FAILURE;
    if (r->state == NULL)
        return STATUS_OK;
    if (!r->conf->resume) {
        message_error("%s: is there already (--resume goes on from it)",
                      message_name(r->file.name));
        return STATUS_USAGE;
    }
    if (ps_state_read(r->state, r->bytes, &r->summary, &err) != PS_OK)
        return message_failure(message_name(r->file.name), &err);
    return resume_read_note(r);
}

static int cannot_make_again(const resume *r)
{
    message_error("%s: packs were flushed because of time, so those before "
                  "%" PRIu64 " cannot be made again",
                  message_name(r->file.name), r->summary.packs);
    return STATUS_DATA;
}

/* The reader of a pipe wants the packs from first_record on. */
static int start_for_reader(resume *r)
{
    bool behind = r->first_record >= r->summary.packs;

    r->goes_on = behind && !r->summary.finished;
    r->ends = r->summary.finished && r->first_record == r->summary.packs;
    r->proves = !r->goes_on && !r->ends;
    return r->proves && r->place.timed ? cannot_make_again(r) : STATUS_OK;
}

/* What is written to another place would be lacking in the file. */
static int is_elsewhere(const resume *r, bool is_for_file)
{
    if (is_for_file)
        message_error("%s: is a file, as is the output of the state's job, "
                      "which --resume-from would leave",
                      files_output_name(r->conf->output));
    else
        message_error("%s: the job of the state wrote to a file "
                      "(--resume-from sends packs elsewhere)",
                      message_name(r->file.name));
    return STATUS_USAGE;
}

/*
 * A file goes on where it was; a pipe from the pack that its reader wants,
 * for which all may have to be packed again.
 */
static int choose_start(resume *r)
{
    uint64_t from = r->conf->resume_from;
    bool is_for_file = files_is_for_file(r->conf->output);

    r->first_record = from;
    if (r->conf->state != NULL && r->conf->zstd_level != 0 && !is_for_file)
        return message_usage("--state: a compressed stream can only be gone "
                             "on with in a file, and %s is none",
                             files_output_name(r->conf->output));
    if (r->state == NULL)
        return STATUS_OK;
    if (r->place.output.known && (from == 0) != is_for_file)
        return is_elsewhere(r, is_for_file);
    if (r->summary.blank)
        return STATUS_OK;
    if (from > 0 || !is_for_file) {
        r->first_record = from == 0 ? r->summary.packs : from;
        return start_for_reader(r);
    }
    r->done = r->summary.finished;
    r->goes_on = !r->done;
    return STATUS_OK;
}

/* A link to what was not there yet shows when it is. */
static int open_file(resume *r)
{
    int status = distinct_files_check(r->conf);

    if (status != STATUS_OK)
        return status;
    if (!atomic_file_open(&r->file, r->conf->state, is_state))
        return STATUS_FAILURE;
    return distinct_files_check(r->conf);
}

int resume_open(resume *r, const conf *c)
{
    int status = STATUS_OK;

    *r = (resume){.conf = c, .file = {.folder = -1, .next = -1},
                  .output = {.fd = -1}};
    if (c->state != NULL) {
        status = open_file(r);
        if (status == STATUS_OK)
            status = read_state(r);
    }
    return status == STATUS_OK ? choose_start(r) : status;
}

/* ---- Compared ---- */

static int compare_inputs(const resume *r)
{
    const conf *c = r->conf;
    int n = r->summary.finished ? c->n_names : (int)r->place.file;
    uint64_t then = r->place.input_bytes;
    uint64_t now;

    if (then == RESUME_UNKNOWN || !files_inputs_size(c->names, n, &now) ||
        then == now)
        return STATUS_OK;
    if (r->summary.finished)
        message_error("%s: the job has ended, with %" PRIu64
                      " bytes of input and not %" PRIu64,
                      message_name(r->file.name), then, now);
    else
        message_error("%s: of the inputs before %s %" PRIu64
                      " bytes were read, and there are %" PRIu64,
                      message_name(r->file.name),
                      files_input_name(c->names[n]), then, now);
    return STATUS_DATA;
}

int resume_fits(const resume *r, const ps_schema *schema,
                const ps_packer_options *options)
{
    ps_error err;

    if (r->state == NULL)
        return STATUS_OK;
    if (ps_state_fits(r->state, r->bytes, schema, options, &err) != PS_OK)
        return message_failure(message_name(r->file.name), &err);
    /* Packs that are made anew of a job that has ended tell all themselves. */
    return r->proves && r->summary.finished ? STATUS_OK : compare_inputs(r);
}

/* Whether the output is that of the state. */
bool resume_has_output(const resume *r)
{
    return r->done ||
           ((r->goes_on || r->summary.blank) && r->first_record == 0);
}

static bool has_content(const char *name)
{
    struct stat st;

    return name != NULL && strcmp(name, "-") != 0 && stat(name, &st) == 0 &&
           S_ISREG(st.st_mode) && st.st_size > 0;
}

/* Whether a new output would take the place of what may be one's own. */
static int check_new(const resume *r)
{
    const conf *c = r->conf;

    if (c->state == NULL || !c->resume || !has_content(c->output))
        return STATUS_OK;
    message_error("%s: is there already, but not %s to go on from",
                  files_output_name(c->output),
                  message_name(r->file.name));
    return STATUS_USAGE;
}

/* An output that was only just begun, and is gone: its name did not last. */
static bool is_gone(const resume *r)
{
    const char *name = r->conf->output;
    struct stat st;

    return r->summary.blank && r->place.output.base == 0 && name != NULL &&
           strcmp(name, "-") != 0 && stat(name, &st) != 0 && errno == ENOENT;
}

int resume_open_output(resume *r, int in, int *out)
{
    const char *name = r->conf->output;
    int status;

    if (resume_has_output(r) && !is_gone(r))
        return output_check_reopen(&r->output, name, in, out, &r->place.output,
                                   r->summary.output_bytes);
    status = r->state == NULL ? check_new(r) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    *out = files_open_output_alone(name, in);
    if (*out < 0)
        return STATUS_FAILURE;
    /* One that begins with a later pack is no output to go on with. */
    return r->conf->state != NULL && r->first_record == 0
               ? output_check_begin(&r->output, name, *out)
               : STATUS_OK;
}

int resume_cut_output(const resume *r, int out)
{
    return r->goes_on && r->first_record == 0
               ? output_check_cut(&r->output, out, r->summary.output_bytes)
               : STATUS_OK;
}

/* ---- Packed ---- */

/* That memory is lacking is no matter of the output. */
static int cannot_open(const resume *r, const ps_error *err)
{
    if (err->code != PS_ERR_MEMORY)
        return message_failure(files_output_name(r->conf->output), err);
    message_error("%s", err->text);
    return STATUS_FAILURE;
}

int resume_open_packer(const resume *r, ps_packer **packer, int out,
                       const ps_schema *schema,
                       const ps_packer_options *options)
{
    ps_result result = PS_OK;
    ps_error err;

    if (r->goes_on || r->ends)
        result = ps_packer_resume(packer, out, schema, options, r->state,
                                  r->bytes, &err);
    else if (ps_packer_open(packer, out, schema, options, &err) != PS_OK)
        return cannot_open(r, &err);
    else if (r->proves)
        result = ps_packer_verify_replay(*packer, r->state, r->bytes, &err);
    return result == PS_OK
               ? STATUS_OK
               : message_failure(message_name(r->file.name), &err);
}

int resume_open_ended(const resume *r, ps_packer **packer, int out,
                      const ps_schema *schema,
                      const ps_packer_options *options)
{
    ps_error err;

    if (ps_packer_ended(packer, schema, options, r->state, r->bytes,
                        &err) != PS_OK)
        return message_failure(message_name(r->file.name), &err);
    if (r->conf->verbose)
        message_note("%s: the job has ended, there is nothing left to do",
                     message_name(r->file.name));
    return output_check_go_to_end(&r->output, out, r->summary.output_bytes);
}

void resume_close(resume *r)
{
    output_check_close(&r->output);
    atomic_file_close(&r->file);
    free(r->state);
    r->state = NULL;
}
