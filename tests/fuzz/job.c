/*
 * job.c - takes from an input what to pack and how; job.h.
 *
 * SPDX-License-Identifier: MIT
 */

#include "job.h"

#include <stdlib.h>
#include <string.h>

/* Bits of job.bits; JOB_SKIPS is another. */
enum {
    WIDE = 1,
    FRAMED = 2,
    EVEN = 4,
    COMPRESSED = 8,
    DELAY = 16,
    BYTES = 32,
    ALIGNED = 128
};

/* A step below this is a length, others are multiples of the capacity, +-1. */
#define MULTIPLES 200

/* A sequence fills at most this many packs: hundreds would take too long. */
#define MAX_PACKS 8

static ps_schema make_schema(unsigned bits, unsigned n_channels)
{
    static const ps_channel channels[] = {
        {"labels", PS_I32, PS_PER_TOKEN, 0xffffff9c, 0},
        {"score", PS_F64, PS_PER_SEQUENCE, 0, 0},
        {"kind", PS_U8, PS_PER_TOKEN, 7, 0}};
    ps_schema schema =
        ps_schema_raw((bits & WIDE) != 0 ? PS_U32 : PS_U16);

    schema.framed = (bits & FRAMED) != 0;
    if (schema.framed) {
        schema.n_channels = n_channels % 4;
        memcpy(schema.channels, channels, sizeof channels);
    }
    return schema;
}

/* From a byte: depth, 0 to 40, and packs of a block, 1 to 32 or the default. */
#define DEPTHS 41

job take_job(input *in)
{
    job j = {.bits = take_u8(in), .manner = take_u8(in)};
    ps_packer_options *o = &j.options;
    unsigned byte;

    j.schema = make_schema(j.bits, take_u8(in));
    o->capacity = 1 + take_u8(in) % 100;
    byte = take_u8(in);
    o->depth = byte % DEPTHS;
    o->block_packs = (UINT32_C(1) << byte / DEPTHS) / 2;
    o->window = 1 + take_u8(in);
    o->policy = (ps_policy)(take_u8(in) % 7);
    o->order = (ps_pack_order)(take_u8(in) % 3);
    o->overlong = (ps_overlong)(take_u8(in) % 4);
    o->seed = 1 + take_u8(in);
    o->even_cost = (j.bits & EVEN) != 0;
    o->compressed = (j.bits & COMPRESSED) != 0;
    o->level = 1;
    o->max_delay = 1 + take_u16(in);
    o->max_bytes = 1024 * (1 + take_u8(in));
    if ((j.bits & DELAY) == 0)
        o->max_delay = 0;
    if ((j.bits & BYTES) == 0)
        o->max_bytes = 0;
    if ((j.bits & ALIGNED) != 0) {
        o->align = 1 + take_u8(in) % 20;
        o->capacity += (o->align - o->capacity % o->align) % o->align;
    }
    j.steps = *in;
    return j;
}

uint32_t job_length(const job *j, unsigned step)
{
    uint32_t max = j->options.capacity * MAX_PACKS;
    uint32_t n = step % 50 + 1;

    if (step < MULTIPLES)
        return n < max ? n : max;
    if (step >= STEP_FLUSH)
        return 0;
    n = j->options.capacity * (1 + (step - MULTIPLES) / 12) + step % 3;
    return n < 2 ? 1 : n - 1;
}

unsigned char *job_payload(const job *j, uint64_t id, uint32_t n_tok,
                           size_t *size)
{
    unsigned char *p;
    uint64_t state = (id + 1) * UINT64_C(0x9e3779b97f4a7c15);

    *size = (size_t)ps_payload_bytes(&j->schema, n_tok);
    p = malloc(*size);
    must(p != NULL);
    for (size_t i = 0; i < *size; i += sizeof state) {
        size_t n = *size - i < sizeof state ? *size - i : sizeof state;

        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        memcpy(p + i, &state, n);
    }
    return p;
}
