/*
 * checkpoint.c - the numbers of a job, saved in its state file.
 *
 * SPDX-License-Identifier: MIT
 */

#include "files/checkpoint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "cli/message.h"
#include "common/bytes.h"

#define CHECKSUM_BYTES 8

/*
 * Offset of a number of part `i`, in bytes.  It cannot overflow, since `i` is
 * less than 2^32.
 */
static uint64_t part_at(const checkpoint_form *form, uint64_t i, size_t number)
{
    return TEMP_FILE_MAGIC + 8 * (form->n + i * form->n_part + number);
}

/* Checks the format and checksum of the checkpoint. */
static int check(const checkpoint *c)
{
    const checkpoint_form *form = c->form;
    const char *name = message_name(c->file.name);
    const size_t n = c->n_bytes;
    uint64_t version;

    if (memcmp(c->bytes, form->magic, n < 8 ? n : 8) != 0) {
        message_error("%s: not a saved state of %s", name,
                      form->program);
        return STATUS_DATA;
    }
    if (n < part_at(form, form->n_part > 0, 0) + CHECKSUM_BYTES) {
        message_error("%s: the state is truncated: remove it and the output to "
                      "start again", name);
        return STATUS_DATA;
    }
    if (load_u64(c->bytes + n - CHECKSUM_BYTES) !=
        XXH3_64bits(c->bytes, n - CHECKSUM_BYTES))
        return state_file_damaged(c->file.name);
    version = checkpoint_u64(c, 0);
    if (version != form->version &&
        (form->other_version == 0 || version != form->other_version)) {
        message_error("%s: the state has version %" PRIu64 ", but this program "
                      "reads version %" PRIu64 ": resume with the release that "
                      "saved it",
                      name, version, form->version);
        return STATUS_DATA;
    }
    return STATUS_OK;
}

int checkpoint_open(checkpoint *c, const checkpoint_form *form,
                    const state_file_options *options, uint64_t every)
{
    int status;

    *c = (checkpoint){.form = form,
                      .file = ATOMIC_FILE_CLOSED,
                      .every = every == 0 ? STATE_FILE_EVERY : every,
                      .by_sequences = every != 0};
    if (options->name == NULL)
        return STATUS_OK;
    status = state_file_open(&c->file, options, &c->bytes, &c->n_bytes);
    return status == STATUS_OK && c->bytes != NULL ? check(c) : status;
}

uint64_t checkpoint_u64(const checkpoint *c, size_t number)
{
    return c->bytes == NULL
               ? 0
               : load_u64(c->bytes + TEMP_FILE_MAGIC + 8 * number);
}

const unsigned char *checkpoint_part(const checkpoint *c, uint64_t i)
{
    return c->bytes + part_at(c->form, i, 0);
}

size_t checkpoint_bytes_after(const checkpoint *c, uint64_t i)
{
    return c->n_bytes - CHECKSUM_BYTES - (size_t)part_at(c->form, i, 0);
}

bool checkpoint_has_parts(const checkpoint *c, uint64_t n)
{
    return n <= c->n_bytes &&
           part_at(c->form, n, 0) + CHECKSUM_BYTES <= c->n_bytes;
}

/* Makes room for `n` more bytes.  Returns NULL if out of memory. */
static unsigned char *extend(checkpoint *c, size_t n)
{
    unsigned char *next = realloc(c->next, c->n_next + n + CHECKSUM_BYTES);

    c->no_memory = c->no_memory || next == NULL;
    if (next == NULL)
        return NULL;
    c->next = next;
    c->n_next += n;
    return next + c->n_next - n;
}

void checkpoint_put_bytes(checkpoint *c, const void *bytes, size_t n)
{
    unsigned char *to = extend(c, n);

    if (to != NULL && n > 0)
        memcpy(to, bytes, n);
}

void checkpoint_put(checkpoint *c, const uint64_t *numbers, size_t n)
{
    unsigned char *to;

    if (c->n_next == 0)
        checkpoint_put_bytes(c, c->form->magic, TEMP_FILE_MAGIC);
    to = extend(c, 8 * n);
    for (size_t i = 0; to != NULL && i < n; i++)
        store_u64(to + 8 * i, numbers[i]);
}

int checkpoint_write(checkpoint *c)
{
    int status = STATUS_OK;

    if (c->no_memory) {
        status = message_memory();
    } else {
        store_u64(c->next + c->n_next, XXH3_64bits(c->next, c->n_next));
        if (!atomic_file_write(&c->file, c->next, c->n_next + CHECKSUM_BYTES))
            status = STATUS_FAILURE;
    }
    free(c->next);
    c->next = NULL;
    c->n_next = 0;
    c->no_memory = false;
    c->since = 0;
    return status;
}

bool checkpoint_is_due(checkpoint *c, uint64_t bytes)
{
    c->since += c->by_sequences ? 1 : bytes;
    return c->file.name != NULL && c->since >= c->every;
}

void checkpoint_close(checkpoint *c)
{
    atomic_file_close(&c->file);
    free(c->bytes);
    free(c->next);
    c->bytes = c->next = NULL;
}
