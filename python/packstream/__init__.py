"""packstream - tokenised sequences in fixed-length packs, for training.

    packs = packstream.open("corpus.pks")      # any order; zstd, s3:// too
    packstream.Packer                          # packs sequences as they arrive
    packstream.pack_dataset                    # packs a datasets.Dataset
    packstream.TokenWriter                     # writes records for packstream
    packstream.from_arrow                      # reads tables and parquet
    packstream.from_text                       # tokenizes text and chats
    packstream.Deal                            # assigns packs to ranks
    packstream.balance                         # packs one step for all ranks

Adapters for trainers are separate modules: packstream.torch, hf, flash_attn,
flex_attention, megatron, maxtext.

SPDX-License-Identifier: MIT
"""

from typing import Any

from packstream.deal import Deal, balance
from packstream.files import PackFiles, open
from packstream.packer import Packer, pack_lengths
from packstream.packs import Batch, Header, PackError, Packs
from packstream.schema import Channel, Columns
from packstream.writer import TokenWriter

__all__ = ["Batch", "Channel", "Columns", "Deal", "Header", "PackDataset",
           "PackError", "PackFiles", "Packer", "Packs", "TokenWriter",
           "balance", "from_arrow", "from_text", "open", "pack_dataset",
           "pack_lengths"]

# Imported on first use, because these need pyarrow or torch
_LATER = {"from_arrow": "arrow", "from_text": "tokenize",
          "pack_dataset": "dataset",
          "PackDataset": "torch"}
_ADAPTERS = ("flash_attn", "flex_attention", "hf", "maxtext", "megatron",
             "views")


def _version() -> str:
    """Returns the version of the library. Without the extension, returns the
    version of the surrounding sources or of the installed package."""
    from packstream.library import ffi, lib
    if lib is not None:
        return ffi.string(lib.ps_version()).decode()
    import re
    from importlib import metadata
    from pathlib import Path
    header = Path(__file__).parents[2] / "src/include/packstream/base.h"
    if not header.exists():
        return metadata.version("packstream")
    return ".".join(re.findall(r"#define PACKSTREAM_VERSION_[A-Z]+ (\d+)",
                               header.read_text()))


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    from importlib import import_module
    if name in _ADAPTERS:
        return import_module("packstream." + name)
    if name not in _LATER:
        raise AttributeError("module 'packstream' has no attribute %r" % name)
    return getattr(import_module("packstream." + _LATER[name]), name)
