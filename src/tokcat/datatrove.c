/*
 * datatrove.c - tokenised files of datatrove.  NAME contains tokens, and
 * NAME.index the ends of documents.  NAME.loss, which is optional, contains one
 * byte per token: 1 if the token counts in the loss, otherwise 0.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/message.h"
#include "tokcat/reader.h"
#include "tokcat/split.h"

#define LOSS_NAME "loss_mask"

/* Indices in r->beside. */
enum { INDEX, LOSS };

static const number_type index_type = {.width = 8};

/* ---------------------------------------------------------------------
 * Names
 */

/* Opens the loss file if it exists and is not ignored. */
static int open_datatrove(reader *r, const char *name)
{
    char *loss;
    int status;

    if (strcmp(name, "-") == 0)
        return message_usage("--from=datatrove reads several files and cannot "
                             "use standard input: name a file");
    status = input_open_beside(&r->in, name, 0, "");
    if (status == STATUS_OK)
        status = input_open_beside(&r->beside[INDEX], name, 0, ".index");
    if (status != STATUS_OK)
        return status;
    loss = input_name_beside(name, 0, ".loss");
    if (loss == NULL)
        return STATUS_FAILURE;
    if (access(loss, F_OK) == 0 && !reader_ignores(r, LOSS_NAME))
        status = input_open_beside(&r->beside[LOSS], name, 0, ".loss");
    free(loss);
    return status;
}

/* ---------------------------------------------------------------------
 * The schema, and the sizes of the files
 */

/*
 * Starts the stream and checks that the files match: either all inputs have
 * losses or none has, and the last document and the losses end with the data.
 */
static int start_stream(reader *r, uint64_t n_tokens)
{
    const size_t width = ps_type_bytes(r->out.schema.token_type);
    const input_file *loss = &r->beside[LOSS];
    input_file *index = &r->beside[INDEX];
    uint64_t end = 0;
    int status = STATUS_OK;

    if (r->out.writer == NULL && loss->open)
        status = reader_add_channel(r, LOSS_NAME, PS_PER_TOKEN);
    if (status == STATUS_OK)
        status = reader_start(r, width);
    if (status != STATUS_OK)
        return status;
    /* The loss is the only channel. */
    if (loss->open != (r->out.schema.n_channels == 1)) {
        message_error(loss->open ? "%s: the first input has no loss file: use "
                      "--ignore=loss_mask"
                                 : "%s: has no loss file, but the first input "
                                   "does: use --ignore=loss_mask",
                      input_name(loss->open ? loss : index));
        return STATUS_DATA;
    }

    if (index->bytes % 8 != 0)
        return input_bad(index, index->bytes, "the file ends within an 8-byte "
                         "document end");
    if (index->bytes > 0) {
        input_seek(index, index->bytes - 8);
        status = split_number(index, index_type, "an end", &end);
        input_seek(index, 0);
    }
    if (status != STATUS_OK)
        return status;
    if (r->in.bytes % width != 0 || end != n_tokens)
        return input_bad(index, index->bytes, "the last document ends at token "
                         "%" PRIu64 ", but the data have %" PRIu64 " bytes at "
                         "%zu per token: check --type", end,
                         r->in.bytes, width);
    if (loss->open && loss->bytes != n_tokens)
        return input_bad(loss, loss->bytes, "the file ends, but it must have "
                         "one byte for each of the %" PRIu64 " tokens",
                         n_tokens);
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * Documents
 */

/* Appends the losses of the tokens in the payload. */
static int append_loss(reader *r)
{
    input_file *loss = &r->beside[LOSS];
    const ps_schema *s = &r->out.schema;
    const uint32_t n = (uint32_t)r->n_tok;
    unsigned char *to;
    size_t ready;
    int status =
        records_reserve(&r->out, (size_t)ps_payload_bytes(s, n));

    if (status != STATUS_OK)
        return status;
    to = r->out.payload + ps_payload_offset(s, 0, n);
    for (size_t left = n; left > 0; left -= ready) {
        status = input_need(loss, 1, &ready);
        if (status == STATUS_OK && ready == 0)
            status = input_bad(loss, loss->next, "the file ends within its "
                               "loss mask");
        if (status != STATUS_OK)
            return status;
        ready = ready < left ? ready : left;
        memcpy(to, input_at(loss), ready);
        for (size_t i = 0; i < ready; i++)
            if (to[i] > 1)
                return input_bad(loss, input_offset(loss) + i, "%u is not 0 or "
                                 "1", (unsigned)to[i]);
        input_take(loss, ready);
        to += ready;
    }
    return STATUS_OK;
}

static int read_datatrove(reader *r)
{
    const number_type type = split_token_type(r);
    input_file *index = &r->beside[INDEX];
    const uint64_t n_documents = index->bytes / 8;
    const uint64_t n_tokens = r->in.bytes / type.width;
    uint64_t begin = 0;
    uint64_t end;
    int status;

    r->place = (reader_place){.unit = "document"};
    status = start_stream(r, n_tokens);
    while (status == STATUS_OK && r->place.number < n_documents) {
        status = split_number(index, index_type, "an end", &end);
        if (status != STATUS_OK)
            break;
        if (end < begin || end > n_tokens)
            return input_bad(index, input_offset(index) - 8, "invalid "
                             "document in a file of %" PRIu64 " tokens: it "
                             "starts at %" PRIu64 " and ends at %" PRIu64,
                             n_tokens,
                             begin, end);

        r->place.offset = input_offset(&r->in);
        r->out.figures.bytes += (end - begin) * type.width;
        if (end > begin && r->beside[LOSS].open) {
            status = split_append(r, type, end - begin);
            if (status == STATUS_OK)
                status = append_loss(r);
            if (status == STATUS_OK)
                status = reader_put(r);
        } else {
            status = split_sequence(r, type, end - begin);
        }
        begin = end;
        r->place.number++;
    }
    return status;
}

const form_reader reader_datatrove = {
    .unit = "document",
    .learns = true,
    .open = open_datatrove,
    .read = read_datatrove,
    .endings = {".index", ".loss"},
};
