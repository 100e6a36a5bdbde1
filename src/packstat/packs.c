/*
 * packs.c - the statistics of a pack stream.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packs.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "audit.h"
#include "cli/files.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "summary.h"

/* A pack stream while it is read. */
typedef struct scan {
    const packstat_conf *conf;
    ps_pack_reader *reader;
    const ps_pack_info *info;
    faults *faults;
    packstat_output *out;
    pack_figures found;
    audit audit;        /* with --verify */
    progress progress;
} scan;

static void show_progress(scan *s)
{
    const ps_totals *totals = &s->found.so_far;
    progress_figures figures = {
        .bytes = ps_pack_reader_offset(s->reader),
        .sequences = totals->sequences,
        .tokens = totals->tokens,
        .packs = totals->packs,
        .capacity = s->info->capacity,
    };

    progress_show(&s->progress, &figures);
}

/* Counts the depth of a pack and the lengths in it. */
static bool count(scan *s, const ps_pack *pack)
{
    bool summary = conf_wants_summary(s->conf);
    histogram *lengths =
        s->conf->histogram ? &s->out->lengths : &s->found.lengths;

    s->found.streams = pack->stream + 1;
    s->found.so_far.packs++;
    s->found.so_far.sequences += pack->n_seq;
    s->found.so_far.tokens += pack->n_tok;
    if (summary || s->conf->json)
        order_add(&s->found.order, s->info, pack);
    if (summary && !histogram_add(&s->found.depths, pack->n_seq))
        return false;
    if (!summary && !s->conf->histogram)
        return true;
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        uint32_t n_tok = ps_pack_piece(s->info, pack, i).n_tok;

        if (!histogram_add(lengths, n_tok))
            return false;
    }
    return true;
}

/* Looks at a pack more closely than the reader did. */
static bool verify(scan *s, const ps_pack *pack)
{
    ps_error err;

    if (ps_pack_check(s->info, pack, &err) != PS_OK)
        faults_add(s->faults, pack->index, pack->offset, "%s", err.text);
    return audit_pack(&s->audit, pack, ps_pack_reader_totals(s->reader));
}

/* Reads to the end; PS_END, or a failure. */
static ps_result read_packs(scan *s, ps_error *err)
{
    ps_pack pack;
    ps_result result;

    while ((result = ps_pack_reader_next(s->reader, &pack, err)) == PS_OK) {
        if (!count(s, &pack))
            return faults_no_memory(err);
        if (s->conf->verify && !verify(s, &pack))
            return faults_no_memory(err);
        if (progress_due(&s->progress))
            show_progress(s);
    }
    return result;
}

static void finish(scan *s, ps_result result, const ps_error *err)
{
    if (result != PS_END)
        faults_fatal(s->faults, err);
    if (!s->conf->verify)
        return;
    if (result == PS_END)
        audit_end(&s->audit, ps_pack_reader_totals(s->reader));
    else
        audit_cut(&s->audit);
}

/* A figure that need not exist. */
static void put_correlation(const char *key, bool exists, double value)
{
    if (exists)
        printf(", \"%s\": %.9g", key, value);
    else
        printf(", \"%s\": null", key);
}

static void print_json(const scan *s, const ps_totals *totals)
{
    double value = 0;
    bool exists = order_by_place(&s->found.order, &value);

    report_json_begin(stdout, s->faults->file, s->info, totals);
    put_correlation("place_correlation", exists, value);
    exists = order_by_neighbour(&s->found.order, &value);
    put_correlation("neighbour_correlation", exists, value);
    printf("}\n");
}

static void print_ok(const scan *s, const ps_totals *totals)
{
    if (!s->conf->quiet)
        printf("%s: OK (%" PRIu64 " packs, %" PRIu64 " sequences, %" PRIu64
               " tokens)\n",
               files_input_name(s->faults->file), totals->packs,
               totals->sequences, totals->tokens);
}

static void print_summary(const scan *s, const ps_totals *totals)
{
    summary_separate(stdout, &s->out->summarised);
    summary_packs(stdout, files_input_name(s->faults->file), s->info, totals,
                  &s->found);
}

static void print(scan *s)
{
    const ps_totals *totals = ps_pack_reader_totals(s->reader);

    histogram_sort(&s->found.lengths);
    histogram_sort(&s->found.depths);
    if (s->conf->histogram)
        return;
    if (s->conf->json)
        print_json(s, totals);
    else if (s->conf->verify)
        print_ok(s, totals);
    else
        print_summary(s, totals);
}

void packs_stat(const packstat_conf *conf, ps_pack_reader *reader,
                packstat_output *out, faults *f)
{
    scan s = {
        .conf = conf,
        .reader = reader,
        .info = ps_pack_reader_info(reader),
        .faults = f,
        .out = out,
    };
    ps_error err;
    ps_result result;

    audit_begin(&s.audit, s.info, f);
    progress_start(&s.progress, !conf->quiet);
    result = read_packs(&s, &err);
    finish(&s, result, &err);
    progress_end(&s.progress);
    if (f->status == STATUS_OK)
        print(&s);
    audit_free(&s.audit);
    histogram_free(&s.found.lengths);
    histogram_free(&s.found.depths);
}
