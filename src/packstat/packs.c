/*
 * packs.c - statistics of a pack stream.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "cli/progress.h"
#include "cli/report.h"
#include "files/files.h"
#include "packstat/audit.h"
#include "packstat/compare.h"
#include "packstat/packstat.h"
#include "packstat/summary.h"

/* State of reading a pack stream. */
typedef struct scan {
    const packstat_conf *conf;
    packs *input;
    uint64_t end; /* number of the first pack after the range */
    const ps_pack_info *info;
    ps_pack_info header; /* first header, as stored, for printing */
    columns columns;
    faults *faults;
    packstat_output *out;
    pack_figures found;
    audit audit;           /* with --verify */
    comparison comparison; /* with --against */
} scan;

/* Counts how much of each budget a pack uses. */
static void count_uses(scan *s, const ps_pack *pack)
{
    uint64_t uses[PS_MAX_BUDGETS];

    ps_pack_uses(s->info, pack, uses);
    for (uint32_t b = 0; b < s->info->n_budgets; b++) {
        s->found.budget_sums[b] += (double)uses[b];
        if (uses[b] > s->found.budget_most[b])
            s->found.budget_most[b] = uses[b];
    }
}

/* Counts a pack, its depth and its lengths.  Returns false if out of memory. */
static bool count(scan *s, const ps_pack *pack)
{
    const packstat_conf *conf = s->conf;
    const bool reported = !conf->quick && !conf->histogram &&
                          (conf->json || !conf->verify);
    histogram *lengths =
        conf->histogram ? &s->out->lengths : &s->found.lengths;
    ps_totals *t = &s->found.so_far;

    if (!s->found.ranged)
        s->found.streams = pack->stream + 1;
    if (t->packs == 0 || pack->n_tok < t->min_fill)
        t->min_fill = pack->n_tok;
    if (pack->n_seq > t->max_depth)
        t->max_depth = pack->n_seq;
    if (pack->max_seqlen > t->max_seqlen)
        t->max_seqlen = pack->max_seqlen;
    t->packs++;
    t->sequences += pack->n_seq;
    t->tokens += pack->n_tok;

    if (reported) {
        count_uses(s, pack);
        order_stats_add(&s->found.order, s->info, pack);
        channel_figures_pack(&s->found.channels, &s->columns, s->info, pack);
        stream_parts_add(&s->found.parts, pack->n_tok);
        if (!histogram_add(&s->found.depths, pack->n_seq) ||
            !histogram_add(&s->found.fills, pack->n_tok))
            return false;
    }
    if (!reported && !conf->histogram)
        return true;
    for (uint32_t i = 0; i < pack->n_seq; i++)
        if (!histogram_add(lengths, ps_pack_piece(s->info, pack, i).n_tok))
            return false;
    return true;
}

/*
 * Makes the checks that the reader does not make.  Returns false if out of
 * memory.
 */
static bool verify(scan *s, const ps_pack *pack)
{
    const ps_totals *totals = ps_pack_reader_totals(s->input->reader);
    ps_error err;

    if (ps_pack_check(s->info, pack, &err) != PS_OK)
        faults_add(s->faults, &(fault_place){pack->index, pack->offset}, "%s",
                   err.text);
    return audit_pack(&s->audit, pack, totals) &&
           (!s->comparison.open ||
            compare_pack(&s->comparison, pack, totals));
}

/* Reads to the end of the input or the range.  Returns PS_END or an error. */
static ps_result read_packs(scan *s, ps_error *err)
{
    pack_figures *found = &s->found;
    const ps_totals *totals = &found->so_far;
    const uint64_t first = found->first;
    progress live;
    ps_pack pack;
    ps_result result = PS_OK;

    progress_start(&live, !s->conf->quiet);
    if (!found->ranged)
        progress_inputs(&live, &s->faults->file, 1);
    if (found->ranged)
        result = packs_skip(s->input, first, &found->first, err);
    while (result == PS_OK) {
        if (found->ranged && found->first + totals->packs >= s->end)
            result = PS_END;
        else
            result = packs_next(s->input, &pack, err);
        if (result == PS_OK && (!count(s, &pack) ||
                                (s->conf->verify && !verify(s, &pack)))) {
            *err = (ps_error){.code = PS_ERR_MEMORY};
            result = err->code;
        }
        if (result == PS_OK && progress_due(&live))
            progress_show(&live, &(progress_figures){
                .bytes = packs_offset(s->input),
                .sequences = totals->sequences,
                .tokens = totals->tokens,
                .packs = totals->packs,
                .capacity = s->info->capacity,
                .fd = s->out->fd});
    }
    progress_end(&live);
    return result;
}

/* Prints the names of the files that the packs were compared with, if any. */
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

/* Prints the budgets as JSON, if there are any. */
static void print_budgets(const scan *s, bool counted)
{
    const ps_pack_info *info = &s->header;
    const double n = (double)s->found.so_far.packs;

    for (uint32_t b = 0; b < info->n_budgets; b++) {
        printf("%s{\"name\": \"%s\", \"limit\": %" PRIu64,
               b == 0 ? ", \"budgets\": [" : ", ", report_budget(info, b),
               info->budgets[b].limit);
        report_json_ratio(stdout, "mean", counted && n > 0,
                          s->found.budget_sums[b] / n);
        report_json_ratio(stdout, "max", counted && n > 0,
                          (double)s->found.budget_most[b]);
        printf("}%s", b + 1 == info->n_budgets ? "]" : "");
    }
}

