"""roofline.py - the arithmetic of tests/bench/roofline.py, by hand.

    roofline.py FOLDER      of roofline.py

Ends with 1 and says what is wrong.

SPDX-License-Identifier: MIT
"""

import math
import os
import sys
import tempfile
import unittest

sys.path.insert(0, sys.argv.pop(1))

import roofline as r  # noqa: E402

SMALL = r.Model(layers=2, hidden=8, heads=2, intermediate=32, vocab=100)
CARD = r.Card(product=1000.0, memory=10.0, link=1.0, processors=2)


def work(rows, pairs, scores=False):
    return r.Work(rows=rows, sequences=2, masked=3, pairs=pairs,
                  scores=scores, idle=1.0)


class Parameters(unittest.TestCase):
    def test_published(self):
        self.assertEqual(r.parameters(r.MODELS["base"]), 110106428)
        self.assertEqual(r.parameters(r.MODELS["large"]), 336226108)


class Kernels(unittest.TestCase):
    def test_linear(self):
        forward, d_input, d_weight, d_bias = r.linear("x", 10, 8, 32, 2, 1)
        self.assertEqual(forward, ("x", 5120, 2 * (80 + 256 + 320), 2, 1.0))
        self.assertEqual(d_input[1:4], (5120, 2 * (320 + 256 + 160), 2))
        self.assertEqual(d_weight[1:4], (5120, 2 * 400 + 8 * 256, 2))
        self.assertEqual(d_bias[1:4], (0, 2 * 320 + 8 * 32, 2))

    def test_layer(self):
        # A layer has 4 H^2 + 2 H I weights, each multiplied and added in 3
        # products a row; attention has 9 products of H a pair.
        kernels = r.step(SMALL, work(10, 40))
        layers = 2 * (6 * 10 * (4 * 64 + 2 * 8 * 32) + 9 * 2 * 8 * 40)
        heads = 6 * (3 * (64 + 800) + 2 * 64)
        self.assertEqual(sum(k.flops * k.count for k in kernels),
                         layers + heads)

    def test_norm(self):
        norm, = [k for k in r.rows_fused(SMALL, 10) if "sum" in k.name]
        self.assertEqual(norm[1:4], (0, 2 * 4 * 80 + 2 * 4 * 10, 4))
        apart = sum(k.bytes * k.count for k in r.rows_apart(SMALL, 10))
        self.assertGreater(apart, sum(k.bytes * k.count
                                      for k in r.rows_fused(SMALL, 10)))

    def test_attention(self):
        # One span of 10 rows: q, k, v and out, and a real for each head.
        kernels = r.attention(SMALL, work(10, 100))
        self.assertEqual(kernels[0][1:4],
                         (4 * 8 * 100, 2 * 4 * 80 + 4 * 20, 2))
        self.assertEqual(kernels[1].bytes, 2 * 6 * 80 + 3 * 4 * 20)
        self.assertEqual(kernels[2].bytes, 2 * 6 * 80 + 2 * 4 * 20)
        self.assertEqual(sum(k.flops for k in kernels), 18 * 8 * 100)
        scores = r.attention(SMALL, work(10, 100, True))
        self.assertEqual(sum(k.flops for k in scores), 12 * 8 * 100)
        self.assertEqual(scores[1].bytes, 2 * 2 * 200)

    def test_optimiser(self):
        n = r.parameters(SMALL)
        self.assertEqual(sum(k.bytes for k in r.optimiser(SMALL, False)),
                         50 * n)
        self.assertEqual(sum(k.bytes for k in r.optimiser(SMALL, True)),
                         58 * n)

    def test_longer_of_two_counts(self):
        self.assertEqual(r.seconds([r.Kernel("x", 1000, 10, 3)], CARD), 3)
        self.assertEqual(r.seconds([r.Kernel("x", 1000, 20, 3)], CARD), 6)
        self.assertEqual(r.seconds([r.Kernel("x", 1000, 20, 1, 3.0)], CARD),
                         3)


class Lengths(unittest.TestCase):
    def test_built_in(self):
        shares = r.built_in()
        self.assertAlmostEqual(sum(shares.values()), 1)
        self.assertAlmostEqual(sum(n * p for n, p in shares.items()), 256)
        self.assertEqual(shares[512], 0.234)
        self.assertGreater(shares[5], shares[500])

    def test_quantiles(self):
        self.assertEqual(r.quantiles({10: 0.5, 20: 0.25, 512: 0.25}, 4),
                         [10, 10, 20, 512])
        lengths = r.quantiles(r.built_in(), 1000)
        self.assertEqual(len(lengths), 1000)
        self.assertLess(abs(sum(lengths) / 1000 - 256), 1)

    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "hist")
            with open(name, "w") as file:
                file.write(text)
            return r.read_histogram(name)

    def test_histogram(self):
        self.assertEqual(self.read("# words\n512 1\n5 3 # more\n"),
                         {5: 0.75, 512: 0.25})
        for text in ("", "5\n", "5 x\n", "0 1\n", "513 1\n", "5 -1\n",
                     "5 0\n", "5 1 1\n"):
            with self.assertRaises(r.Failed):
                self.read(text)
        with self.assertRaises(r.Failed):
            r.read_histogram("/nowhere/hist")


class Waiting(unittest.TestCase):
    def test_makespan(self):
        self.assertEqual(r.makespan([3, 3, 2, 2], 2), 5)
        self.assertEqual(r.makespan([2, 2, 3, 4], 2), 6)
        self.assertEqual(r.makespan([4, 3, 2, 2], 2), 6)
        self.assertEqual(r.makespan([], 2), 0)

    def test_idle(self):
        self.assertEqual(r.idle([[3, 3], [1, 1]], CARD, 1), 1)
        self.assertEqual(r.idle([[3], [1]], CARD, 1), 2)
        self.assertEqual(r.idle([[3, 1]], CARD, 1), 1.5)
        self.assertEqual(r.idle([[3, 1]], CARD, 2), 1)

    def test_bounds(self):
        self.assertEqual([r.bound(n) for n in (1, 128, 129, 512)],
                         [128, 128, 256, 512])

    def test_imbalance(self):
        self.assertEqual(r.imbalance({100: 1.0}, 5), 1)
        uneven = r.imbalance({1: 0.5, 511: 0.5}, 1)
        self.assertTrue(1.5 < uneven < 3, uneven)


class Works(unittest.TestCase):
    def test_pairs(self):
        ways = r.works(SMALL, CARD, [100, 200, 512])
        pairs = {name: way.pairs for name, way in ways.items()}
        self.assertEqual(pairs["padded"], 3 * 512 * 512)
        self.assertEqual(
            pairs["unpadded, one launch"], 812 * 512)
        self.assertEqual(pairs["grouped, one by one"],
                         100 * 128 + 200 * 256 + 512 * 512)
        packed = ways["packed, dense mask"]
        self.assertTrue(math.isclose(packed.rows, 812 / r.FILL))
        self.assertTrue(math.isclose(packed.pairs, packed.rows * 512))

    def test_less_work_takes_less(self):
        m, card = r.MODELS["large"], r.CARDS["A100 SXM 80 GB"]
        times = [r.seconds(r.step(m, way), card) for way in r.works(
            m, card, r.quantiles(r.built_in(), 56)).values()]
        self.assertGreater(times[0], times[1])
        self.assertGreater(times[1], max(times[2:]))
        self.assertEqual(min(times), times[5])


if __name__ == "__main__":
    unittest.main()
