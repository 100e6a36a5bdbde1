/*
 * base.h - the version, limits and results; part of <packstream.h>.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_BASE_H
#define PACKSTREAM_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; ps_version() gives that of the library. */
#define PACKSTREAM_VERSION_MAJOR 0
#define PACKSTREAM_VERSION_MINOR 1
#define PACKSTREAM_VERSION_PATCH 0

#if defined(__GNUC__)
#define PS_MUST_CHECK __attribute__((warn_unused_result))
#else
#define PS_MUST_CHECK
#endif

/* Limits of the formats.  A stream beyond them is refused, never cut. */
#define PS_MAX_CAPACITY (UINT32_C(1) << 24)       /* L, tokens in a pack */
#define PS_MAX_DEPTH (UINT32_C(1) << 20)          /* sequences in one */
#define PS_MAX_WINDOW (UINT32_C(1) << 24)         /* W, sequences held */
#define PS_MAX_ROW_BYTES (UINT32_C(1) << 28)      /* the row of a pack */
#define PS_MAX_SEQUENCE_BYTES (UINT32_C(1) << 28) /* one token record */
#define PS_MAX_CHANNELS 23                        /* the user's channels */
#define PS_MAX_FIELDS 28                          /* with the built-in ones */
#define PS_NAME_BYTES 24                          /* with the final NUL */

/* "No such token id" and "unknown count" on disk and in these structures. */
#define PS_NO_ID UINT32_MAX
#define PS_UNKNOWN UINT64_MAX

/* ---------------------------------------------------------------------
 * Results
 */

/*
 * Every result of every call: enumerator, and the words for it.
 *
 *  PS_END              not a failure: the input ended, whole and checked
 *  PS_ERR_ARGUMENT     the caller asked for something impossible
 *  PS_ERR_MEMORY       out of memory
 *  PS_ERR_IO           a system call failed; ps_error.sys_errno says how
 *  PS_ERR_MAGIC        the input is not a stream of the expected kind
 *  PS_ERR_UNSUPPORTED  a newer format, or a feature this reader lacks
 *  PS_ERR_CORRUPT      a checksum or a rule of the format is broken
 *  PS_ERR_TRUNCATED    the input ends in the middle of something
 *  PS_ERR_LIMIT        beyond a limit of the format or of an option
 *  PS_ERR_RANGE        a token outside the declared vocabulary
 *  PS_ERR_OVERLONG     a sequence longer than the caller's maximum
 *  PS_ERR_EMPTY        a sequence without tokens
 */
#define PS_RESULTS(X)                                                   \
    X(PS_OK, "success")                                                 \
    X(PS_END, "end of stream")                                          \
    X(PS_ERR_ARGUMENT, "invalid argument")                              \
    X(PS_ERR_MEMORY, "out of memory")                                   \
    X(PS_ERR_IO, "input/output error")                                  \
    X(PS_ERR_MAGIC, "not a stream of this kind")                        \
    X(PS_ERR_UNSUPPORTED, "unsupported version or feature")             \
    X(PS_ERR_CORRUPT, "corrupt data")                                   \
    X(PS_ERR_TRUNCATED, "unexpected end of input")                      \
    X(PS_ERR_LIMIT, "limit exceeded")                                   \
    X(PS_ERR_RANGE, "token outside the vocabulary")                     \
    X(PS_ERR_OVERLONG, "sequence too long")                             \
    X(PS_ERR_EMPTY, "sequence without tokens")

typedef enum ps_result {
#define PS_RESULT_ENUM(code, text) code,
    PS_RESULTS(PS_RESULT_ENUM)
#undef PS_RESULT_ENUM
} ps_result;

/* What went wrong.  A failing call fills it; a succeeding one leaves it. */
typedef struct ps_error {
    ps_result code;
    int sys_errno;  /* for PS_ERR_IO the errno, else 0 */
    char text[256]; /* one sentence, no newline, printable ASCII */
} ps_error;

/* The words for a result: static, never NULL, for any value. */
const char *ps_result_text(ps_result code);

/* The library's version, "0.1.0". */
const char *ps_version(void);

/*
 * What a file that begins with these bytes seems to be, in words for a
 * message: "Parquet", or "JSON (see tokcat --from=jsonl)".  The words are
 * static; NULL if the bytes are not known.  Looks at PS_RECOGNIZE_BYTES of
 * them at most.  Raw token records are only mistaken for such a file if the
 * first count has the bytes of a magic.
 */
#define PS_RECOGNIZE_BYTES 8
const char *ps_recognize(const void *bytes, size_t n);

#ifdef __cplusplus
}
#endif

#endif
