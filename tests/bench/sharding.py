"""sharding.py - what dividing the optimiser among GPUs saves, by arithmetic.

    sharding.py [--model=large|base] [--step=MS] [--memory=TB]
        [--gpus=N:GB ...]

Nothing is measured here.  For N GPUs with links of GB (GB/s in each direction
and GPU), prints bytes sent, times and memory of one GPU: "whole" is an
all-reduce of float gradients and LAMB on all weights, "shards" a reduce-scatter
of bfloat16 gradients, LAMB on 1/N of the weights, and an all-gather of bfloat16
weights.  The defaults are 8 GPUs with NVLink and 64 in a network, BERT-large,
a step of STEP (128) ms on one GPU (BENCHMARKS.md), and the memory bandwidth of
an H200, 4.8 TB/s, of which LAMB is taken to use 80 %.  Memory is that of
weights, gradients, moments and buffers, without activations.

A third of the step without LAMB is forward, the rest backward.  An exchange
overlaps with one of them; exposed is what lasts longer, and at least the
exchange of the embedding, whose gradients are the last and whose weights the
first.  Latencies are not counted.

SPDX-License-Identifier: MIT
"""

import argparse
import collections

import device

FLOAT, BF16 = 4, 2
MOMENTS = 2 * FLOAT
# LAMB reads gradients for the norm; reads weights, gradients and moments, and
# writes moments; then reads weights and moments and writes both weights.
LAMB_BYTES = 4 + (4 + 4 + 8) + 8 + (4 + 8) + (4 + 2)

Case = collections.namedtuple(
    "Case", "sent exchange exposed lamb step memory")


def embedding(m):
    return (m.vocab + 512 + 2) * m.hidden


def ring_ms(numbers, size, gpus, bandwidth):
    """A reduce-scatter or an all-gather: each GPU sends all but its shard."""
    return 1e3 * numbers * size * (gpus - 1) / gpus / (bandwidth * 1e9)


def exposed_ms(m, size, phase, gpus, bandwidth):
    """What one of them adds to a phase of the step."""
    whole = ring_ms(device.parameters(m), size, gpus, bandwidth)
    return max(whole - phase, ring_ms(embedding(m), size, gpus, bandwidth))


def lamb_ms(m, options, gpus):
    return (1e3 * device.parameters(m) * LAMB_BYTES / gpus
            / (0.8e12 * options.memory))


def whole(m, options, gpus, bandwidth):
    n = device.parameters(m)
    lamb = lamb_ms(m, options, 1)
    exchange = 2 * ring_ms(n, FLOAT, gpus, bandwidth)
    backward = 2 / 3 * (options.step - lamb)
    exposed = exposed_ms(m, 2 * FLOAT, backward, gpus, bandwidth)
    return Case(2 * n * FLOAT * (gpus - 1) / gpus, exchange, exposed, lamb,
                options.step + exposed, n * (2 * FLOAT + BF16 + MOMENTS))


def shards(m, options, gpus, bandwidth):
    n = device.parameters(m)
    lamb = lamb_ms(m, options, gpus)
    compute = options.step - lamb_ms(m, options, 1)
    exchange = 2 * ring_ms(n, BF16, gpus, bandwidth)
    exposed = (exposed_ms(m, BF16, 2 / 3 * compute, gpus, bandwidth)
               + exposed_ms(m, BF16, 1 / 3 * compute, gpus, bandwidth))
    memory = (n * (2 * FLOAT + BF16) + n * (MOMENTS + BF16) / gpus
              + embedding(m) * BF16)
    return Case(2 * n * BF16 * (gpus - 1) / gpus, exchange, exposed, lamb,
                compute + lamb + exposed, memory)


def gpus_and_bandwidth(text):
    gpus, bandwidth = text.split(":")
    return int(gpus), float(bandwidth)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=("large", "base"), default="large")
    parser.add_argument("--step", type=float, default=128)
    parser.add_argument("--memory", type=float, default=4.8)
    parser.add_argument("--gpus", type=gpus_and_bandwidth, nargs="+",
                        default=[(8, 450), (64, 50)])
    options = parser.parse_args()
    m = device.MODELS[options.model]
    print("%.0f M parameters, a step of %g ms on one GPU" %
          (device.parameters(m) / 1e6, options.step))
    print("%5s %6s %-7s %8s %12s %11s %8s %8s %9s" % (
        "GPUs", "GB/s", "", "sent GB", "exchange ms", "exposed ms",
        "LAMB ms", "step ms", "memory GB"))
    for gpus, bandwidth in options.gpus:
        for how in whole, shards:
            c = how(m, options, gpus, bandwidth)
            print("%5d %6g %-7s %8.2f %12.1f %11.1f %8.2f %8.1f %9.2f" % (
                gpus, bandwidth, how.__name__, c.sent / 1e9, c.exchange,
                c.exposed, c.lamb, c.step, c.memory / 1e9))


if __name__ == "__main__":
    main()
