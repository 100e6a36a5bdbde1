/*
 * find.c - print the sequences of a step, or the steps of sequences.
 *
 * SPDX-License-Identifier: MIT
 *
 * In regular files, only the heads of the packs of one step, or of one window,
 * are read, and the packs to print.  The index gives the packs of a sequence,
 * and the inverse of the epoch's order gives their step.  Anything else is read
 * in order.
 */

#include "packdeal/find.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/message.h"
#include "cli/report.h"
#include "files/files.h"
#include "packdeal/batch.h"
#include "packdeal/input.h"
#include "packdeal/job.h"

typedef struct lookup {
    conf conf; /* with the step to begin with as `start` */
    input in;
    int status; /* STATUS_OK, or the status of a failure already reported */
} lookup;

/* ---- Printing ---- */

/* Sequence `i` of a pack, with its id counted over all streams. */
static ps_piece piece_of(const lookup *l, const input_pack *p, uint32_t i)
{
    ps_piece piece = {.id = p->all,
                      .n_tok = p->pack.n_tok,
                      .seq_len = p->pack.n_tok};

    if (!l->in.has_tokens) {
        piece = ps_pack_piece(&l->in.info, &p->pack, i);
        piece.id += p->raise;
    }
    return piece;
}

/* Prints sequence `i` of a pack of `rank` in a step. */
static void print_sequence(const lookup *l, uint64_t step, uint32_t rank,
                           const input_pack *p, uint32_t i)
{
    const bool json = l->conf.json;
    const ps_piece piece = piece_of(l, p, i);

    printf(json ? "{\"step\": %" PRIu64 ", \"rank\": %" PRIu32 ", "
                : "%" PRIu64 " %" PRIu32 " ",
           step, rank);
    report_location(stdout, json, &(ps_location){p->all, i, piece},
                    p->pack.stream, p->file->name);
    if (json)
        printf(", \"stream_id\": %" PRIu64 ", \"file_pack\": %" PRIu64 "}",
               piece.id - p->raise, p->number);
    putchar('\n');
}

/*
 * Prints the sequences of a batch, rank by rank; with ids, only these.  Returns
 * false after a failure, which has been reported.
 */
static bool print_batch(lookup *l, batch *b)
{
    const conf *c = &l->conf;
    id_set wanted = c->wanted;

    for (uint32_t rank = 0; rank < c->ranks; rank++) {
        if (c->rank_given && rank != c->rank)
            continue;
        for (uint32_t i = b->first[rank]; i < b->n; i = b->next[i]) {
            input_pack *p = &b->packs[i];

            if (!input_read(&l->in, p))
                return false;
            for (uint32_t k = 0; k < p->pack.n_seq; k++) {
                const size_t at = ids_find(&wanted, piece_of(l, p, k).id);

                if (wanted.n > 0 && at == wanted.n)
                    continue;
                if (wanted.n > 0)
                    wanted.found[at] = true;
                print_sequence(l, b->steps - 1, rank, p, k);
            }
        }
    }
    return !ferror(stdout);
}

/* ---- By step ---- */

/* Prints all steps from conf.start on, or only this step. */
static void find_in_order(lookup *l, bool one_step)
{
    batch b;
    bool more = batch_open(&b, &l->conf, true);

    while (more && batch_next(&b, &l->in))
        more = print_batch(l, &b) && !one_step;
    l->status = b.status;
    batch_close(&b);
}

/* ---- By id ---- */

static void fail(lookup *l, const input_file *file, const ps_error *err)
{
    l->status = message_failure(files_input_name(file->name), err);
}

/*
 * Prints a sequence of a pack, given its number over all files and its slot.
 * Its step is one of the steps of the window at its position.  Returns false if
 * --last=drop omits the pack, or after a failure, which has been reported.
 */
static bool print_pack(lookup *l, uint64_t all, uint32_t slot)
{
    conf *c = &l->conf;
    input *in = &l->in;
    const uint64_t whole = (uint64_t)c->ranks * c->per_rank;
    const uint64_t place =
        c->seed_given ? ps_shuffled_place(in->n_packs, c->seed, c->epoch, all)
                      : all;
    bool found;
    bool printed = false;
    batch b;

    if (c->last == CONF_DROP && place / whole == in->n_packs / whole)
        return false;
    c->start = place / whole - place / whole % c->window;
    in->number = 0;
    found = !batch_open(&b, c, true);
    while (!found && batch_next(&b, in))
        for (uint32_t i = 0; i < b.n; i++) {
            if (b.packs[i].all != all)
                continue;
            found = true;
            printed = input_read(in, &b.packs[i]);
            if (printed)
                print_sequence(l, b.steps - 1, b.ranks[i], &b.packs[i], slot);
        }
    l->status = b.status;
    batch_close(&b);
    return printed;
}

/* Finds the file and the stream of an id that is counted over all streams. */
static const input_file *stream_of(const input *in, uint64_t id,
                                   uint32_t *stream)
{
    const input_file *file = in->shuffled[0];
    uint32_t low = 0;
    uint32_t high;

    for (int i = 1; i < in->n_names; i++)
        if (in->shuffled[i]->first_ids[0] <= id)
            file = in->shuffled[i];
    high = ps_pack_file_streams(file->packs.file) - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low + 1) / 2;

        if (file->first_ids[middle] <= id)
            low = middle;
        else
            high = middle - 1;
    }
    *stream = low;
    return file;
}

/* Finds an id by the index and prints its steps. */
static void find_id(lookup *l, uint64_t id, bool *found)
{
    uint32_t stream;
    const input_file *file = stream_of(&l->in, id, &stream);
    ps_location *locations;
    uint32_t n;
    ps_error err;

    if (ps_pack_file_locate(file->packs.file, stream,
                            id - file->first_ids[stream], &locations, &n,
                            &err) != PS_OK) {
        fail(l, file, &err);
        return;
    }
    for (uint32_t i = 0; i < n && l->status == STATUS_OK &&
                         l->in.status == STATUS_OK; i++)
        if (print_pack(l, file->first + locations[i].pack, locations[i].slot))
            *found = true;
    free(locations);
}

static void find_ids(lookup *l)
{
    const id_set *wanted = &l->conf.wanted;

    if (l->in.shuffled == NULL)
        find_in_order(l, false);
    for (size_t i = 0; l->in.shuffled != NULL && i < wanted->n; i++)
        if (l->status == STATUS_OK && l->in.status == STATUS_OK)
            find_id(l, wanted->ids[i], &wanted->found[i]);
    if (l->status != STATUS_OK || l->in.status != STATUS_OK)
        return;
    for (size_t i = 0; i < wanted->n; i++)
        if (!wanted->found[i]) {
            message_error("--find-id=%" PRIu64 ": no step has this sequence%s",
                          wanted->ids[i],
                          l->conf.last == CONF_DROP
                              ? ", or --last=drop omits its pack"
                              : "");
            l->status = STATUS_DATA;
        }
}

int job_find(const conf *c)
{
    lookup l = {.conf = *c};

    l.conf.start = c->find;
    if (job_begin(&l.in, &l.conf)) {
        if (c->find_given)
            find_in_order(&l, true);
        else
            find_ids(&l);
    }
    if (l.status == STATUS_OK)
        l.status = l.in.status;
    if (!files_close_stdout() && l.status == STATUS_OK)
        l.status = STATUS_FAILURE;
    (void)input_end(&l.in);
    return l.status;
}
