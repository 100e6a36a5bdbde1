/*
 * json-columns-t.c - JSON lines are read like jansson reads them.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tap.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "lib-fixture.h"
#include "tokcat/json_columns.h"

enum { IDS, LABELS, SCORE, TEXT, COLUMNS };

/* Columns, the first `n` of those below. */
static json_columns open_columns(uint32_t n)
{
    json_columns c = {0};

    assert_true(n <= COLUMNS && json_columns_open(&c, n));
    c.column[IDS] = json_column_of("input_ids", PS_U16);
    c.column[IDS].is_ids = true;
    c.column[IDS].max = 60000;
    if (n > LABELS)
        c.column[LABELS] = json_column_of("labels", PS_I32);
    if (n > SCORE)
        c.column[SCORE] = json_column_of("score", PS_I64);
    if (n > TEXT)
        c.column[TEXT] = json_column_of("text", PS_U8);
    if (n > TEXT)
        c.column[TEXT].is_ignored = true;
    return c;
}

static int64_t value_at(const json_column *c, size_t i)
{
    uint64_t bits = 0;

    for (size_t k = 0; k < c->width; k++)
        bits |= (uint64_t)c->values[i * c->width + k] << 8 * k;
    return c->min == 0 || c->width == 8 ? (int64_t)bits : (int32_t)bits;
}

/*
 * Reads a line from its own memory, ending with the newline.  Returns the
 * length of its lists, equal for all but "score" and "one"; or 0.
 */
static size_t read_line(json_columns *c, const char *text)
{
    const size_t n = strlen(text);
    char *line = must_alloc(n + 1);
    bool good;

    memcpy(line, text, n);
    line[n] = '\n';
    good = json_columns_read(c, (const unsigned char *)line, n) &&
           c->n_strays == 0 && c->misfit_at == NULL;
    for (uint32_t i = 0; i < c->n && good; i++) {
        const json_column *column = &c->column[i];
        const bool is_list = strcmp(column->key, "score") != 0 &&
                             strcmp(column->key, "one") != 0;

        if (!column->is_ignored)
            good = column->at != NULL && column->is_list == is_list &&
                   (!is_list || column->length == c->column[0].length);
    }
    free(line);
    return good ? c->column[0].length : 0;
}

/* Integers; true and false are 1 and 0. */
static bool is_value(const json_column *c, size_t i, const json_t *value)
{
    return json_is_boolean(value)
               ? !c->is_ids && value_at(c, i) == json_is_true(value)
               : json_is_integer(value) &&
                     json_integer_value(value) == value_at(c, i);
}

/* True if jansson reads the same values. */
static bool jansson_agrees(const json_columns *c, const char *text, size_t n)
{
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    size_t keys = 0;
    bool same = json_is_object(object);

    for (uint32_t i = 0; same && i < c->n; i++) {
        const json_column *column = &c->column[i];
        const json_t *value = json_object_get(object, column->key);

        keys += value != NULL;
        same = (column->at != NULL) == (value != NULL);
        if (column->is_ignored)
            continue;
        if (i == SCORE) {
            same = same && is_value(column, 0, value);
            continue;
        }
        same = same && json_array_size(value) == n;
        for (size_t k = 0; same && k < n; k++)
            same = is_value(column, k, json_array_get(value, k));
    }
    same = same && json_object_size(object) == keys;
    json_decref(object);
    return same;
}

/* ---- Lines that are read ---- */

