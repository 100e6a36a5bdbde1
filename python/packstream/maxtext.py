"""maxtext.py - a batch of packs, with the names that MaxText, T5X and other
JAX trainers use for packed examples.

    for batch in packstream.open("corpus.pks").batches(32):
        state = train_step(state, maxtext.features(batch))

All are int32 [S, L] numpy arrays, which jax.jit accepts.  Segments count from
1; in the padding, segments, positions and ids are 0.  The target of a position
is the next token.  targets_segmentation is 0 for positions without a target,
such as the last token of each sequence, which are excluded from the loss.  A
channel "labels" or a loss mask in the packs selects the targets; see
views.targets.

SPDX-License-Identifier: MIT
"""

import numpy as np

from packstream import views


def features(batch, labels=None):
    """Returns the features of a batch.  `labels` names another channel, or is
    "tokens"; see views.labels."""
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
