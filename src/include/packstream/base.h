/*
 * base.h - version, limits and result codes; part of <packstream.h>.
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

/* Version of this header.  ps_version() returns the version of the library. */
#define PACKSTREAM_VERSION_MAJOR 0
#define PACKSTREAM_VERSION_MINOR 1
#define PACKSTREAM_VERSION_PATCH 0

#if defined(__GNUC__)
#define PS_MUST_CHECK __attribute__((warn_unused_result))
#else
#define PS_MUST_CHECK
#endif

/* Limits of the formats.  A stream that exceeds one is refused. */
#define PS_MAX_CAPACITY (UINT32_C(1) << 24)       /* L, tokens per pack */
#define PS_MAX_DEPTH (UINT32_C(1) << 20)          /* sequences per pack */
#define PS_MAX_WINDOW (UINT32_C(1) << 24)         /* W, sequences held */
#define PS_MAX_ROW_BYTES (UINT32_C(1) << 28)      /* bytes per pack row */
#define PS_MAX_SEQUENCE_BYTES (UINT32_C(1) << 28) /* bytes per record */
#define PS_MAX_VECTOR 16384                       /* values of a vector */
#define PS_MAX_LISTS 4                            /* list channels */
#define PS_MAX_CHANNELS 23                        /* user channels */
#define PS_MAX_FIELDS 28                          /* built-in + channels */
#define PS_NAME_BYTES 24                          /* including the NUL */

/* A token id that is not defined, and an unknown count; also on disk. */
#define PS_NO_ID UINT32_MAX
#define PS_UNKNOWN UINT64_MAX

/* ---------------------------------------------------------------------
 * Results
 */

/*
 * All result codes, each with its description.
 *
 *   PS_END              not a failure: the input is complete and verified
 *   PS_ERR_ARGUMENT     invalid argument, option or order of calls
 *   PS_ERR_MEMORY       out of memory
 *   PS_ERR_IO           a system call failed; ps_error.sys_errno is its errno
 *   PS_ERR_MAGIC        the input is not a stream of the expected type
 *   PS_ERR_UNSUPPORTED  a newer format, or a feature this reader lacks
 *   PS_ERR_CORRUPT      wrong checksum, or a violation of the format
 *   PS_ERR_TRUNCATED    the input ends inside a header, record or frame
 *   PS_ERR_LIMIT        a limit of the format or of an option is exceeded
 *   PS_ERR_RANGE        a token is outside the declared vocabulary
 *   PS_ERR_OVERLONG     a sequence is longer than the caller's maximum
 *   PS_ERR_EMPTY        a sequence has no tokens
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

/* Details of a failure.  Unchanged by calls that succeed. */
typedef struct ps_error {
    ps_result code;
    int sys_errno;  /* errno with PS_ERR_IO, otherwise 0 */
    char text[256]; /* one sentence, no newline, printable ASCII */
} ps_error;

/* Description of a result: a static string, never NULL, for any value. */
const char *ps_result_text(ps_result code);

/* Version of the library, for example "0.1.0". */
const char *ps_version(void);

/*
 * Guesses the type of a file from its first `n` bytes.  At most
 * PS_RECOGNIZE_BYTES of them are examined.  Returns a static string for a
 * message, such as "Parquet" or "JSON (see tokcat --from=jsonl)", or NULL if
 * the type is unknown.  Raw token records are misidentified only if their first
 * count happens to equal a known magic number.
 */
#define PS_RECOGNIZE_BYTES 8
const char *ps_recognize(const void *bytes, size_t n);

#ifdef __cplusplus
}
#endif

#endif
