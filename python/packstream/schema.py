"""schema.py - the types of a sequence's tokens and channels, and sequences in
columns.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import re
from typing import (Any, Callable, Dict, List, Mapping, NamedTuple, Optional,
                    Sequence, Tuple, Union)

import numpy as np

from packstream.header import (LIST as LIST_KIND, MAX_VECTOR, PER_SEQUENCE,
                               PER_TOKEN, SPECIALS)
from packstream.library import check, ffi, lib, new_error

# Types of elements: numpy's names, and numbers as in packstream.h
TYPES = {"u1": 1, "u2": 2, "u4": 3, "u8": 4, "i4": 5, "i8": 6, "f4": 7,
         "f8": 8}
KINDS = {"token": PER_TOKEN, "sequence": PER_SEQUENCE, "list": LIST_KIND}
LABELS = {None: 0, "aligned": 1, "shifted": 2}
VECTOR = re.compile(r"(.*)\[([0-9]{1,9})\]")    # float32[80]


class Channel(NamedTuple):
    """Values that accompany the tokens: one per token, or one per sequence.
    `fill` is the value in padding.  A dtype such as "float32[80]", or
    numpy.dtype(("f4", 80)), is a vector of 80 values per token or sequence;
    all values of a vector in padding are `fill`.

    A dtype with [] at the end, such as "uint32[]" or "uint32[2][]", is a list
    per sequence, whose length does not depend on the tokens.  In packs, the
    budget of the channel is the number of its elements in a row."""
    dtype: Any
    fill: float = 0
    per: str = "token"


LIST = "list"           # Channel.per of a list, once it is in a schema


def as_channel(given: Any) -> Channel:
    """Converts a type to a Channel, and the type of a list to that of its
    elements."""
    channel = given if isinstance(given, Channel) else Channel(given)
    dtype = channel.dtype
    if isinstance(dtype, str) and dtype.endswith("[]"):
        return channel._replace(dtype=dtype[:-2], per=LIST)
    return channel


class Columns(NamedTuple):
    """Sequences in columns, like Arrow's lists.  Sequence i has the tokens
    values["tokens"][offsets[i]:offsets[i + 1]], the same range of each
    per-token channel, and value i of each per-sequence channel.  Its list in a
    list channel is values[name][lists[name][i]:lists[name][i + 1]]."""
    offsets: np.ndarray
    values: Dict[str, np.ndarray]
    lists: Mapping[str, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def where(self, name: str = "", i: Optional[int] = None,
              number: int = 0) -> str:
        """Names sequence i and a column for an error; `number` is the number
        of the first sequence."""
        sequence = "" if i is None else "sequence %d" % (number + i)
        return ": ".join(filter(None, (sequence, name)))


Channels = Mapping[str, Union[Channel, str, type, np.dtype]]


def element_type(dtype: Any) -> Tuple[np.dtype, Tuple[int, ...]]:
    """Returns the type of an element's values, and its shape: () for a single
    value, (N,) for a vector."""
    if isinstance(dtype, str) and "[]" in dtype:
        raise ValueError("%s: a list of vectors has the type %s"
                         % (dtype, dtype.replace("[]", "") + "[]"))
    match = VECTOR.fullmatch(dtype) if isinstance(dtype, str) else None
    dtype, shape = (np.dtype(match[1]), (int(match[2]),)) if match else \
        (np.dtype(dtype).base, np.dtype(dtype).shape)
    if len(shape) > 1:
        raise ValueError("elements of shape %s, but a vector has one "
                         "dimension" % (shape,))
    if shape and not 2 <= shape[0] <= MAX_VECTOR:
        raise ValueError("vectors of %d values, but the limits are 2 and %d"
                         % (*shape, MAX_VECTOR))
    return dtype, shape


def type_code(dtype: Any) -> str:
    """Returns the code of a dtype, such as "u2", if the formats support it."""
    dtype = np.dtype(dtype)
    code = "%s%d" % (dtype.kind, dtype.itemsize)
    if code not in TYPES:
        raise ValueError("%s: elements are uint8, uint16, uint32, uint64, "
                         "int32, int64, float32 or float64" % dtype)
    return code


class Schema:
    """The types of tokens and channels.  Unless dtype is given, tokens are
    uint16 if vocab_size fits, otherwise uint32."""

    def __init__(self, dtype: Any = None, channels: Optional[Channels] = None,
                 vocab_size: int = 0, labels: Optional[str] = None,
                 special: Optional[Mapping[str, int]] = None,
                 tokenizer: bytes = b"", framed: bool = True):
        if dtype is None:
            dtype = np.uint16 if 0 < vocab_size <= 1 << 16 else np.uint32
        if not 0 <= vocab_size < 1 << 32:
            raise ValueError("vocab_size: %r is out of range" % vocab_size)
        if labels not in LABELS:
            raise ValueError("labels are 'aligned', 'shifted' or None")
        if len(tokenizer) not in (0, 32):
            raise ValueError("the digest of a tokenizer has 32 bytes")
        if type_code(dtype) not in ("u2", "u4"):
            raise ValueError("tokens are uint16 or uint32, not %s"
                             % np.dtype(dtype))
        self.channels = {name: as_channel(channel)
                         for name, channel in (channels or {}).items()}
        if len(self.channels) > lib.PS_MAX_CHANNELS:
            raise ValueError("there can be %d channels, not %d"
                             % (lib.PS_MAX_CHANNELS, len(self.channels)))
        self.dtypes = {"tokens": np.dtype(type_code(dtype)).newbyteorder("<")}
        self.shapes: Dict[str, Tuple[int, ...]] = {"tokens": ()}
        self.vocab_size = vocab_size
        self.native = ffi.new("ps_schema *")
        self.native[0] = lib.ps_schema_raw(TYPES[type_code(dtype)])
        self.native.framed = framed or bool(self.channels)
        self.native.vocab_size = vocab_size
        self.native.labels = LABELS[labels]
        self.native.tokenizer = tokenizer or bytes(32)
        for name, token in (special or {}).items():
            if name not in SPECIALS or not 0 <= token < 1 << 32:
                raise ValueError("special tokens are ids of %s, not %s=%r"
                                 % (", ".join(SPECIALS), name, token))
            self.native.special[SPECIALS.index(name)] = token
        self.native.n_channels = len(self.channels)
        for i, (name, channel) in enumerate(self.channels.items()):
            self._set_channel(self.native.channels[i], name, channel)
        err = new_error()
        check(lib.ps_schema_check(self.native, err), err)

    def _set_channel(self, native: Any, name: str, channel: Channel) -> None:
        base, shape = element_type(channel.dtype)
        code = type_code(base)
        dtype = self.dtypes[name] = np.dtype(code).newbyteorder("<")
        self.shapes[name] = shape
        if channel.per not in KINDS:
            raise ValueError("a channel has values per 'token' or per "
                             "'sequence', or a 'list' per sequence")
        encoded = name.encode()
        if not 0 < len(encoded) < lib.PS_NAME_BYTES or b"\0" in encoded:
            raise ValueError("channel %r: the name has 1 to %d bytes"
                             % (name, lib.PS_NAME_BYTES - 1))
        native.name = encoded
        native.type = TYPES[code]
        native.count = shape[0] if shape else 0
        native.kind = KINDS[channel.per]
        native.fill = int.from_bytes(
            cast(np.array([channel.fill]), dtype,
                 lambda at: "fill").tobytes(), "little")

    def per(self, name: str) -> str:
        """Returns "token", "sequence" or "list"; "token" for other names."""
        return self.channels[name].per if name in self.channels else "token"

    def columns(self, sequences: Sequence[Any], number: int = 0) -> Columns:
        """Converts sequences, which are arrays or mappings, to columns.
        `number` is the number of the first sequence, for errors."""
        rows = [one if isinstance(one, Mapping) else {"tokens": one}
                for one in sequences]
        names = rows[0].keys()
        if any(row.keys() != names for row in rows) or "tokens" not in names:
            raise ValueError("a sequence has other values than %s"
                             % ", ".join(self.dtypes))
        values: Dict[str, np.ndarray] = {}
        lists: Dict[str, np.ndarray] = {}
        due: List[int] = []
        for name in sorted(names, key="tokens".__ne__):     # tokens first
            arrays = [self._array(row[name], name, number + i)
                      for i, row in enumerate(rows)]
            per = self.per(name)
            if per == "sequence":
                values[name] = np.array(arrays)
                continue
            if per == LIST:
                arrays = [self._typed(array, name, number + i)
                          for i, array in enumerate(arrays)]
            values[name] = np.concatenate(arrays) if len(arrays) > 1 \
                else arrays[0]
            lengths = [len(array) if self.shapes.get(name) else array.size
                       for array in arrays]
            if per == LIST:
                lists[name] = np.cumsum([0] + lengths)
            elif name == "tokens":
                due = lengths
            elif lengths != due:
                i = next(i for i, n in enumerate(due) if n != lengths[i])
                raise ValueError("sequence %d: %s: %d %s for %d tokens" % (
                    number + i, name, lengths[i], "vectors"
                    if self.shapes.get(name) else "values", due[i]))
        return Columns(np.cumsum([0] + due), values, lists)

    def _array(self, values: Any, name: str, number: int) -> np.ndarray:
        """Converts the values of a sequence to an array.  Checks the length of
        vectors."""
        shape = self.shapes.get(name)
        per = self.per(name)
        where = "sequence %d: %s" % (number, name)
        if not shape and per != LIST:
            return as_array(values, name)
        try:
            array = as_array(values, where)
        except ValueError as problem:
            if isinstance(values, np.ma.MaskedArray):
                raise
            raise ValueError(
                "%s: %s" % (where, "vectors of different lengths, expected %d "
                            "values each" % shape if shape else
                            "expected a list of numbers")) from problem
        if not shape and array.ndim != 1:
            raise ValueError("%s: shape %s, expected a list of numbers"
                             % (where, array.shape))
        several = per != "sequence"
        if several and array.shape == (0,):
            return array.reshape(0, *shape)
        if array.shape[several:] != shape:
            raise ValueError("%s: shape %s, expected (%s%d%s)" % (
                where, array.shape,
                {"token": "tokens, ", LIST: "elements, "}.get(per, ""), *shape,
                "," * (not several)))
        return array

    def _typed(self, array: np.ndarray, name: str, number: int) -> np.ndarray:
        """Checks the type of a list.  An empty list can have any type."""
        if not len(array):
            return array.astype(self.dtypes[name])
        check_kind(array, self.dtypes[name],
                   "sequence %d: %s" % (number, name))
        return array

    def without_empty(self, columns: Columns) -> Columns:
        """Returns the sequences that have tokens."""
        kept = columns.offsets[1:] > columns.offsets[:-1]
        if kept.all():
            return columns
        values, lists = {}, {}
        for name, array in columns.values.items():
            values[name] = array[kept] if self.per(name) == "sequence" \
                else array
        for name, offsets in columns.lists.items():
            lengths = np.diff(offsets)
            used = columns.values[name][offsets[0]:offsets[-1]]
            values[name] = used[np.repeat(kept, lengths)]
            lists[name] = np.append(0, np.cumsum(lengths[kept]))
        return Columns(np.append(columns.offsets[0],
                                 columns.offsets[1:][kept]), values, lists)

    def prepare(self, columns: Columns, number: int = 0) -> Columns:
        """Converts columns to the types and the order of the schema.  `number`
        is the number of the first sequence, for errors."""
        if set(columns.values) != set(self.dtypes):
            raise ValueError("a sequence has %s, expected %s" % (
                ", ".join(columns.values), ", ".join(self.dtypes)))
        offsets = as_offsets(columns.offsets, "offsets")
        lists = {name: as_offsets(columns.lists.get(name, ()), "%s: offsets"
                                  % columns.where(name))
                 for name in self.dtypes if self.per(name) == LIST}
        if set(columns.lists) - set(lists):
            raise ValueError("%s is not a list channel"
                             % min(set(columns.lists) - set(lists)))
        values = {}
        for name, dtype in self.dtypes.items():
            array = as_array(columns.values[name], columns.where(name))
            per = self.per(name)
            bounds = lists.get(name, offsets)
            if len(bounds) != len(offsets):
                raise ValueError("%s: offsets of %d lists for %d sequences" % (
                    columns.where(name), len(bounds) - 1, len(columns)))
            due = len(columns) if per == "sequence" else int(bounds[-1])
            shape = self.shapes[name]
            if array.ndim != 1 + len(shape) or array.shape[1:] != shape or (
                    len(array) != due if per == "sequence"
                    else len(array) < due):
                raise ValueError("%s: shape %s, expected %s" % (
                    columns.where(name), array.shape, (due, *shape)))

            def where(at: Optional[int]) -> str:
                if at is not None:
                    at //= shape[0] if shape else 1
                return columns.where(
                    name, at if per == "sequence" or at is None
                    else sequence_of(bounds, at), number)
            values[name] = cast(array[:due], dtype, where)
        self._check_size(Columns(offsets, values, lists), columns, number)
        tokens = values["tokens"][offsets[0]:]
        if self.vocab_size and len(tokens) and \
                tokens.max() >= self.vocab_size:
            at = int((tokens >= self.vocab_size).argmax())
            i = sequence_of(offsets, offsets[0] + at)
            raise ValueError("%s: %d is not in the vocabulary of %d" % (
                columns.where("tokens", i, number), tokens[at],
                self.vocab_size))
        return Columns(offsets, values, lists)

    def _check_size(self, prepared: Columns, columns: Columns,
                    number: int) -> None:
        """Raises ValueError if lists are too long for a record."""
        if not prepared.lists:
            return
        sizes = np.zeros(len(prepared), np.int64)
        for name, offsets in prepared.lists.items():
            sizes += np.diff(offsets) * (
                self.dtypes[name].itemsize *
                (self.shapes[name][0] if self.shapes[name] else 1))
        if len(sizes) and sizes.max() > lib.PS_MAX_SEQUENCE_BYTES:
            i = int(sizes.argmax())
            raise ValueError("%s: lists of %d bytes, but the limit is %d" % (
                columns.where("", i, number), sizes[i],
                lib.PS_MAX_SEQUENCE_BYTES))


def as_offsets(values: Any, where: str) -> np.ndarray:
    """Converts offsets to int64.  Raises ValueError unless they ascend."""
    offsets = cast(as_array(values, where), np.dtype(np.int64),
                   lambda at: where)
    if (offsets.ndim != 1 or not len(offsets) or offsets[0] < 0 or
            (offsets[1:] < offsets[:-1]).any()):
        raise ValueError("%s must ascend" % where)
    return offsets


def as_array(values: Any, where: str) -> np.ndarray:
    """Converts values to an array.  Raises ValueError for numpy.ma."""
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError("%s: masked arrays are not supported, since the mask "
                         "would be lost; pass array.filled() or "
                         "array.compressed()" % where)
    return np.asarray(values)


def sequence_of(offsets: np.ndarray, at: int) -> int:
    """Returns the sequence that contains value `at` of a column."""
    return max(int(np.searchsorted(offsets, at, "right")) - 1, 0)


def check_kind(array: np.ndarray, dtype: np.dtype, where: str) -> None:
    """Raises ValueError if values of an array's type cannot become `dtype`."""
    if array.dtype.kind not in "biuf" or (
            array.dtype.kind == "f" and dtype.kind != "f"):
        raise ValueError("%s: values of type %s do not become %s"
                         % (where, array.dtype, dtype))


