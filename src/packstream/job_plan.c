/*
 * job_plan.c - decide and check, before any file is changed, what a job opens,
 * resumes and packs.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/message.h"
#include "files/files.h"
#include "packstream/job_parts.h"

static ps_packer_options packer_options(const job *j, const ps_schema *schema)
{
    const conf *c = j->conf;
    const uint32_t pad_id = schema->special[PS_PAD];

    return (ps_packer_options){
        .capacity = c->capacity,
        .depth = c->depth,
        .window = c->window,
        .pad_id = c->pad_given ? c->pad_id : pad_id == PS_NO_ID ? 0 : pad_id,
        .overlong = c->overlong,
        .policy = c->policy,
        .order = c->seed == 0 ? c->order : PS_PACKS_SHUFFLED,
        .seed = c->seed,
        .max_delay = c->max_delay,
        .even_cost = c->even_cost,
        .align = c->align,
        .learn_from = j->learn_from,
        .group = c->group,
        .by = c->by,
        .budgets = c->budgets.of,
        .n_budgets = c->budgets.n,
        .compressed = c->zstd_level != 0,
        .level = (int)c->zstd_level,
        .first_pack = j->resume.first_pack,
        .block_packs = c->block_packs,
    };
}

/* Checks that an output is not also an input. */
static int check_inputs(const conf *c, const char *name)
{
    int status = files_check_inputs(name, c->names, c->n_names);

    if (status == STATUS_OK && c->learn_from != NULL)
        status = file_set_check_input(name, c->learn_from);
    return status;
}

int job_check_distinct(const conf *c)
{
    return c->rejects == NULL ? STATUS_OK
                              : files_check_distinct(c->rejects, c->output);
}

/* Checks that neither output uses the other's temporary name. */
static int check_apart(const conf *c)
{
    if (c->rejects == NULL || c->state != NULL ||
        files_is_standard(c->output) || files_is_special(c->output) ||
        files_is_standard(c->rejects) || files_is_special(c->rejects) ||
        (!file_set_would_write(c->output, c->rejects) &&
         !file_set_would_write(c->rejects, c->output)))
        return STATUS_OK;
    message_error("%s: named by both -o and --rejects: choose another file",
                  message_name(c->rejects));
    return STATUS_FAILURE;
}

/* Checks the names of all files except the state. */
static int check_names(const job *j)
{
    const conf *c = j->conf;
    const int next = j->input.next;
    int status = files_check_readable(c->names + next, c->n_names - next);

    if (status == STATUS_OK)
        status = check_inputs(c, c->output);
    if (status == STATUS_OK && c->rejects != NULL)
        status = check_inputs(c, c->rejects);
    if (status == STATUS_OK)
        status = job_check_distinct(c);
    return status == STATUS_OK ? check_apart(c) : status;
}

int job_make_plan(job *j, job_plan *p)
{
    const conf *c = j->conf;
    ps_schema *schema = &p->schema;
    ps_error err;
    int status;

    *schema = *ps_token_reader_schema(j->input.reader);
    p->options = packer_options(j, schema);
    p->options.rejects = job_on_reject;
    p->options.rejects_context = j;
    status = rejects_plan(&j->rejects, c, schema, resume_rejects(&j->resume));
    /* Raw records have no header; the option sets the vocabulary size. */
    if (!schema->framed)
        schema->vocab_size = c->vocab_size;
    if (status == STATUS_OK)
        status = memory_divide(&j->memory, c, schema, &p->options);
    if (status != STATUS_OK)
        return status;
    if (ps_packer_check(schema, &p->options, &err) != PS_OK)
        return message_usage("%s", err.text);
    status = check_names(j);
    return status == STATUS_OK
               ? resume_plan(&j->resume, schema, &p->options)
               : status;
}
