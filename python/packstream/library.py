"""library.py - call libpackstream, and raise its errors as exceptions.

`lib` and `ffi` are cffi's objects; lib has the functions of packstream.h.
Both are None if the package was installed without its extension.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

from typing import Any

import numpy as np

from packstream.errors import PackError, printable
from packstream.header import (ATTENTION, PER_SEQUENCE, RESERVED, UNKNOWN,
                               Field, Header, layouts, places_of)
from packstream.native import ffi, lib


def need_library(what: str) -> None:
    if lib is None:
        raise ImportError("%s needs the extension of packstream, which this "
                          "installation lacks" % what)


def new_error() -> Any:
    """Returns a ps_error, in which a call reports an error."""
    return ffi.new("ps_error *")


def check(result: int, err: Any, where: str = "") -> None:
    """Raises an exception for a result other than PS_OK: MemoryError, OSError,
    ValueError for invalid arguments, PackError for errors in the data."""
    if result == lib.PS_OK:
        return
    text = ffi.string(err.text).decode()
    if where:
        text = "%s: %s" % (printable(where), text)
    if result == lib.PS_ERR_MEMORY:
        raise MemoryError(text)
    if result == lib.PS_ERR_IO:
        raise OSError(err.sys_errno, text)
    if result == lib.PS_ERR_ARGUMENT:
        raise ValueError(text)
    raise PackError(text)


def header_of(info: Any) -> Header:
    """Converts a ps_pack_info to a Header.  The dtypes are built from the
    field table, because the library does not check the text of later minor
    versions."""
    counts = (info.n_packs, info.n_sequences, info.n_tokens)
    budgets = {(budget.channel + 1) & 0xffffffff: budget.limit
               for budget in info.budgets[0:info.n_budgets]}
    fields = []
    for f in info.fields[0:info.n_fields]:
        source = (f.source + 1) & 0xffffffff    # 0: built-in
        fields.append(Field(
            ffi.string(f.channel.name).decode(), f.channel.type,
            f.channel.kind, f.offset, f.channel.fill, f.channel.count or 1,
            source, places_of(f.channel.kind, source, info.capacity,
                              budgets)))
    for field in fields:
        if field.name in RESERVED:
            raise PackError("'%s' cannot be the name of a field" % field.name)
    row, sequence = map(np.dtype, layouts(
        fields, (info.row_bytes, info.seq_bytes)))
    return Header(
        info.capacity, info.align, info.pad_id, int(info.schema.labels),
        tuple(info.schema.special), row, sequence,
        tuple(f.fill for f in fields if f.kind == PER_SEQUENCE),
        info.depth or None, info.block_packs, info.block_bytes,
        *(None if n == UNKNOWN else n for n in counts),
        schema=(info.schema.vocab_size,), share=bool(info.share),
        group=ffi.string(info.schema.channels[info.group - 1].name).decode()
        if info.group else None,
        budgets=tuple((ATTENTION if budget.channel == 0xffffffff else
                       ffi.string(info.schema.channels[budget.channel].name)
                       .decode(), budget.limit)
                      for budget in info.budgets[0:info.n_budgets]))