def cast(array: np.ndarray, dtype: np.dtype,
         where: Callable[[Optional[int]], str]) -> np.ndarray:
    """Converts an array to a contiguous array of another type, which must be
    able to hold all values.  In an error, where(i) names value i of the
    flattened array, and where(None) names the array."""
    if array.dtype.kind == "b":
        array = array.view(np.uint8)
    if array.size == 0:
        return np.empty(array.shape, dtype)
    check_kind(array, dtype, where(None))
    if dtype.kind != "f" and not np.can_cast(array.dtype, dtype):
        low, high = int(array.min()), int(array.max())
        limits = np.iinfo(dtype)
        if low < limits.min or high > limits.max:
            at = int(array.argmin() if low < limits.min else array.argmax())
            raise ValueError("%s: %d does not fit %s"
                             % (where(at), array.flat[at], dtype))
    return np.ascontiguousarray(array, dtype)


def as_lengths(values: Any) -> np.ndarray:
    """Converts the lengths of sequences to uint32 [n]."""
    lengths = cast(as_array(values, "lengths"), np.dtype(np.uint32),
                   lambda at: "lengths" if at is None else "length %d" % at)
    if lengths.ndim != 1:
        raise ValueError("lengths: an array of %d dimensions, expected one"
                         % lengths.ndim)
    return lengths


class NativeColumns:
    """Prepared columns as psn_columns.  Keeps the arrays alive."""

    def __init__(self, columns: Columns):
        self.kept: List[Any] = [
            ffi.from_buffer("int64_t[]", columns.offsets)]
        pointers = ffi.new("unsigned char *[]", len(columns.values))
        lists = ffi.new("int64_t *[]", len(columns.values))
        for i, (name, array) in enumerate(columns.values.items()):
            # An array without elements does not have an address.
            data = ffi.from_buffer("unsigned char[]", array.data) \
                if array.size else ffi.new("unsigned char[1]")
            self.kept.append(data)
            pointers[i] = data
            if name in columns.lists:
                self.kept.append(ffi.from_buffer("int64_t[]",
                                                 columns.lists[name]))
                lists[i] = self.kept[-1]
        self.kept += [pointers, lists]
        self.native = ffi.new("psn_columns *")
        self.native.offsets = self.kept[0]
        self.native.n = len(columns)
        self.native.columns = ffi.cast("unsigned char const *const *",
                                       pointers)
        self.native.lists = ffi.cast("int64_t const *const *", lists)
