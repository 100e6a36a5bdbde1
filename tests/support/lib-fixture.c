/*
 * lib-fixture.c - shared by the tests of the library.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include "bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* ---------------------------------------------------------------- results */

static bool is_sentence(const char *text, size_t size)
{
    size_t n = strnlen(text, size);

    if (n == 0 || n == size)
        return false;
    for (size_t i = 0; i < n; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return true;
}

void check_result(ps_result got, ps_result wanted, const ps_error *err,
                  const char *call, const char *file, int line)
{
    bool failure = wanted != PS_OK && wanted != PS_END;

    if (got != wanted) {
        print_error("%s gives \"%s\" instead of \"%s\"%s%s\n", call,
                    ps_result_text(got), ps_result_text(wanted),
                    err != NULL && got > PS_END ? ": " : "",
                    err != NULL && got > PS_END ? err->text : "");
        _fail(file, line);
    }
    if (failure && err != NULL &&
        (err->code != wanted || !is_sentence(err->text, sizeof err->text))) {
        print_error("%s leaves code %d and text \"%.256s\"\n", call,
                    (int)err->code, err->text);
        _fail(file, line);
    }
}

/* ---------------------------------------------------------------- memory */

void *must_alloc(size_t n)
{
    void *p = malloc(n > 0 ? n : 1);

    assert_non_null(p);
    return p;
}

/* ----------------------------------------------------------------- files */

int open_empty(void)
{
    FILE *file = tmpfile();
    int fd;

    assert_non_null(file);
    fd = dup(fileno(file));
    assert_true(fd >= 0);
    assert_int_equal(fclose(file), 0);
    return fd;
}

int open_data(const void *data, size_t n)
{
    const unsigned char *p = data;
    int fd = open_empty();

    while (n > 0) {
        ssize_t put = write(fd, p, n);

        assert_true(put > 0);
        p += put;
        n -= (size_t)put;
    }
    rewind_fd(fd);
    return fd;
}

int open_bytes(const bytes *b)
{
    return open_data(b->data, b->size);
}

void rewind_fd(int fd)
{
    assert_true(lseek(fd, 0, SEEK_SET) == 0);
}

size_t size_of(int fd)
{
    off_t end = lseek(fd, 0, SEEK_END);

    assert_true(end >= 0);
    return (size_t)end;
}

bytes read_back(int fd)
{
    bytes b = {0};
    size_t at = 0;

    put_zeros(&b, size_of(fd));
    while (at < b.size) {
        ssize_t got = pread(fd, b.data + at, b.size - at, (off_t)at);

        assert_true(got > 0);
        at += (size_t)got;
    }
    return b;
}

void assert_same_bytes(const bytes *a, const bytes *b)
{
    assert_int_equal(a->size, b->size);
    assert_memory_equal(a->data, b->data, a->size);
}

/* --------------------------------------------------------------- random */

/* Xorshift: simple, and the same everywhere. */
uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

uint32_t random_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)((random_next(state) >> 16) % n);
}

/* ------------------------------------------------------------- sequences */

ps_schema rich_schema(ps_type token_type)
{
    static const ps_channel channels[] = {
        {"labels", PS_I32, PS_PER_TOKEN, 0xffffff9c, 0},
        {"score", PS_F64, PS_PER_SEQUENCE, 0, 0},
        {"type_id", PS_U8, PS_PER_TOKEN, 7, 0},
        {"group", PS_U16, PS_PER_SEQUENCE, 0xffff, 0},
        {"weight", PS_F32, PS_PER_TOKEN, 0x3f800000, 3},
    };
    ps_schema schema = ps_schema_raw(token_type);

    schema.framed = true;
    schema.special[PS_EOS] = 2;
    schema.labels = PS_LABELS_ALIGNED;
    schema.tokenizer[0] = 0xaa;
    schema.tokenizer[31] = 0x55;
    schema.n_channels = sizeof channels / sizeof channels[0];
    memcpy(schema.channels, channels, sizeof channels);
    return schema;
}

