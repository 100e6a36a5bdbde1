/*
 * data-loader-fixture.c - pack streams for the trainer's data loader, in files.
 *
 * SPDX-License-Identifier: MIT
 */
#include "data-loader-fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const sentence three[3] = {
    {3, {CLS, 10, SEP}, {0}, {-100, 20, -100}, 1},
    {2, {CLS, 11}, {0, 1}, {-100, -100}, -1},
    {4, {CLS, 12, 13, SEP}, {0, 0, 1, 1}, {-100, 22, 23, -100}, 0},
};

static void add_channel(ps_schema *s, const char *name, ps_type type,
                        ps_kind kind, uint64_t fill)
{
    ps_channel *c = &s->channels[s->n_channels++];

    (void)strcpy(c->name, name);
    c->type = type;
    c->kind = kind;
    c->fill = fill;
}

ps_schema sentence_schema(int with)
{
    ps_schema s = ps_schema_raw(PS_U16);

    s.framed = true;
    s.vocab_size = VOCAB;
    s.special[PS_PAD] = PAD;
    s.special[PS_CLS] = CLS;
    s.special[PS_SEP] = SEP;
    s.special[PS_MASK] = MASK;
    if (with & WITH_TYPES)
        add_channel(&s, "token_type_ids", PS_U8, PS_PER_TOKEN, 0);
    if (with & WITH_LABELS)
        add_channel(&s, "labels", PS_I32, PS_PER_TOKEN, (uint32_t)-100);
    if (with & WITH_NSP)
        add_channel(&s, "next_sentence_label", PS_I32, PS_PER_SEQUENCE,
                    UINT32_MAX);
    return s;
}

static void put_payload(bytes *b, const ps_schema *schema, const sentence *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        put_u16(b, s->token[i]);
    for (uint32_t c = 0; c < schema->n_channels; c++) {
        const char *name = schema->channels[c].name;

        for (uint32_t i = 0; i < s->n && name[0] == 't'; i++)
            put_u8(b, s->type[i]);
        for (uint32_t i = 0; i < s->n && name[0] == 'l'; i++)
            put_u32(b, (uint32_t)s->label[i]);
        if (name[0] == 'n')
            put_u32(b, (uint32_t)s->nsp);
    }
}

char *write_file(const void *data, size_t n)
{
    char name[] = "/tmp/bert-data-loader-t.XXXXXX";
    int fd = mkstemp(name);
    char *copy = must_alloc(sizeof name);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, n), n);
    assert_int_equal(close(fd), 0);
    memcpy(copy, name, sizeof name);
    return copy;
}

void remove_file(char *name)
{
    (void)unlink(name);
    free(name);
}

stand make_stand(int with, uint32_t depth, uint32_t packs)
{
    return (stand){.sentences = three,
                   .n = 3,
                   .schema = sentence_schema(with),
                   .packing = {.capacity = CAPACITY,
                               .depth = depth,
                               .window = 16,
                               .pad_id = PAD,
                               .policy = PS_POLICY_NEXTFIT},
                   .options = {.n_names = 1,
                               .epochs = 1,
                               .packs = packs,
                               .types = 2,
                               .mask_share = -1,
                               .seed = 7}};
}

void write_packs(stand *s)
{
    corpus c = {.schema = s->schema,
                .count = s->n,
                .samples = regrow(NULL, s->n * sizeof(sample))};
    bytes packs;

    for (uint32_t i = 0; i < s->n; i++) {
        bytes payload = {0};

        put_payload(&payload, &s->schema, &s->sentences[i]);
        c.samples[i] = (sample){.n_tok = s->sentences[i].n,
                                .payload = payload.data,
                                .payload_bytes = payload.size};
    }
    packs = corpus_packs(&c, &s->packing, NULL);
    s->name = write_file(packs.data, packs.size);
    s->options.names = (const char *const *)&s->name;
    free_bytes(&packs);
    free_corpus(&c);
}

void open_stand(stand *s)
{
    if (s->name == NULL)
        write_packs(s);
    s->loader = open_ok(&s->options);
}

void close_stand(stand *s)
{
    tr_loader_free(s->loader);
    remove_file(s->name);
}

tr_loader *open_ok(const tr_loader_options *options)
{
    tr_loader *f;
    ps_error err;

    assert_ok(tr_loader_open(&f, options, &err), &err);
    return f;
}

const tr_batch *next_ok(tr_loader *f)
{
    ps_error err;

    assert_ok(tr_loader_next(f, &err), &err);
    return tr_loader_batch(f);
}

sentence *random_sentences(uint32_t n, uint64_t seed)
{
    sentence *all = must_alloc(n * sizeof *all);

    for (uint32_t i = 0; i < n; i++) {
        all[i] = (sentence){.n = 1 + random_below(&seed, CAPACITY)};
        for (uint32_t k = 0; k < all[i].n; k++) {
            all[i].token[k] = (uint16_t)(4 + random_below(&seed, VOCAB - 4));
            all[i].label[k] = random_below(&seed, 3) == 0
                                  ? (int32_t)random_below(&seed, VOCAB)
                                  : -100;
        }
        all[i].nsp = (int32_t)random_below(&seed, 3) - 1;
    }
    return all;
}
