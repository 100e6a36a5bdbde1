/*
 * input.c - pack streams from several files, read as one.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packcat/input.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/files.h"

/* Size of text that describes a difference between streams, in bytes. */
#define MISMATCH_BYTES 256

const ps_pack_info *input_info(const input *in)
{
    return in->tokens != NULL ? &in->tokens_info : packs_info(&in->packs);
}

/* Offset in the current file, in bytes. */
static uint64_t offset_of(const input *in)
{
    return in->tokens != NULL ? ps_token_reader_offset(in->tokens)
                              : packs_offset(&in->packs);
}

/* Adds with saturation at UINT64_MAX. */
static void add(uint64_t *sum, uint64_t more)
{
    *sum = more > UINT64_MAX - *sum ? UINT64_MAX : *sum + more;
}

ps_totals input_totals(const input *in)
{
    ps_totals t = in->totals_before;

    if (in->packs.reader != NULL) {
        const ps_totals *more = ps_pack_reader_totals(in->packs.reader);

        add(&t.input_sequences, more->input_sequences);
        add(&t.input_tokens, more->input_tokens);
        add(&t.truncated_sequences, more->truncated_sequences);
        add(&t.truncated_tokens, more->truncated_tokens);
    }
    return t;
}

bool input_fail(input *in, const char *format, ...)
{
    va_list args;

    in->failed = true;
    in->err.code = PS_ERR_CORRUPT;
    in->err.sys_errno = 0;
    va_start(args, format);
    (void)vsnprintf(in->err.text, sizeof in->err.text, format, args);
    va_end(args);
    return false;
}

/* Stores the status of a failure that has already been reported. */
static bool fail_printed(input *in, int status)
{
    in->failed = true;
    in->status = status;
    return false;
}

/* ---- Switching files ---- */

/* Calls the caller's hook, and records whether it failed. */
static ps_result before_wait(void *context, ps_error *err)
{
    input *in = context;
    const ps_result result = in->options.on_wait(in->options.context, err);

    if (result != PS_OK)
        in->failed = in->hook_failed = true;
    return result;
}

/* True if two numbers differ; describes the difference in `text`. */
static bool differs(char text[MISMATCH_BYTES], const char *what, uint32_t a,
                    uint32_t b)
{
    if (a == b)
        return false;
    (void)snprintf(text, MISMATCH_BYTES, "%s is %" PRIu32 ", not %" PRIu32,
                   what, a, b);
    return true;
}

/*
 * True if packs of `a` cannot follow packs of `b`, because a property in `same`
 * differs.  Describes the first difference in `text`.
 */
static bool find_mismatch(unsigned same, const ps_pack_info *a,
                          const ps_pack_info *b, char text[MISMATCH_BYTES])
{
    char types[2][PS_TYPE_TEXT];
    ps_error err;

    if ((same & (SAME_CAPACITY | SAME_FIELDS)) != 0 &&
        differs(text, "capacity", a->capacity, b->capacity))
        return true;
    if ((same & SAME_WIDTH) != 0 &&
        a->schema.token_type != b->schema.token_type) {
        (void)snprintf(text, MISMATCH_BYTES, "tokens are %s, not %s",
                       ps_type_name(a->schema.token_type),
                       ps_type_name(b->schema.token_type));
        return true;
    }
    if ((same & SAME_SCHEMA) != 0 &&
        ps_schema_compare(&a->schema, &b->schema, &err) != PS_OK) {
        (void)snprintf(text, MISMATCH_BYTES, "%s", err.text);
        return true;
    }
    if ((same & SAME_STREAM) != 0 &&
        ps_pack_info_compare(a, b, &err) != PS_OK) {
        (void)snprintf(text, MISMATCH_BYTES, "%s", err.text);
        return true;
    }
    if ((same & SAME_FIELDS) == 0)
        return false;
    /* The fields of rows precede the fields of sequence rows. */
    for (uint32_t i = 0; i < a->n_fields && i < b->n_fields; i++) {
        const ps_field *f = &a->fields[i];
        const ps_field *g = &b->fields[i];

        if (f->channel.kind == PS_PER_SEQUENCE &&
            g->channel.kind == PS_PER_SEQUENCE)
            break;
        ps_channel_type(&f->channel, types[0]);
        ps_channel_type(&g->channel, types[1]);
        if (strcmp(f->channel.name, g->channel.name) == 0 &&
            strcmp(types[0], types[1]) == 0 && f->offset == g->offset) {
            const uint64_t places[2] = {packs_places(a, f), packs_places(b, g)};

            if (places[0] == places[1])
                continue;
            (void)snprintf(text, MISMATCH_BYTES,
                           "'%s' has a budget of %" PRIu64 ", not %" PRIu64,
                           f->channel.name, places[0], places[1]);
            return true;
        }
        (void)snprintf(text, MISMATCH_BYTES,
                       "field %" PRIu32 " is '%s', %s at byte %" PRIu32
                       ", not '%s', %s at %" PRIu32,
                       i, f->channel.name, types[0], f->offset,
                       g->channel.name, types[1], g->offset);
        return true;
    }
    return differs(text, "the row size", a->row_bytes, b->row_bytes);
}

