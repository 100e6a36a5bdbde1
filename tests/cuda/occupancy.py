"""occupancy.py - how many blocks of a kernel a multiprocessor holds at once.

    occupancy.py [ARCH THREADS REGISTERS SHARED]...

ARCH is 80, 90 or 100, SHARED static and dynamic shared memory in bytes.
Prints each with its blocks a multiprocessor, as occupancy.c does with the
toolkit's own calculator.

SPDX-License-Identifier: MIT
"""

import collections
import sys

# CUDA Programming Guide, "Compute Capabilities": technical specifications.
Limits = collections.namedtuple(
    "Limits", "blocks shared shared_block")
ARCHS = {80: Limits(32, 164 * 1024, 163 * 1024),
         90: Limits(32, 228 * 1024, 227 * 1024),
         100: Limits(32, 228 * 1024, 227 * 1024)}
WARPS = 64          # of a multiprocessor, in four parts
THREADS_BLOCK = 1024
REGISTERS = 65536   # of a multiprocessor and of a block
REGISTERS_THREAD = 255
REGISTER_UNIT = 256  # a warp's are rounded up to it
SHARED_UNIT = 128
SHARED_RESERVED = 1024  # by the system, in each block


def up(number, unit):
    return -(-number // unit) * unit


def occupancy(arch, threads, registers, shared):
    """Blocks a multiprocessor, and the resource that limits them."""
    limits = ARCHS[arch]
    warps = up(threads, 32) // 32
    each = up(registers * 32, REGISTER_UNIT)
    if (not 0 < threads <= THREADS_BLOCK or registers > REGISTERS_THREAD
            or shared > limits.shared_block
            or each * up(warps, 4) > REGISTERS):
        return 0, "does not fit"
    room = {"blocks": limits.blocks,
            "warps": WARPS // warps,
            "shared": limits.shared // up(shared + SHARED_RESERVED,
                                          SHARED_UNIT)}
    if each:
        room["registers"] = REGISTERS // 4 // each * 4 // warps
    return min((blocks, what) for what, blocks in room.items())


def share(threads, blocks):
    """Share of a multiprocessor's warps."""
    return blocks * up(threads, 32) // 32 / WARPS


def main():
    numbers = [int(word) for word in sys.argv[1:]]
    for at in range(0, len(numbers), 4):
        case = numbers[at:at + 4]
        print(*case, occupancy(*case)[0])


if __name__ == "__main__":
    main()
