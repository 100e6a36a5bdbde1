"""grain_pipeline.py - packs in grain, for JAX trainers.

    python3 grain_pipeline.py corpus.pks

packstream.open is a data source: grain shuffles it, takes a share of it for
each process and reads it in several, each of which opens the file for itself.
maxtext.features gives the names that MaxText and others use.

SPDX-License-Identifier: MIT
"""

import sys

import grain
import packstream
from packstream import maxtext
from packstream.packs import stack


def features(packs):
    return maxtext.features(stack(packs))


def pipeline(path, size=8, process=0, processes=1, workers=2, seed=1):
    packs = grain.MapDataset.source(packstream.open(path)).shuffle(seed)
    batches = packs[process::processes].batch(size, drop_remainder=True,
                                              batch_fn=features)
    return batches.to_iter_dataset().mp_prefetch(
        grain.MultiprocessingOptions(num_workers=workers))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for batch in pipeline(sys.argv[1]):
        print({name: array.shape for name, array in batch.items()})
