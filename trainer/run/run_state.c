/*
 * run_state.c - the state of a run, saved to its checkpoint and resumed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/run_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/input_files.h"
#include "run/rank_message.h"

/* ---- Before anything is read ---- */

static bool look(const char *input, struct stat *st)
{
    if (strcmp(input, "-") == 0)
        return fstat(STDIN_FILENO, st) == 0;
    return stat(input, st) == 0;
}

/* One that is not there yet can be told by its name alone. */
static bool is_same(const char *name, const char *input)
{
    struct stat ours, its;

    return strcmp(input, name) == 0 ||
           (stat(name, &ours) == 0 && look(input, &its) &&
            its.st_dev == ours.st_dev && its.st_ino == ours.st_ino);
}

/* Of any rank, as far as we can see its files. */
static bool is_input(const conf *c, const char *name)
{
    const uint32_t ranks = c->feed.input == FEED_SHARDS ? c->feed.ranks : 1;
    bool is = false;

    for (uint32_t rank = 0; rank < ranks && !is; rank++)
        for (uint32_t i = 0; i < c->feed.n_names && !is; i++) {
            char *input = inputs_name(&c->feed, i, rank);

            is = input != NULL && is_same(name, input);
            free(input);
        }
    return is;
}

static int refuse_inputs(const conf *c)
{
    const size_t bytes = strlen(c->save) + sizeof ATOMIC_FILE_SUFFIX;
    char *const next = malloc(bytes);
    const char *wrong = NULL;

    if (next == NULL)
        return message_memory();
    (void)snprintf(next, bytes, "%s%s", c->save, ATOMIC_FILE_SUFFIX);
    if (is_input(c, c->save))
        wrong = c->save;
    else if (is_input(c, next))
        wrong = next;
    if (wrong != NULL)
        rank_message("%s: is an input, and --save would write to it",
                     message_name(wrong));
    free(next);
    return wrong == NULL ? STATUS_OK : STATUS_USAGE;
}

static int refuse_existing(const conf *c)
{
    struct stat st;

    if (stat(c->save, &st) != 0)
        return STATUS_OK;
    if (!S_ISREG(st.st_mode))
        rank_message("%s: is not a regular file", message_name(c->save));
    else if (!c->resume)
        rank_message("%s: exists already: continue with --resume, or name "
                     "another file", message_name(c->save));
    else
        return STATUS_OK;
    return STATUS_USAGE;
}

int keep_open(keep *k, const conf *c)
{
    int status;

    k->name = c->save;
    k->file = (atomic_file){.folder = -1, .next = -1};
    if (c->save == NULL)
        return STATUS_OK;
    status = refuse_inputs(c);
    if (status == STATUS_OK)
        status = refuse_existing(c);
    if (status == STATUS_OK && !checkpoint_open(&k->file, c->save))
        status = STATUS_FAILURE;
    return status;
}

void keep_close(keep *k)
{
    atomic_file_close(&k->file);
    free(k->places);
}

/* ---- Checkpoints ---- */

bool keep_room(keep *k, const feed *f)
{
    (void)feed_places(f, &k->n_places);
    k->places = calloc((size_t)k->n_places + 1, sizeof *k->places);
    return k->places != NULL;
}

void keep_places(keep *k, const feed *f)
{
    uint32_t n;
    const feed_place *const places = feed_places(f, &n);

    if (n > 0)
        memcpy(k->places, places, n * sizeof *places);
}

static checkpoint all_of(const keep *k, bert_model *model, lamb *l)
{
    return (checkpoint){.settings = k->settings,
                        .numbers = bert_model_numbers(model),
                        .weights = bert_model_weights(model),
                        .mean = lamb_mean(l),
                        .square = lamb_square(l),
                        .places = k->places,
                        .n_places = k->n_places};
}

int keep_read(keep *k, bert_model *model, lamb *l)
{
    checkpoint c;
    ps_error err;
    ps_result r;

    if (k->name == NULL)
        return STATUS_OK;
    c = all_of(k, model, l);
    r = checkpoint_read(k->name, &c, &k->run, &err);
    if (r == PS_END)
        return STATUS_OK;
    if (r != PS_OK)
        return rank_message_failure(k->name, &err);
    bert_model_store(model);
    lamb_store(l);
    lamb_set(l, k->run.lamb);
    k->saved = k->run.steps;
    return STATUS_OK;
}

void keep_copy(keep *k, const workers *w, bert_model *model, lamb *l)
{
    const checkpoint c = all_of(k, model, l);
    const size_t bytes = c.numbers * sizeof *c.weights;

    if (w->ranks == 1)
        return;
    workers_copy(w, &k->run, sizeof k->run);
    if (k->run.steps == 0)
        return;
    workers_copy(w, k->places, k->n_places * sizeof *k->places);
    if (w->rank > 0 && k->n_places > 0)
        k->run.place = k->places[w->rank - 1];
    workers_copy(w, c.weights, bytes);
    workers_copy(w, c.mean, bytes);
    workers_copy(w, c.square, bytes);
    bert_model_store(model);
    lamb_store(l);
    lamb_set(l, k->run.lamb);
}

int keep_save(keep *k, bert_device *device, bert_model *model, lamb *l)
{
    checkpoint c;
    bert_results none;
    const char *why;

    if (k->failed)
        return STATUS_FAILURE;
    if (k->name == NULL || k->saved == k->run.steps)
        return STATUS_OK;
    bert_model_fetch(model);
    lamb_fetch(l);
    if (!device->ops->finish(device, &none, &why)) {
        k->failed = true;
        rank_message("%s", why);
        return STATUS_FAILURE;
    }
    c = all_of(k, model, l);
    if (!checkpoint_write(&k->file, &c, &k->run)) {
        k->failed = true;
        return STATUS_FAILURE;
    }
    k->saved = k->run.steps;
    return STATUS_OK;
}
