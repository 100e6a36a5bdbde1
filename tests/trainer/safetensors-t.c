/*
 * safetensors-t.c - files of tensors are read exactly, or refused.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/splitmix.h"
#include "folder/safetensors.h"

#define NAME "x.safetensors"
#define FILE_MAX 65536

/* A test's folder. */
typedef struct place {
    char path[40];
    int fd;
} place;

static int open_place(void **state)
{
    static place p;

    p = (place){.path = "/tmp/safetensors-t.XXXXXX"};
    assert_non_null(mkdtemp(p.path));
    p.fd = open(p.path, O_RDONLY | O_DIRECTORY);
    assert_true(p.fd >= 0);
    *state = &p;
    return 0;
}

static int close_place(void **state)
{
    const place *p = *state;

    (void)unlinkat(p->fd, NAME, 0);
    assert_int_equal(unlinkat(p->fd, NAME ".new", 0), -1);
    (void)close(p->fd);
    return rmdir(p->path);
}

static void put_bytes(const place *p, const void *bytes, size_t n)
{
    const int fd = openat(p->fd, NAME, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    (void)close(fd);
}

/* Writes a file with this header and `data` bytes of numbers. */
static void put_file(const place *p, const char *header, size_t data)
{
    static unsigned char bytes[FILE_MAX];
    const size_t n = strlen(header);

    assert_true(8 + n + data <= sizeof bytes);
    memset(bytes, 0, sizeof bytes);
    store_u64(bytes, n);
    memcpy(bytes + 8, header, n);
    put_bytes(p, bytes, 8 + n + data);
}

/* Opens the file and reads all tensors that can be read. */
static ps_result read_all(const place *p, ps_error *err)
{
    safetensors *file;
    ps_result r = safetensors_open(p->fd, NAME, &file, err);

    if (r != PS_OK) {
        assert_null(file);
        assert_string_not_equal(err->text, "");
        for (const char *c = err->text; *c != '\0'; c++)
            assert_in_range(*c, ' ', '~');
        return r;
    }
    for (size_t i = 0; i < safetensors_count(file) && r == PS_OK; i++) {
        const safetensors_tensor *t = safetensors_at(file, i);
        real *numbers = malloc(sizeof(real) * (size_t)t->numbers + 1);

        assert_non_null(numbers);
        assert_ptr_equal(safetensors_find(file, t->name), t);
        if (safetensors_is_real(t))
            r = safetensors_read(file, t, numbers, err);
        free(numbers);
    }
    safetensors_close(file);
    return r;
}

static void refuses(const place *p, ps_result code, const char *message)
{
    ps_error err;

    assert_int_equal(read_all(p, &err), code);
    assert_int_equal(err.code, code);
    if (strstr(err.text, message) == NULL)
        fail_msg("'%s' is not in '%s'", message, err.text);
}

#define ENTRY(name, type, shape, begin, end)                                 \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":" shape                  \
    ",\"data_offsets\":[" begin "," end "]}"

static const struct {
    const char *header;
    size_t data;
    ps_result code;
    const char *message;
} headers[] = {
    {"{}", 0, PS_OK, ""},
    {"{}   ", 0, PS_OK, ""},
    {"{" ENTRY("a", "F32", "[2]", "0", "8") "}", 8, PS_OK, ""},
    {"{" ENTRY("a", "F32", "[]", "0", "4") "}", 4, PS_OK, ""},
    {"{" ENTRY("a", "F4", "[2]", "0", "1") "}", 1, PS_OK, ""},
    {"{" ENTRY("a", "U8", "[0,7]", "0", "0") ","
     ENTRY("b", "U8", "[0]", "0", "0") "}", 0, PS_OK, ""},
    {"{" ENTRY("b", "U8", "[1]", "1", "2") ","
     ENTRY("a", "U8", "[1]", "0", "1") "}", 2, PS_OK, ""},
    {"{\"__metadata__\":{\"a\":\"b\"}}", 0, PS_OK, ""},
    {"", 0, PS_ERR_CORRUPT, "byte 8: the header is not a JSON object"},
    {" {}", 0, PS_ERR_CORRUPT, "byte 8: the header is not a JSON object"},
    {"[]", 0, PS_ERR_CORRUPT, "byte 8"},
    {"{\"a\":1", 0, PS_ERR_CORRUPT, "byte 14: not JSON"},
    {"{}x", 0, PS_ERR_CORRUPT, "not JSON"},
    {"{}", 1, PS_ERR_CORRUPT, "byte 10: 1 bytes after the last tensor"},
    {"{\"a\":1}", 0, PS_ERR_CORRUPT, "tensor a: is not an object"},
    {"{\"__metadata__\":{\"a\":1}}", 0, PS_ERR_CORRUPT,
     "__metadata__: the value of a"},
    {"{\"__metadata__\":1}", 0, PS_ERR_CORRUPT, "__metadata__"},
    {"{\"a\\u0000b\":{}}", 0, PS_ERR_CORRUPT, "NUL"},
    {"{\"a\xff\":{}}", 0, PS_ERR_CORRUPT, "not JSON"},
    {"{\"a\":{},\"a\":{}}", 0, PS_ERR_CORRUPT, "duplicate"},
    {"{" ENTRY("a", "F32", "[1]", "0", "4") ","
     ENTRY("a", "F32", "[1]", "4", "8") "}", 8, PS_ERR_CORRUPT,
     "duplicate"},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0, PS_ERR_CORRUPT,
     "duplicate"},
    {"{" ENTRY("a", "F33", "[1]", "0", "4") "}", 4, PS_ERR_UNSUPPORTED,
     "tensor a: unknown type \"F33\""},
    {"{\"a\":{}}", 0, PS_ERR_CORRUPT, "tensor a: no string \"dtype\""},
    {"{" ENTRY("a", "F32", "1", "0", "4") "}", 4, PS_ERR_CORRUPT,
     "no list \"shape\""},
    {"{" ENTRY("a", "F32", "[1.0]", "0", "4") "}", 4, PS_ERR_CORRUPT,
     "tensor a: a size in \"shape\""},
    {"{" ENTRY("a", "F32", "[-1]", "0", "4") "}", 4, PS_ERR_CORRUPT,
     "tensor a: a size in \"shape\""},
    {"{" ENTRY("a", "F32", "[4294967296,4294967296]", "0", "0") "}", 0,
     PS_ERR_CORRUPT, "the product of the shape is too large"},
    {"{" ENTRY("a", "F32", "[4611686018427387904]", "0", "0") "}", 0,
     PS_ERR_CORRUPT, "the product of the shape is too large"},
    {"{" ENTRY("a", "F32", "[9223372036854775808]", "0", "0") "}", 0,
     PS_ERR_CORRUPT, "too big integer"},
    {"{" ENTRY("a", "F32", "[1]", "0", "3") "}", 3, PS_ERR_CORRUPT,
     "tensor a: has 3 bytes, but its shape and type need 4"},
    {"{" ENTRY("a", "F4", "[1]", "0", "1") "}", 1, PS_ERR_CORRUPT,
     "tensor a: does not end with a whole byte"},
    {"{" ENTRY("a", "F32", "[1]", "4", "0") "}", 4, PS_ERR_CORRUPT,
     "ends before it begins"},
    {"{" ENTRY("a", "U8", "[1]", "0.0", "1") "}", 1, PS_ERR_CORRUPT,
     "data_offsets"},
    {"{" ENTRY("a", "U8", "[1]", "0,0", "1") "}", 1, PS_ERR_CORRUPT,
     "data_offsets"},
    {"{" ENTRY("a", "U8", "[2]", "0", "2") "}", 1, PS_ERR_TRUNCATED,
     "tensor a: ends at byte 2 of the data, but the file has 1"},
    {"{" ENTRY("a", "U8", "[2305843009213693951]", "0",
               "2305843009213693951") "}", 1, PS_ERR_TRUNCATED,
     "tensor a: ends at byte 2305843009213693951"},
    {"{" ENTRY("a", "U8", "[2]", "0", "2") ","
     ENTRY("b", "U8", "[2]", "1", "3") "}", 3, PS_ERR_CORRUPT,
     "tensor b: overlaps another: begins at byte 1 of the data, not at 2"},
    {"{" ENTRY("a", "U8", "[2]", "0", "2") ","
     ENTRY("b", "U8", "[2]", "0", "2") "}", 2, PS_ERR_CORRUPT, "overlaps"},
    {"{" ENTRY("a", "U8", "[1]", "0", "1") ","
     ENTRY("b", "U8", "[1]", "2", "3") "}", 3, PS_ERR_CORRUPT,
     "tensor b: follows a hole"},
    {"{" ENTRY("a", "U8", "[1]", "1", "2") "}", 2, PS_ERR_CORRUPT,
     "tensor a: follows a hole"},
    {"{" ENTRY("\\n\\u001b[2J\xc3\xa9", "U8", "[1]", "1", "2") "}", 2,
     PS_ERR_CORRUPT, "tensor ??[2J??: "},
};

