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
#include "compare.h"
#include "summary.h"

/* A pack stream while it is read. */
typedef struct scan {
    const packstat_conf *conf;
    packs *input;
    uint64_t end; /* of the range: number of the pack to stop at */
    const ps_pack_info *info;
    faults *faults;
    packstat_output *out;
    pack_figures found;
    audit audit;        /* with --verify */
    against against;    /* with --against */
    progress progress;
} scan;

static void show_progress(scan *s)
{
    const ps_totals *totals = &s->found.so_far;
    progress_figures figures = {
        .bytes = packs_offset(s->input),
        .sequences = totals->sequences,
        .tokens = totals->tokens,
        .packs = totals->packs,
        .capacity = s->info->capacity,
    };

    progress_show(&s->progress, &figures);
}

static void count_totals(ps_totals *t, const ps_pack *pack)
{
    if (t->packs == 0 || pack->n_tok < t->min_fill)
        t->min_fill = pack->n_tok;
    if (pack->n_seq > t->max_depth)
        t->max_depth = pack->n_seq;
    if (pack->max_seqlen > t->max_seqlen)
        t->max_seqlen = pack->max_seqlen;
    t->packs++;
    t->sequences += pack->n_seq;
    t->tokens += pack->n_tok;
}

/* Counts the depth of a pack and the lengths in it. */
static bool count(scan *s, const ps_pack *pack)
{
    bool summary = conf_wants_summary(s->conf) && !s->conf->quick;
    histogram *lengths =
        s->conf->histogram ? &s->out->lengths : &s->found.lengths;

    if (!s->found.ranged)
        s->found.streams = pack->stream + 1;
    count_totals(&s->found.so_far, pack);
    if (summary || (s->conf->json && !s->conf->quick))
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
    const ps_totals *totals = ps_pack_reader_totals(s->input->reader);
    ps_error err;

    if (ps_pack_check(s->info, pack, &err) != PS_OK)
        faults_add(s->faults, pack->index, pack->offset, "%s", err.text);
    return audit_pack(&s->audit, pack, totals) &&
           (!s->against.open || compare_pack(&s->against, pack, totals));
}

/* The next pack that is asked for. */
static ps_result next(scan *s, ps_pack *pack, ps_error *err)
{
    const pack_figures *found = &s->found;

    if (found->ranged && found->first + found->so_far.packs >= s->end)
        return PS_END;
    return packs_next(s->input, pack, err);
}

/* Reads to the end; PS_END, or a failure. */
static ps_result read_packs(scan *s, ps_error *err)
{
    ps_pack pack;
    ps_result result = PS_OK;

    if (s->found.ranged) {
        uint64_t first = s->found.first;

        result = packs_skip(s->input, first, &s->found.first, err);
    }
    while (result == PS_OK && (result = next(s, &pack, err)) == PS_OK) {
        if (!count(s, &pack))
            return faults_no_memory(err);
        if (s->conf->verify && !verify(s, &pack))
            return faults_no_memory(err);
        if (progress_due(&s->progress))
            show_progress(s);
    }
    return result;
}

/* What only the end of the last stream can show. */
static void verify_end(scan *s)
{
    const ps_totals *totals = ps_pack_reader_totals(s->input->reader);
    ps_error err;

    audit_end(&s->audit, totals);
    if (!s->against.open || compare_end(&s->against, totals))
        return;
    (void)faults_no_memory(&err);
    faults_fatal(s->faults, &err);
}

