"""grain_pipeline.py - packs in grain, for JAX trainers.

    python3 grain_pipeline.py corpus.pks

packstream.open is a data source: grain shuffles it, gives each process a share
and reads it in several workers, each of which opens the file itself.
maxtext.features uses the names of MaxText and others.

SPDX-License-Identifier: MIT
"""

import sys

import grain
from absl import flags
import packstream
from packstream import maxtext
from packstream.packs import stack


def features(packs):
    return maxtext.features(stack(packs))


def pipeline(path, size=8, process=0, processes=1, workers=2, seed=1):
    # If jax is installed, grain's workers need the flags of absl, which only
    # absl.app.run parses.
    if not flags.FLAGS.is_parsed():
        flags.FLAGS.mark_as_parsed()
    packs = grain.MapDataset.source(packstream.open(path)).shuffle(seed)
    batches = packs[process::processes].batch(size, drop_remainder=True,
                                              batch_fn=features)
    return batches.to_iter_dataset().mp_prefetch(
        grain.MultiprocessingOptions(num_workers=workers))


def main(path):
    for batch in pipeline(path):
        print({name: array.shape for name, array in batch.items()})


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
