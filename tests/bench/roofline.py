"""roofline.py - a prediction of how long a step takes on a GPU.

    roofline.py [--model=large|base] [--hist=FILE] [--sequences=N]
        [--products=SHARE] [--memory=SHARE] [--kernels] [--page=FILE]

Nothing is measured here.  Each kernel that trainer/bert/ops.h asks for takes
the longer of two times: its floating-point operations at the card's published
peak, and the bytes that it has to read and write at the published bandwidth.
SHARE is the part of these that is reached (1.0).  So at 1.0 all times are lower
bounds; what no kernel of products or copies reaches cancels in ratios as far
as it is the same for all.  Left out are launches, exponentials and draws of
dropout, caches, and the gradients' way between GPUs.

A step has N (56) sequences of at most 512 tokens, as long as FILE says (lines
of length and count), or else as in Wikipedia as BERT was trained on it: 23.4 %
have 512, and the others fall off exponentially from 5 to 511, such that the
mean is 256.  They are taken at equal steps of the distribution.  In attention a
block works on a head of a sequence, or of a pack; one at a time is on a
multiprocessor, which waits when no more are left.

--kernels lists each kernel of a step.  `make check` tests the arithmetic.

SPDX-License-Identifier: MIT
"""

import argparse
import collections
import heapq
import math
import random

import measure
from measure import Failed

LENGTH = 512
FULL = 0.234            # of sequences have LENGTH tokens
MEAN = 256
FILL = 0.9989           # of packs, see bert-d3 in BENCHMARKS.md
MASKED = 0.15
BOUNDS = (128, 256, 384, 512)
VALUE, REAL = 2, 4      # bytes: bfloat16, float
GPUS, DRAWS = 8, 400

# Published: products in bfloat16 without sparsity (FLOP/s), memory and host
# link (bytes/s, one way), multiprocessors.
Card = collections.namedtuple("Card", "product memory link processors")
CARDS = {"A100 SXM 80 GB": Card(312e12, 2.039e12, 32e9, 108),
         "H100 SXM": Card(989.4e12, 3.35e12, 64e9, 132)}
Model = collections.namedtuple(
    "Model", "layers hidden heads intermediate vocab")
MODELS = {"large": Model(24, 1024, 16, 4096, 30522),
          "base": Model(12, 768, 12, 3072, 30522)}
POSITIONS, TYPES = 512, 2

# `idle`: how many times longer multiprocessors wait and work than they work.
Kernel = collections.namedtuple("Kernel", "name flops bytes count idle",
                                defaults=(1.0,))

# What a step works on.  `pairs` is the sum over spans of rows times the keys
# that they are multiplied with; `scores`: whether these go through memory.
Work = collections.namedtuple(
    "Work", "rows sequences masked pairs scores idle")

# Zeng et al. (2022), figure 14, on 8 A100; sequences a second by table III.
PAPER = (("unpadding", "2.3 times"), ("grouping, streams", "3.6 %"),
         ("exchange overlapped", "2.8 %"), ("kernel fusion", "8.9 %"),
         ("LAMB and embedding", "11.3 %"))
PAPER_SPEED = 2578 / 8


# ---------------------------------------------------------------- lengths

def built_in():
    """Shares of lengths: FULL at LENGTH, the others exponential."""
    lengths = range(5, LENGTH)
    wanted = (MEAN - FULL * LENGTH) / (1 - FULL)
    low, high = 1.0, 1000.0
    for _ in range(100):
        scale = (low + high) / 2
        weights = [math.exp(-n / scale) for n in lengths]
        mean = sum(n * w for n, w in zip(lengths, weights)) / sum(weights)
        low, high = (scale, high) if mean < wanted else (low, scale)
    shares = {n: (1 - FULL) * w / sum(weights)
              for n, w in zip(lengths, weights)}
    return {**shares, LENGTH: FULL}


def read_histogram(name):
    counts = {}
    try:
        with open(name) as file:
            for line in file:
                words = line.partition("#")[0].split()
                if words:
                    length, count = map(int, words)
                    if not 0 < length <= LENGTH or count < 0:
                        raise ValueError
                    counts[length] = counts.get(length, 0) + count
    except OSError as error:
        raise Failed("%s: %s" % (name, error.strerror)) from None
    except ValueError:
        raise Failed("%s: a line is not LENGTH COUNT, lengths up to %d"
                     % (name, LENGTH)) from None
    total = sum(counts.values())
    if not total:
        raise Failed("%s: no sequences" % name)
    return {n: count / total for n, count in sorted(counts.items())}


def quantiles(shares, count):
    """So many lengths, at equal steps of the distribution."""
    lengths, below = [], 0.0
    for length, part in shares.items():
        below += part
        while (len(lengths) < count
               and (len(lengths) + 0.5) / count <= below + 1e-12):
            lengths.append(length)
    return lengths + [max(shares)] * (count - len(lengths))