/* Headers are accepted, or refused with a message that names the tensor. */
static void test_headers(void **state)
{
    for (size_t i = 0; i < COUNT(headers); i++) {
        ps_error err = {0};

        put_file(*state, headers[i].header, headers[i].data);
        if (headers[i].code == PS_OK)
            assert_int_equal(read_all(*state, &err), PS_OK);
        else
            refuses(*state, headers[i].code, headers[i].message);
    }
}

/* A name of any length is cut in messages. */
static void test_long_name(void **state)
{
    static char header[8192];
    size_t at = (size_t)snprintf(header, sizeof header, "{\"");

    memset(header + at, 'n', 5000);
    (void)snprintf(header + at + 5000, sizeof header - at - 5000, "\":1}");
    put_file(*state, header, 0);
    refuses(*state, PS_ERR_CORRUPT, "nnn: is not an object");
}

/* The size of the header is checked before memory is allocated. */
static void test_sizes(void **state)
{
    static const struct {
        uint64_t size;
        ps_result code;
        const char *message;
    } cases[] = {
        {3, PS_ERR_TRUNCATED, "the header has 3 bytes, but the file only 10"},
        {SAFETENSORS_HEADER_MAX, PS_ERR_TRUNCATED, "100000000 bytes"},
        {SAFETENSORS_HEADER_MAX + 1, PS_ERR_LIMIT, "the limit is 100000000"},
        {UINT64_C(1) << 63, PS_ERR_LIMIT, "9223372036854775808 bytes"},
        {UINT64_MAX, PS_ERR_LIMIT, "18446744073709551615 bytes"},
        {0, PS_ERR_CORRUPT, "byte 8"},
    };
    unsigned char bytes[10] = {[8] = '{', [9] = '}'};

    for (size_t i = 0; i < COUNT(cases); i++) {
        store_u64(bytes, cases[i].size);
        put_bytes(*state, bytes, sizeof bytes);
        refuses(*state, cases[i].code, cases[i].message);
    }
    for (size_t n = 0; n < 8; n++) {
        put_bytes(*state, bytes, n);
        refuses(*state, PS_ERR_TRUNCATED, "the file ends at byte");
    }
    put_bytes(*state, "\2\0\0\0\0\0\0\0{\0}", 10);
    refuses(*state, PS_ERR_CORRUPT, "byte 9: a NUL is not JSON");
}

