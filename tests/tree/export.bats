#!/usr/bin/env bats
# export.bats - python -m packstream.export: packs as the columns of other
# trainers, read by their own loaders.
#
# The checks are functions of tests/support/python-export.py.  PEERS_PYTHON
# names a python3 with pyarrow and packstream installed by pip.  TRL is tested
# in recipes.bats, which imports it anyway.  Nightly tests have their own
# environments, into which pip can install packages.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# Streams with labels, the first third being a prompt; with a loss_mask; with
# non-token values; and with shifted labels, one of them of a last token.
sequences() {
    awk -v kind="$1" 'BEGIN {
        srand(5)
        for (i = 0; i < 400; i++) {
            n = 1 + int(40 * rand())
            ids = more = ""
            for (k = 0; k < n; k++) {
                id = 4 + int(90 * rand())
                ids = ids (k ? "," : "") id
                value = id
                if (kind == "loss_mask")
                    value = k >= n / 3
                else if (k < n / 3 && kind != "shifted")
                    value = -100
                else if (kind == "values")
                    value = id % 3
                more = more (k ? "," : "") value
            }
            printf "{\"input_ids\":[%s],\"%s\":[%s],\"source\":%d}\n",
                ids, kind == "loss_mask" ? kind : "labels", more, i % 7
        }
    }'
}

# packs NAME KIND LABELS CHANNEL [OPTION]...
packs() {
    sequences "$2" |
        tokcat -q --from=jsonl --vocab=100 --pad-id=3 ${3:+"$3"} \
            --channel="$4" --channel=source:u8 |
        packstream -q -L 64 "${@:5}" -o "$1.pks"
}

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    [ -z "${QUICK-}" ] && [ -n "${PEERS_PYTHON-}" ] || return 0
    ! lacks_module "$PEERS_PYTHON" packstream._native pyarrow >reasons ||
        return 0
    local labels=labels:i32:-100
    packs x labels --labels=aligned "$labels"
    packs aligned labels --labels=aligned "$labels" --align=8
    packs mask loss_mask '' loss_mask:u8
    packs values values --labels=aligned "$labels"
    packs shifted shifted --labels=shifted "$labels"
    python=$PEERS_PYTHON support python-export.py each . <<END
columns $(command -v packcat) 64 ../x.pks ../aligned.pks ../mask.pks
pipes ../x.pks
refused ../x.pks ../values.pks ../shifted.pks
stopped ../x.pks
vectors
lists
END
}

setup() {
    start_checked
}

@test "every column: labels, masks and aligned sequences" {
    holds columns
}

@test "channels of vectors" {
    holds vectors
}

@test "channels of lists" {
    holds lists
}

@test "from a pipe into a pipe" {
    holds pipes
}

@test "an error or a signal leaves the older file" {
    holds refused stopped
}

# own CHECK: runs a check in the environment of own_python.
own() {
    PYTHONPATH=$PWD/own python=$PWD/env/bin/python \
        support python-export.py "$1" "$BATS_FILE_TMPDIR/x.pks"
}

# bats test_tags=night
@test "MDS: StreamingDataset of mosaicml-streaming" {
    own_python mosaicml-streaming
    own mds
}

# bats test_tags=night
@test "LLaMA-Factory: its loader, its collator and its mask" {
    # All packages for one CUDA version; torchaudio 2.11.1 needs a later torch.
    own_python llamafactory 'torch==2.11.*' torchaudio==2.11.0
    own llama_factory
}

# bats test_tags=night
@test "Megatron-Bridge: its packed dataset" {
    own_python torch pyarrow transformers datasets omegaconf einops \
        sentencepiece tiktoken six regex requests
    env/bin/uv pip install -q --python env/bin/python --no-deps \
        megatron-bridge megatron-core
    own megatron_bridge
}