# ---------------------------------------------------------------- kernels

def parameters(m):
    norm = 2 * m.hidden
    linear = m.hidden * m.hidden + m.hidden
    layer = (4 * linear + 2 * m.hidden * m.intermediate + m.intermediate
             + m.hidden + 2 * norm)
    return ((m.vocab + POSITIONS + TYPES) * m.hidden + norm
            + m.layers * layer
            + linear + norm + m.vocab            # masked tokens
            + linear + TYPES * m.hidden + TYPES)  # next sentence


def linear(name, rows, inputs, outputs, count=1, beta=0):
    """Forward, gradients of input and weight, and of the bias."""
    flops = 2 * rows * inputs * outputs
    x, y, w = rows * inputs, rows * outputs, inputs * outputs
    return [
        Kernel(name, flops, VALUE * (x + w + y), count),
        Kernel(name + ", d input", flops, VALUE * (y + w + x * (1 + beta)),
               count),
        Kernel(name + ", d weight", flops,
               VALUE * (x + y) + 2 * REAL * w, count),
        Kernel(name + ", d bias", 0, VALUE * y + 2 * REAL * outputs, count)]


def passes(name, rows, width, times, count=1, reals=0):
    """A kernel that reads and writes `times` tensors of rows x width."""
    return Kernel(name, 0, VALUE * times * rows * width + REAL * reals * rows,
                  count)


def attention(m, work):
    """Tiles, and nothing that grows with the square of the length: reads and
    writes as attention.h in trainer/bert/cuda has them."""
    if work.scores:
        return attention_scores(m, work)
    once = VALUE * work.rows * m.hidden
    kept = REAL * work.rows * m.heads
    product = 2 * m.hidden * work.pairs
    return [Kernel("attention", 2 * product, 4 * once + kept, m.layers,
                   work.idle),
            Kernel("attention, d queries", 3 * product, 6 * once + 3 * kept,
                   m.layers, work.idle),
            Kernel("attention, d keys", 4 * product, 6 * once + 2 * kept,
                   m.layers, work.idle)]


def attention_scores(m, work):
    """Without a fused kernel: all scores go through memory."""
    once = VALUE * work.rows * m.hidden
    scores = VALUE * work.pairs * m.heads
    product = 2 * m.hidden * work.pairs
    return [Kernel("scores", product, 2 * once + scores, m.layers),
            Kernel("mask, softmax", 0, 2 * scores, m.layers),
            Kernel("dropout of scores", 0, 2.5 * scores, m.layers),
            Kernel("context", product, 2 * once + scores, m.layers),
            Kernel("context, d", 2 * product, 4 * once + 2 * scores,
                   m.layers),
            Kernel("dropout of scores, d", 0, 2.5 * scores, m.layers),
            Kernel("softmax, d", 0, 3 * scores, m.layers),
            Kernel("scores, d", 2 * product, 4 * once + scores, m.layers)]


def rows_fused(m, rows):
    """Between the products of a layer: each tensor is touched once."""
    return [passes("bias, GELU", rows, m.intermediate, 2, m.layers),
            passes("bias, GELU, d", rows, m.intermediate, 4, m.layers),
            # inverse deviation, and the place that dropout goes by
            passes("bias, dropout, sum, norm", rows, m.hidden, 4,
                   2 * m.layers, 2),
            passes("norm, d", rows, m.hidden, 4, 2 * m.layers, 2)]


def rows_apart(m, rows):
    """The same, a kernel for each operation, as the paper counts them."""
    mask = 0.5  # a byte a number
    return [passes("bias of q, k, v", rows, 3 * m.hidden, 2, m.layers),
            passes("bias", rows, m.hidden, 2, 2 * m.layers),
            passes("bias, up", rows, m.intermediate, 2, m.layers),
            passes("GELU", rows, m.intermediate, 2, m.layers),
            passes("GELU, d", rows, m.intermediate, 3, m.layers),
            passes("dropout", rows, m.hidden, 2 + mask, 2 * m.layers),
            passes("sum", rows, m.hidden, 3, 2 * m.layers),
            passes("norm", rows, m.hidden, 2, 2 * m.layers, 2),
            passes("norm, d", rows, m.hidden, 3, 2 * m.layers, 2),
            passes("norm, d gain and bias", rows, m.hidden, 2, 2 * m.layers,
                   2),
            passes("dropout, d", rows, m.hidden, 2 + mask, 2 * m.layers),
            # beyond what a product reads that adds to it
            passes("residual, d", rows, m.hidden, 2, 2 * m.layers)]