/* Nested lists do not exhaust the stack. */
static void test_nested(void **state)
{
    static char header[60001] = "{\"a\":";

    memset(header + 5, '[', sizeof header - 6);
    put_file(*state, header, 0);
    refuses(*state, PS_ERR_CORRUPT, "maximum parsing depth reached");
}

/* Anything except a regular file is refused, without waiting. */
static void test_special(void **state)
{
    const place *p = *state;
    safetensors *file;
    ps_error err;

    assert_int_equal(safetensors_open(p->fd, NAME, &file, &err), PS_ERR_IO);
    assert_int_equal(err.sys_errno, ENOENT);
    assert_int_equal(safetensors_open(p->fd, ".", &file, &err),
                     PS_ERR_ARGUMENT);
    assert_int_equal(mkfifoat(p->fd, NAME, 0600), 0);
    assert_int_equal(safetensors_open(p->fd, NAME, &file, &err),
                     PS_ERR_ARGUMENT);
    assert_string_equal(err.text, "not a regular file");
}

/* A file that shrinks after it was opened is an error, not a signal. */
static void test_shrinks(void **state)
{
    const place *p = *state;
    const safetensors_tensor *t;
    safetensors *file;
    ps_error err;
    real numbers[2];
    int fd;

    put_file(p, "{" ENTRY("a", "F32", "[2]", "0", "8") "}", 8);
    assert_int_equal(safetensors_open(p->fd, NAME, &file, &err), PS_OK);
    fd = openat(p->fd, NAME, O_WRONLY);
    assert_int_equal(ftruncate(fd, 20), 0);
    (void)close(fd);
    t = safetensors_find(file, "a");
    assert_null(safetensors_find(file, "b"));
    assert_int_equal(safetensors_read(file, t, numbers, &err),
                     PS_ERR_TRUNCATED);
    safetensors_close(file);
}

/* ---- Mutants ---- */

static uint64_t below(uint64_t *seed, uint64_t n)
{
    *seed += SPLITMIX_GAMMA;
    return splitmix_finish(*seed) % n;
}

