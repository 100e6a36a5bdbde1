/*
 * outputs.c - one output stream, or several that get a share each.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokshuf/outputs.h"

#include <stdlib.h>

#include "cli/message.h"
#include "files/files.h"

/* Checks that no two outputs are the same file, before any is changed. */
static int check_distinct(const conf *c)
{
    for (uint32_t i = 0; i < c->n_outputs; i++)
        for (uint32_t k = 0; k < i; k++) {
            const char *name = c->names[i];
            const char *other = c->names[k];
            const char *common = NULL; /* file that both outputs would write */

            if (!files_is_special(name) && !files_is_special(other))
                common = file_set_would_write(other, name)   ? name
                         : file_set_would_write(name, other) ? other
                                                             : NULL;
            if (files_check_distinct(name, other) != STATUS_OK)
                return STATUS_FAILURE;
            if (common != NULL) {
                message_error("%s: used for two outputs: give each its own "
                              "name",
                              message_name(common));
                return STATUS_FAILURE;
            }
        }
    return STATUS_OK;
}

int outputs_init(outputs *o, const conf *c)
{
    *o = (outputs){.conf = c, .window = {.files = {{.fd = -1}, {.fd = -1}}}};
    o->of = calloc(c->n_outputs, sizeof *o->of);
    if (c->state != NULL)
        o->kept = calloc(c->n_outputs, sizeof *o->kept);
    if (o->of == NULL || (c->state != NULL && o->kept == NULL))
        return message_memory();
    for (uint32_t i = 0; i < c->n_outputs; i++) {
        o->of[i] = (records){.name = c->names[i], .fd = -1};
        if (o->kept != NULL)
            o->kept[i].output.fd = -1;
    }
    o->n = c->n_outputs;
    return STATUS_OK;
}

/* Opens an output.  With a state it is resumable, otherwise published later. */
static int open_one(outputs *o, uint32_t i, bool begun)
{
    const conf *c = o->conf;
    records *one = &o->of[i];
    int status;

    if (o->kept == NULL) {
        one->fd = file_set_open(&o->set, one->name, true, c->inputs,
                                c->n_inputs);
        return one->fd < 0 ? STATUS_FAILURE : STATUS_OK;
    }
    status = files_check_inputs(one->name, c->inputs, c->n_inputs);
    if (status != STATUS_OK)
        return status;
    return begun
               ? resumable_records_reopen(&o->kept[i], one, o->is_framed)
               : resumable_records_begin(&o->kept[i], one, c->state, c->resume);
}

int outputs_open(outputs *o, bool begun)
{
    int status = check_distinct(o->conf);

    for (uint32_t i = 0; status == STATUS_OK && i < o->n; i++)
        status = open_one(o, i, begun);
    return status;
}

int outputs_prepare(outputs *o, const ps_schema *schema,
                    uint64_t window_memory)
{
    const conf *c = o->conf;

    for (uint32_t i = 0; i < o->n; i++)
        o->of[i].schema = *schema;
    return c->by_length == 0 ? STATUS_OK
                             : sorter_open(&o->window, window_memory,
                                           c->folder, SORTER_ALL);
}

/* ---------------------------------------------------------------------
 * Shares
 */

/* a * b / c, rounded down.  Requires b <= c < 2^63. */
static uint64_t scale(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t quotient = 0;
    uint64_t rest = 0;

    for (int bit = 63; bit >= 0; bit--) {
        quotient *= 2;
        rest *= 2;
        if (rest >= c) {
            rest -= c;
            quotient++;
        }
        rest += a >> bit & 1 ? b : 0;
        if (rest >= c) {
            rest -= c;
            quotient++;
        }
    }
    return quotient;
}

/* Number of sequences in the current output and all earlier outputs. */
static uint64_t share_end(const outputs *o)
{
    uint64_t before = 0;
    uint64_t all = 0;

    for (uint32_t i = 0; i < o->n; i++) {
        all += o->conf->weights[i];
        before += i <= o->current ? o->conf->weights[i] : 0;
    }
    return scale(o->total, before, all);
}

int outputs_begin(outputs *o, uint64_t total)
{
    int status = STATUS_OK;

    o->total = total;
    o->until = share_end(o);
    /* Advance to the output at which the earlier job stopped. */
    while (o->put > o->until && o->current + 1 < o->n) {
        o->current++;
        o->until = share_end(o);
    }
    for (uint32_t i = 0; status == STATUS_OK && i < o->n; i++) {
        if (o->kept == NULL)
            status = records_start(&o->of[i]);
        progress_start(&o->of[i].progress, !o->conf->quiet);
    }
    return status;
}

/* ---------------------------------------------------------------------
 * Writing
 */

static int write_one(outputs *o, const record *one)
{
    records *to = &o->of[o->current];

    to->figures.bytes += one->bytes;
    return records_put(to, one->n_tok, one->payload);
}

/* Writes the sequences of a window, sorted by length. */
static int write_window(outputs *o)
{
    int status = sorter_finish(&o->window);
    bool more = status == STATUS_OK;
    record one;

    while (more) {
        status = sorter_next(&o->window, &one, &more);
        if (status != STATUS_OK)
            return status;
        if (more)
            status = write_one(o, &one);
        more = more && status == STATUS_OK;
    }
    return status == STATUS_OK ? sorter_clear(&o->window) : status;
}

int outputs_put(outputs *o, const record *one)
{
    int status = STATUS_OK;
    record by_length = *one;

    while (o->put == o->until && o->current + 1 < o->n) {
        if (o->window.count > 0)
            status = write_window(o);
        if (status != STATUS_OK)
            return status;
        o->current++;
        o->until = share_end(o);
    }
    o->put++;
    if (o->conf->by_length == 0)
        return write_one(o, one);
    by_length.key = one->n_tok;
    status = sorter_put(&o->window, &by_length);
    if (status == STATUS_OK && o->window.count == o->conf->by_length)
        status = write_window(o);
    return status;
}

bool outputs_are_even(const outputs *o)
{
    return o->window.count == 0;
}

int outputs_end(outputs *o)
{
    int status = STATUS_OK;

    if (o->window.count > 0)
        status = write_window(o);
    for (uint32_t i = 0; status == STATUS_OK && i < o->n; i++)
        status = records_end(&o->of[i]);
    return status;
}

int outputs_publish(outputs *o)
{
    int status = STATUS_OK;

    for (uint32_t i = 0; status == STATUS_OK && i < o->n; i++)
        status = records_close(&o->of[i]);
    if (status == STATUS_OK && !file_set_publish(&o->set))
        status = STATUS_FAILURE;
    return status;
}

int outputs_leave(outputs *o)
{
    int status = STATUS_OK;

    for (uint32_t i = 0; status == STATUS_OK && i < o->n; i++)
        status = resumable_records_leave(&o->kept[i], &o->of[i]);
    return status;
}

void outputs_close(outputs *o)
{
    for (uint32_t i = 0; i < o->n; i++) {
        if (o->of[i].fd >= 0)
            records_abandon(&o->of[i]);
        records_free(&o->of[i]);
        if (o->kept != NULL)
            resumable_records_close(&o->kept[i]);
    }
    file_set_free(&o->set);
    sorter_close(&o->window);
    free(o->of);
    free(o->kept);
}