static void finish(scan *s, ps_result result, const ps_error *err)
{
    if (result != PS_END)
        faults_fatal(s->faults, err);
    if (!s->conf->verify)
        return;
    if (result == PS_END)
        verify_end(s);
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

/* What the packs were compared with, if with anything. */
static void print_names(const char *key, const name_list *list)
{
    if (list->n == 0)
        return;
    printf(", \"%s\": [", key);
    for (int i = 0; i < list->n; i++) {
        printf("%s", i == 0 ? "" : ", ");
        report_json_string(stdout, list->names[i]);
    }
    putchar(']');
}

static void print_json(const scan *s, const ps_totals *totals)
{
    double value = 0;
    bool exists = order_by_place(&s->found.order, &value);

    report_json_begin(stdout, s->faults->file, s->info, totals);
    put_correlation("place_correlation", exists, value);
    exists = order_by_neighbour(&s->found.order, &value);
    put_correlation("neighbour_correlation", exists, value);
    print_names("against", &s->conf->against);
    print_names("rejects", &s->conf->rejects);
    printf("}\n");
}

static void print_ok(const scan *s, const ps_totals *totals)
{
    if (s->conf->quiet)
        return;
    printf("%s: OK (%" PRIu64 " packs, %" PRIu64 " sequences, %" PRIu64
           " tokens",
           files_input_name(s->faults->file), totals->packs,
           totals->sequences, totals->tokens);
    if (s->against.open)
        printf("; all of the input: %" PRIu64 " sequences, %" PRIu64
               " tokens; %" PRIu64 " dropped, %" PRIu64
               " truncated, %" PRIu64 " split",
               totals->input_sequences, totals->input_tokens,
               totals->rejected_sequences, totals->truncated_sequences,
               totals->split_sequences);
    printf(")\n");
}

static void print_summary(const scan *s, const ps_totals *totals)
{
    summary_separate(stdout, &s->out->summarised);
    summary_packs(stdout, files_input_name(s->faults->file), s->info, totals,
                  &s->found);
}

/*
 * Of the input as a whole, or, where only some of it was read, of that; then
 * what became of the input that was packed is not known.
 */
static ps_totals find_totals(const scan *s)
{
    ps_totals t;

    if (!s->found.ranged)
        return s->input->file != NULL
                   ? *ps_pack_file_totals(s->input->file)
                   : *ps_pack_reader_totals(s->input->reader);
    t = s->found.so_far;
    t.input_sequences = t.input_tokens = PS_UNKNOWN;
    t.rejected_sequences = t.rejected_tokens = PS_UNKNOWN;
    t.truncated_sequences = t.truncated_tokens = PS_UNKNOWN;
    t.split_sequences = t.extra_pieces = PS_UNKNOWN;
    t.max_displacement = PS_UNKNOWN;
    return t;
}

static void print(scan *s)
{
    const ps_totals totals = find_totals(s);

    histogram_sort(&s->found.lengths);
    histogram_sort(&s->found.depths);
    if (s->conf->histogram)
        return;
    if (s->conf->json)
        print_json(s, &totals);
    else if (s->conf->verify)
        print_ok(s, &totals);
    else
        print_summary(s, &totals);
}

/* What is asked for of the input; false after a fault. */
static bool settle(scan *s)
{
    range r = s->conf->range;
    const ps_pack_file *file = s->input->file;

    s->found.ranged = s->conf->range_given;
    s->found.packs = PS_UNKNOWN;
    if (file != NULL) {
        s->found.packs = ps_pack_file_packs(file);
        s->found.streams = ps_pack_file_streams(file);
    }
    if (!s->found.ranged)
        return true;
    if (range_needs_count(&r) && file == NULL) {
        s->faults->status = message_usage(
            "--range: the packs of %s cannot be counted from their end",
            files_input_name(s->faults->file));
        return false;
    }
    range_settle(&r, s->found.packs);
    s->found.first = r.first.number;
    s->end = r.end.number;
    return true;
}

/* Of a file that shows its totals nothing more needs to be read. */
static ps_result read_all(scan *s, ps_error *err)
{
    ps_result result;

    if (s->conf->quick && s->input->file != NULL)
        return PS_END;
    progress_start(&s->progress, !s->conf->quiet);
    result = read_packs(s, err);
    progress_end(&s->progress);
    return result;
}

void packs_stat(const packstat_conf *conf, packs *input,
                packstat_output *out, faults *f)
{
    scan s = {
        .conf = conf,
        .input = input,
        .info = packs_info(input),
        .faults = f,
        .out = out,
    };
    ps_error err;

    audit_begin(&s.audit, s.info, f);
    if (conf->against.n > 0)
        compare_open(&s.against, conf, s.info, f);
    if (settle(&s))
        finish(&s, read_all(&s, &err), &err);
    if (f->status == STATUS_OK)
        print(&s);
    compare_close(&s.against);
    audit_free(&s.audit);
    histogram_free(&s.found.lengths);
    histogram_free(&s.found.depths);
}