/* Opens the next file.  Returns false after a failure. */
static bool open_next(input *in)
{
    const char *name = in->options.names[in->next++];
    char mismatch[MISMATCH_BYTES];
    ps_sequence sequence;
    ps_result result;

    in->fd = files_open_input(name);
    if (in->fd < 0)
        return fail_printed(in, STATUS_FAILURE);
    if (files_is_standard(name) && in->start < 0)
        in->start = lseek(in->fd, 0, SEEK_CUR);
    result = in->options.tokens_do
                 ? ps_open_any(in->fd, PS_U16, &in->packs.reader,
                               &in->tokens, &in->err)
                 : packs_open(&in->packs, in->fd, in->options.range != NULL,
                              &in->err);
    in->failed = result != PS_OK;
    if (in->failed)
        return false;
    if (in->packs.reader != NULL)
        ps_pack_reader_on_wait(in->packs.reader, before_wait, in);

    /* Refuse raw records, which have no header and could be any file. */
    if (in->tokens != NULL) {
        in->tokens_info.schema = *ps_token_reader_schema(in->tokens);
        if (!in->tokens_info.schema.framed) {
            result = ps_token_reader_next(in->tokens, 1, &sequence, &in->err);
            return input_fail(in, "%s", result == PS_END
                              ? "the input is empty; even a pack stream "
                                "without packs has a header"
                              : "neither a pack stream nor framed token "
                                "records: pack raw records with packstream "
                                "first");
        }
        ps_token_reader_on_wait(in->tokens, before_wait, in);
    }

    if (in->next == 1) {
        in->first = *input_info(in);
        in->figures.capacity = in->first.capacity;
    }
    if (find_mismatch(in->options.same, input_info(in), &in->first, mismatch))
        return input_fail(in, "cannot be joined to %.100s: %s",
                          files_input_name(in->options.names[0]), mismatch);
    return true;
}

/* Closes the current file, if any. */
static void close_current(input *in)
{
    in->bytes_before += offset_of(in);
    in->totals_before = input_totals(in);
    ps_unpacker_free(in->unpacker);
    packs_close(&in->packs);
    ps_token_reader_free(in->tokens);
    in->unpacker = NULL;
    in->tokens = NULL;
    if (in->fd >= 0)
        files_close_input(in->fd);
    in->fd = -1;
}

/*
 * Opens the next file at the end of the current file.  Returns false at the end
 * of the last file, or after a failure.
 */
static bool advance(input *in)
{
    if (in->next == in->options.n_names)
        return false;
    close_current(in);
    /* Call the hook: opening a pipe can block until its writer opens it. */
    return before_wait(in, &in->err) == PS_OK && open_next(in);
}

bool input_begin(input *in, const input_options *options)
{
    uint64_t count = 0;

    *in = (input){.options = *options,
                  .fd = -1,
                  .start = -1,
                  .range = {.end.number = UINT64_MAX}};
    progress_start(&in->progress, options->progress);
    /* For a range, the percentage would be wrong. */
    if (options->range == NULL)
        progress_inputs(&in->progress, options->names, options->n_names);
    if (options->range != NULL)
        in->range = *options->range;
    if (!range_needs_count(&in->range))
        return open_next(in);

    /* Resolve bounds that count from the end. */
    while (in->next < options->n_names) {
        const char *name = options->names[in->next++];
        ps_result result;

        in->fd = files_open_input(name);
        if (in->fd < 0)
            return fail_printed(in, STATUS_FAILURE);
        result = packs_open_file(&in->packs, in->fd, &in->err);
        if (result == PS_ERR_UNSUPPORTED)
            return fail_printed(in, message_usage(
                "--range: negative numbers need a seekable file: %s: %s",
                files_input_name(name), in->err.text));
        in->failed = result != PS_OK;
        if (!in->failed)
            count += ps_pack_file_packs(in->packs.file);
        close_current(in);
        if (in->failed)
            return false;
    }
    range_settle(&in->range, count);
    in->next = 0;
    in->bytes_before = 0;
    return open_next(in);
}

/* ---- Packs and sequences ---- */

/* Reads the next pack within the range. */
static ps_result next_pack(input *in, ps_pack *pack)
{
    const uint64_t first = in->range.first.number;
    const uint64_t end = in->range.end.number;
    ps_result result;

    if (in->passed >= end || first >= end)
        return PS_END;
    do {
        result = PS_OK;
        if (in->passed < first) {
            uint64_t passed;

            result = packs_skip(&in->packs, first - in->passed, &passed,
                                &in->err);
            in->passed += passed;
        }
        if (result == PS_OK)
            result = packs_next(&in->packs, pack, &in->err);
    } while (result == PS_END && advance(in));
    in->passed += result == PS_OK;
    return result;
}

/*
 * Reads the next sequence of a range, in pack order.  Pieces are not rejoined.
 */
