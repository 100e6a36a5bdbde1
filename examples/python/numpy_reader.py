"""numpy_reader.py - reads packs with numpy alone.

    numpy_reader.py FILE

Prints the sequences of the first pack.  The header of a pack stream has the
dtypes of a row and of a sequence row; blocks follow, each with a header, its
rows, its pack heads and its sequence rows: see packstream(5).

SPDX-License-Identifier: MIT
"""

import ast
import sys

import numpy

if len(sys.argv) != 2:
    sys.exit(__doc__)
data = numpy.memmap(sys.argv[1], "u1", "r")
if data[-16:-8].view("<u8") != len(data):
    sys.exit("numpy_reader.py: several streams joined, or one compressed")
row, seq = (numpy.dtype(ast.literal_eval(line)) for line in
            bytes(data[2048:4088]).decode().split("\n")[:2])
head = numpy.dtype({"names": ["first_seq", "n_seq"], "offsets": [8, 12],
                    "formats": ["<u4", "<u4"], "itemsize": 40})

at = 4096                                   # the first block
n_packs, n_seqs = data[at + 8:at + 16].view("<u4")
rows = numpy.frombuffer(data, row, n_packs, at + 64)
heads = numpy.frombuffer(data, head, n_packs, at + 64 + rows.nbytes)
seqs = numpy.frombuffer(data, seq, n_seqs,
                        at + 64 + rows.nbytes + heads.nbytes)

first, n = heads[0]                         # of the first pack
for s in seqs[first:first + n]:
    begin, end = s["seq_start"], s["seq_start"] + s["seq_tok"]
    print(*rows["tokens"][0, begin:end])
