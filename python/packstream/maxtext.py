"""maxtext.py - a batch of packs with the names that MaxText, T5X and
other JAX trainers give to packed examples.

    for batch in packstream.open("corpus.pks").batches(32):
        state = train_step(state, maxtext.features(batch))

All are int32 [S, L] arrays of numpy, which jax.jit takes as they are.
Segments count from 1, and 0 is padding; so are positions and ids there.  The
target of a position is the next token.  targets_segmentation is 0 for
positions without a target, such as the last token of each sequence: these are
excluded from the loss.  A channel "labels" or a loss mask in the packs decides which
targets there are; see views.targets.

SPDX-License-Identifier: MIT
"""

import numpy as np

from packstream import views


def features(batch, labels=None):
    """`labels` names another channel, or is "tokens"; see views.labels."""
    segments = views.segments(batch)
    inputs = np.where(segments, batch["tokens"], 0).astype(np.int32)
    positions = np.where(segments, views.positions(batch), 0)
    targets = views.targets(batch, labels)
    counted = targets != views.IGNORED
    return {
        "inputs": inputs,
        "inputs_position": positions,
        "inputs_segmentation": segments,
        "targets": np.where(counted, targets, 0).astype(np.int32),
        "targets_position": positions,
        "targets_segmentation": np.where(counted, segments, 0),
    }
