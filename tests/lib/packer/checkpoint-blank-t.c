/*
 * checkpoint-blank-t.c - the state from before a stream starts.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>

static const char note[] = "where it is to begin";

static unsigned char *make(size_t *size)
{
    unsigned char *state;
    ps_error err;

    assert_ok(ps_state_blank(note, sizeof note, &state, size, &err), &err);
    return state;
}

static void test_says(void **unused)
{
    size_t size;
    unsigned char *state = make(&size);
    ps_state says;
    ps_error err;

    assert_ok(ps_state_read(state, size, &says, &err), &err);
    assert_true(says.blank && !says.finished);
    assert_int_equal(says.packs, 0);
    assert_int_equal(says.output_bytes, 0);
    assert_int_equal(says.input_sequences, 0);
    assert_int_equal(says.resume_from_id, 0);
    assert_int_equal(says.note_bytes, sizeof note);
    assert_memory_equal(says.note, note, sizeof note);
    free(state);
}

/* It fits every stream, verifies nothing, and has no point to resume from. */
static void test_used(void **unused)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    const ps_packer_options o = {40, 4, 9, 1, .policy = PS_POLICY_AUTO};
    size_t size;
    unsigned char *state = make(&size);
    int fd = open_empty();
    ps_packer *p;
    ps_error err;

    assert_ok(ps_state_fits(state, size, &schema, &o, &err), &err);
    assert_result(ps_packer_resume(&p, fd, &schema, &o, state, size, &err),
                  PS_ERR_ARGUMENT, &err);
    assert_null(p);
    assert_result(ps_packer_open_ended(&p, &schema, &o, state, size, &err),
                  PS_ERR_ARGUMENT, &err);
    assert_null(p);
    assert_ok(ps_packer_open(&p, fd, &schema, &o, &err), &err);
    assert_ok(ps_packer_verify_replay(p, state, size, &err), &err);
    assert_ok(ps_packer_replay_verified(p, &err), &err);
    assert_ok(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
    ps_packer_free(p);
    free(state);
}

static void test_damaged(void **unused)
{
    size_t size;
    unsigned char *state = make(&size);
    ps_state says;
    ps_error err;

    for (size_t i = 0; i < 8 * size; i++) {
        state[i / 8] ^= (unsigned char)(1 << i % 8);
        assert_int_not_equal(ps_state_read(state, size, &says, &err), PS_OK);
        state[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    for (size_t n = 0; n < size; n++)
        assert_int_not_equal(ps_state_read(state, n, &says, &err), PS_OK);
    free(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_says),
        cmocka_unit_test(test_used),
        cmocka_unit_test(test_damaged),
    };

    return run_as_tap("checkpoint-blank", tests, NULL);
}