static void test_read(void **state)
{
    static const struct {
        uint32_t columns;
        size_t length;
        const char *line;
    } lines[] = {
        {1, 1, "{\"input_ids\":[0]}"},
        {1, 3, "{\"input_ids\":[1,22,333]}"},
        {1, 3, "{\"input_ids\": [1, 22, 333]}"},
        {1, 3, " {\t\"input_ids\" :\r[ 1 ,22\t, 333 ] } \r"},
        {1, 4, "{\"input_ids\": [60000, -0, 10000, 7]}"},
        {2, 2, "{\"input_ids\": [1, 2], \"labels\": [-100, 2147483647]}"},
        {2, 2, "{\"labels\": [-2147483648, 9], \"input_ids\": [1, 2]}"},
        {2, 1, "{\"labels\": [12345678], \"input_ids\": [1]}"},
        {3, 1, "{\"score\": 123456789012345678, \"labels\":[1], "
               "\"input_ids\":[1]}"},
        {3, 1, "{\"labels\":[1], \"score\": -7, \"input_ids\":[1]}"},
        {3, 2, "{\"labels\":[true, false], \"score\": true, "
               "\"input_ids\":[1, 2]}"},
        {1, 1, "{\"\\u0069nput\\u005fids\":[1]}"},
        {4, 1, "{\"labels\":[1], \"score\": 0, \"input_ids\":[1]}"},
        {4, 1, "{\"labels\":[1], \"score\": 0, \"input_ids\":[1],"
               "\"text\": \"\\\"\\n\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"}"},
        {4, 1, "{\"text\": null, \"labels\":[1],\"score\":0,"
               "\"input_ids\":[1]}"},
        {4, 1, "{\"text\": [true, 1.5, -2, \"a\", false], \"labels\":[1],"
               "\"score\":0,\"input_ids\":[1]}"},
        {4, 1, "{\"text\": [ ], \"labels\":[1],\"score\":0,"
               "\"input_ids\":[1]}"},
    };

    for (size_t i = 0; i < COUNT(lines); i++) {
        json_columns c = open_columns(lines[i].columns);
        const size_t length = read_line(&c, lines[i].line);

        if (length != lines[i].length ||
            !jansson_agrees(&c, lines[i].line, length))
            fail_msg("%s", lines[i].line);
        json_columns_free(&c);
    }
}

/* ---- Lines that are refused ---- */

static void test_refused(void **state)
{
    static const char *const lines[] = {
        "", " ", "[]", "{}", "{", "}", "{\"", "{\"input_ids\"",
        "{\"input_ids\":", "{\"input_ids\":[", "{\"input_ids\":[1",
        "{\"input_ids\":[1,", "{\"input_ids\":[1]", "{\"input_ids\":[]}",
        "{\"input_ids\":[1]}}", "{\"input_ids\":[1]} x",
        "{\"input_ids\":[1],}", "{,\"input_ids\":[1]}",
        "{\"input_ids\":[1,]}", "{\"input_ids\":[,1]}",
        "{\"input_ids\":[1 2]}", "{\"input_ids\":[01]}",
        "{\"input_ids\":[00]}", "{\"input_ids\":[-]}",
        "{\"input_ids\":[-1]}", "{\"input_ids\":[+1]}",
        "{\"input_ids\":[60001]}", "{\"input_ids\":[1.0]}",
        "{\"input_ids\":[1e1]}", "{\"input_ids\":[true]}",
        "{\"input_ids\":[null]}", "{\"input_ids\":[\"1\"]}",
        "{\"input_ids\":[[1]]}", "{\"input_ids\":1}",
        "{\"input_ids\":[18446744073709551617]}",
        "{\"input_ids\":[9999999999999999999999, 1, 2]}",
        "{\"input_ids\":[1],\"input_ids\":[1]}",
        "{\"input_ids\":[1],\"other\":[1]}", "{\"other\":[1]}",
        "{\"input_id\":[1]}", "{\"input_idss\":[1]}",
        "{'input_ids':[1]}",
        "{\"input_ids\":[1]\x0b}", "{\"input_ids\":[tru]}",
        "{\"input_ids\":[1]\x01}",
        "{\"input_ids\" [1]}", "{\"input_ids\":[1]; }",
    };
    json_columns c = open_columns(1);

    for (size_t i = 0; i < COUNT(lines); i++)
        if (read_line(&c, lines[i]) != 0)
            fail_msg("%s", lines[i]);
    json_columns_free(&c);
}

