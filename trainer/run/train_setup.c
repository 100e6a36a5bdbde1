/*
 * train_setup.c - prepare a run, from the command line to the first step.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run/train_parts.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/signals.h"
#include "run/rank_message.h"
#include "run/shutdown.h"

/* ---- Options ---- */

int train_parse(training *t, int argc, char **argv)
{
    const char *const why = tr_workers_open(&t->workers);
    int status, all;

    rank_message_hold(!train_is_alone(t));
    status = train_agree(t, why == NULL ? STATUS_OK : train_fail(why), 0);
    if (status != STATUS_OK)
        return status;
    if (t->workers.rank == 0)
        status = conf_parse(&t->conf, argc, argv);
    tr_workers_copy(&t->workers, &status, sizeof status);
    if (status >= 0)
        return status;
    if (t->workers.rank > 0)
        status = conf_parse(&t->conf, argc, argv);
    all = train_agree(t, status < 0 ? STATUS_OK : status,
                      status < 0 ? conf_digest(&t->conf) : 0);
    return all != STATUS_OK ? all : status;
}

/* Rank 0 decides, because a name can be a pipe on its machine only. */
static int set_input(training *t)
{
    tr_input_kind *const input = &t->conf.loader.input;

    tr_workers_copy(&t->workers, input, sizeof *input);
    if (train_is_alone(t) || *input == TR_INPUT_SHARED || t->workers.has_second)
        return STATUS_OK;
    return train_fail("ranks that exchange packs need an MPI with "
                      "MPI_THREAD_MULTIPLE");
}

/* Rejects CUDA graphs with several processes. */
static int check_graphs(const training *t)
{
    if (train_is_alone(t) || t->conf.graphs != TR_GRAPHS)
        return STATUS_OK;
    rank_message("--graphs=on requires a single process");
    return STATUS_USAGE;
}

/*
 * Rank 0 saves for all ranks.  mpirun passes a signal to all ranks, and kills
 * rank 0 as soon as the signal ends another rank.  The other ranks therefore
 * catch the signal and continue.
 */
static int set_ranks(training *t)
{
    t->conf.loader.rank = t->workers.rank;
    t->conf.loader.ranks = t->workers.ranks;
    t->conf.loader.hidden = t->conf.model.hidden;
    t->saves = t->conf.save != NULL || t->conf.export != NULL;
    if (t->workers.rank == 0 || t->conf.save == NULL)
        return STATUS_OK;
    t->conf.save = NULL;
    signals_catch_stop();
    return STATUS_OK;
}

int train_prepare(training *t)
{
    /* Agree before any rank waits for the writer of a pipe. */
    int status = train_agree(t, check_graphs(t), 0);

    if (status == STATUS_OK)
        status = train_agree(t, set_input(t), 0);
    if (status == STATUS_OK)
        status = set_ranks(t);
    if (status == STATUS_OK)
        status = train_open_device(t);
    if (status == STATUS_OK)
        status = run_state_open(&t->state, &t->conf);
    if (status == STATUS_OK && t->workers.rank == 0)
        status = metrics_open(&t->metrics, t->conf.metrics);
    if (status == STATUS_OK && t->workers.rank == 0)
        status = train_check_export(t);
    if (status == STATUS_OK && t->conf.save != NULL &&
        !shutdown_catch(train_save_and_print, t))
        return train_fail("cannot create a thread for signals");
    return status;
}

/* ---- Input ---- */

int train_open_loader(training *t)
{
    ps_error err;
    ps_result r;

    shutdown_allow();
    r = tr_loader_open(&t->loader, &t->conf.loader, &err);
    shutdown_forbid();
    return r == PS_OK ? STATUS_OK : train_fail_loader(t, &err);
}

int train_join_loader(training *t)
{
    uint32_t capacity;
    ps_error err;
    ps_result r;

    shutdown_allow();
    r = tr_loader_join(t->loader, &t->workers, &err);
    shutdown_forbid();
    if (r != PS_OK)
        return train_fail_loader(t, &err);
    capacity = tr_loader_shape(t->loader)->capacity;
    if (t->conf.model.positions == 0)
        t->conf.model.positions = capacity;
    /* Rotary positions have no table that could be too short. */
    if (t->conf.model.positions >= capacity || t->conf.model.family != TR_BERT)
        return STATUS_OK;
    rank_message("%s: packs of %" PRIu32 " tokens need more than %" PRIu32
                 " positions",
                 tr_loader_name(t->loader), capacity, t->conf.model.positions);
    return STATUS_USAGE;
}

/* ---- Model ---- */

static tr_lamb *open_lamb(const training *t)
{
    size_t n = tr_model_tensors(t->model);
    tr_part *parts = calloc(n, sizeof *parts);
    tr_lamb *l;

    if (parts == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        const tr_tensor *tensor = tr_model_tensor(t->model, i);

        parts[i] = (tr_part){.offset = tensor->offset,
                             .count = (size_t)tensor->rows *
                                      tensor->columns,
                             .decays = tensor->decays};
    }
    l = tr_lamb_open(t->device, &t->conf.lamb, tr_model_numbers(t->model),
                     parts, n);
    free(parts);
    return l;
}

int train_open_model(training *t)
{
    tr_config config = t->conf.model;

    config.vocab_size = tr_loader_shape(t->loader)->vocab_size;
    t->model = tr_model_open(t->device, &config, t->conf.seed);
    if (t->model == NULL)
        return train_fail_memory(t, "no memory for the model");
    tr_model_set_graph_mode(t->model, (tr_graph_mode)t->conf.graphs);
    conf_settings(&t->conf, &config, t->state.settings,
                  sizeof t->state.settings);
    return run_state_alloc(&t->state, t->loader)
               ? STATUS_OK
               : train_fail("no memory for input positions");
}

int train_open_optimiser(training *t)
{
    t->lamb = open_lamb(t);
    return train_agree(t, t->lamb != NULL
                              ? STATUS_OK
                              : train_fail_memory(
                                    t, "no memory for the optimiser"), 0);
}

int train_resume(training *t)
{
    int status = train_agree(
        t, run_state_resume(&t->state, t->model, t->lamb), 0);
    ps_error err;
    ps_result r;

    if (status != STATUS_OK)
        return status;
    shutdown_allow();
    run_state_broadcast(&t->state, &t->workers, t->model, t->lamb);
    shutdown_forbid();
    t->now = t->state.run;
    t->gathered = t->now.steps;
    if (t->now.steps == 0)
        return STATUS_OK;
    shutdown_allow();
    r = tr_loader_resume(t->loader, &t->now.position, &err);
    shutdown_forbid();
    return train_agree(
        t, r == PS_OK ? STATUS_OK : train_fail_loader(t, &err), 0);
}
