/*
 * tokens.c - statistics of token records.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdio.h>

#include "cli/progress.h"
#include "cli/report.h"
#include "files/files.h"
#include "files/groups.h"
#include "packstat/packstat.h"
#include "packstat/summary.h"

/*
 * Maximum length of a sequence that is read in one piece, in tokens.  Longer
 * sequences are skipped, since only their length is needed.
 */
enum { LONGEST_HELD = 1 << 16 };

/* State of reading a stream of token records. */
typedef struct scan {
    const packstat_conf *conf;
    ps_token_reader *reader;
    const ps_schema *schema;
    faults *faults;
    packstat_output *out;
    /* lengths known without reading the records; NULL: none */
    const ps_histogram *known;
    token_figures found;
    uint32_t group_by;   /* index of the channel of --group */
    uint64_t group;      /* value of this channel in the current group */
    uint64_t group_size; /* tokens of the current group; 0: no group */
} scan;

/* Adds the length of the current group, if there is one. */
static ps_result end_group(scan *s, ps_error *err)
{
    const uint64_t n_tok = s->group_size;

    s->group_size = 0;
    if (n_tok > UINT32_MAX) {
        *err = (ps_error){.code = PS_ERR_LIMIT};
        (void)snprintf(err->text, sizeof(err->text),
                       "the group before sequence %" PRIu64 " has %" PRIu64
                       " tokens, but the limit is %" PRIu32,
                       s->found.sequences, n_tok, UINT32_MAX);
        return err->code;
    }
    if (n_tok > 0 && !histogram_add(&s->out->lengths, (uint32_t)n_tok)) {
        *err = (ps_error){.code = PS_ERR_MEMORY};
        return err->code;
    }
    return PS_OK;
}

/* Adds a sequence to its group. */
static ps_result add_to_group(scan *s, const ps_sequence *sequence,
                              ps_error *err)
{
    const uint64_t value = groups_value(s->schema, s->group_by, sequence);
    const uint32_t align = s->conf->align == 0 ? 1 : s->conf->align;
    ps_result r = PS_OK;

    if (value != s->group)
        r = end_group(s, err);
    s->group = value;
    s->group_size += ((uint64_t)sequence->n_tok + align - 1) / align * align;
    return r;
}

/* Finds the channel of --group. */
static ps_result find_group(scan *s, ps_error *err)
{
    if (groups_find(s->schema, s->conf->group, &s->group_by))
        return PS_OK;
    *err = (ps_error){.code = PS_ERR_MAGIC};
    (void)snprintf(err->text, sizeof(err->text),
                   "no channel '%.31s' with one number per sequence "
                   "to group by",
                   s->conf->group);
    return err->code;
}

/* Reads to the end.  Returns PS_END or an error. */
static ps_result read_tokens(scan *s, ps_error *err)
{
    const bool counts = !s->conf->histogram && s->schema->n_channels > 0;
    /*
     * Verification requires that sequences do not exceed the limit of the
     * format, and channels are counted only in sequences read in one piece.
     */
    const bool grouped = s->conf->group != NULL;
    const uint32_t longest =
        s->conf->verify || counts || grouped ? UINT32_MAX : LONGEST_HELD;
    histogram *lengths =
        s->conf->histogram ? &s->out->lengths : &s->found.lengths;
    token_figures *found = &s->found;
    ps_sequence sequence;
    progress live;
    ps_result result = PS_OK;

    progress_start(&live, !s->conf->quiet);
    progress_inputs(&live, &s->faults->file, 1);
    while (result == PS_OK) {
        result = ps_token_reader_next(s->reader, longest, &sequence, err);
        if (result == PS_ERR_OVERLONG)
            result = ps_token_reader_skip(s->reader, err);
        if (result != PS_OK)
            break;
        if (found->sequences == 0 || sequence.n_tok < found->min_seqlen)
            found->min_seqlen = sequence.n_tok;
        if (sequence.n_tok > found->max_seqlen)
            found->max_seqlen = sequence.n_tok;
        found->sequences++;
        found->tokens += sequence.n_tok;
        if (counts)
            channel_figures_sequence(&found->channels, &sequence);
        if (grouped) {
            result = add_to_group(s, &sequence, err);
        } else if (!histogram_add(lengths, sequence.n_tok)) {
            *err = (ps_error){.code = PS_ERR_MEMORY};
            result = err->code;
        }
        if (progress_due(&live))
            progress_show(&live, &(progress_figures){
                .bytes = ps_token_reader_offset(s->reader),
                .sequences = found->sequences,
                .tokens = found->tokens,
                .fd = s->out->fd});
    }
    progress_end(&live);
    if (result == PS_END && end_group(s, err) != PS_OK)
        result = err->code;
    return result;
}