/* An ignored value can be anything whose end can be found. */
static void test_ignored(void **state)
{
    static const char *const good[] = {
        "\"\\u0041\"", "\"\\\"\"", "\"\\\\\"", "\"\\x\"", "\"\x1f\"",
        "\"\x80\"", "NaN", "-Infinity", "1.5e999", "01",
        "[[1], {\"a\": \"]\"}]", "{}", "\"\\\\\\\"}\"", "[\"\\\\\", \"]\"]",
        "[{]]", "{\"text\": [1]}"};
    static const char *const bad[] = {
        "", "\"", "\"a", "\"\\\"", "\"\\\\\\\"", "[", "[1", "[1,", "[[]",
        "[\"]", "]", "1 2", "\"a\"\"b\"", ",1", "[1]1"};
    json_columns c = open_columns(COLUMNS);
    char line[200];

    for (size_t i = 0; i < COUNT(good) + COUNT(bad); i++) {
        (void)snprintf(line, sizeof line,
                       "{\"input_ids\":[1],\"labels\":[1],\"score\":1,"
                       "\"text\":%s}",
                       i < COUNT(good) ? good[i] : bad[i - COUNT(good)]);
        if (read_line(&c, line) != (i < COUNT(good)))
            fail_msg("%s", line);
    }
    json_columns_free(&c);
}

static void test_other_lengths(void **state)
{
    json_columns c = open_columns(2);

    assert_int_equal(read_line(&c, "{\"input_ids\":[1,2],\"labels\":[1,2]}"),
                     2);
    assert_int_equal(read_line(&c, "{\"input_ids\":[1,2],\"labels\":[1]}"), 0);
    assert_int_equal(read_line(&c, "{\"labels\":[1],\"input_ids\":[1,2]}"), 0);
    assert_int_equal(read_line(&c, "{\"labels\":[],\"input_ids\":[1,2]}"), 0);
    assert_int_equal(read_line(&c, "{\"input_ids\":[1,2]}"), 0);
    json_columns_free(&c);
}

/* Like jansson, which refuses all other keys. */
static void test_keys(void **state)
{
    static const char *const keys[] = {
        "", "a", "\xc3\xa9 /", "\\\"\\\\\\/\\b\\f\\n\\r\\t", "\\u0041\\u00e9",
        "\\u20AC\\u20ac\\uffff", "\\ud83d\\ude00", "\\udbff\\udfff\\u0001",
        "a\\", "\\x", "\\u12", "\\u123g", "\\u0000", "\\ud83d",
        "\\ud83d\\u0041", "\\ude00", "\\ud83d\\ud83d", "\\ud83dx", "\x01",
        "\x80", "\xc0\x80", "\xc3", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82",
        "\xe2\x82\xac", "\x7f", "\xf0\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80"};
    json_columns c = open_columns(1);
    unsigned read = 0;

    for (size_t i = 0; i < COUNT(keys); i++) {
        char line[100];
        json_t *object;
        bool good;

        (void)snprintf(line, sizeof line, "{\"input_ids\":[1],\"%s\":1}",
                       keys[i]);
        object = json_loads(line, 0, NULL);
        (void)read_line(&c, line);
        good = c.broken == NULL;
        if (good != (object != NULL) ||
            (good && (c.n_strays != 1 ||
                      json_object_get(object, c.column[1].key) == NULL)))
            fail_msg("%s", line);
        read += good;
        json_decref(object);
    }
    assert_int_equal(read, 11);
    json_columns_free(&c);
}

/* ---- Vectors ---- */

static bool read_vectors(json_columns *c, const char *value, uint32_t count)
{
    char line[200];

    *c = (json_columns){0};
    assert_true(json_columns_open(c, 2));
    c->column[0] = json_column_of("input_ids", PS_U16);
    c->column[1] = json_column_of("v", PS_I32);
    c->column[1].count = count;
    (void)snprintf(line, sizeof line, "{\"input_ids\":[7],\"v\":%s}\n", value);
    return json_columns_read(c, (const unsigned char *)line, strlen(line) - 1);
}

