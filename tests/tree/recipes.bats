#!/usr/bin/env bats
# recipes.bats - the recipes of examples/python and of python/README.md with
# the real packages: each sequence is used once over all processes, and the loss
# of a pack equals the loss of its sequences computed separately.
#
# The checks are functions of tests/support/python-recipes.py.  They run if
# PEERS_PYTHON names a python3 with packstream installed by pip, torch,
# torchdata, transformers, trl, datasets, accelerate, grain, jax and pyarrow.
# Packages that pin versions of others have their own environments and run
# nightly.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# Prints the reason that nothing can be tested, if any.
lacking() {
    if [ -z "${PEERS_PYTHON-}" ]; then
        echo "PEERS_PYTHON names no python3 with torch and trainers"
    else
        lacks_module "$PEERS_PYTHON" packstream._native torch torchdata \
            transformers trl datasets accelerate grain jax pyarrow || true
    fi
}

# Test the installed package, not the source tree.
check() {
    python=$PEERS_PYTHON support python-recipes.py "$@"
}

# Runs all checks except nightly ones before the tests: see forked.py.
setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    [ -z "${QUICK-}" ] || return 0
    lacking >reasons
    [ ! -s reasons ] || return 0
    check write x.tok
    packstream -q -a nextfit -L 64 -d 64 -o x.pks x.tok
    packstream -q -a nextfit -L 64 -d 64 --zstd -o z.pks x.tok
    # No downloads from a hub, no files left over.
    export HF_HUB_OFFLINE=1 HF_HOME=$BATS_FILE_TMPDIR/hf
    check each . <<END
import torch
speech
lists_flex
graphs
context_views
context_attention
dataset ../x.pks ../z.pks
ranks ../x.pks
import datasets
import accelerate
import transformers.models.llama.modeling_llama
import transformers.trainer
encoder_decoder
context_llama
distributed ../x.pks
launched ../x.pks
accelerated ../x.pks
grain_workers ../x.pks
grain_program ../x.pks
hf_trainer ../x.pks
attention ../x.pks
trainer_refuses ../x.pks
import trl.trainer.sft_trainer
trl_sft_trainer
exported_to_trl ../x.pks
packed_rows
readme ${abs_top_srcdir:?}/python/README.md ../x.pks
bert ../x.pks
flex ../x.pks
shared_prefixes
jax_model ../x.pks
END
}

setup() {
    start_checked
    ln -s "$BATS_FILE_TMPDIR"/?.pks .
}

@test "PackDataset: sources, orders, and state that workers would lose" {
    holds dataset
}

@test "a speech model, whose inputs are vectors" {
    holds speech
}

@test "an encoder-decoder model, whose encoder has lists" {
    holds encoder_decoder lists_flex
}

@test "graphs, whose edges are lists" {
    holds graphs
}

@test "context parallelism: attention, and a Llama, on 2 and 4 ranks" {
    holds context_views context_attention context_llama
}

@test "PackDataset across ranks; DistributedDataParallel: equal steps for all" {
    holds ranks distributed
}

@test "DistributedDataParallel with Slurm's variables" {
    holds launched
}

# bats test_tags=night
@test "DistributedDataParallel under mpirun" {
    skip_without mpirun
    allow_mpirun
    export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 10000))
    mpirun -n 2 "$PEERS_PYTHON" \
        "${abs_top_srcdir:?}/tests/support/python-recipes.py" \
        launched_rank x.pks .
    check launched_together .
}

@test "Accelerate: each pack once, prepared or not, or a clear error" {
    holds accelerated
}

@test "JAX: losses with the fields of MaxText" {
    holds jax_model
}

@test "Trainer; SFTTrainer of TRL; BERT; FlexAttention with block masks" {
    holds hf_trainer trl_sft_trainer bert flex shared_prefixes
}

@test "each attention of transformers; models that mix sequences are refused" {
    holds attention
}

# bats test_tags=night
@test "trainer.py as a program" {
    run -0 "$PEERS_PYTHON" "${abs_top_srcdir:?}/examples/python/trainer.py" \
        x.pks
    [[ $output == *train_loss* ]]
    packcat --to=ids x.pks | tokcat -q --from=ids | packstream -q -L 64 -o n.pks
    run -1 "$PEERS_PYTHON" "${abs_top_srcdir:?}/examples/python/trainer.py" \
        n.pks
    [[ $output == *'no vocabulary size'* ]]
}

# bats test_tags=night
@test "models of transformers: which find boundaries from positions" {
    check models x.pks
}

@test "packstream.export: TRL's collator, from parquet and Arrow" {
    holds exported_to_trl
}

@test "rows of pack_dataset in Trainer, SFTTrainer, Accelerate and DDP" {
    holds packed_rows
}

@test "Trainer with a PackDataset: refused, or each sequence once" {
    holds trainer_refuses
}

@test "grain: two processes with workers each, with and without jax" {
    holds grain_workers grain_program
}

# bats test_tags=night
@test "examples without arguments print their usage" {
    check usage "${abs_top_srcdir:?}/examples/python"
}

# bats test_tags=night
@test "from parquet to the first step of training" {
    local script=${abs_top_srcdir:?}/examples/python/parquet_to_training.py
    [ "$(wc -l <"$script")" -lt 30 ]
    check parquet documents.parquet
    run -0 "$PEERS_PYTHON" "$script" documents.parquet
    local stages='tokenizer|tokens|packs|first step'
    [ "$(grep -cE "^($stages) +[0-9.]+ s\$" <<<"$output")" = 4 ]
    packstat docs.pks | grep -E '^ +sequences +11,000$'
}

@test "the trainer examples of python/README.md" {
    holds readme
}

# own SCRIPT CHECK [ARGUMENT]...: runs a check in the environment of own_python.
own() {
    PYTHONPATH=$PWD/own python=$PWD/env/bin/python support "$@"
}

# bats test_tags=night
@test "xformers: BlockDiagonalCausalMask" {
    own_python xformers
    own python-recipes.py xformers x.pks
}

# bats test_tags=night
@test "torchtitan: a dataloader" {
    own_python torchtitan
    own python-recipes.py torchtitan x.pks
}

# bats test_tags=night
@test "Megatron-Core: PackedSeqParams" {
    own_python torch megatron-core
    own python-adapters.py megatron_params x.pks
}

# bats test_tags=night
@test "Ray Data: stateless, and an actor that packs the remainder" {
    own_python 'ray[data]' pyarrow
    own python-recipes.py ray_data
}
