/*
 * documents.h - read documents from lines of token ids.
 *
 * Each line is a sentence.  An empty line separates documents.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CORPUS_DOCUMENTS_H
#define TR_CORPUS_DOCUMENTS_H

#include <stdint.h>
#include <stdio.h>

#include "packstream.h"

/* Longer documents are split to limit memory. */
#define DOCUMENT_TOKENS 65536

/* Consecutive nonempty sentences. */
typedef struct document {
    int32_t *token;     /* [DOCUMENT_TOKENS] */
    uint32_t *begin;    /* [n_sentences + 1] index of the first token */
    uint32_t n_sentences;
} document;

bool document_open(document *d);
void document_free(document *d);

/* Returns the number of tokens in `count` sentences, starting at `first`. */
uint32_t document_tokens(const document *d, uint32_t first, uint32_t count);

/* A text that is being read. */
typedef struct document_source {
    FILE *file;
    uint32_t vocab_size; /* tokens are below it */
    uint64_t line;       /* from 1 */
    uint64_t column;
} document_source;

/*
 * Reads the next nonempty document.  Returns PS_OK, PS_END, PS_ERR_IO, or
 * PS_ERR_CORRUPT or PS_ERR_RANGE with line and column.
 */
PS_MUST_CHECK ps_result document_read(document_source *s, document *d,
                                      ps_error *err);

#endif /* TR_CORPUS_DOCUMENTS_H */