/* Changes some bytes of a valid file; its header ends at `head`. */
static size_t mutate(uint64_t *seed, unsigned char *bytes, size_t n,
                     size_t head)
{
    static const char letters[] = "{}[],:\"0123456789-.eE \\nuFBI\t";
    const uint64_t changes = 1 + below(seed, 4);

    for (uint64_t i = 0; i < changes; i++) {
        const size_t at = below(seed, 20) == 0 ? below(seed, n)
                                               : 8 + below(seed, head - 8);

        switch (below(seed, 4)) {
        case 0:
            bytes[at] = (unsigned char)below(seed, 256);
            break;
        case 1:
            bytes[at] ^= (unsigned char)(1 << below(seed, 8));
            break;
        default:
            bytes[at] = (unsigned char)letters[below(seed, COUNT(letters) - 1)];
            break;
        }
    }
    return below(seed, 20) == 0 ? below(seed, n + 1) : n;
}

/* Files with random changes are read or refused. */
static void test_mutants(void **state)
{
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        ENTRY("b", "BF16", "[2]", "12", "16") ","
        ENTRY("a", "F32", "[1,3]", "0", "12") ","
        ENTRY("c", "F64", "[0]", "16", "16") "}";
    const size_t head = 8 + strlen(header);
    const int tries = is_short() ? 10000 : 1000000;
    unsigned char first[512] = {0}, bytes[512];
    uint64_t seed = 42;
    int read = 0;

    store_u64(first, head - 8);
    memcpy(first + 8, header, head - 8);
    for (int i = 0; i < tries; i++) {
        ps_error err;
        size_t n = head + 16;

        memcpy(bytes, first, sizeof bytes);
        n = mutate(&seed, bytes, n, head);
        put_bytes(*state, bytes, n);
        read += read_all(*state, &err) == PS_OK;
    }
    assert_true(read > tries / 100 && read < tries / 2);
}

/* ---- Numbers ---- */

/* Reads the tensor "x" of one number. */
static double read_one(const place *p, const char *header,
                       const unsigned char *number, size_t n)
{
    unsigned char bytes[256];
    safetensors *file;
    ps_error err;
    real x;

    store_u64(bytes, strlen(header));
    memcpy(bytes + 8, header, strlen(header));
    memcpy(bytes + 8 + strlen(header), number, n);
    put_bytes(p, bytes, 8 + strlen(header) + n);
    assert_int_equal(safetensors_open(p->fd, NAME, &file, &err), PS_OK);
    assert_int_equal(
        safetensors_read(file, safetensors_find(file, "x"), &x, &err), PS_OK);
    safetensors_close(file);
    return (double)x;
}

static void test_halves(void **state)
{
    static const struct {
        uint16_t bits;
        double value;
    } f16[] = {{0x0000, 0},          {0x8000, -0.0},         {0x3c00, 1},
               {0x3555, 0x1.554p-2}, {0x7bff, 65504},        {0x0400, 0x1p-14},
               {0x03ff, 0x1.ff8p-15}, {0x0001, 0x1p-24},     {0x8001, -0x1p-24},
               {0x7c00, HUGE_VAL},   {0xfc00, -HUGE_VAL}},
      bf16[] = {{0x0000, 0},    {0x3f80, 1},         {0xc0a0, -5},
                {0x0001, 0x1p-133}, {0x7f7f, 0x1.fep127}, {0xff80, -HUGE_VAL}};
    unsigned char bytes[2];

    for (size_t i = 0; i < COUNT(f16); i++) {
        double x;

        store_u16(bytes, f16[i].bits);
        x = read_one(*state, "{" ENTRY("x", "F16", "[]", "0", "2") "}", bytes,
                     2);
        assert_true(x == f16[i].value &&
                    signbit(x) == signbit(f16[i].value));
    }
    for (size_t i = 0; i < COUNT(bf16); i++) {
        store_u16(bytes, bf16[i].bits);
        assert_true(read_one(*state, "{" ENTRY("x", "BF16", "[]", "0", "2") "}",
                             bytes, 2) == bf16[i].value);
    }
    store_u16(bytes, 0x7c01);
    assert_true(isnan(read_one(
        *state, "{" ENTRY("x", "F16", "[]", "0", "2") "}", bytes, 2)));
    store_u16(bytes, 0xff81);
    assert_true(isnan(read_one(
        *state, "{" ENTRY("x", "BF16", "[]", "0", "2") "}", bytes, 2)));
}

