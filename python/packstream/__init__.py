"""packstream - tokenised sequences in fixed-length packs, for training.

    packs = packstream.open("corpus.pks")      # any order, also of zstd
    packstream.Packer                          # packs in this process
    packstream.pack_dataset                    # packs a datasets.Dataset
    packstream.TokenWriter                     # writes what packstream packs
    packstream.from_arrow                      # tables and parquet, for both
    packstream.Deal                            # packs to ranks, equal work

Adapters for trainers are modules of their own: packstream.torch, hf,
flash_attn, megatron, maxtext.

SPDX-License-Identifier: MIT
"""

from typing import Any

from packstream.deal import Deal
from packstream.files import PackFiles, open
from packstream.packer import Packer, pack_lengths
from packstream.packs import Batch, Header, PackError, Packs
from packstream.schema import Channel, Columns
from packstream.writer import TokenWriter

__all__ = ["Batch", "Channel", "Columns", "Deal", "Header", "PackDataset",
           "PackError", "PackFiles", "Packer", "Packs", "TokenWriter",
           "from_arrow", "open", "pack_dataset", "pack_lengths"]

# What needs pyarrow or torch is imported when it is asked for.
_LATER = {"from_arrow": "arrow", "pack_dataset": "dataset",
          "PackDataset": "torch"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError("module 'packstream' has no attribute %r" % name)
    from importlib import import_module
    return getattr(import_module("packstream." + _LATER[name]), name)
