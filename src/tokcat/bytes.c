/*
 * bytes.c - bytes that are tokens as they are, by lines or paragraphs.
 *
 * The sequences put together are the text again: a newline belongs to the
 * line that it ends, blank lines to the paragraph before them.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>

#include "common/bytes.h"
#include "tokcat/job.h"

/* Only a vocabulary below 256, which the user asked for, needs a look. */
static int check_bytes(const job *j, const text_line *line, size_t n)
{
    const uint32_t vocab = j->out.schema.vocab_size;

    if (vocab > UINT8_MAX)
        return STATUS_OK;
    for (size_t i = 0; i < n; i++)
        if (line->bytes[i] >= vocab)
            return text_bad_at(&j->in, (uint64_t)i + 1, "byte %u is not "
                               "below the vocabulary size %" PRIu32,
                               (unsigned)line->bytes[i], vocab);
    return STATUS_OK;
}

static void store_bytes(unsigned char *to, size_t width,
                        const unsigned char *bytes, size_t n)
{
    if (width == 2)
        for (size_t i = 0; i < n; i++)
            store_u16(to + 2 * i, bytes[i]);
    else
        for (size_t i = 0; i < n; i++)
            store_u32(to + 4 * i, bytes[i]);
}

/* Adds a line to what stands in the payload. */
static int append(job *j, const text_line *line)
{
    const size_t width = ps_type_bytes(j->out.schema.token_type);
    const size_t n = line->n + line->newline;
    paragraph *p = &j->paragraph;
    int status = check_bytes(j, line, n);

    if (status == STATUS_OK && n > job_max_tokens(j) - p->n_tok)
        status = job_too_large(j);
    if (status == STATUS_OK)
        status = records_room(&j->out, (p->n_tok + n) * width);
    if (status != STATUS_OK)
        return status;
    store_bytes(j->out.payload + p->n_tok * width, width, line->bytes, n);
    p->n_tok += n;
    return STATUS_OK;
}

/* Paragraphs end with their file. */
static int put_paragraph(job *j)
{
    const uint32_t n_tok = (uint32_t)j->paragraph.n_tok;

    j->paragraph = (paragraph){.n_tok = 0};
    return n_tok == 0 ? STATUS_OK : records_put(&j->out, n_tok);
}

/* Blank lines at the start of a file go with the paragraph after them. */
static int bytes_line(job *j, const text_line *line)
{
    paragraph *p = &j->paragraph;
    const bool by_line = j->conf->split == SPLIT_LINE;
    const bool blank = !by_line && text_is_blank(line);
    int status = STATUS_OK;

    if (p->has_text && p->ends_blank && !blank)
        status = put_paragraph(j);
    if (status == STATUS_OK)
        status = append(j, line);
    p->has_text = p->has_text || !blank;
    p->ends_blank = blank;
    if (status == STATUS_OK && by_line)
        status = put_paragraph(j);
    return status;
}

const job_source source_bytes = {
    .unit = "line",
    .longest = PS_MAX_SEQUENCE_BYTES,
    .line = bytes_line,
    .file_end = put_paragraph,
};
