/*
 * datatrove.c - the tokenised files of datatrove: NAME holds tokens,
 * NAME.index the ends of documents, and NAME.loss, if it is there, a byte
 * for each token that says if it counts.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/files.h"
#include "common/bytes.h"
#include "tokcat/job.h"
#include "tokcat/split.h"

#define LOSS_NAME "loss_mask"

/* The readers in j->beside. */
enum { INDEX, LOSS };

static bool spare_one(const char *output, const char *input,
                      const char *ending)
{
    char *name = binary_name_beside(input, 0, ending);
    const bool good = name != NULL && files_spare_input(output, name);

    free(name);
    return good;
}

static bool spare_datatrove(const char *output, const char *input)
{
    return spare_one(output, input, ".index") &&
           spare_one(output, input, ".loss");
}

/* ---------------------------------------------------------------------
 * Opening
 */

/* Opens the losses where there are some and they are wanted. */
static int open_loss(job *j, const char *name)
{
    char *loss = binary_name_beside(name, 0, ".loss");
    int status = loss == NULL ? STATUS_FAILURE : STATUS_OK;

    if (loss != NULL && access(loss, F_OK) == 0 &&
        !job_ignores(j, LOSS_NAME))
        status = binary_open_beside(&j->beside[LOSS], name, 0, ".loss");
    free(loss);
    return status;
}

static int open_datatrove(job *j, const char *name)
{
    int status;

    if (strcmp(name, "-") == 0)
        return message_usage("--from=datatrove reads several files, which "
                             "cannot come from standard input: name one");
    status = binary_open_beside(&j->data, name, 0, "");
    if (status == STATUS_OK)
        status = binary_open_beside(&j->beside[INDEX], name, 0, ".index");
    return status == STATUS_OK ? open_loss(j, name) : status;
}

/* ---------------------------------------------------------------------
 * The sizes of the files
 */

static uint64_t n_tokens(const job *j)
{
    return j->data.bytes / ps_type_bytes(j->out.schema.token_type);
}

/* The end of the next document. */
static int next_end(job *j, uint64_t *end)
{
    binary *index = &j->beside[INDEX];
    size_t ready;
    int status = binary_need(index, 8, &ready);

    if (status == STATUS_OK && ready < 8)
        status = binary_cut(index, "an end");
    if (status != STATUS_OK)
        return status;
    *end = load_u64(binary_at(index));
    binary_take(index, 8);
    return STATUS_OK;
}

/* The last document must end with the data. */
static int check_index(job *j)
{
    const size_t width = ps_type_bytes(j->out.schema.token_type);
    binary *index = &j->beside[INDEX];
    uint64_t end = 0;
    int status = STATUS_OK;

    if (index->bytes % 8 != 0)
        return binary_bad(index, index->bytes, "the file ends within an "
                          "end of 8 bytes");
    if (index->bytes > 0) {
        binary_seek(index, index->bytes - 8);
        status = next_end(j, &end);
        binary_seek(index, 0);
    }
    if (status == STATUS_OK &&
        (j->data.bytes % width != 0 || end != n_tokens(j)))
        status = binary_bad(index, index->bytes, "the last document ends "
                            "with token %" PRIu64 ", and the data have %"
                            PRIu64 " bytes for %zu each (see --type)", end,
                            j->data.bytes, width);
    return status;
}

static int check_loss(const job *j)
{
    const binary *loss = &j->beside[LOSS];

    if (!loss->open || loss->bytes == n_tokens(j))
        return STATUS_OK;
    return binary_bad(loss, loss->bytes, "the file ends, and there are %"
                      PRIu64 " tokens", n_tokens(j));
}

/* All files have losses, or none has. */
static int check_schema(job *j)
{
    const bool has_loss = j->beside[LOSS].open;

    /* The one channel that there can be. */
    if (has_loss == (j->out.schema.n_channels == 1))
        return STATUS_OK;
    message_error(has_loss ? "%s: a file of losses, which the first input "
                             "does not have (see --ignore)"
                           : "%s: no file of losses beside it, which the "
                             "first input has (see --ignore)",
                  binary_name(&j->beside[has_loss ? LOSS : INDEX]));
    return STATUS_DATA;
}

