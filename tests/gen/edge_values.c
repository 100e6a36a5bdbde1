/*
 * edge_values.c - token records with values that text cannot represent.
 *
 *     edge_values TYPE BITS...
 *
 * prints a framed stream with one sequence for each BITS: one token, the
 * sequence's number, and in the per-token channel `x` of that type an
 * element with these bits, given in hexadecimal.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packstream.h"

static void store(unsigned char *to, uint64_t bits, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)(bits >> 8 * i & 0xff);
}

static ps_result put_all(ps_token_writer *writer, size_t bytes, char **list,
                         ps_error *err)
{
    ps_result result = PS_OK;

    for (uint64_t i = 0; list[i] != NULL && result == PS_OK; i++) {
        unsigned char payload[2 + 8];

        store(payload, i, 2);
        store(payload + 2, strtoull(list[i], NULL, 16), bytes);
        result = ps_token_writer_put(writer, 1, payload, err);
    }
    return result;
}

int main(int argc, char **argv)
{
    ps_schema schema = ps_schema_raw(PS_U16);
    ps_channel x = {.name = "x", .kind = PS_PER_TOKEN};
    ps_error err = {.text = "usage: edge_values TYPE BITS..."};
    ps_token_writer *writer = NULL;
    bool ok = argc > 1 && ps_type_from_name(argv[1], &x.type);

    schema.framed = true;
    schema.n_channels = 1;
    schema.channels[0] = x;
    ok = ok && ps_token_writer_open(&writer, 1, &schema, &err) == PS_OK &&
         put_all(writer, ps_type_bytes(x.type), argv + 2, &err) == PS_OK &&
         ps_token_writer_finish(writer, &err) == PS_OK;
    ps_token_writer_free(writer);
    if (!ok)
        fprintf(stderr, "edge_values: %s\n", err.text);
    return ok ? 0 : 1;
}
