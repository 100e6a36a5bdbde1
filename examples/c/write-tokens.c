/*
 * write-tokens.c - the output of a tokenizer: writes token records.
 *
 *     write-tokens <IDS | packstream -L 512
 *
 * Each line of the input is a sequence of ids below 65536, separated by blanks.
 * They are written as framed records.  An empty line asks packstream to pack
 * everything before it at once, as a tokenizer would when it has no more text
 * for now.
 *
 * To compile it: cc write-tokens.c $(pkg-config --cflags --libs libpackstream)
 *
 * SPDX-License-Identifier: MIT
 */

#include <packstream.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_TOKENS 100000

/* The ids of a line; -1 if it has anything else, or too many. */
static int parse(const char *line, unsigned char *payload)
{
    int n = 0;

    while (*line != '\n' && *line != '\0') {
        char *end;
        unsigned long id = strtoul(line, &end, 10);

        if (end == line || id > 65535 || n == MAX_TOKENS)
            return -1;
        payload[2 * n] = (unsigned char)(id & 255); /* little-endian */
        payload[2 * n + 1] = (unsigned char)(id >> 8);
        n++;
        for (line = end; *line == ' '; line++)
            continue;
    }
    return n;
}

/* Writes each line of the standard input, then the end of the stream. */
static int write_lines(ps_token_writer *writer)
{
    static unsigned char payload[2 * MAX_TOKENS];
    ps_error err;
    ps_result r = PS_OK;
    char *line = NULL;
    size_t size = 0;
    int n = 0;

    while (r == PS_OK && getline(&line, &size, stdin) > 0) {
        n = parse(line, payload);
        if (n < 0) {
            fprintf(stderr, "write-tokens: no ids: %s", line);
            break;
        }
        r = n > 0 ? ps_token_writer_put(writer, (uint32_t)n, payload, &err)
                  : ps_token_writer_put_flush(writer, &err);
    }
    free(line);
    if (n < 0)
        return 65;
    if (ferror(stdin)) {
        perror("write-tokens: stdin");
        return 1;
    }
    if (r == PS_OK)
        r = ps_token_writer_finish(writer, &err);
    if (r != PS_OK)
        fprintf(stderr, "write-tokens: %s\n", err.text);
    return r == PS_OK ? 0 : 1;
}

int main(void)
{
    ps_schema schema = ps_schema_raw(PS_U16);
    ps_token_writer *writer;
    ps_error err;
    int status;

    schema.framed = true; /* a header, and an END that shows it is complete */
    if (ps_token_writer_open(&writer, STDOUT_FILENO, &schema, &err) != PS_OK) {
        fprintf(stderr, "write-tokens: %s\n", err.text);
        return 1;
    }
    status = write_lines(writer);
    ps_token_writer_free(writer);
    return status;
}
