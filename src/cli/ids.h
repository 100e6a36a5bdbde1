/*
 * ids.h - a set of sequence ids, from an option or a file.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_IDS_H
#define CLI_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialise for an empty set. */
typedef struct id_set {
    uint64_t *ids; /* ascending, each once; owned */
    bool *found;   /* [n], set by the caller; owned */
    size_t n;
    size_t capacity; /* elements allocated */
} id_set;

/* Parses "ID" or "ID,ID...", as an option_setter; may be repeated. */
const char *ids_parse(void *to, const char *value);

/*
 * Reads a file with an id on each line; empty lines are skipped.  Returns an
 * exit status and prints a message on failure.
 */
int ids_read(id_set *set, const char *name);

/* The index of an id, or set->n if it is not in the set. */
size_t ids_find(const id_set *set, uint64_t id);

void ids_free(id_set *set);

#endif
