/*
 * tokens.c - the statistics of token records.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokens.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "cli/files.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "summary.h"

/*
 * The longest sequence that is read as one; what is longer passes by in
 * pieces, since only its length is wanted.
 */
enum { LONGEST_HELD = 1 << 16 };

/* A stream of token records while it is read. */
typedef struct scan {
    const packstat_conf *conf;
    ps_token_reader *reader;
    const ps_schema *schema;
    faults *faults;
    packstat_output *out;
    token_figures found;
    progress progress;
} scan;

static void show_progress(scan *s)
{
    progress_figures figures = {
        .bytes = ps_token_reader_offset(s->reader),
        .sequences = s->found.sequences,
        .tokens = s->found.tokens,
    };

    progress_show(&s->progress, &figures);
}

static bool count(scan *s, uint32_t n_tok)
{
    histogram *lengths =
        s->conf->histogram ? &s->out->lengths : &s->found.lengths;

    s->found.sequences++;
    s->found.tokens += n_tok;
    return histogram_add(lengths, n_tok);
}

/*
 * The next sequence, whatever its length.  To be verified it must be read
 * as one, and must be within the limit of the format then.
 */
static ps_result next(scan *s, ps_sequence *sequence, ps_error *err)
{
    uint32_t longest = s->conf->verify ? UINT32_MAX : LONGEST_HELD;
    ps_result result =
        ps_token_reader_next(s->reader, longest, sequence, err);

    if (result == PS_ERR_OVERLONG)
        result = ps_token_reader_skip(s->reader, err);
    return result;
}

/* Reads to the end; PS_END, or a failure. */
static ps_result read_tokens(scan *s, ps_error *err)
{
    ps_sequence sequence;
    ps_result result;

    while ((result = next(s, &sequence, err)) == PS_OK) {
        if (!count(s, sequence.n_tok))
            return faults_no_memory(err);
        if (progress_due(&s->progress))
            show_progress(s);
    }
    return result;
}

/*
 * An empty file reads as raw records, none of them; it is also what is left
 * of a stream that was cut at its very beginning.
 */
static ps_result nothing_to_verify(ps_error *err)
{
    *err = (ps_error){.code = PS_ERR_TRUNCATED,
                      .text = "the input is empty: nothing to verify"};
    return err->code;
}

/* Two options are about packs. */
static ps_result no_packs(const packstat_conf *conf, ps_error *err)
{
    *err = (ps_error){.code = PS_ERR_MAGIC};
    (void)snprintf(err->text, sizeof(err->text),
                   "it holds token records, and %s is of packs",
                   conf->range_given ? "--range" : "--against");
    return err->code;
}

/* Lengths, which a stream without sequences has none of. */
static void print_lengths(const token_figures *found)
{
    if (found->sequences == 0) {
        printf(", \"min_seqlen\": null, \"max_seqlen\": null"
               ", \"mean_seqlen\": null");
        return;
    }
    printf(", \"min_seqlen\": %" PRIu32 ", \"max_seqlen\": %" PRIu32
           ", \"mean_seqlen\": %.9g",
           histogram_min(&found->lengths),
           histogram_greatest(&found->lengths),
           (double)found->tokens / (double)found->sequences);
}

/* One line, one object. */
static void print_json(const scan *s)
{
    putchar('{');
    if (s->faults->file != NULL) {
        printf("\"file\": ");
        report_json_string(stdout, s->faults->file);
        printf(", ");
    }
    printf("\"sequences\": %" PRIu64 ", \"tokens\": %" PRIu64,
           s->found.sequences, s->found.tokens);
    print_lengths(&s->found);
    printf(", \"token_type\": \"%s\", \"framed\": %s, \"channels\": [",
           ps_type_name(s->schema->token_type),
           s->schema->framed ? "true" : "false");
    for (uint32_t i = 0; i < s->schema->n_channels; i++) {
        printf("%s", i == 0 ? "" : ", ");
        report_json_string(stdout, s->schema->channels[i].name);
    }
    printf("]}\n");
}

static void print_ok(const scan *s)
{
    if (!s->conf->quiet)
        printf("%s: OK (%" PRIu64 " sequences, %" PRIu64 " tokens%s)\n",
               files_input_name(s->faults->file), s->found.sequences,
               s->found.tokens,
               s->schema->framed ? "" : ", raw: without checksums");
}

static void print_summary(const scan *s)
{
    summary_separate(stdout, &s->out->summarised);
    summary_tokens(stdout, files_input_name(s->faults->file), s->schema,
                   &s->found);
}

static void print(scan *s)
{
    histogram_sort(&s->found.lengths);
    if (s->conf->histogram)
        return;
    if (s->conf->json)
        print_json(s);
    else if (s->conf->verify)
        print_ok(s);
    else
        print_summary(s);
}

void tokens_stat(const packstat_conf *conf, ps_token_reader *reader,
                 packstat_output *out, faults *f)
{
    scan s = {
        .conf = conf,
        .reader = reader,
        .schema = ps_token_reader_schema(reader),
        .faults = f,
        .out = out,
    };
    ps_error err;
    ps_result result;

    if (conf->range_given || conf->against.n > 0) {
        (void)no_packs(conf, &err);
        faults_fatal(f, &err);
        return;
    }
    progress_start(&s.progress, !conf->quiet);
    result = read_tokens(&s, &err);
    progress_end(&s.progress);
    if (result == PS_END && conf->verify &&
        ps_token_reader_offset(reader) == 0)
        result = nothing_to_verify(&err);
    if (result != PS_END)
        faults_fatal(f, &err);
    if (f->status == STATUS_OK)
        print(&s);
    histogram_free(&s.found.lengths);
}