/* Only types of real numbers can be read as such. */
static void test_integers(void **state)
{
    const place *p = *state;
    safetensors *file;
    ps_error err;
    real x;

    put_file(p, "{" ENTRY("x", "I32", "[1]", "0", "4") "}", 4);
    assert_int_equal(safetensors_open(p->fd, NAME, &file, &err), PS_OK);
    assert_false(safetensors_is_real(safetensors_at(file, 0)));
    assert_int_equal(
        safetensors_read(file, safetensors_at(file, 0), &x, &err),
        PS_ERR_UNSUPPORTED);
    safetensors_close(file);
}

/* Written tensors are read again, and equal tensors are found equal. */
static void test_written(void **state)
{
    enum { ROWS = 300, COLUMNS = 700 };
    static real big[ROWS * COLUMNS], again[ROWS * COLUMNS];
    const real few[2] = {1, 2};
    const safetensors_item items[] = {{"z", 2, {ROWS, COLUMNS}, big},
                                      {"few", 1, {2, 0}, few},
                                      {"none", 2, {0, 3}, NULL},
                                      {"a\xc3\xa9\"\n", 1, {1, 0}, few},
                                      {"y", 2, {ROWS, COLUMNS}, big},
                                      {"x", 2, {COLUMNS, ROWS}, big}};
    const place *p = *state;
    const safetensors_tensor *z;
    safetensors *file;
    ps_error err;
    bool same;

    for (size_t i = 0; i < COUNT(big); i++)
        big[i] = (real)i / 2 - 7;
    assert_int_equal(
        safetensors_write(p->fd, NAME, items, COUNT(items), &err), PS_OK);
    assert_int_equal(safetensors_open(p->fd, NAME, &file, &err), PS_OK);
    assert_int_equal(safetensors_count(file), COUNT(items));
    assert_string_equal(safetensors_at(file, 0)->name, "a\xc3\xa9\"\n");
    z = safetensors_find(file, "z");
    assert_int_equal(z->rank, 2);
    assert_int_equal(z->shape[0], ROWS);
    assert_int_equal(z->shape[1], COLUMNS);
    assert_int_equal(z->begin, 0);
    assert_int_equal(safetensors_read(file, z, again, &err), PS_OK);
    assert_memory_equal(big, again, sizeof big);
    assert_int_equal(safetensors_equal(file, z, file,
                                       safetensors_find(file, "y"), &same,
                                       &err), PS_OK);
    assert_true(same);
    assert_int_equal(safetensors_equal(file, z, file,
                                       safetensors_find(file, "x"), &same,
                                       &err), PS_OK);
    assert_false(same);
    assert_int_equal(safetensors_equal(file, safetensors_find(file, "few"),
                                       file, z, &same, &err), PS_OK);
    assert_false(same);
    safetensors_close(file);
}

/* Names that a reader would refuse are not written. */
static void test_bad_names(void **state)
{
    const real x = 1;
    const safetensors_item cases[][2] = {
        {{"a", 1, {1, 0}, &x}, {"a", 1, {1, 0}, &x}},
        {{"a", 1, {1, 0}, &x}, {"__metadata__", 1, {1, 0}, &x}},
        {{"a", 1, {1, 0}, &x}, {"\xff", 1, {1, 0}, &x}},
    };
    const place *p = *state;
    ps_error err;

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(safetensors_write(p->fd, NAME, cases[i], 2, &err),
                         PS_ERR_ARGUMENT);
    assert_int_equal(faccessat(p->fd, NAME, F_OK, 0), -1);
}

/* A write error leaves the old file, and nothing else. */
static void test_full(void **state)
{
    static real many[10000];
    const safetensors_item item = {"x", 1, {COUNT(many), 0}, many};
    const safetensors_item small = {"x", 1, {1, 0}, many};
    const place *p = *state;
    struct rlimit limit, old;
    ps_error err;

    assert_int_equal(safetensors_write(p->fd, NAME, &small, 1, &err), PS_OK);
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = 4096;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(safetensors_write(p->fd, NAME, &item, 1, &err), PS_ERR_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(err.sys_errno, EFBIG);
    assert_int_equal(read_all(p, &err), PS_OK);
}

#define IN_PLACE(test) \
    cmocka_unit_test_setup_teardown(test, open_place, close_place)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        IN_PLACE(test_headers),  IN_PLACE(test_long_name),
        IN_PLACE(test_sizes),    IN_PLACE(test_nested),
        IN_PLACE(test_special),  IN_PLACE(test_shrinks),
        IN_PLACE(test_mutants),  IN_PLACE(test_halves),
        IN_PLACE(test_integers), IN_PLACE(test_written),
        IN_PLACE(test_bad_names), IN_PLACE(test_full),
    };

    return run_as_tap("safetensors", tests, NULL);
}
