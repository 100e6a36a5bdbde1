#!/usr/bin/env bats
# tokenize.bats - packstream.tokenize beside TRL and transformers.
#
# The checks are functions of python-tokenize.py in tests/support.  They want
# the package, tokenizers, transformers, trl, datasets and pyarrow installed for
# the python3 that PEERS_PYTHON names.
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

# All checks but those for the night, before the tests: see forked.py.
setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    [ -z "${QUICK-}" ] || return 0
    lacking >reasons
    [ ! -s reasons ] || return 0
    # Nothing is fetched from a hub, and nothing lies about.
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
stops
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

@test "labels of chats: those of transformers, with marks or without; tools" {
    holds masks tools
}

@test "rows of ShareGPT are those of messages" {
    holds sharegpt
}

@test "text, completions and pairs are as TRL prepares them" {
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

@test "what ends a line; empty files" {
    holds lines
}

@test "pack_dataset takes what from_text gives" {
    holds packed
}

@test "rows that cannot be tokenized exactly are refused, and listed" {
    holds rejects inexact
}

@test "what cannot begin, and why" {
    holds usage
}

@test "a job that was killed is resumed to the byte" {
    holds kills
}

@test "SIGTERM and SIGINT save the state" {
    holds stops
}

@test "a state is bound to its job" {
    holds states
}

# bats test_tags=night
@test "a job that was killed 50 times is resumed to the byte" {
    check kills 50
}

# bats test_tags=night
@test "memory does not grow with the input" {
    check memory
}

@test "from chats to training: targets and losses are those of TRL" {
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