static int learn_schema(job *j)
{
    int status = STATUS_OK;

    if (j->out.writer == NULL && j->beside[LOSS].open)
        status = job_add_channel(j, LOSS_NAME, PS_PER_TOKEN);
    if (status == STATUS_OK)
        status = job_start(j, ps_type_bytes(j->out.schema.token_type));
    return status == STATUS_OK ? check_schema(j) : status;
}

/* ---------------------------------------------------------------------
 * Documents
 */

/* Puts the losses of `n` tokens behind these, which are in the payload. */
static int add_loss(job *j, uint32_t n)
{
    binary *loss = &j->beside[LOSS];
    unsigned char *to =
        j->out.payload + ps_payload_offset(&j->out.schema, 0, n);
    size_t ready;

    for (size_t left = n; left > 0; left -= ready) {
        const int status = binary_need(loss, 1, &ready);

        if (status != STATUS_OK)
            return status;
        if (ready == 0)
            return binary_cut(loss, "its losses");
        ready = ready < left ? ready : left;
        memcpy(to, binary_at(loss), ready);
        for (size_t i = 0; i < ready; i++)
            if (to[i] > 1)
                return binary_bad(loss, binary_offset(loss) + i, "%u is "
                                  "neither 0 nor 1", (unsigned)to[i]);
        binary_take(loss, ready);
        to += ready;
    }
    return STATUS_OK;
}

static int put_with_loss(job *j, uint64_t n)
{
    uint64_t n_tok = 0;
    int status = cut_append(j, &j->data, number_of_token(
                                j->out.schema.token_type), n, &n_tok);

    if (status == STATUS_OK)
        status = records_room(&j->out, (size_t)ps_payload_bytes(
                                  &j->out.schema, (uint32_t)n));
    if (status == STATUS_OK)
        status = add_loss(j, (uint32_t)n);
    return status == STATUS_OK ? records_put(&j->out, (uint32_t)n) : status;
}

static int read_document(job *j, uint64_t n)
{
    const ps_type token = j->out.schema.token_type;
    const unsigned char *tokens;
    int status;

    j->place.offset = binary_offset(&j->data);
    j->out.figures.bytes += n * ps_type_bytes(token);
    if (n == 0)
        return job_empty(j);
    if (j->beside[LOSS].open)
        return put_with_loss(j, n);
    status = cut_piece(j, &j->data, number_of_token(token), n, &tokens);
    return status == STATUS_OK
               ? records_put_tokens(&j->out, (uint32_t)n, tokens)
               : status;
}

static int read_documents(job *j)
{
    binary *index = &j->beside[INDEX];
    const uint64_t n = index->bytes / 8;
    uint64_t begin = 0;
    uint64_t end;
    int status = STATUS_OK;

    for (; status == STATUS_OK && j->place.number < n; j->place.number++) {
        status = next_end(j, &end);
        if (status == STATUS_OK && (end < begin || end > n_tokens(j)))
            status = binary_bad(index, binary_offset(index) - 8, "no "
                                "document of %" PRIu64 " tokens can begin "
                                "with token %" PRIu64 " and end with %"
                                PRIu64, n_tokens(j), begin, end);
        if (status == STATUS_OK)
            status = read_document(j, end - begin);
        begin = end;
    }
    return status;
}

static int read_datatrove(job *j)
{
    int status;

    j->place = (job_place){.unit = "document"};
    status = learn_schema(j);
    if (status == STATUS_OK)
        status = check_index(j);
    if (status == STATUS_OK)
        status = check_loss(j);
    return status == STATUS_OK ? read_documents(j) : status;
}

const job_source source_datatrove = {
    .unit = "document",
    .learns = true,
    .open = open_datatrove,
    .read = read_datatrove,
    .spare = spare_datatrove,
};
