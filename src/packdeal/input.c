/*
 * input.c - the packs of all inputs, in order.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packdeal/input.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "cli/message.h"
#include "files/files.h"

/* Maximum number of packs whose costs are held, which then take 64 MiB. */
#define COSTS_MAX (UINT64_C(1) << 23)

/* Costs are held only if at least 1/COSTS_PART of the packs will be read. */
#define COSTS_PART 4

static bool fail(input *in, const input_file *file, const ps_error *err)
{
    in->status = message_failure(files_input_name(file->name), err);
    return false;
}

static bool fail_memory(input *in)
{
    in->status = message_memory();
    return false;
}

/* ---- Switching files ---- */

/* Opens a pack stream or token records, with random access if possible. */
static ps_result open_any(input_file *file, ps_error *err)
{
    ps_result r = packs_open_file(&file->packs, file->fd, err);

    if (r == PS_ERR_UNSUPPORTED || r == PS_ERR_MAGIC)
        r = ps_open_any(file->fd, PS_U16, &file->packs.reader, &file->tokens,
                        err);
    return r;
}

/* Raises the depth to the depth of another file; 0: unknown. */
static void raise_depth(input *in, uint32_t depth)
{
    if (in->info.depth != 0 && (depth == 0 || depth > in->info.depth))
        in->info.depth = depth;
}

/*
 * Checks that a file matches the first file, which determines the schema of all
 * files.  On failure, prints a message and returns false.
 */
static bool check_file(input *in, const input_file *file, bool first)
{
    const bool tokens = file->tokens != NULL;
    ps_error err = {.text = "only one of them has packs"};

    if (tokens && !ps_token_reader_schema(file->tokens)->framed) {
        message_error("%s: neither a pack stream nor framed token records, "
                      "as tokcat writes them without --raw",
                      files_input_name(file->name));
        in->status = STATUS_DATA;
        return false;
    }
    if (first) {
        in->has_tokens = tokens;
        if (tokens)
            in->schema = *ps_token_reader_schema(file->tokens);
        else
            in->info = *packs_info(&file->packs);
        return true;
    }
    if (!tokens)
        raise_depth(in, packs_info(&file->packs)->depth);
    if (tokens == in->has_tokens &&
        (tokens ? ps_schema_compare(ps_token_reader_schema(file->tokens),
                                    &in->schema, &err)
                : ps_pack_info_compare(packs_info(&file->packs), &in->info,
                                       &err)) == PS_OK)
        return true;
    message_error("%s does not match %.100s: %s",
                  files_input_name(file->name),
                  files_input_name(in->names[0]), err.text);
    in->status = STATUS_DATA;
    return false;
}

static bool open_next(input *in)
{
    input_file *file = calloc(1, sizeof *file);
    ps_error err;

    if (file == NULL)
        return fail_memory(in);
    file->name = in->names[in->next++];
    file->fd = files_open_input(file->name);
    if (file->fd < 0) {
        free(file);
        in->status = STATUS_FAILURE;
        return false;
    }
    if (in->files == NULL)
        in->files = file;
    else
        in->file->next = file;
    in->file = file;
    in->number = 0;
    in->n_seen = 0;
    in->before = (ps_totals){0};
    if (open_any(file, &err) != PS_OK)
        return fail(in, file, &err);
    return check_file(in, file, in->next == 1);
}

/*
 * Checks a later file in advance, so that a mismatch is found before packs are
 * assigned.  Pipes are not opened, since they can be read only once.
 */
static bool look_at(input *in, const char *name)
{
    input_file file = {.name = name};
    ps_error err;
    struct stat st;
    bool fits;

    if (files_is_standard(name) ||
        (stat(name, &st) == 0 && !S_ISREG(st.st_mode))) {
        raise_depth(in, 0);
        in->seekable = false;
        return true;
    }
    file.fd = files_open_input(name);
    if (file.fd < 0) {
        in->status = STATUS_FAILURE;
        return false;
    }
    fits = open_any(&file, &err) == PS_OK ? check_file(in, &file, false)
                                          : fail(in, &file, &err);
    in->seekable = in->seekable && file.packs.file != NULL;
    packs_close(&file.packs);
    ps_token_reader_free(file.tokens);
    files_close_input(file.fd);
    return fits;
}

bool input_begin(input *in, const char *const *names, int n_names,
                 const ps_cost *cost)
{
    bool fits;

    *in = (input){.names = names, .n_names = n_names, .cost = cost};
    fits = open_next(in);
    in->seekable = fits && in->file->packs.file != NULL;
    for (int i = 1; fits && i < n_names; i++)
        fits = look_at(in, names[i]);
    return fits;
}