def embedding(m, rows):
    words = REAL * min(rows, m.vocab) * m.hidden  # at most: repeated ones
    return [Kernel("embedding", 0, VALUE * 2 * rows * m.hidden + words, 1),
            passes("embedding, d norm", rows, m.hidden, 3, 1, 1),
            Kernel("embedding, d tables", 0,
                   VALUE * rows * m.hidden + 2 * words, 1)]


def heads(m, work):
    kernels = [passes("rows gathered, and back", work.masked, m.hidden, 5)]
    kernels += linear("dense", work.masked, m.hidden, m.hidden)
    kernels += [passes("GELU of head", work.masked, m.hidden, 6),
                passes("norm of head", work.masked, m.hidden, 6, 1, 2)]
    kernels += linear("decoder", work.masked, m.hidden, m.vocab)
    kernels += [passes("cross-entropy", work.masked, m.vocab, 2)]
    return kernels + linear("pooler", work.sequences, m.hidden, m.hidden)


def optimiser(m, apart):
    """Bytes for each weight: the norm of gradients, mean and square, the
    weights with their copy in bfloat16.  Apart: updates go through memory, for
    norms of their own."""
    n = parameters(m)
    kernels = [Kernel("gradients to 0", 0, REAL * n, 1),
               Kernel("LAMB, norm of gradient", 0, REAL * n, 1)]
    if apart:
        return kernels + [
            Kernel("LAMB, update", 0, 7 * REAL * n, 1),
            Kernel("LAMB, norms", 0, 2 * REAL * n, 1),
            Kernel("LAMB, weights", 0, (3 * REAL + VALUE) * n, 1)]
    return kernels + [
        Kernel("LAMB, update and norms", 0, 6 * REAL * n, 1),
        Kernel("LAMB, weights", 0, (4 * REAL + VALUE) * n, 1)]


def step(m, work, rows_of=rows_fused, apart=False):
    kernels = embedding(m, work.rows) + attention(m, work)
    kernels += linear("q, k, v", work.rows, m.hidden, 3 * m.hidden, m.layers,
                      1)
    kernels += linear("out", work.rows, m.hidden, m.hidden, m.layers)
    kernels += linear("up", work.rows, m.hidden, m.intermediate, m.layers, 1)
    kernels += linear("down", work.rows, m.intermediate, m.hidden, m.layers)
    return (kernels + rows_of(m, work.rows) + heads(m, work)
            + optimiser(m, apart))


def seconds(kernels, card):
    return sum(k.count * max(k.idle * k.flops / card.product,
                             k.bytes / card.memory) for k in kernels)


# ------------------------------------------------------------------- work

def bound(length):
    """Up to which lengths its group goes."""
    return next(b for b in BOUNDS if length <= b)


def makespan(costs, slots):
    """How long blocks take that start in this order, where there is room."""
    ends = [0.0] * slots
    for cost in costs:
        heapq.heapreplace(ends, ends[0] + cost)
    return max(ends)


def idle(launches, card, n_heads):
    """Launches one behind the other, of spans' costs: the time, over that of
    the same work on multiprocessors that all end at once."""
    slots = card.processors
    time = sum(makespan([cost for cost in costs for _ in range(n_heads)],
                        slots) for costs in launches)
    return time * slots / (n_heads * sum(map(sum, launches)))


def works(m, card, lengths):
    """What is computed, by the way in which sequences lie in memory."""
    tokens, n = sum(lengths), len(lengths)
    packed = tokens / FILL
    masked = MASKED * tokens
    longest = [length * max(lengths) for length in lengths]
    grouped = sorted((length * bound(length) for length in lengths),
                     reverse=True)
    groups = [[length * bound(length) for length in lengths
               if bound(length) == b] for b in BOUNDS]

    whole = LENGTH**2

    def work(rows, pairs, launches, scores=False):
        return Work(rows, n, masked, pairs, scores,
                    idle(launches, card, m.heads))

    return {
        "padded, scores in memory": work(n * LENGTH, n * whole, [[whole] * n],
                                         True),
        "padded": work(n * LENGTH, n * whole, [[whole] * n]),
        "packed, dense mask": work(
            packed, packed * LENGTH,
            [[whole] * math.ceil(packed / LENGTH)]),
        "unpadded, one launch": work(
            tokens, sum(longest), [longest]),
        "grouped, one by one": work(
            tokens, sum(grouped), [group for group in groups if group]),
        "grouped, in streams": work(
            tokens, sum(grouped), [grouped])}


def imbalance(shares, count):
    """The longest of GPUS steps over the mean, by tokens, where nobody
    balances them; batches are drawn by lot, always the same."""
    lot = random.Random(1)
    lengths, weights = list(shares), list(shares.values())
    ratios = []
    for _ in range(DRAWS):
        tokens = [sum(lot.choices(lengths, weights, k=count))
                  for _ in range(GPUS)]
        ratios.append(max(tokens) * GPUS / sum(tokens))
    return sum(ratios) / DRAWS