static void print_ok(const scan *s, const ps_totals *totals)
{
    if (s->conf->quiet)
        return;
    printf("%s: OK (%" PRIu64 " packs, %" PRIu64 " sequences, %" PRIu64
           " tokens",
           files_input_name(s->faults->file), totals->packs,
           totals->sequences, totals->tokens);
    if (s->comparison.open)
        printf("; all of the input: %" PRIu64 " sequences, %" PRIu64
               " tokens; %" PRIu64 " dropped, %" PRIu64
               " truncated, %" PRIu64 " split",
               totals->input_sequences, totals->input_tokens,
               totals->rejected_sequences, totals->truncated_sequences,
               totals->split_sequences);
    printf(")\n");
}

static void print(scan *s)
{
    const packs *input = s->input;
    const order_stats *order = &s->found.order;
    const char *name = s->faults->file;
    const bool counted = !s->conf->quick;
    ps_totals totals;
    double value = 0;
    bool exists;

    /*
     * Print the totals of the whole input, or of the packs read.  In the latter
     * case, the totals of the packed input are unknown.
     */
    if (s->found.ranged) {
        totals = s->found.so_far;
        totals.input_sequences = totals.input_tokens = PS_UNKNOWN;
        totals.rejected_sequences = totals.rejected_tokens = PS_UNKNOWN;
        totals.truncated_sequences = totals.truncated_tokens = PS_UNKNOWN;
        totals.split_sequences = totals.extra_pieces = PS_UNKNOWN;
        totals.max_displacement = PS_UNKNOWN;
    } else {
        totals = input->file != NULL ? *ps_pack_file_totals(input->file)
                                     : *ps_pack_reader_totals(input->reader);
    }

    if (s->conf->histogram)
        return;
    if (!histogram_finish(&s->found.lengths) ||
        !histogram_finish(&s->found.depths) ||
        !histogram_finish(&s->found.fills)) {
        faults_no_memory(s->faults);
        return;
    }
    if (s->conf->json) {
        report_json_begin(stdout, name, &s->header, &totals);
        exists = order_stats_place(order, &value);
        report_json_ratio(stdout, "place_correlation", exists, value);
        exists = order_stats_neighbour(order, &value);
        report_json_ratio(stdout, "neighbour_correlation", exists, value);
        histogram_json(stdout, "lengths", &s->found.lengths, counted);
        histogram_json(stdout, "depths", &s->found.depths, counted);
        histogram_json(stdout, "fills", &s->found.fills, counted);
        stream_parts_json(stdout, &s->found.parts, counted);
        channel_figures_json(stdout, &s->found.channels, counted);
        print_budgets(s, counted);
        print_names("against", &s->conf->against);
        print_names("rejects", &s->conf->rejects);
        printf("}\n");
    } else if (s->conf->verify) {
        print_ok(s, &totals);
    } else {
        summary_separate(stdout, &s->out->summarised);
        summary_packs(stdout, files_input_name(name), &s->header, &totals,
                      &s->found, counted);
    }
}

/*
 * Resolves the requested range.  On failure, prints a message and returns
 * false.
 */
static bool resolve_range(scan *s)
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
            "--range: negative numbers need a regular file that is "
            "uncompressed or written by packstream --zstd, but %s is not such "
            "a file",
            files_input_name(s->faults->file));
        return false;
    }
    range_settle(&r, s->found.packs);
    s->found.first = r.first.number;
    s->end = r.end.number;
    return true;
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
    ps_result result = PS_END;
    ps_error err;

    if (conf->group != NULL) {
        f->status = message_usage("--group needs token records: %s has packs",
                                  files_input_name(f->file));
        return;
    }
    s.columns = columns_of(s.info);
    if (packs_header(input, &s.header, &err) != PS_OK ||
        channel_figures_begin(&s.found.channels, &s.info->schema, conf->by,
                              &err) != PS_OK) {
        faults_fatal(f, &err);
        return;
    }
    audit_begin(&s.audit, s.info, f);
    if (conf->against.n > 0)
        compare_open(&s.comparison, conf, s.info, f);
    if (resolve_range(&s)) {
        /* The totals of a file are known without reading its packs. */
        if (!conf->quick || input->file == NULL)
            result = read_packs(&s, &err);
        if (result != PS_END)
            faults_fatal(f, &err);

        /* These checks need the end of the input. */
        if (conf->verify) {
            const ps_totals *totals =
                result == PS_END ? ps_pack_reader_totals(input->reader) : NULL;

            audit_end(&s.audit, totals);
            if (totals != NULL && s.comparison.open &&
                !compare_end(&s.comparison, totals))
                faults_no_memory(f);
        }
    }
    if (f->status == STATUS_OK)
        print(&s);
    compare_close(&s.comparison);
    audit_free(&s.audit);
    histogram_free(&s.found.lengths);
    histogram_free(&s.found.depths);
    histogram_free(&s.found.fills);
}