/* Frees the streams before `stream` and the files before `until`; NULL: all. */
static void forget(input *in, const input_stream *stream,
                   const input_file *until)
{
    while (in->streams != stream) {
        input_stream *s = in->streams;

        in->streams = s->next;
        free(s->info);
        free(s);
    }
    while (in->files != until) {
        input_file *file = in->files;

        in->files = file->next;
        packs_close(&file->packs);
        ps_token_reader_free(file->tokens);
        free(file->first_ids);
        files_close_input(file->fd);
        free(file);
    }
}

/* ---- Switching streams ---- */

/* Adds the totals of a stream that its shares inherit. */
static void add(ps_totals *t, const ps_totals *more)
{
    t->input_sequences += more->input_sequences;
    t->input_tokens += more->input_tokens;
    t->truncated_sequences += more->truncated_sequences;
    t->truncated_tokens += more->truncated_tokens;
}

/*
 * Ends the last stream of the current file.  Later streams without packs are
 * counted as part of it.
 */
static void end_stream(input *in, uint32_t n_seen)
{
    input_stream *s = in->stream;

    if (s == NULL || s->file != in->file)
        return;
    s->end = n_seen;
    if (s->info != NULL) {
        const ps_totals *t = ps_pack_reader_totals(in->file->packs.reader);
        const ps_totals *b = &in->before;

        add(&s->totals, &(ps_totals){
            .input_sequences = t->input_sequences - b->input_sequences,
            .input_tokens = t->input_tokens - b->input_tokens,
            .truncated_sequences =
                t->truncated_sequences - b->truncated_sequences,
            .truncated_tokens = t->truncated_tokens - b->truncated_tokens});
        in->before = *t;
    }
}

/*
 * Ends the current file.  If it has no packs, adds its totals to a neighbouring
 * stream.
 */
static void end_file(input *in)
{
    const packs *p = &in->file->packs;

    if (in->file->ended)
        return;
    in->file->ended = true;
    in->n_ids += (p->file == NULL ? ps_pack_reader_totals(p->reader)
                                  : ps_pack_file_totals(p->file))
                     ->input_sequences;
    if (in->stream != NULL && in->stream->file == in->file)
        end_stream(in, p->file == NULL ? 0 : ps_pack_file_streams(p->file));
    else
        add(in->stream != NULL ? &in->stream->totals : &in->leading,
            p->file == NULL ? ps_pack_reader_totals(p->reader)
                            : ps_pack_file_totals(p->file));
}

/* Sets the first_id of a stream of the current file. */
static bool number_ids(input *in, input_stream *s)
{
    const packs *p = &in->file->packs;
    ps_pack_info info;
    ps_totals totals;
    ps_error err;

    s->first_id = in->n_ids;
    if (p->file == NULL) {
        s->first_id += ps_pack_reader_totals(p->reader)->input_sequences;
        return true;
    }
    for (uint32_t i = 0; i < s->number; i++) {
        if (ps_pack_file_stream(p->file, i, &info, &totals, &err) != PS_OK)
            return fail(in, in->file, &err);
        s->first_id += totals.input_sequences;
    }
    return true;
}

/*
 * Starts stream `number` of the current file.  Its first pack has just been
 * read.
 */
static bool begin_stream(input *in, uint32_t number)
{
    const bool same = in->stream != NULL && in->stream->file == in->file;
    input_stream *s = calloc(1, sizeof *s);

    end_stream(in, number);
    if (s == NULL)
        return fail_memory(in);
    s->file = in->file;
    s->number = number;
    /* Earlier streams without packs are counted as part of the first stream. */
    s->first = same ? number : 0;
    s->totals = in->leading;
    in->leading = (ps_totals){0};
    if (in->streams == NULL)
        in->streams = s;
    else
        in->stream->next = s;
    in->stream = s;
    if (in->numbers_ids && !number_ids(in, s))
        return false;
    if (in->file->packs.reader == NULL)
        return true;
    s->info = malloc(sizeof *s->info);
    if (s->info == NULL)
        return fail_memory(in);
    *s->info = *ps_pack_reader_stream(in->file->packs.reader);
    return true;
}

bool input_header(input *in, const input_stream *s, ps_pack_info *info)
{
    ps_totals totals;
    ps_error err;

    if (s->info != NULL)
        *info = *s->info;
    else if (ps_pack_file_stream(s->file->packs.file, s->number, info, &totals,
                                 &err) != PS_OK)
        return fail(in, s->file, &err);
    if (in->info.depth != 0)
        info->depth = in->info.depth;
    return true;
}