void set_groups(corpus *c)
{
    const uint32_t channel = 3;

    assert_string_equal(c->schema.channels[channel].name, "group");
    for (uint32_t i = 0; i < c->count; i++)
        store_u16(c->samples[i].payload +
                      ps_payload_offset(&c->schema, channel,
                                        c->samples[i].n_tok),
                  (uint16_t)(i / 7 + (i % 7 > 2) + (i % 7 > 5)));
}

static sample make_sample(const ps_schema *schema, uint32_t n_tok,
                          uint64_t *state)
{
    size_t n = (size_t)ps_payload_bytes(schema, n_tok);
    sample s = {n_tok, regrow(NULL, n), n};

    for (size_t i = 0; i < n; i++)
        s.payload[i] = (unsigned char)random_below(state, 256);
    return s;
}

corpus make_lengths(const ps_schema *schema, uint32_t count,
                    const uint32_t *lengths, uint64_t seed)
{
    corpus c = {.schema = *schema, .count = count};

    c.samples = regrow(NULL, count * sizeof *c.samples);
    for (uint32_t i = 0; i < count; i++)
        c.samples[i] = make_sample(schema, lengths[i], &seed);
    return c;
}

corpus make_corpus(const ps_schema *schema, uint32_t count,
                   uint32_t longest, uint64_t seed)
{
    uint32_t *lengths = must_alloc(count * sizeof *lengths);
    corpus c;

    for (uint32_t i = 0; i < count; i++)
        lengths[i] = 1 + random_below(&seed, longest);
    c = make_lengths(schema, count, lengths, seed);
    free(lengths);
    return c;
}

void free_corpus(corpus *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        drop_memory(c->samples[i].payload);
    drop_memory(c->samples);
    *c = (corpus){.count = 0};
}

ps_sequence corpus_sequence(const corpus *c, uint32_t i)
{
    return (ps_sequence){.id = i,
                         .n_tok = c->samples[i].n_tok,
                         .payload = c->samples[i].payload,
                         .payload_bytes = c->samples[i].payload_bytes};
}

void assert_sample(const corpus *c, uint32_t i, const ps_sequence *s)
{
    assert_true(i < c->count);
    assert_int_equal(s->n_tok, c->samples[i].n_tok);
    assert_int_equal(s->payload_bytes, c->samples[i].payload_bytes);
    assert_memory_equal(s->payload, c->samples[i].payload,
                        s->payload_bytes);
}

bytes corpus_records(const corpus *c)
{
    int fd = open_empty();
    ps_token_writer *writer;
    ps_error err;
    bytes b;

    assert_ok(ps_token_writer_open(&writer, fd, &c->schema, &err), &err);
    for (uint32_t i = 0; i < c->count; i++)
        assert_ok(ps_token_writer_put(writer, c->samples[i].n_tok,
                                      c->samples[i].payload, &err),
                  &err);
    assert_ok(ps_token_writer_finish(writer, &err), &err);
    ps_token_writer_free(writer);
    b = read_back(fd);
    (void)close(fd);
    return b;
}

ps_packer *open_packer(int fd, const ps_packer_options *options)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    ps_packer *p;
    ps_error err;

    assert_ok(ps_packer_open(&p, fd, &schema, options, &err), &err);
    return p;
}

void put_corpus(ps_packer *p, const corpus *c, uint32_t from, uint32_t to)
{
    ps_error err;

    for (uint32_t i = from; i < to; i++) {
        ps_sequence s = corpus_sequence(c, i);

        assert_ok(ps_packer_put(p, &s, &err), &err);
    }
}