static void test_vectors(void **state)
{
    static const struct {
        const char *value;
        size_t length, vector;
        size_t ragged; /* index of a vector that is not of two; 9: none */
        int misfits[2]; /* index of the vector and of the value; or 9 */
        int broken;     /* offset in the value */
    } cases[] = {
        {"[[1,2],[3,4],[5,6]]", 3, 2, 9, {9, 9}, 0},
        {" [ [ 1 , 2 ] ,\t[3,4] ] ", 2, 2, 9, {9, 9}, 0},
        {"[[1,2],[3],[4,5,6]]", 3, 2, 1, {9, 9}, 0},
        {"[[],[1,2]]", 2, 0, 0, {9, 9}, 0},
        {"[[1,2],[3,0.5]]", 2, 2, 9, {1, 1}, 0},
        {"[[1,2],[null,3]]", 2, 2, 9, {1, 0}, 0},
        {"[[1,2],3]", 2, 2, 9, {1, 0}, 0},
        {"[[1,2],[[3],4]]", 2, 2, 9, {1, 0}, 0},
        {"[[1,2],\"a\",[\"b\",1]]", 3, 2, 9, {1, 0}, 0},
        {"[[1,2]", 0, 0, 9, {9, 9}, 6},
        {"[[1,2", 0, 0, 9, {9, 9}, 5},
        {"[[1,2],]", 0, 0, 9, {9, 9}, 7},
        {"[[1,2][3,4]]", 0, 0, 9, {9, 9}, 6},
        {"[[1,2]]]", 0, 0, 9, {9, 9}, 7},
        {"[[1,02]]", 0, 0, 9, {9, 9}, 4},
    };
    json_columns c;

    for (size_t i = 0; i < COUNT(cases); i++) {
        const json_column *v;
        bool good = read_vectors(&c, cases[i].value, 2);

        v = &c.column[1];
        if (cases[i].broken != 0)
            good = !good && c.broken_at - v->at == cases[i].broken;
        else
            good = good && v->is_nested && v->length == cases[i].length &&
                   v->vector == cases[i].vector &&
                   (v->ragged_at != NULL) == (cases[i].ragged != 9) &&
                   (v->ragged_at == NULL ||
                    v->ragged_index == cases[i].ragged) &&
                   (c.misfit_at != NULL) == (cases[i].misfits[0] != 9) &&
                   (c.misfit_at == NULL ||
                    ((int)c.misfit_vector == cases[i].misfits[0] &&
                     (int)c.misfit_index == cases[i].misfits[1])) &&
                   c.column[0].values[0] == 7;
        if (!good)
            fail_msg("%s", cases[i].value);
        json_columns_free(&c);
    }
    /* The values are contiguous. */
    assert_true(read_vectors(&c, "[[1,-2],[3,4]]", 2));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(value_at(&c.column[1], i), i == 1 ? -2 : (int)i + 1);
    json_columns_free(&c);
    /* A column of single values has no vectors. */
    assert_true(read_vectors(&c, "[[1,2]]", 0));
    assert_false(c.column[1].is_nested);
    assert_int_equal(c.misfit_why, ELEMENT_NO_NUMBER);
    json_columns_free(&c);
}

/* ---- Floats ---- */

/* A list of a float, a list of doubles, and a float, all of `number`. */
static size_t read_float(json_columns *c, const char *number)
{
    char line[1000];

    (void)snprintf(line, sizeof line,
                   "{\"input_ids\":[1,2],\"single\": [ %s , 0],\"one\":%s,"
                   "\"double\":[1,%s]}",
                   number, number, number);
    return read_line(c, line);
}