bool input_totals(input *in, const input_stream *s, ps_totals *totals)
{
    ps_pack_info info;
    ps_totals more;
    ps_error err;

    *totals = s->totals;
    for (uint32_t i = s->first; s->info == NULL && i < s->end; i++) {
        if (ps_pack_file_stream(s->file->packs.file, i, &info, &more, &err) !=
            PS_OK)
            return fail(in, s->file, &err);
        add(totals, &more);
    }
    return true;
}

/* ---- Reading in the order of an epoch ---- */

/* Numbers the packs of the current file, and the sequences of its streams. */
static bool shuffle_file(input *in, const char *option)
{
    input_file *file = in->file;
    const packs *p = &file->packs;
    input_stream *s = in->stream;
    ps_pack_info info;
    ps_totals totals;
    ps_error err;

    if (p->file == NULL) {
        message_error("%s: --%s needs a regular file that is uncompressed or "
                      "written by packstream --zstd",
                      files_input_name(file->name), option);
        in->status = STATUS_DATA;
        return false;
    }
    file->first = in->n_packs;
    in->n_packs += ps_pack_file_packs(p->file);
    file->first_ids = calloc(ps_pack_file_streams(p->file),
                             sizeof *file->first_ids);
    if (file->first_ids == NULL)
        return fail_memory(in);
    for (uint32_t i = 0; i < ps_pack_file_streams(p->file); i++) {
        if (ps_pack_file_stream(p->file, i, &info, &totals, &err) != PS_OK)
            return fail(in, file, &err);
        file->first_ids[i] = s->totals.input_sequences;
        add(&s->totals, &totals);
        /* Use the newest version, so that unsupported headers are refused. */
        if (info.version_minor > s->info->version_minor) {
            s->info->version_minor = info.version_minor;
            s->file = file;
        }
    }
    return true;
}

bool input_shuffle(input *in, const char *option, const uint64_t *seed,
                   uint64_t epoch)
{
    int n = 0;

    in->seed = seed;
    in->epoch = epoch;
    in->shuffled = calloc((size_t)in->n_names, sizeof *in->shuffled);
    in->streams = in->stream = calloc(1, sizeof *in->stream);
    if (in->shuffled == NULL || in->stream == NULL)
        return fail_memory(in);
    in->stream->file = in->file;
    in->stream->info = malloc(sizeof *in->stream->info);
    if (in->stream->info == NULL)
        return fail_memory(in);
    *in->stream->info = in->info;
    do {
        in->shuffled[n++] = in->file;
        if (!shuffle_file(in, option))
            return false;
    } while (in->next < in->n_names && open_next(in));
    return in->status == STATUS_OK;
}

/* Reads the head of pack `number` of a file, and computes its cost. */
static bool read_cost(input *in, input_file *file, uint64_t number,
                      ps_pack *pack, uint64_t *cost)
{
    ps_error err;

    return (ps_pack_file_head(file->packs.file, number, pack, &err) == PS_OK &&
            ps_pack_cost(in->cost, pack, cost, &err) == PS_OK) ||
           fail(in, file, &err);
}

/*
 * Reads the costs of all packs, file by file.  Reading heads in order is much
 * faster than in random order, especially in compressed files, where a frame
 * has to be decompressed for each head.  If the costs would take too much
 * memory, or most packs are skipped, heads are read on demand instead.  On
 * failure, prints a message and returns false.
 */
static bool read_costs(input *in)
{
    const uint64_t left = in->n_packs - in->number;

    if (in->few || in->n_packs > COSTS_MAX || left < in->n_packs / COSTS_PART)
        return true;
    in->costs = malloc((size_t)in->n_packs * sizeof *in->costs);
    if (in->costs == NULL)
        return fail_memory(in);
    for (int i = 0; i < in->n_names; i++) {
        input_file *file = in->shuffled[i];
        const uint64_t n = ps_pack_file_packs(file->packs.file);
        ps_pack pack;

        for (uint64_t k = 0; k < n; k++)
            if (!read_cost(in, file, k, &pack, &in->costs[file->first + k]))
                return false;
    }
    return true;
}

