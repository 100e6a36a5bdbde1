"""hostile.py - raw token records with worst-case lengths for a packer.

    hostile.py KIND L MEGABYTES [WIDTH]

writes MEGABYTES of records: of L tokens each (full), of one token (one), of
just more than L / 2 (half), or of up to 512 lengths from few tokens to L,
equally often: in order (sorted), or in turn (mixed).

SPDX-License-Identifier: MIT
"""

import math
import struct
import sys


def lengths(kind, most):
    """One round of lengths; it is repeated, except for `sorted`."""
    if kind == "full":
        return [most]
    if kind == "one":
        return [1]
    if kind == "half":
        return [most // 2 + 1]
    n = min(most, 512)
    rising = [most - (n - 1 - i) * (most // n) for i in range(n)]
    # In steps coprime to the number of lengths.
    step = next(k for k in range(n * 5 // 8 | 1, 2 * n, 2)
                if math.gcd(k, n) == 1)
    return (rising if kind == "sorted"
            else [rising[i * step % n] for i in range(n)])


def main():
    kind, most, megabytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    width = int(sys.argv[4]) if len(sys.argv) > 4 else 2
    tokens = bytes(range(256)) * (most * width // 256 + 1)
    records = [struct.pack("<I", n) + tokens[:n * width]
               for n in lengths(kind, most)]
    rounds = megabytes * 1000000 // sum(map(len, records)) + 1
    out = sys.stdout.buffer
    if kind == "sorted":
        for record in records:
            for _ in range(rounds):
                out.write(record)
        return
    together = b"".join(records)
    several = max(1, (1 << 20) // len(together))
    for _ in range(rounds // several + 1):
        out.write(together * several)


main()
