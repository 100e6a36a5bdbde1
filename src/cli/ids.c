/*
 * ids.c - a set of sequence ids, from an option or a file.
 *
 * SPDX-License-Identifier: MIT
 */

#include "cli/ids.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/message.h"
#include "files/files.h"

#define FIRST_CAPACITY 16

/* Parses decimal digits up to `end`.  Suffixes such as k are not allowed. */
static bool parse(const char *text, const char *end, uint64_t *id)
{
    *id = 0;
    if (text == end)
        return false;
    for (; text < end; text++) {
        const unsigned digit = (unsigned)(*text - '0');

        if (digit > 9 || *id > (UINT64_MAX - digit) / 10)
            return false;
        *id = *id * 10 + digit;
    }
    return true;
}

/* Appends an id.  Returns false if out of memory. */
static bool append(id_set *set, uint64_t id)
{
    if (set->n == set->capacity) {
        const size_t more = set->capacity == 0 ? FIRST_CAPACITY
                                               : 2 * set->capacity;
        uint64_t *ids = NULL;

        if (more <= SIZE_MAX / sizeof *ids)
            ids = realloc(set->ids, more * sizeof *ids);
        if (ids == NULL)
            return false;
        set->ids = ids;
        set->capacity = more;
    }
    set->ids[set->n++] = id;
    return true;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Sorts the ids and removes duplicates.  Returns false if out of memory. */
static bool settle(id_set *set)
{
    size_t n = 0;

    if (set->n > 0)
        qsort(set->ids, set->n, sizeof *set->ids, compare);
    for (size_t i = 0; i < set->n; i++)
        if (n == 0 || set->ids[n - 1] != set->ids[i])
            set->ids[n++] = set->ids[i];
    set->n = n;
    free(set->found);
    set->found = calloc(n + 1, sizeof *set->found);
    return set->found != NULL;
}

const char *ids_parse(void *to, const char *value)
{
    static const char why[] = "must be an id, or ids separated by commas";
    static const char memory[] = "has too many ids: out of memory";
    id_set *set = to;
    uint64_t id;

    for (;;) {
        const char *end = value + strcspn(value, ",");

        if (!parse(value, end, &id))
            return why;
        if (!append(set, id))
            return memory;
        if (*end == '\0')
            break;
        value = end + 1;
    }
    return settle(set) ? NULL : memory;
}

/* Reads all lines.  Returns an exit status. */
static int read_lines(id_set *set, FILE *in, const char *name)
{
    char *line = NULL;
    size_t room = 0;
    uint64_t number = 0;
    uint64_t id;
    int status = STATUS_OK;
    ssize_t n;

    while (status == STATUS_OK && (n = getline(&line, &room, in)) >= 0) {
        number++;
        if (n > 0 && line[n - 1] == '\n')
            line[--n] = '\0';
        if (n == 0)
            continue;
        if (!parse(line, line + n, &id)) {
            message_error("%s: line %" PRIu64 ": '%.40s' is not the id of a "
                          "sequence, which is a number from 0",
                          files_input_name(name), number, message_name(line));
            status = STATUS_DATA;
        } else if (!append(set, id)) {
            status = message_memory();
        }
    }
    if (status == STATUS_OK && ferror(in)) {
        message_errno("%s", files_input_name(name));
        status = STATUS_FAILURE;
    }
    free(line);
    return status;
}

int ids_read(id_set *set, const char *name)
{
    const int fd = files_open_input(name);
    FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
    int status = STATUS_FAILURE;

    if (in != NULL)
        status = read_lines(set, in, name);
    else if (fd >= 0)
        message_errno("%s", files_input_name(name));
    if (in != NULL)
        (void)fclose(in);
    if (status == STATUS_OK && !settle(set))
        status = message_memory();
    return status;
}

size_t ids_find(const id_set *set, uint64_t id)
{
    size_t low = 0;
    size_t high = set->n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (set->ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->n && set->ids[low] == id ? low : set->n;
}

void ids_free(id_set *set)
{
    free(set->ids);
    free(set->found);
    *set = (id_set){0};
}