# ----------------------------------------------------------------- tables

def modes(m, card, all_works):
    rows = [["", "TFLOP", "GB", "ms", "sequences/s", "times", "attention"]]
    first = None
    for name, work in all_works.items():
        kernels = step(m, work)
        time = seconds(kernels, card)
        part = seconds(attention(m, work), card) / time
        first = first or time
        rows.append([name,
                     "%.1f" % (sum(k.count * k.flops for k in kernels) / 1e12),
                     "%.1f" % (sum(k.count * k.bytes for k in kernels) / 1e9),
                     "%.1f" % (1e3 * time), "%.0f" % (work.sequences / time),
                     "%.2f" % (first / time), "%.1f %%" % (100 * part)])
    return measure.table(rows)


def beside_paper(m, card, all_works):
    """Its optimisations, one on top of the other, as figure 14 has them."""
    unpadded = all_works["unpadded, one launch"]
    grouped = all_works["grouped, in streams"]
    copied = REAL * (4 * grouped.rows + 3 * grouped.masked) / card.link
    times = [seconds(step(m, all_works["padded, scores in memory"],
                          rows_apart, True), card) + copied,
             seconds(step(m, unpadded, rows_apart, True), card) + copied,
             seconds(step(m, grouped, rows_apart, True), card) + copied,
             seconds(step(m, grouped, rows_apart, True), card),
             seconds(step(m, grouped, rows_fused, True), card),
             seconds(step(m, grouped), card)]
    rows = [["on top of one another", "predicted", "the paper measured"]]
    for (name, measured), before, after in zip(PAPER, times, times[1:]):
        gain = before / after
        rows.append([name, "%.2f times" % gain if gain > 2
                     else "%.1f %%" % (100 * (gain - 1)), measured])
    rows.append(["all of them", "%.2f times" % (times[0] / times[-1]), ""])
    rows.append(["sequences/s of a GPU", "%.0f" % (
        grouped.sequences / times[-1]), "%.0f" % PAPER_SPEED])
    return measure.table(rows)


def list_kernels(m, card, work):
    rows = [["", "count", "GFLOP", "MB", "us", "bound by"]]
    for k in step(m, work):
        product, memory = (k.idle * k.flops / card.product,
                           k.bytes / card.memory)
        rows.append([k.name, str(k.count), "%.1f" % (k.flops / 1e9),
                     "%.1f" % (k.bytes / 1e6),
                     "%.1f" % (1e6 * max(product, memory)),
                     "products" if product > memory else "memory"])
    return measure.table(rows)


def show(name, card, shares, options):
    m = MODELS[options.model]
    all_works = works(m, card, quantiles(shares, options.sequences))
    lines = ["A prediction, not a measurement: BERT-%s on one %s" % (
        options.model, name),
             "%d sequences a step, mean %.0f tokens; %.0f %% of %.0f TFLOP/s, "
             "%.0f %% of %.2f TB/s" % (
                 options.sequences,
                 sum(n * part for n, part in shares.items()),
                 100 * options.products, card.product / 1e12,
                 100 * options.memory, card.memory / 1e12), ""]
    reached = card._replace(product=card.product * options.products,
                            memory=card.memory * options.memory)
    lines += modes(m, reached, all_works)
    if name.startswith("A100"):
        lines += [""] + beside_paper(m, reached, all_works)
        lines += ["", "The exchange is a copy from the host here, and LAMB "
                  "fewer bytes; waits for the",
                  "host, and kernels far below the roofline, are not in the "
                  "model.",
                  "Without any exchange, %d GPUs would wait for the longest "
                  "batch: %.1f %%" % (GPUS, 100 * (imbalance(
                      shares, options.sequences) - 1))]
    if options.kernels:
        work = all_works["grouped, in streams"]
        lines += [""] + list_kernels(m, reached, work)
    measure.tell("roofline-" + name.split()[0].lower(), lines, options.page)


def parse():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"),
                                     add_help=False)
    parser.add_argument("--model", choices=MODELS, default="large")
    parser.add_argument("--hist")
    parser.add_argument("--sequences", type=int, default=56)
    parser.add_argument("--products", type=float, default=1.0)
    parser.add_argument("--memory", type=float, default=1.0)
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--page")
    options = parser.parse_args()
    if (options.sequences < 1 or not 0 < options.products <= 1
            or not 0 < options.memory <= 1):
        parser.error("at least one sequence, and shares above 0 up to 1")
    return options


def main():
    options = parse()
    shares = read_histogram(options.hist) if options.hist else built_in()
    for name, card in CARDS.items():
        show(name, card, shares, options)


if __name__ == "__main__":
    measure.run_main(main)
