/*
 * input.h - read input files in bounded memory: bytes in order or lines, and
 * regular files from any offset.  Text may be compressed.
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

/* Bytes per read. */
#define INPUT_BLOCK ((size_t)256 * 1024)

/* Called before a read that would block.  Returns an exit status. */
typedef int input_wait_hook(void *context);

typedef struct input_file {
    /* Set by the owner; everything else starts as 0. */
    size_t max_line; /* in bytes, without the newline; 0: not text */
    bool as_it_is;   /* do not decompress */
    bool skip_bom;   /* skip a byte order mark at the start */
    /*
     * Start of the name that ps_recognize returns for a valid file.  If it
     * returns another name, messages about the first line or record mention
     * that name.  NULL: no message mentions it.
     */
    const char *expected;
    input_wait_hook *on_wait; /* called with `context` */
    void *context;

    bool open;
    bool borrowed; /* another input owns the descriptor */
    bool regular;  /* a regular file, which is read with pread */
    bool ended;
    int fd;
    const char *name;      /* as given by the user */
    char *own_name;        /* derived name; owned; NULL: `name` is used */
    uint64_t bytes;        /* size of the file, if it is regular */
    uint64_t next;         /* offset of the next read */
    unsigned char *buffer; /* size + 1 bytes; owned */
    size_t size;
    size_t begin; /* unread bytes are from `begin` to `end` */
    size_t end;
    unsigned char first[PS_RECOGNIZE_BYTES]; /* start of the file */
    size_t n_first;                          /* bytes in `first` */
    /* number of bytes from `begin` on that contain no newline */
    size_t searched;
    uint64_t line; /* number of the last line, from 1 */
    /* `form` is known; `packed` is set if the text is compressed */
    bool known;
    compression form;
    decompressor *packed;
    unsigned char *raw; /* buffer of compressed bytes; owned */
    size_t raw_size;
    size_t raw_begin;
    size_t raw_end;
} input_file;

/*
 * A line.  bytes[n] is always a newline, even if the file ends without one.
 * `newline` is true if the newline is in the file.
 */
typedef struct input_line {
    const unsigned char *bytes; /* NULL after the last line */
    size_t n;                   /* length in bytes, without the newline */
    bool newline;
} input_line;

/*
 * Functions returning int return an exit status and print a message on failure.
 */

/* Opens a file of any type; NULL or "-" is stdin. */
int input_open(input_file *in, const char *name);

/*
 * Opens a regular file.  Its name is `stem` without its last `cut` bytes, plus
 * `ending`.
 */
int input_open_beside(input_file *in, const char *stem, size_t cut,
                      const char *ending);

/*
 * Builds the name that input_open_beside opens; the caller frees it.  If out of
 * memory, prints a message and returns NULL.
 */
char *input_name_beside(const char *stem, size_t cut, const char *ending);

/*
 * Sets up `in` to read the open file of `other` from `offset` on, with a buffer
 * of its own.  Close `in` before `other`.
 */
void input_share(input_file *in, const input_file *other, uint64_t offset);

void input_close(input_file *in);
void input_free(input_file *in);

/*
 * Reads until at least `n` bytes are buffered or the file ends.  *ready is the
 * number of bytes buffered.  The buffer grows only as data arrives, so a wrong
 * `n` does not waste memory.
 */
int input_need(input_file *in, size_t n, size_t *ready);

/* Like input_need, but the end is an error: "the file ends within WITHIN". */
int input_require(input_file *in, size_t n, const char *within);

/*
 * input_at returns the buffered bytes, which are valid until the next read, and
 * input_offset their offset in the file.  input_take removes the first `n`
 * bytes from the buffer.
 */
const unsigned char *input_at(const input_file *in);
void input_take(input_file *in, size_t n);
uint64_t input_offset(const input_file *in);

/* Seeks in a regular file. */
void input_seek(input_file *in, uint64_t offset);

/* Reads the next line, which is valid until the next call. */
int input_next_line(input_file *in, input_line *line);

/* True if the line contains only blanks. */
bool input_is_blank(const input_line *line);

/* Name of the file for messages. */
const char *input_name(const input_file *in);

/*
 * Format that ps_recognize detects in the first bytes of the file, or NULL.
 * Also NULL for text and JSON, since arrays can start like these by chance.
 */
const char *input_seems(const input_file *in);

/*
 * Formats "; this looks like Parquet" if a different format was expected,
 * otherwise "".
 */
#define INPUT_HINT_BYTES 128
const char *input_hint(const input_file *in, char text[INPUT_HINT_BYTES]);

/* Reports "prog: FILE: byte OFFSET: why"; returns STATUS_DATA. */
int input_bad(const input_file *in, uint64_t offset, const char *format, ...)
    MESSAGE_PRINTF(3, 4);

/*
 * Reports "prog: FILE: line N, column C: why"; returns STATUS_DATA.  Columns
 * count from 1; 0 omits the column.
 */
int input_bad_line(const input_file *in, uint64_t column,
                   const char *format, ...) MESSAGE_PRINTF(3, 4);

/* Like input_bad_line; reports a byte order mark that is not at the start. */
int input_bad_bom(const input_file *in, uint64_t column);

/*
 * read(2), restarted after signals.  Waits for input if the descriptor is
 * nonblocking.
 */
ssize_t input_read(int fd, void *to, size_t n);

#endif
