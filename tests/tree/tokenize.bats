#!/usr/bin/env bats
# tokenize.bats - packstream.tokenize compared with TRL and transformers.
#
# The checks are functions of tests/support/python-tokenize.py.  PEERS_PYTHON
# names a python3 with the package, tokenizers, transformers, trl, datasets and
# pyarrow.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

lacking() {
    if [ -z "${PEERS_PYTHON-}" ]; then
        echo "PEERS_PYTHON names no python3 with tokenizers and trainers"
    else
        lacks_module "$PEERS_PYTHON" packstream._native tokenizers \
            transformers trl datasets pyarrow || true
    fi
}

check() {
    python=$PEERS_PYTHON support python-tokenize.py "$@"
}

# Runs all checks except nightly ones before the tests: see forked.py.
setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    [ -z "${QUICK-}" ] || return 0
    lacking >reasons
    [ ! -s reasons ] || return 0
    # No downloads from a hub, no files left over.
    export HF_HUB_OFFLINE=1 HF_HOME=$BATS_FILE_TMPDIR/hf
    check each . <<END
import transformers.models.auto.tokenization_auto
import datasets
masks
tools
sharegpt
forms
processes
lines
packed
rejects
inexact
usage
states
kills 3
import transformers.models.llama.modeling_llama
import trl.trainer.sft_trainer
completions
pairs
recipe
page ${abs_top_srcdir:?}/docs/text-and-chat.md
starts
END
}

setup() {
    start_checked
}

@test "chat labels equal those of transformers, with and without marks; tools" {
    holds masks tools
}

@test "rows of ShareGPT are read like those of messages" {
    holds sharegpt
}

@test "text, completions and pairs match TRL's" {
    skip_without packstream
    holds completions pairs
}

@test "files, datasets and tables of all forms give the same sequences" {
    skip_without zstd
    holds forms
}

@test "any number of processes gives the same records" {
    holds processes
}

@test "line endings; empty files" {
    holds lines
}

@test "pack_dataset accepts the output of from_text" {
    holds packed
}

@test "rows that cannot be tokenized exactly are refused, and listed" {
    holds rejects inexact
}

@test "jobs that cannot start, and why" {
    holds usage
}

@test "a job that was killed resumes to identical output" {
    holds kills
}

# bats test_tags=night
@test "SIGTERM and SIGINT save the state" {
    check stops
}

@test "a state is bound to its job" {
    holds states
}

# bats test_tags=night
@test "a job that was killed 50 times resumes to identical output" {
    check kills 50
}

# bats test_tags=night
@test "memory does not grow with the input" {
    check memory
}

@test "from chats to training: targets and losses equal TRL's" {
    holds recipe
}

@test "docs/text-and-chat.md: its Python runs" {
    skip_without packstream
    holds page
}

@test "README.md: five kinds of data, each to a first step of training" {
    skip_without packstream
    holds starts
}
