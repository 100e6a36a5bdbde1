/*
 * run_state.c - save the state of a run to its checkpoint, and resume it.
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
#include "files/files.h"
#include "run/rank_message.h"

/* ---- Checks before reading ---- */

/* True for two names of one file.  Missing files are compared by name. */
static bool is_same(const char *name, const char *input)
{
    struct stat ours, its;

    return strcmp(input, name) == 0 ||
           (stat(name, &ours) == 0 && files_stat(input, STDIN_FILENO, &its) &&
            files_are_one(&ours, &its));
}

/* True if a rank reads the file, as far as its inputs are visible here. */
static bool is_input(const conf *c, const char *name)
{
    const uint32_t ranks =
        c->loader.input == TR_INPUT_SHARDS ? c->loader.ranks : 1;
    bool is = false;

    for (uint32_t rank = 0; rank < ranks && !is; rank++)
        for (uint32_t i = 0; i < c->loader.n_names && !is; i++) {
            char *input = tr_input_name(&c->loader, i, rank);

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
        rank_message("%s: is an input file, which --save would overwrite",
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

int run_state_open(run_state *s, const conf *c)
{
    int status;

    s->name = c->save;
    s->file = (atomic_file)ATOMIC_FILE_CLOSED;
    if (c->save == NULL)
        return STATUS_OK;
    status = refuse_inputs(c);
    if (status == STATUS_OK)
        status = refuse_existing(c);
    if (status == STATUS_OK && !checkpoint_open(&s->file, c->save))
        status = STATUS_FAILURE;
    return status;
}

void run_state_close(run_state *s)
{
    atomic_file_close(&s->file);
    free(s->positions);
}

/* ---- Checkpoints ---- */

bool run_state_alloc(run_state *s, const tr_loader *f)
{
    (void)tr_loader_positions(f, &s->n_positions);
    s->positions = calloc((size_t)s->n_positions + 1, sizeof *s->positions);
    return s->positions != NULL;
}

void run_state_note_positions(run_state *s, const tr_loader *f)
{
    uint32_t n;
    const tr_input_position *const positions = tr_loader_positions(f, &n);

    if (n > 0)
        memcpy(s->positions, positions, n * sizeof *positions);
}

static checkpoint all_of(const run_state *s, tr_model *model, tr_lamb *l)
{
    return (checkpoint){.settings = s->settings,
                        .numbers = tr_model_numbers(model),
                        .weights = tr_model_weights(model),
                        .mean = tr_lamb_mean(l),
                        .square = tr_lamb_square(l),
                        .positions = s->positions,
                        .n_positions = s->n_positions};
}

int run_state_resume(run_state *s, tr_model *model, tr_lamb *l)
{
    checkpoint c;
    ps_error err;
    ps_result r;

    if (s->name == NULL)
        return STATUS_OK;
    c = all_of(s, model, l);
    r = checkpoint_read(s->name, &c, &s->run, &err);
    if (r == PS_END)
        return STATUS_OK;
    if (r != PS_OK)
        return rank_message_failure(s->name, &err);
    tr_model_store(model);
    tr_lamb_store(l);
    tr_lamb_set(l, s->run.lamb);
    s->saved = s->run.steps;
    return STATUS_OK;
}

void run_state_broadcast(run_state *s, const tr_workers *w, tr_model *model,
                         tr_lamb *l)
{
    const checkpoint c = all_of(s, model, l);
    const size_t bytes = c.numbers * sizeof *c.weights;

    if (w->ranks == 1)
        return;
    tr_workers_copy(w, &s->run, sizeof s->run);
    if (s->run.steps == 0)
        return;
    tr_workers_copy(w, s->positions, s->n_positions * sizeof *s->positions);
    if (w->rank > 0 && s->n_positions > 0)
        s->run.position = s->positions[w->rank - 1];
    tr_workers_copy(w, c.weights, bytes);
    tr_workers_copy(w, c.mean, bytes);
    tr_workers_copy(w, c.square, bytes);
    tr_model_store(model);
    tr_lamb_store(l);
    tr_lamb_set(l, s->run.lamb);
}

int run_state_save(run_state *s, tr_device *device, tr_model *model,
                   tr_lamb *l)
{
    checkpoint c;
    tr_results none;
    const char *why;

    if (s->failed)
        return STATUS_FAILURE;
    if (s->name == NULL || s->saved == s->run.steps)
        return STATUS_OK;
    if (device->shards == NULL) { /* otherwise, train_gather() did it */
        tr_model_fetch(model);
        tr_lamb_fetch(l);
    }
    if (!device->ops->finish(device, &none, &why)) {
        s->failed = true;
        rank_message("%s", why);
        return STATUS_FAILURE;
    }
    c = all_of(s, model, l);
    if (!checkpoint_write(&s->file, &c, &s->run)) {
        s->failed = true;
        return STATUS_FAILURE;
    }
    s->saved = s->run.steps;
    return STATUS_OK;
}