/* Fills in the counts from LENGTHS, without reading the records. */
static ps_result take_lengths(scan *s, ps_error *err)
{
    const ps_histogram *h = s->known;
    const size_t n = ps_histogram_size(h);
    histogram *lengths =
        s->conf->histogram ? &s->out->lengths : &s->found.lengths;

    s->found.sequences = ps_histogram_sequences(h);
    s->found.tokens = ps_histogram_tokens(h);
    if (n > 0) {
        s->found.min_seqlen = ps_histogram_length(h, 0);
        s->found.max_seqlen = ps_histogram_length(h, n - 1);
    }
    for (size_t i = 0; i < n; i++)
        if (!histogram_add_count(lengths, ps_histogram_length(h, i),
                                 ps_histogram_count(h, i))) {
            *err = (ps_error){.code = PS_ERR_MEMORY};
            return err->code;
        }
    return PS_END;
}

/* Prints one object on one line. */
static void print_json(const scan *s)
{
    const token_figures *found = &s->found;

    putchar('{');
    if (s->faults->file != NULL) {
        printf("\"file\": ");
        report_json_string(stdout, s->faults->file);
        printf(", ");
    }
    printf("\"sequences\": %" PRIu64 ", \"tokens\": %" PRIu64,
           found->sequences, found->tokens);
    if (found->sequences == 0)
        printf(", \"min_seqlen\": null, \"max_seqlen\": null"
               ", \"mean_seqlen\": null");
    else
        printf(", \"min_seqlen\": %" PRIu32 ", \"max_seqlen\": %" PRIu32
               ", \"mean_seqlen\": %.9g",
               found->min_seqlen, found->max_seqlen,
               (double)found->tokens / (double)found->sequences);
    printf(", \"token_type\": \"%s\", \"framed\": %s, \"channels\": [",
           ps_type_name(s->schema->token_type),
           s->schema->framed ? "true" : "false");
    for (uint32_t i = 0; i < s->schema->n_channels; i++) {
        printf("%s", i == 0 ? "" : ", ");
        report_json_string(stdout, s->schema->channels[i].name);
    }
    putchar(']');
    histogram_json(stdout, "lengths", &found->lengths, true);
    channel_figures_json(stdout, &found->channels, s->known == NULL);
    printf("}\n");
}

static void print(scan *s)
{
    const char *name = files_input_name(s->faults->file);
    const packstat_conf *conf = s->conf;

    if (conf->histogram)
        return;
    if (!histogram_finish(&s->found.lengths)) {
        faults_no_memory(s->faults);
        return;
    }
    if (conf->json) {
        print_json(s);
    } else if (conf->verify) {
        if (!conf->quiet)
            printf("%s: OK (%" PRIu64 " sequences, %" PRIu64 " tokens%s)\n",
                   name, s->found.sequences, s->found.tokens,
                   s->schema->framed ? "" : ", raw: without checksums");
    } else {
        summary_separate(stdout, &s->out->summarised);
        summary_tokens(stdout, name, s->schema, &s->found,
                       s->known == NULL);
    }
}

void tokens_stat(const packstat_conf *conf, ps_token_reader *reader,
                 const ps_histogram *lengths, packstat_output *out, faults *f)
{
    scan s = {
        .conf = conf,
        .reader = reader,
        .schema = ps_token_reader_schema(reader),
        .faults = f,
        .out = out,
        .known = lengths,
    };
    ps_error err;
    ps_result result;

    if (conf->range_given || conf->against.n > 0) {
        err = (ps_error){.code = PS_ERR_MAGIC};
        (void)snprintf(err.text, sizeof(err.text),
                       "token records, but %s needs a pack stream",
                       conf->range_given ? "--range" : "--against");
        faults_fatal(f, &err);
        return;
    }
    result = channel_figures_begin(&s.found.channels, s.schema, conf->by,
                                   &err);
    if (result == PS_OK && conf->group != NULL)
        result = find_group(&s, &err);
    if (conf->verify)
        ps_token_reader_check_lengths(reader);
    if (result == PS_OK)
        result = lengths != NULL ? take_lengths(&s, &err)
                                 : read_tokens(&s, &err);
    /*
     * An empty file is valid as raw records, but it may also be a stream that
     * was truncated to 0 bytes.
     */
    if (result == PS_END && conf->verify &&
        ps_token_reader_offset(reader) == 0) {
        err = (ps_error){.code = PS_ERR_TRUNCATED,
                         .text = "the input is empty: nothing to verify"};
        result = err.code;
    }
    if (result != PS_END)
        faults_fatal(f, &err);
    if (f->status == STATUS_OK)
        print(&s);
    histogram_free(&s.found.lengths);
}