/* The value must equal jansson's bit by bit. */
static void expect_float(const json_columns *c, const char *number)
{
    json_t *json = json_loads(number, JSON_DECODE_ANY, NULL);
    const double wide = json_number_value(json);
    const float single = (float)wide;

    assert_non_null(json);
    if (memcmp(c->column[1].values, &single, sizeof single) != 0 ||
        memcmp(c->column[2].values, &single, sizeof single) != 0 ||
        memcmp(c->column[3].values + sizeof wide, &wide, sizeof wide) != 0)
        fail_msg("%s", number);
    json_decref(json);
}

static json_columns open_floats(void)
{
    json_columns c = {0};

    assert_true(json_columns_open(&c, 4));
    c.column[0] = json_column_of("input_ids", PS_U16);
    c.column[1] = json_column_of("single", PS_F32);
    c.column[2] = json_column_of("one", PS_F32);
    c.column[3] = json_column_of("double", PS_F64);
    return c;
}

static void test_floats(void **state)
{
    static const char *const good[] = {
        "0", "-0", "7", "-100", "16777216", "-16777216", "0.0", "-0.0", "0.5",
        "-0.25", "1.0", "0.1", "3.14159", "123456.789", "0.30000000000000004",
        "0.1234567890123456789012345678901234567890", "1e5", "-1E+5",
        "1.5e-3", "2.5E10", "1e-400", "5e-324", "1.4e-45", "7e-46",
        "3.4028234e38", "123456789012345678901234567890.5",
        "900719925474099.1", "900719925474099.25", "9007199254740993.0",
        "0.0000000000000000000001", "0.00000000000000000000001",
        "16777217.0", "0.000000000000000000000000000000000000000000001"};
    static const char *const bad[] = {
        "", "-", ".5", "1.", "1.e5", "1e", "1e+", "01", "01.5", "00.5", "--1",
        "+1", "1.5.5", "1.5e5.5", "0x10", "0x1p3", "1.5p3", "nan", "NaN",
        "inf", "Infinity", "nul", "\"1\"", "[1]", "1 2", "1.5f",
        "16777217", "-16777217", "1e39", "-3.5e38", "1e400", "-1e999",
        "99999999999999999999", "1,5"};
    json_columns c = open_floats();

    for (size_t i = 0; i < COUNT(good); i++) {
        if (read_float(&c, good[i]) != 2)
            fail_msg("%s", good[i]);
        expect_float(&c, good[i]);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        if (read_float(&c, bad[i]) != 0)
            fail_msg("%s", bad[i]);
    json_columns_free(&c);
}

/* All must be rounded like strtod rounds them. */
static void test_drawn_floats(void **state)
{
    json_columns c = open_floats();
    uint64_t random = 5;

    for (unsigned i = 0; i < 100000; i++) {
        const int64_t digits =
            (int64_t)(random_next(&random) >> (10 + random_below(&random, 54)));
        const double value =
            (double)digits / (double)(1 + random_below(&random, 1000000));
        char number[100];

        switch (i % 4) {
        case 0: /* any number of digits on both sides */
            (void)snprintf(number, sizeof number, "%lld.%0*lld",
                           (long long)(digits % 100000),
                           1 + (int)random_below(&random, 24),
                           (long long)digits);
            break;
        case 1:
            (void)snprintf(number, sizeof number, "%.17g", value);
            break;
        case 2:
            (void)snprintf(number, sizeof number, "-%.*f",
                           (int)random_below(&random, 20), value / 1e9);
            break;
        default:
            (void)snprintf(number, sizeof number, "%.*e",
                           (int)random_below(&random, 20), value * 1e-20);
            break;
        }
        if (read_float(&c, number) > 0)
            expect_float(&c, number);
        else /* an integer that is too long for a float */
            assert_true(strpbrk(number, ".e") == NULL);
    }
    json_columns_free(&c);
}

/* ---- Drawn lines ---- */

/* Appends one of some texts. */
static void append(char *line, uint64_t *random, const char *const *from,
                   size_t n)
{
    strcat(line, from[random_below(random, (uint32_t)n)]);
}

static void append_blank(char *line, uint64_t *random)
{
    static const char *const blanks[] = {"", "", " ", " ", "  ", "\t", "\r"};

    append(line, random, blanks, COUNT(blanks));
}

static void append_number(char *line, uint64_t *random, bool any)
{
    static const char *const odd[] = {
        "1.5", "-0", "01", "1e3", "true", "null", "\"1\"", "[1]", "--1",
        "123456789012345678", "1234567890123456789", "99999999", "", "7x"};
    char digits[24];
    const uint64_t value = random_next(random) >> random_below(random, 64);

    if (any && random_below(random, 40) == 0) {
        append(line, random, odd, COUNT(odd));
        return;
    }
    (void)snprintf(digits, sizeof digits, "%s%u",
                   any && random_below(random, 4) == 0 ? "-" : "",
                   (unsigned)(value % (any ? 1u << 31 : 60001)));
    strcat(line, digits);
}

static void append_list(char *line, uint64_t *random, uint32_t n, bool any)
{
    strcat(line, "[");
    for (uint32_t i = 0; i < n; i++) {
        append_blank(line, random);
        append_number(line, random, any);
        append_blank(line, random);
        if (i + 1 < n)
            strcat(line, ",");
    }
    strcat(line, "]");
}

/* Changes, drops or adds a byte; never a NUL. */
static void damage(char *line, uint64_t *random)
{
    const size_t n = strlen(line);
    const size_t at = random_below(random, (uint32_t)n);

    switch (random_below(random, 3)) {
    case 0:
        line[at] = (char)(1 + random_below(random, 255));
        break;
    case 1:
        memmove(line + at, line + at + 1, n - at);
        break;
    default:
        memmove(line + at + 1, line + at, n - at + 1);
        line[at] = "0,[]{}\": -9"[random_below(random, 11)];
        break;
    }
}

/*
 * Lines are read like jansson reads them or refused, valid or not; nearly all
 * valid lines are read.
 */
static void test_drawn(void **state)
{
    static const char *const texts[] = {"\"a\\\\b\"", "null", "[1, 2.5]",
                                        "\"\xc3\xa9\"", "-3", "[]"};
    json_columns c = open_columns(COLUMNS);
    uint64_t random = 8;
    unsigned read = 0;
    unsigned sound = 0;

    for (unsigned i = 0; i < 40000; i++) {
        const uint32_t n = random_below(&random, 9);
        const uint32_t first = random_below(&random, COLUMNS);
        const bool any = i % 2 == 0;
        char line[2000] = "{";
        size_t length;
        size_t at = 0;

        for (uint32_t k = 0; k < COLUMNS; k++) {
            const uint32_t column = (first + k) % COLUMNS;

            /* In an ignored value damage is not noticed. */
            if (column == TEXT && (n % 3 == 0 || i % 3 == 0))
                continue;
            if (at++ > 0)
                strcat(line, ",");
            append_blank(line, &random);
            strcat(line, "\"");
            strcat(line, c.column[column].key);
            strcat(line, "\"");
            append_blank(line, &random);
            strcat(line, ":");
            append_blank(line, &random);
            if (column == TEXT)
                append(line, &random, texts, COUNT(texts));
            else if (column == SCORE)
                append_number(line, &random, any);
            else
                append_list(line, &random, n, any && column == LABELS);
            append_blank(line, &random);
        }
        strcat(line, "}");
        if (i % 3 == 0)
            damage(line, &random);

        length = strchr(line, '\n') != NULL ? 0 : read_line(&c, line);
        if (length > 0 && !jansson_agrees(&c, line, length))
            fail_msg("%s", line);
        if (!any && i % 3 != 0 && n > 0) {
            sound++;
            assert_true(length > 0);
        }
        read += length > 0;
    }
    assert_true(sound > 10000 && read > sound + 1000);
    json_columns_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_ignored),
        cmocka_unit_test(test_other_lengths),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_drawn_floats),
        cmocka_unit_test(test_drawn),
    };

    return run_as_tap("json-columns", tests, NULL);
}
