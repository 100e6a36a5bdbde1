# torch.bats - the BERT in C, compared with PyTorch's.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# Sets "python" to a python3 that has this module, or skips the test.
python_with() {
    for python in ${PYTHON_TORCH-} python3 /usr/bin/python3; do
        "$python" -c "import $1" >/dev/null 2>&1 && return
    done
    skip "no python3 has $1"
}

# compare STATE ATTENTION WHAT: STATE computes, then "python", and both agree.
compare() {
    [ -x "${abs_top_builddir:?}/tests/gen/$1" ] ||
        skip "the BERT in examples is not built"
    "$abs_top_builddir/tests/gen/$1" "$2" >state
    "$python" "${abs_top_srcdir:?}/tests/trainer/state-torch.py" "$3" <state
}

@test "layers of torch.nn have the same losses and gradients" {
    python_with torch
    compare bert_state varlen layers
    compare bert_state dense layers
    compare bert_state_double varlen layers
    compare bert_state_double dense layers
}

@test "layers of torch.nn agree with the CUDA back end" {
    python_with torch
    compare bert_state_cuda varlen layers
    compare bert_state_cuda_double varlen layers
}

@test "the transformers package has the same losses and gradients" {
    python_with transformers
    compare bert_state varlen transformers
    compare bert_state_double varlen transformers
}