bytes corpus_packs(const corpus *c, const ps_packer_options *options,
                   ps_totals *totals)
{
    int fd = open_empty();
    ps_packer *packer;
    ps_error err;
    bytes b;

    assert_ok(ps_packer_open(&packer, fd, &c->schema, options, &err), &err);
    put_corpus(packer, c, 0, c->count);
    assert_ok(ps_packer_flush(packer, PS_FLUSH_FINISH, &err), &err);
    if (totals != NULL)
        *totals = *ps_packer_totals(packer);
    ps_packer_free(packer);
    b = read_back(fd);
    (void)close(fd);
    return b;
}

size_t lengths_size(const bytes *records)
{
    return get_u64(records->data + records->size - 40);
}

void drop_lengths(bytes *records)
{
    const size_t n = lengths_size(records);

    memmove(records->data + records->size - 32 - n,
            records->data + records->size - 32, 32);
    records->size -= n;
}

void put_lengths(bytes *records, const corpus *c)
{
    const size_t at = records->size;
    uint32_t last = 0;

    put_zeros(records, 12);
    for (;;) {
        uint32_t next = UINT32_MAX;
        uint64_t count = 0;

        for (uint32_t i = 0; i < c->count; i++) {
            const uint32_t n = c->samples[i].n_tok;

            if (n > last && n < next)
                next = n;
        }
        for (uint32_t i = 0; i < c->count; i++)
            count += c->samples[i].n_tok == next;
        if (count == 0)
            break;
        put_u32(records, next);
        put_u64(records, count);
        last = next;
    }
    put_zeros(records, 24);
    seal_lengths(records->data + at, records->size - at, at);
}

bytes records_from(corpus c)
{
    bytes b = corpus_records(&c);

    free_corpus(&c);
    return b;
}

bytes packs_from(corpus c, const ps_packer_options *options,
                 ps_totals *totals)
{
    bytes b = corpus_packs(&c, options, totals);

    free_corpus(&c);
    return b;
}

/* ---------------------------------------------------------------- streams */

void join_bytes(bytes *b, bytes more)
{
    put_bytes(b, more.data, more.size);
    free_bytes(&more);
}

ps_token_reader *open_tokens(int fd, const ps_token_reader_options *options)
{
    ps_token_reader *r;
    ps_error err;

    assert_ok(ps_token_reader_open(&r, fd, PS_U16, options, &err), &err);
    return r;
}

/* Offsets in the header, and sizes of heads, from packstream(5). */
enum {
    AT_ROW_BYTES = 20,
    AT_SEQ_BYTES = 184,
    BLOCK_HEAD = 64
};

size_t block_bytes(const unsigned char *block)
{
    return (size_t)get_u64(block + 24);
}

unsigned char *block_at(const bytes *packs, size_t k, size_t at)
{
    size_t place = PS_PACK_HEADER_BYTES;

    for (; k > 0; k--)
        place += block_bytes(packs->data + place);
    assert_true(place + at < packs->size);
    return packs->data + place + at;
}

unsigned char *end_at(const bytes *packs, size_t at)
{
    size_t k = 0;

    while (get_u32(block_at(packs, k, 4)) != 1)
        k++;
    return block_at(packs, k, at);
}

/* The block of pack *i, which becomes an index within it. */
static unsigned char *find_block(const bytes *packs, size_t *i)
{
    for (size_t k = 0;; k++) {
        unsigned char *block = block_at(packs, k, 0);
        const size_t n = get_u32(block + 8);

        if (*i < n)
            return block;
        *i -= n;
    }
}

unsigned char *block_of(const bytes *packs, size_t i)
{
    return find_block(packs, &i);
}

unsigned char *row_at(const bytes *packs, size_t i, size_t at)
{
    const size_t size = get_u32(packs->data + AT_ROW_BYTES);
    unsigned char *block = find_block(packs, &i);

    assert_true(at < size);
    return block + BLOCK_HEAD + i * size + at;
}

unsigned char *head_at(const bytes *packs, size_t i, size_t at)
{
    const size_t size = get_u32(packs->data + AT_ROW_BYTES);
    unsigned char *block = find_block(packs, &i);

    assert_true(at < PS_PACK_HEAD_BYTES);
    return block + BLOCK_HEAD + get_u32(block + 8) * size +
           i * PS_PACK_HEAD_BYTES + at;
}

