"""jax_training.py - trains a language model in JAX on packs.

    python3 jax_training.py corpus.pks VOCABULARY

maxtext.features names segments, positions and targets as MaxText does.  Tokens
attend only within their segment; positions with targets_segmentation 0 have no
target.  All batches have the same shape, so jax.jit compiles once.

SPDX-License-Identifier: MIT
"""

import sys

import jax
import jax.numpy as jnp
import packstream
from packstream import maxtext


def init(vocab, capacity, size=32, seed=0):
    keys = jax.random.split(jax.random.key(seed), 6)
    shapes = [(vocab, size), (capacity, size), (size, size), (size, size),
              (size, size), (size, vocab)]
    names = ["tokens", "positions", "query", "key", "value", "output"]
    return {name: jax.random.normal(key, shape) * 0.1
            for name, key, shape in zip(names, keys, shapes)}


def loss(params, batch):
    """The sum of the losses, and the number of targets."""
    segments = batch["inputs_segmentation"]
    x = params["tokens"][batch["inputs"]] + \
        params["positions"][batch["inputs_position"]]
    query, key, value = (x @ params[name] for name in ("query", "key",
                                                       "value"))
    sees = (segments[:, :, None] == segments[:, None, :]) & \
        jnp.tri(x.shape[1], dtype=bool)
    scores = jnp.where(sees, query @ key.swapaxes(1, 2), -1e30)
    logits = (x + jax.nn.softmax(scores) @ value) @ params["output"]
    losses = -jnp.take_along_axis(jax.nn.log_softmax(logits),
                                  batch["targets"][..., None], 2)[..., 0]
    counted = batch["targets_segmentation"] != 0
    return jnp.where(counted, losses, 0).sum(), counted.sum()


@jax.jit
def step(params, batch, rate=0.5):
    def mean(params):
        total, count = loss(params, batch)
        return total / jnp.maximum(count, 1)
    value, gradients = jax.value_and_grad(mean)(params)
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients), value


def main(path, vocab, size=8):
    packs = packstream.open(path)
    params = init(vocab, packs.header.capacity)
    for batch in packs.batches(size, drop_last=True):
        params, value = step(params, maxtext.features(batch))
        print(float(value))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]))
