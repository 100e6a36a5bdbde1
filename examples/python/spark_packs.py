"""spark_packs.py LINES FOLDER - packs lines of ids on the workers of Spark.

Each partition goes through `tokcat | packstream` on its worker.  A first pass
computes one histogram for all of them to learn from.

SPDX-License-Identifier: MIT
"""

import os
import subprocess
import sys

TOKENS = "set -o pipefail; tokcat --from=ids --vocab=50000"


def pack(i, lines, command):
    # rdd.pipe() would treat the output as lines of text.
    job = subprocess.Popen(["bash", "-c", command, "bash", "%05d.pks" % i],
                           stdin=subprocess.PIPE)
    with job:
        job.stdin.writelines(line.encode() + b"\n" for line in lines)
    if job.returncode != 0:
        raise RuntimeError("partition %d: exit status %d"
                           % (i, job.returncode))
    return [i]


def main(source, folder):
    from pyspark import SparkContext, SparkFiles
    spark = SparkContext.getOrCreate()
    lines = spark.textFile(source, 4)
    # Set PATH explicitly: the commands do not inherit it.
    histogram = lines.pipe("bash -c '%s | packstat --histogram'" % TOKENS,
                           dict(os.environ), checkCode=True).collect()
    with open(os.path.join(folder, "corpus.hist"), "w") as file:
        file.writelines(line + "\n" for line in histogram)
    spark.addFile(file.name)
    done = lines.mapPartitionsWithIndex(lambda i, part: pack(
        i, part, TOKENS + " | packstream -q -L512 --overlong=split"
        " --learn-from='%s' -o '%s'/$1"
        % (SparkFiles.get("corpus.hist"), folder))).collect()
    print("%d parts: cat %s/*.pks" % (len(done), folder))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