static ps_result next_in_range(input *in, ps_sequence *sequence)
{
    const ps_pack_info *info;
    ps_piece piece;
    size_t n;

    if (in->next_piece == in->pack.n_seq) {
        ps_result result = next_pack(in, &in->pack);

        if (result != PS_OK)
            return result;
        in->next_piece = 0;
    }
    info = input_info(in);
    piece = ps_pack_piece(info, &in->pack, in->next_piece);
    n = (size_t)ps_pack_payload_bytes(info, &in->pack, in->next_piece);
    if (n > in->piece_capacity) {
        unsigned char *larger = realloc(in->piece, n);

        if (larger == NULL) {
            in->err = (ps_error){.code = PS_ERR_MEMORY};
            return PS_ERR_MEMORY;
        }
        in->piece = larger;
        in->piece_capacity = n;
    }
    ps_pack_payload(info, &in->pack, in->next_piece++, in->piece);
    *sequence = (ps_sequence){.id = piece.id,
                              .n_tok = piece.n_tok,
                              .payload = in->piece,
                              .payload_bytes = n};
    return PS_OK;
}

static void show_progress(input *in)
{
    if (!progress_due(&in->progress))
        return;
    in->figures.bytes = in->bytes_before + offset_of(in);
    in->figures.input = in->next - 1;
    in->figures.fd = in->fd;
    progress_show(&in->progress, &in->figures);
}

bool input_sequence(input *in, ps_sequence *sequence)
{
    ps_result result;

    if (in->options.range != NULL) {
        result = next_in_range(in, sequence);
    } else {
        do {
            result = PS_OK;
            if (in->unpacker == NULL && in->tokens == NULL)
                result = ps_unpacker_open(&in->unpacker, in->packs.reader,
                                          in->options.order, &in->err);
            if (in->unpacker != NULL && in->options.max_bytes != 0)
                ps_unpacker_set_max_bytes(in->unpacker, in->options.max_bytes);
            if (in->tokens != NULL)
                result = ps_token_reader_next(in->tokens, UINT32_MAX,
                                              sequence, &in->err);
            else if (result == PS_OK)
                result = ps_unpacker_next(in->unpacker, sequence, &in->err);
        } while (result == PS_END && advance(in));
    }
    if (result != PS_OK) {
        in->failed = in->failed || result != PS_END;
        return false;
    }
    in->figures.sequences++;
    in->figures.tokens += sequence->n_tok;
    show_progress(in);
    return true;
}

bool input_pack(input *in, ps_pack *pack)
{
    const ps_result result = next_pack(in, pack);

    if (result != PS_OK) {
        in->failed = in->failed || result != PS_END;
        return false;
    }
    in->figures.packs++;
    in->figures.sequences += pack->n_seq;
    in->figures.tokens += pack->n_tok;
    show_progress(in);
    return true;
}

/* ---- Reading twice ---- */

bool input_rereadable(const input *in)
{
    int n_stdin = 0;

    for (int i = 0; i < in->options.n_names; i++) {
        const char *name = in->options.names[i];
        struct stat st;

        n_stdin += files_is_standard(name);
        if (!files_stat(name, STDIN_FILENO, &st) || !S_ISREG(st.st_mode))
            return false;
    }
    /* A second "-" would find stdin at its end. */
    return n_stdin <= 1;
}

bool input_count(const input *in, uint64_t *count)
{
    const uint64_t first = in->range.first.number;
    uint64_t end = in->range.end.number;
    uint64_t sum = 0;

    for (int i = 0; i < in->options.n_names; i++) {
        const char *name = in->options.names[i];
        uint64_t n = PS_UNKNOWN;
        packs p;
        ps_error err;
        struct stat st;
        int fd;

        /* Opening something else, such as a pipe, could have side effects. */
        if (files_is_standard(name) || stat(name, &st) != 0 ||
            !S_ISREG(st.st_mode))
            return false;
        fd = files_openat(AT_FDCWD, name, O_RDONLY | O_NONBLOCK);
        if (fd < 0)
            return false;
        if (packs_open_file(&p, fd, &err) == PS_OK)
            n = ps_pack_file_packs(p.file);
        packs_close(&p);
        (void)close(fd);
        if (n > UINT64_MAX - 1 - sum)
            return false;
        sum += n;
    }
    end = end < sum ? end : sum;
    *count = first < end ? end - first : 0;
    return true;
}

bool input_rewind(input *in)
{
    close_current(in);
    if (in->start >= 0 && lseek(STDIN_FILENO, in->start, SEEK_SET) < 0) {
        message_errno("%s: cannot be read a second time",
                      files_input_name("-"));
        return fail_printed(in, STATUS_FAILURE);
    }
    in->next = 0;
    in->bytes_before = 0;
    in->passed = 0;
    in->figures = (progress_figures){0};
    progress_again(&in->progress);
    return open_next(in);
}

int input_end(input *in)
{
    progress_end(&in->progress);
    if (in->failed && !in->hook_failed && in->status == STATUS_OK) {
        const char *name = in->options.names[in->next - 1];

        in->status = message_failure(files_input_name(name), &in->err);
    }
    close_current(in);
    free(in->piece);
    in->piece = NULL;
    return in->status;
}
