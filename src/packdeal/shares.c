/*
 * shares.c - write a stream for each rank.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packdeal/shares.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/message.h"
#include "cli/pattern.h"
#include "files/files.h"
#include "files/sandbox.h"

static bool fail(shares *s, const char *what, const ps_error *err)
{
    s->status = message_failure(what, err);
    return false;
}

static bool fail_output(shares *s, const share *one, const ps_error *err)
{
    return fail(s, files_output_name(one->name), err);
}

/* ---- Opening ---- */

/*
 * Number of descriptors needed besides the shares: for the next input, or,
 * while the sandbox is entered, for the folder, the rules and an input.
 */
#define OTHER_FILES 3

/* Checks, before creating any share, that all shares can be open at once. */
static bool can_open(const shares *s)
{
    const uint64_t needed = (uint64_t)s->n + OTHER_FILES;
    const uint64_t left = files_left_to_open(needed);

    if (s->n == 1 || left >= needed)
        return true;
    message_error("-n %" PRIu32 ": %" PRIu64 " files have to be open at once, "
                  "but only %" PRIu64 " more can be opened (ulimit -n); raise "
                  "the limit, or write one share at a time with --rank",
                  s->n, needed, left);
    return false;
}

/*
 * Names all outputs.  If some outputs are pipes, all must be pipes, so that a
 * missing pipe is not created as a file.
 */
static bool name_all(shares *s)
{
    const conf *c = s->conf;

    for (uint32_t i = 0; i < s->n; i++) {
        s->of[i].name =
            pattern_name(c->output, c->rank_given ? c->rank : i);
        if (s->of[i].name == NULL) {
            (void)message_memory();
            return false;
        }
        s->of[i].regular = !files_is_special(s->of[i].name);
        if (s->of[i].regular != s->of[0].regular) {
            const share *pipe = &s->of[s->of[0].regular ? i : 0];
            const share *other = &s->of[s->of[0].regular ? 0 : i];

            message_error("%s: is not a pipe, but %s is a pipe: all shares "
                          "must be pipes, or none",
                          message_name(other->name), message_name(pipe->name));
            return false;
        }
    }
    return true;
}

bool shares_open(shares *s, const conf *c)
{
    const uint32_t n = c->rank_given ? 1 : c->ranks;
    struct stat st;
    bool opened;

    *s = (shares){.conf = c, .of = calloc(n, sizeof *s->of)};
    opened = s->of != NULL;
    if (!opened)
        (void)message_memory();
    s->n = opened ? n : 0;
    for (uint32_t i = 0; i < s->n; i++)
        s->of[i].fd = -1;
    if (opened && c->output != NULL)
        opened = can_open(s) && name_all(s);
    for (uint32_t i = 0; opened && i < s->n; i++) {
        share *one = &s->of[i];

        if (c->skip == NULL ||
            files_check_input(one->name, c->skip) == STATUS_OK)
            one->fd = file_set_open(&s->set, one->name, true, c->names,
                                    c->n_names);
        opened = one->fd >= 0 && fstat(one->fd, &st) == 0;
        if (one->fd >= 0 && !opened)
            message_errno("%s", files_output_name(one->name));
        one->regular = opened && S_ISREG(st.st_mode);
    }
    if (!opened)
        s->status = STATUS_FAILURE;
    return opened;
}

bool shares_sandbox(shares *s)
{
    char place[FILES_MAX_NAME];
    int folder = -1;
    bool entered = false;

    /* Find the directory that contains all regular files or their folders. */
    if (s->set.n > 0) {
        (void)snprintf(place, sizeof place, "%.*s",
                       (int)strcspn(s->conf->output, "%"), s->conf->output);
        folder = files_open_folder(place);
    }
    if (folder < 0 && s->set.n > 0)
        message_errno("-o");
    else
        entered = sandbox_enter(s->conf->names, s->conf->n_names, &folder, 1);
    if (!entered)
        s->status = STATUS_FAILURE;
    if (folder >= 0)
        (void)close(folder);
    return entered;
}

/* ---- Writing ---- */

/* With pipes each step is a block, so larger blocks would waste memory. */
static void shrink_blocks(ps_pack_info *info, uint32_t per_rank)
{
    while (info->block_packs / 2 >= per_rank)
        info->block_packs /= 2;
}

