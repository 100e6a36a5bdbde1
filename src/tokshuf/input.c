/*
 * input.c - the sequences of all files.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokshuf/input.h"

#include <inttypes.h>
#include <xxhash.h>

#include "cli/message.h"
#include "cli/signals.h"
#include "files/files.h"
#include "files/groups.h"

static int fail(const input *in, const ps_error *err)
{
    return in->told ? STATUS_FAILURE
                    : message_failure(files_input_name(in->name), err);
}

static int open_file(input *in)
{
    if (in->fd >= 0)
        files_close_input(in->fd);
    in->name = in->conf->inputs[in->next++];
    in->fd = files_open_input(in->name);
    return in->fd < 0 ? STATUS_FAILURE : STATUS_OK;
}

/* Waits for input.  A signal ends the wait, and with it the job. */
static ps_result wait_for_input(void *context, ps_error *err)
{
    input *in = context;

    (void)err;
    in->told = signals_wait(ps_token_reader_descriptor(in->reader),
                            WAIT_FOREVER) == WAIT_STOP;
    return in->told ? PS_ERR_IO : PS_OK;
}

/* Finds the channel of --group. */
static int find_group(input *in)
{
    const char *name = in->conf->group;

    if (name == NULL)
        return STATUS_OK;
    return groups_find(&in->schema, name, &in->group)
               ? STATUS_OK
               : message_usage("%s: no channel '%s' with one number per "
                               "sequence to group by",
                               files_input_name(in->name), message_name(name));
}

int input_open(input *in, const conf *c, int file)
{
    /* Overlong sequences are skipped without a message. */
    const ps_token_reader_options options = {.expect_overlong = true};
    ps_error err;
    int status;

    *in =
        (input){.conf = c, .next = file, .fd = -1, .position = {.file = file}};
    status = files_check_readable(c->inputs + file, c->n_inputs - file);
    if (status == STATUS_OK)
        status = open_file(in);
    if (status != STATUS_OK)
        return status;
    if (ps_token_reader_open(&in->reader, in->fd,
                             c->type == 0 ? PS_U16 : c->type, &options,
                             &err) != PS_OK)
        return fail(in, &err);
    in->schema = *ps_token_reader_schema(in->reader);
    in->position.mark = ps_token_reader_mark(in->reader);
    if (c->state != NULL)
        ps_token_reader_on_wait(in->reader, wait_for_input, in);
    status = find_group(in);
    return status == STATUS_OK
               ? option_check_type(c->type, &in->schema, in->name)
               : status;
}

/* Fingerprint of a record, to detect changed files. */
static uint64_t hash_of(const ps_sequence *record)
{
    return XXH3_64bits_withSeed(record->payload, record->payload_bytes,
                                record->n_tok);
}

int input_resume(input *in, const input_position *position)
{
    ps_sequence record;
    ps_error err;
    ps_result r = ps_token_reader_seek(in->reader, &position->mark, &err);

    if (r == PS_OK && position->at_record)
        r = ps_token_reader_next(in->reader, in->conf->max_length, &record,
                                 &err);
    if (r != PS_OK && r != PS_END && r != PS_ERR_OVERLONG)
        return fail(in, &err);
    in->position = *position;
    if (r == PS_OK &&
        (!position->at_record || hash_of(&record) == position->hash))
        return STATUS_OK;
    message_error("%s: changed since the state was saved: the record at byte "
                  "%" PRIu64 " differs",
                  files_input_name(in->name), position->mark.offset);
    return STATUS_DATA;
}

/* Starts a group unless the sequence belongs to the current one. */
static void follow_group(input *in, const ps_sequence *next)
{
    input_position *position = &in->position;
    uint64_t value;

    if (in->conf->group == NULL)
        return;
    value = groups_value(&in->schema, in->group, next);
    if (position->n_read == 0 || value != position->group) {
        position->group = value;
        position->first_id = next->id;
    }
}

/*
 * Reads the next sequence of the file.  *wanted is set to false if the length
 * is not between --min-length and --max-length.
 */
static ps_result read_one(input *in, ps_sequence *next, bool *wanted,
                          ps_error *err)
{
    const conf *c = in->conf;
    const bool kept = c->state != NULL;
    input_position *position = &in->position;
    const ps_token_mark mark =
        kept ? ps_token_reader_mark(in->reader) : position->mark;
    ps_result r = ps_token_reader_next(in->reader, c->max_length, next, err);
    const bool too_long = r == PS_ERR_OVERLONG;

    if (too_long)
        r = ps_token_reader_skip(in->reader, err);
    if (r != PS_OK)
        return r;
    *wanted = !too_long && next->n_tok >= c->min_length;
    if (!too_long)
        follow_group(in, next);
    position->n_read++;
    position->n_long += too_long;
    position->n_short += !too_long && !*wanted;
    if (!kept)
        return PS_OK;
    position->file = in->next - 1;
    position->at_record = !too_long;
    position->mark = too_long ? ps_token_reader_mark(in->reader) : mark;
    position->hash = too_long ? 0 : hash_of(next);
    return PS_OK;
}

int input_next(input *in, ps_sequence *next, bool *more)
{
    ps_error err = {.code = PS_OK};

    for (;;) {
        bool wanted = false;
        ps_result r = read_one(in, next, &wanted, &err);

        *more = r == PS_OK;
        if (r == PS_END && in->next == in->conf->n_inputs)
            return STATUS_OK;
        if (r == PS_END) {
            const int status = open_file(in);

            if (status != STATUS_OK)
                return status;
            r = ps_token_reader_append(in->reader, in->fd, &err);
            if (r == PS_OK)
                continue;
        }
        if (r != PS_OK && in->told && signals_stopped() != 0)
            return STATUS_OK;
        if (r != PS_OK)
            return fail(in, &err);
        if (wanted)
            return STATUS_OK;
    }
}

uint64_t input_bytes(const conf *c, int n)
{
    uint64_t bytes;

    return files_inputs_size(c->inputs, n, &bytes) ? bytes : PS_UNKNOWN;
}

void input_close(input *in)
{
    ps_token_reader_free(in->reader);
    if (in->fd >= 0)
        files_close_input(in->fd);
}