static bool next_shuffled(input *in, input_pack *pack)
{
    int low = 0;
    int high = in->n_names - 1;

    if (in->number == in->n_packs)
        return false;
    if (in->seed != NULL && !in->begun && !read_costs(in))
        return false;
    in->begun = true;
    pack->all = in->number++;
    if (in->seed != NULL)
        pack->all = ps_shuffled(in->n_packs, *in->seed, in->epoch, pack->all);

    /* Find the last file whose first pack is at or before this pack. */
    while (low < high) {
        const int middle = low + (high - low + 1) / 2;

        if (in->shuffled[middle]->first <= pack->all)
            low = middle;
        else
            high = middle - 1;
    }
    pack->file = in->shuffled[low];
    pack->number = pack->all - pack->file->first;
    pack->stream = in->stream;
    if (in->costs == NULL)
        return read_cost(in, pack->file, pack->number, &pack->pack,
                         &pack->cost);
    pack->pack = (ps_pack){0};
    pack->cost = in->costs[pack->all];
    return true;
}

/* ---- Reading packs ---- */

/*
 * Reads the next token record of the current file, as a pack of one sequence.
 * Skips flush records.
 */
static ps_result next_record(input *in, input_pack *pack, ps_error *err)
{
    ps_sequence sequence;
    ps_result r = ps_token_reader_next(in->file->tokens, UINT32_MAX, &sequence,
                                       err);

    if (r != PS_OK)
        return r;
    pack->pack = (ps_pack){
        .n_seq = 1,
        .n_tok = sequence.n_tok,
        .sum_len_sq = (uint64_t)sequence.n_tok * sequence.n_tok,
        .row = sequence.payload,
    };
    pack->bytes = sequence.payload_bytes;
    return PS_OK;
}

/* Reads the next pack of the current file.  Returns PS_END at its end. */
static ps_result next_of_file(input *in, input_pack *pack, ps_error *err)
{
    packs *p = &in->file->packs;

    if (in->has_tokens)
        return next_record(in, pack, err);
    pack->bytes = in->info.row_bytes;
    if (p->file == NULL)
        return ps_pack_reader_next(p->reader, &pack->pack, err);
    if (in->number == ps_pack_file_packs(p->file))
        return PS_END;
    return ps_pack_file_head(p->file, in->number, &pack->pack, err);
}

bool input_next(input *in, input_pack *pack)
{
    ps_error err;
    ps_result r;

    if (in->shuffled != NULL)
        return next_shuffled(in, pack);
    while ((r = next_of_file(in, pack, &err)) == PS_END) {
        if (!in->has_tokens)
            end_file(in);
        if (in->next == in->n_names || !open_next(in))
            return false;
    }
    if (r == PS_OK)
        r = ps_pack_cost(in->cost, &pack->pack, &pack->cost, &err);
    if (r != PS_OK)
        return fail(in, in->file, &err);
    if (!in->has_tokens &&
        (in->stream == NULL || in->stream->file != in->file ||
         in->n_seen != pack->pack.stream + 1)) {
        if (!begin_stream(in, pack->pack.stream))
            return false;
        in->n_seen = pack->pack.stream + 1;
    }
    pack->file = in->file;
    pack->number = in->number++;
    pack->all = in->n_packs++;
    pack->stream = in->stream;
    pack->raise = in->has_tokens ? 0 : in->stream->first_id;
    return true;
}

bool input_read(input *in, input_pack *pack)
{
    ps_error err;

    if (pack->pack.row != NULL)
        return true;
    if (ps_pack_file_read(pack->file->packs.file, pack->number, &pack->pack,
                          &err) != PS_OK)
        return fail(in, pack->file, &err);
    if (in->shuffled != NULL)
        pack->raise = pack->file->first_ids[pack->pack.stream];
    return true;
}

bool input_count(input *in, uint64_t *n)
{
    input_pack pack;
    ps_error err;
    ps_result r;

    *n = in->n_packs;
    if (in->shuffled != NULL)
        return true;
    do {
        if (in->file->packs.file != NULL)
            *n += in->number = ps_pack_file_packs(in->file->packs.file);
        while ((r = next_of_file(in, &pack, &err)) == PS_OK)
            ++*n;
        if (r != PS_END)
            return fail(in, in->file, &err);
        forget(in, NULL, in->file);
    } while (in->next < in->n_names && open_next(in));
    return in->status == STATUS_OK;
}

void input_forget(input *in)
{
    if (in->has_tokens)
        forget(in, NULL, in->file);
    else if (in->stream != NULL && in->shuffled == NULL)
        forget(in, in->stream, in->stream->file);
}

uint64_t input_offset(const input *in)
{
    const packs *p = &in->file->packs;

    if (in->has_tokens)
        return ps_token_reader_offset(in->file->tokens);
    return p->file != NULL ? in->number * in->info.row_bytes
                           : packs_offset(p);
}

int input_end(input *in)
{
    forget(in, NULL, NULL);
    free(in->shuffled);
    free(in->costs);
    return in->status;
}