bool shares_begin(shares *s, const ps_pack_info *info, const char *name)
{
    ps_error err;

    for (uint32_t i = 0; i < s->n; i++) {
        share *one = &s->of[i];
        ps_pack_info its = *info;
        const ps_pack_writer_options options = {
            .compressed = s->conf->zstd_level != 0,
            .level = (int)s->conf->zstd_level,
            .threads = !one->regular || s->conf->zstd_level != 0,
            .shuffled = conf_reorders(s->conf),
        };
        ps_result r;

        if (!one->regular)
            shrink_blocks(&its, s->conf->per_rank);
        r = ps_pack_writer_open(&one->writer, one->fd, &its, &options, &err);
        if (r == PS_ERR_UNSUPPORTED)
            return fail(s, files_input_name(name), &err);
        if (r != PS_OK)
            return fail_output(s, one, &err);
    }
    return true;
}

bool shares_begin_tokens(shares *s, const ps_schema *schema)
{
    ps_error err;

    for (uint32_t i = 0; i < s->n; i++)
        if (ps_token_writer_open(&s->of[i].tokens, s->of[i].fd, schema,
                                 &err) != PS_OK)
            return fail_output(s, &s->of[i], &err);
    return true;
}

bool shares_push(shares *s)
{
    ps_error err;

    /* Blocks are written early only for a rank that reads a pipe. */
    for (uint32_t i = 0; i < s->n && !s->of[i].regular; i++) {
        share *one = &s->of[i];

        if ((one->tokens != NULL
                 ? ps_token_writer_flush(one->tokens, &err)
                 : ps_pack_writer_push(one->writer, &err)) != PS_OK)
            return fail_output(s, one, &err);
    }
    return true;
}

bool shares_end_stream(shares *s, const ps_totals *totals,
                       const ps_pack_info *next, const char *name)
{
    ps_error err;

    for (uint32_t i = 0; i < s->n; i++) {
        const ps_result r =
            ps_pack_writer_end(s->of[i].writer, totals, next, &err);

        if (r == PS_ERR_CORRUPT || r == PS_ERR_UNSUPPORTED)
            return fail(s, files_input_name(name), &err);
        if (r != PS_OK)
            return fail_output(s, &s->of[i], &err);
    }
    return true;
}

bool shares_finish(shares *s)
{
    ps_error err;

    for (uint32_t i = 0; i < s->n; i++) {
        share *one = &s->of[i];

        if ((one->tokens != NULL
                 ? ps_token_writer_finish(one->tokens, &err)
                 : ps_pack_writer_finish(one->writer, &err)) != PS_OK)
            return fail_output(s, one, &err);
    }
    return true;
}

share *shares_of(const shares *s, uint32_t rank)
{
    if (!s->conf->rank_given)
        return &s->of[rank];
    return rank == s->conf->rank ? &s->of[0] : NULL;
}

bool shares_put(shares *s, uint32_t rank, const input_pack *pack,
                const bool *omitted)
{
    share *one = shares_of(s, rank);
    ps_error err;
    ps_result r;

    if (one == NULL)
        return true;
    if (one->tokens != NULL) {
        r = ps_token_writer_put(one->tokens, pack->pack.n_tok,
                                pack->pack.row, &err);
    } else {
        ps_pack_writer_raise_ids(one->writer, pack->raise);
        r = omitted == NULL
                ? ps_pack_writer_put(one->writer, &pack->pack, &err)
                : ps_pack_writer_put_without(one->writer, &pack->pack, omitted,
                                             &err);
    }
    return r == PS_OK || fail_output(s, one, &err);
}

/* ---- Closing ---- */

int shares_end(shares *s, int status)
{
    if (s->status == STATUS_OK)
        s->status = status;
    for (uint32_t i = 0; i < s->n; i++) {
        share *one = &s->of[i];

        ps_pack_writer_free(one->writer);
        ps_token_writer_free(one->tokens);
        s->status = files_end_output(one->fd, one->name, s->status);
        free(one->name);
    }
    if (s->status == STATUS_OK && !file_set_publish(&s->set))
        s->status = STATUS_FAILURE;
    file_set_free(&s->set);
    free(s->of);
    return s->status;
}
