/*
 * sources.c - the input streams.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokmix/sources.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "cli/message.h"
#include "files/files.h"

/* ---------------------------------------------------------------------
 * Opening
 */

static bool fail(sources *s, const source *one, const ps_error *err)
{
    s->status = message_failure(files_input_name(one->name), err);
    return false;
}

static bool open_one(sources *s, source *one, const conf *c)
{
    const ps_type type = c->type == 0 ? PS_U16 : c->type;
    const ps_schema *schema;
    ps_error err;

    one->fd = files_open_input(one->name);
    if (one->fd < 0) {
        s->status = STATUS_FAILURE;
        return false;
    }

    /* Reading again requires a regular file, for seeking. */
    if (c->stop == STOP_REPEAT) {
        s->status = STATUS_FAILURE;
        if (!files_is(FILES_REGULAR, one->fd))
            message_error("%s: --stop=repeat needs a regular file, which can "
                          "be read again", files_input_name(one->name));
        else if (!files_offset(one->fd, &one->start))
            message_errno("%s", files_input_name(one->name));
        else
            s->status = STATUS_OK;
        if (s->status != STATUS_OK)
            return false;
    }

    if (ps_token_reader_open(&one->reader, one->fd, type, NULL, &err) !=
        PS_OK)
        return fail(s, one, &err);
    schema = ps_token_reader_schema(one->reader);
    s->status = option_check_type(c->type, schema, one->name);
    if (s->status != STATUS_OK)
        return false;

    if (one == s->of)
        s->schema = *schema;
    one->position = ps_token_reader_mark(one->reader);
    if (ps_schema_compare(schema, &s->schema, &err) == PS_OK)
        return true;
    message_error("%s: cannot be mixed with %s: %s",
                  files_input_name(one->name),
                  files_input_name(s->of[0].name), err.text);
    s->status = STATUS_DATA;
    return false;
}

bool sources_open(sources *s, const conf *c)
{
    *s = (sources){.of = calloc(c->n, sizeof *s->of)};
    if (s->of == NULL) {
        s->status = message_memory();
        return false;
    }
    for (uint32_t i = 0; i < c->n; i++) {
        s->of[s->n] = (source){
            .name = c->names[i], .fd = -1, .bytes = PS_UNKNOWN};
        if (!open_one(s, &s->of[s->n++], c))
            return false;
    }
    return true;
}

/* ---------------------------------------------------------------------
 * Reading
 */

/* Fingerprint of a record, to detect changed files. */
static uint64_t hash_of(const ps_sequence *record)
{
    return XXH3_64bits_withSeed(record->payload, record->payload_bytes,
                                record->n_tok);
}

source_state sources_look(sources *s, uint32_t i)
{
    source *one = &s->of[i];
    ps_token_mark position;
    ps_error err = {.code = PS_OK};
    ps_result r;

    if (one->at_end) {
        one->at_end = false;
        return SOURCE_ENDED;
    }
    if (one->ready)
        return SOURCE_READY;
    position = ps_token_reader_mark(one->reader);
    r = ps_token_reader_next(one->reader, UINT32_MAX, &one->next, &err);
    if (r == PS_OK) {
        one->ready = one->begun = true;
        one->position = position;
        one->hash = hash_of(&one->next);
        return SOURCE_READY;
    }
    if (r != PS_END) {
        /* If the hook failed, it has already reported the error. */
        if (err.code != PS_OK)
            (void)fail(s, one, &err);
        return SOURCE_FAILED;
    }
    if (one->repeats) {
        message_error("%s: has no sequences to repeat",
                      files_input_name(one->name));
        s->status = STATUS_DATA;
        return SOURCE_FAILED;
    }
    one->ended = true;
    if (!files_is(FILES_REGULAR, one->fd) ||
        !files_offset(one->fd, &one->bytes))
        one->bytes = PS_UNKNOWN;
    return SOURCE_ENDED;
}

void sources_take(sources *s, uint32_t i)
{
    source *one = &s->of[i];

    one->ready = false;
    one->repeats = false;
    one->sequences++;
    one->tokens += one->next.n_tok;
}

void sources_begin_stage(sources *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        s->of[i].at_end = s->of[i].repeats;
}

bool sources_repeat(sources *s, uint32_t i)
{
    source *one = &s->of[i];
    ps_error err;

    /* After `at_end`, it has already been restarted. */
    if (one->repeats)
        return true;
    if (lseek(one->fd, (off_t)one->start, SEEK_SET) == -1) {
        message_errno("%s", files_input_name(one->name));
        s->status = STATUS_FAILURE;
        return false;
    }
    one->repeats = true;
    one->begun = false;
    one->hash = 0;
    if (ps_token_reader_append(one->reader, one->fd, &err) != PS_OK)
        return fail(s, one, &err);
    one->position = ps_token_reader_mark(one->reader);
    return true;
}

/* ---------------------------------------------------------------------
 * Resuming
 */

bool sources_resume(sources *s, uint32_t i)
{
    source *one = &s->of[i];
    ps_error err;
    ps_result r = ps_token_reader_seek(one->reader, &one->position, &err);

    if (r == PS_OK && one->begun)
        r = ps_token_reader_next(one->reader, UINT32_MAX, &one->next, &err);
    if (r != PS_OK && r != PS_END)
        return fail(s, one, &err);
    if (r == PS_OK && (!one->begun || hash_of(&one->next) == one->hash))
        return true;
    message_error("%s: changed since the state was saved: the record at byte "
                  "%" PRIu64 " differs",
                  files_input_name(one->name), one->position.offset);
    s->status = STATUS_DATA;
    return false;
}

bool sources_check_size(sources *s, uint32_t i)
{
    const source *one = &s->of[i];
    struct stat st;

    if (!one->ended || one->bytes == PS_UNKNOWN || fstat(one->fd, &st) != 0 ||
        !S_ISREG(st.st_mode) || (uint64_t)st.st_size == one->bytes)
        return true;
    message_error("%s: changed since the state was saved: it had %" PRIu64 " "
                  "bytes when it was read, but now has %" PRIu64,
                  files_input_name(one->name), one->bytes,
                  (uint64_t)st.st_size);
    s->status = STATUS_DATA;
    return false;
}

bool sources_is_unread(sources *s, uint32_t i)
{
    source *one = &s->of[i];

    /*
     * Reading ahead in a file does not block, and an error there does not
     * affect the output.
     */
    if (!one->ready && !one->ended && files_is(FILES_REGULAR, one->fd))
        one->ended = ps_token_reader_next(one->reader, UINT32_MAX, &one->next,
                                          NULL) == PS_END;
    return !one->ended;
}

void sources_close(sources *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        ps_token_reader_free(s->of[i].reader);
        if (s->of[i].fd >= 0)
            files_close_input(s->of[i].fd);
    }
    free(s->of);
}