unsigned char *seq_at(const bytes *packs, size_t i, size_t s, size_t at)
{
    const size_t size = get_u32(packs->data + AT_SEQ_BYTES);
    const size_t first = get_u32(head_at(packs, i, 8));
    unsigned char *block = find_block(packs, &i);

    assert_true(at < size);
    return block + BLOCK_HEAD +
           get_u32(block + 8) * ((size_t)get_u32(packs->data + AT_ROW_BYTES) +
                                 PS_PACK_HEAD_BYTES) +
           (first + s) * size + at;
}

void seal_packs(bytes *packs)
{
    (void)seal_streams(packs->data, packs->size);
}

/* By member, because padding of the structure does not count. */
void assert_totals(const ps_totals *a, const ps_totals *b)
{
    assert_int_equal(a->packs, b->packs);
    assert_int_equal(a->sequences, b->sequences);
    assert_int_equal(a->tokens, b->tokens);
    assert_int_equal(a->input_sequences, b->input_sequences);
    assert_int_equal(a->input_tokens, b->input_tokens);
    assert_int_equal(a->rejected_sequences, b->rejected_sequences);
    assert_int_equal(a->rejected_tokens, b->rejected_tokens);
    assert_int_equal(a->truncated_sequences, b->truncated_sequences);
    assert_int_equal(a->truncated_tokens, b->truncated_tokens);
    assert_int_equal(a->split_sequences, b->split_sequences);
    assert_int_equal(a->extra_pieces, b->extra_pieces);
    assert_int_equal(a->max_displacement, b->max_displacement);
    assert_int_equal(a->max_seqlen, b->max_seqlen);
    assert_int_equal(a->max_depth, b->max_depth);
    assert_int_equal(a->min_fill, b->min_fill);
}

void assert_unpacked(const bytes *packs, const corpus *c)
{
    int fd = open_bytes(packs);
    ps_pack_reader *reader;
    ps_unpacker *unpacker;
    ps_sequence s;
    ps_error err;

    assert_ok(ps_pack_reader_open(&reader, fd, &err), &err);
    assert_ok(ps_unpacker_open(&unpacker, reader, PS_ORDER_INPUT, &err),
              &err);
    for (uint32_t i = 0; i < c->count; i++) {
        assert_ok(ps_unpacker_next(unpacker, &s, &err), &err);
        assert_int_equal(s.id, i);
        assert_sample(c, i, &s);
    }
    for (int i = 0; i < 3; i++) /* the end stays the end */
        assert_result(ps_unpacker_next(unpacker, &s, &err), PS_END, &err);
    ps_unpacker_free(unpacker);
    ps_pack_reader_free(reader);
    (void)close(fd);
}

/* Counts packs if `n_packs` is given, and checks them if `by_check` is. */
static ps_result read_all(const bytes *packs, uint64_t *n_packs,
                          bool *by_check, ps_error *err)
{
    int fd = open_bytes(packs);
    ps_pack_reader *reader;
    ps_pack pack;
    ps_result r = ps_pack_reader_open(&reader, fd, err);

    while (r == PS_OK) {
        r = ps_pack_reader_next(reader, &pack, err);
        if (r == PS_OK && n_packs != NULL)
            ++*n_packs;
        if (r == PS_OK && by_check != NULL) {
            r = ps_pack_check(ps_pack_reader_info(reader), &pack, err);
            *by_check = r != PS_OK;
        }
    }
    ps_pack_reader_free(reader);
    (void)close(fd);
    return r;
}

ps_result read_packs(const bytes *packs, uint64_t *n_packs, ps_error *err)
{
    *n_packs = 0;
    return read_all(packs, n_packs, NULL, err);
}

ps_result audit_packs(const bytes *packs, bool *by_check, ps_error *err)
{
    *by_check = false;
    return read_all(packs, NULL, by_check, err);
}
