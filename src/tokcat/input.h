/*
 * input.h - input files in bounded memory: bytes in order, or lines; and of
 * regular files from any place.  Text may be compressed.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_INPUT_H
#define TOKCAT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/message.h"
#include "packstream.h"
#include "tokcat/decompress.h"

/* The byte order mark of UTF-8. */
#define INPUT_BOM "\xef\xbb\xbf"

/* The size of a read. */
#define INPUT_BLOCK ((size_t)256 * 1024)

/* Called before a read that would wait; returns an exit status. */
typedef int input_wait_hook(void *context);

typedef struct input_file {
    /* Set by the owner; all else starts as 0. */
    size_t max_line; /* without its newline; 0: the file is not text */
    bool as_it_is;   /* no text is decompressed */
    bool skip_bom;   /* a text may begin with a byte order mark */
    /*
     * The first words of what ps_recognize says of such a file.  If it says
     * something else, messages about the first line or record add that.  NULL:
     * they do not.
     */
    const char *expected;
    input_wait_hook *on_wait;
    void *context;

    bool open;
    bool borrowed; /* the descriptor is another's */
    bool regular;  /* read by place; `bytes` is its size */
    bool ended;
    int fd;
    const char *name; /* as the user gave it... */
    char *own_name;   /* ...or as we made it */
    uint64_t bytes;
    uint64_t next; /* where the next read begins */
    unsigned char *buffer; /* of size + 1 bytes */
    size_t size;
    size_t begin; /* the bytes that are ready lie from here to `end` */
    size_t end;
    unsigned char first[PS_RECOGNIZE_BYTES]; /* bytes of the file */
    size_t n_first;
    size_t searched; /* bytes from `begin` on that hold no newline */
    uint64_t line;   /* number of the last line, from 1 */
    bool known;      /* whether the text is compressed: then `packed` */
    compression form;
    decompressor *packed;
    unsigned char *raw; /* what was read of it */
    size_t raw_size;
    size_t raw_begin;
    size_t raw_end;
} input_file;

/*
 * A line.  bytes[n] can be read and is a newline even if the file ends
 * without one; `newline` tells whether it stands there in the file.
 */
typedef struct input_line {
    const unsigned char *bytes; /* NULL after the last line */
    size_t n;                   /* without the newline */
    bool newline;
} input_line;

/*
 * Each call that returns an int gives an exit status, after a message if it
 * is not STATUS_OK.
 */

/* Opens any file; NULL or "-" is stdin. */
int input_open(input_file *in, const char *name);

/* Opens the regular file `stem`, less its last `cut` bytes, plus `ending`. */
int input_open_beside(input_file *in, const char *stem, size_t cut,
                      const char *ending);

/* Makes that name, to be freed; NULL, after a message, without memory. */
char *input_name_beside(const char *stem, size_t cut, const char *ending);

/*
 * Reads the open file of `other` from `offset` on, with a buffer of its own.
 * Must be closed before `other`.
 */
void input_share(input_file *in, const input_file *other, uint64_t offset);

void input_close(input_file *in);
void input_free(input_file *in);

/*
 * Reads until `n` bytes are ready or the file ends; *ready tells how many are.
 * The buffer grows as bytes come, so a wrong `n` costs no memory.
 */
int input_need(input_file *in, size_t n, size_t *ready);

/* The same, but fewer bytes are an error: "the file ends within WITHIN". */
int input_require(input_file *in, size_t n, const char *within);

/*
 * The bytes that are ready, until the next call that reads, and their offset
 * in the file; input_take removes the first `n`.
 */
const unsigned char *input_at(const input_file *in);
void input_take(input_file *in, size_t n);
uint64_t input_offset(const input_file *in);

/* Goes to another place of a regular file. */
void input_seek(input_file *in, uint64_t offset);

/* The next line; it lives until the next call. */
int input_next_line(input_file *in, input_line *line);

/* True if the line has nothing but blanks. */
bool input_is_blank(const input_line *line);

/* The name for messages. */
const char *input_name(const input_file *in);

/*
 * What ps_recognize takes the first bytes of the file for; NULL for text and
 * JSON, which some arrays begin like by chance.
 */
const char *input_seems(const input_file *in);

/* "; this looks like Parquet", if something else is expected; or "". */
#define INPUT_HINT_BYTES 128
const char *input_hint(const input_file *in, char text[INPUT_HINT_BYTES]);

/* "prog: FILE: byte OFFSET: why"; returns STATUS_DATA. */
int input_bad(const input_file *in, uint64_t offset, const char *format, ...)
    MESSAGE_PRINTF(3, 4);

/*
 * "prog: FILE: line N, column C: why"; returns STATUS_DATA.  Columns count
 * from 1; 0 leaves the column out.
 */
int input_bad_line(const input_file *in, uint64_t column,
                   const char *format, ...) MESSAGE_PRINTF(3, 4);

/* Reports a byte order mark that is not at the beginning, as above. */
int input_bad_bom(const input_file *in, uint64_t column);

/* read(2), restarted after signals; waits if the descriptor does not. */
ssize_t input_read(int fd, void *to, size_t n);

#endif
