"""ray_packs.py PARQUET FOLDER - packs the rows of a Ray Data dataset, in two
ways.

`packed` is stateless: map_batches packs each batch separately, into rows of a
dataset.  `Packing` is an actor that packs its whole share through packstream,
with a window that spans batches, and packs the remainder when the share ends:
FOLDER/00000.pks and so on, for `cat`.

SPDX-License-Identifier: MIT
"""

import subprocess
import sys

if __name__ == "__main__" and len(sys.argv) != 3:
    sys.exit(__doc__)

import packstream
import ray

LENGTH = 512


def packed(table):
    return packstream.pack_dataset(table, LENGTH, overlong="split")


@ray.remote
class Packing:
    def pack(self, share, path, *options):
        packer = subprocess.Popen(["packstream", "-q", "-o", path, *options],
                                  stdin=subprocess.PIPE)
        with packer, packstream.TokenWriter(packer.stdin) as writer:
            for table in share.iter_batches(batch_format="pyarrow",
                                            batch_size=None):
                for columns in packstream.from_arrow(table):
                    writer.write(writer.schema.without_empty(columns))
        if packer.returncode != 0:
            raise RuntimeError("packstream exits with %d" % packer.returncode)
        return path


def stateless(data, rows=8192):
    return data.map_batches(packed, batch_format="pyarrow", batch_size=rows)


def shares(data, folder, actors=2):
    return ray.get([
        Packing.remote().pack.remote(share, "%s/%05d.pks" % (folder, i),
                                     "-L%d" % LENGTH, "--overlong=split")
        for i, share in enumerate(data.streaming_split(actors))])


if __name__ == "__main__":
    ray.init(num_cpus=4)
    tokens = ray.data.read_parquet(sys.argv[1]).select_columns(["input_ids"])
    print("%d rows without state" % stateless(tokens).count())
    print(*shares(tokens, sys.argv[2]))
