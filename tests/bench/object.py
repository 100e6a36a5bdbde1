"""object.py - packs in object storage, against mosaicml-streaming and litdata.

    object.py [--packs=N] [--rounds=N]

Puts N (16384) rows of 2048 tokens, u16, into a bucket of moto's server on this
machine: as a pack file, as shards of mosaicml-streaming and as chunks of
litdata.  Each then reads all rows in batches of 32, in one process with an
empty cache, in order and shuffled; ROUNDS (5) times, in turns.  Prints
medians: MB of tokens a second by the wall clock, and processor seconds of the
reader per GB of them.  All share the server, which is slow.

packstream reads twice: with its cache in memory, and in a folder, as the two
others have it.  They shuffle among neighbouring shards or chunks, packstream
among all packs of the file.

Needs a python3 with packstream, numpy, s3fs, moto[server], mosaicml-streaming
and litdata, and packstream, the program, on the PATH.

SPDX-License-Identifier: MIT
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from importlib import metadata

import measure
import numpy as np

CAPACITY, BATCH = 2048, 32
WAYS = ("packstream", "packstream, folder", "mosaicml-streaming", "litdata")
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench",
               "AWS_DEFAULT_REGION": "us-east-1"}


def rows(count):
    rng = np.random.default_rng(1)
    for _ in range(count):
        yield rng.integers(0, 50000, CAPACITY).astype(np.uint16)


def samples(count):
    for row in rows(count):
        yield {"tokens": row}


def upload(count, folder):
    """Makes the rows in the three formats, and puts them into the bucket."""
    import litdata
    import packstream
    import s3fs
    import streaming
    path = os.path.join(folder, "x")
    with packstream.TokenWriter(path + ".tok") as writer:
        for row in rows(count):
            writer.write(row)
    subprocess.run(["packstream", "-q", "-L", str(CAPACITY), "-a", "none",
                    "-o", path + ".pks", path + ".tok"], check=True)
    with streaming.MDSWriter(out=path + ".mds", columns={
            "tokens": "ndarray:uint16:%d" % CAPACITY}) as writer:
        for one in samples(count):
            writer.write(one)
    litdata.optimize(samples, [count], path + ".lit", num_workers=1,
                     chunk_bytes="64MB")
    files = s3fs.S3FileSystem(endpoint_url=os.environ["AWS_ENDPOINT_URL"])
    files.mkdir("bucket")
    files.put(path + ".pks", "bucket/x.pks")
    for name in ("mds", "lit"):
        files.put(path + "." + name, "bucket/" + name, recursive=True)


def stacked(rows):
    batch = []
    for one in rows:
        batch.append(one["tokens"])
        if len(batch) == BATCH:
            yield np.stack(batch)
            batch = []


def batches(way, shuffle, folder):
    url = os.environ["AWS_ENDPOINT_URL"]
    if way.startswith("packstream"):
        import packstream
        from packstream.packs import shuffled
        packs = packstream.open("s3://bucket/x.pks",
                                cache_dir=folder if "folder" in way else None)
        order = shuffled(len(packs), 1, 0) if shuffle else None
        return (batch["tokens"] for batch in packs.batches(BATCH,
                                                           order=order))
    if way == "litdata":
        import litdata
        from litdata.streaming import downloader
        # It has no option for a server without TLS.
        downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = "true"
        return stacked(litdata.StreamingDataset(
            "s3://bucket/lit", cache_dir=folder, shuffle=shuffle,
            storage_options={"endpoint_url": url}))
    import streaming
    return stacked(streaming.StreamingDataset(
        remote="s3://bucket/mds", local=folder, shuffle=shuffle,
        batch_size=BATCH))


def read(way, shuffle, count):
    """In a process of its own: seconds by the clock, and of the processor."""
    with contextlib.ExitStack() as stack:
        # Threads of litdata still write when it is done.
        first, folder = (stack.enter_context(tempfile.TemporaryDirectory(
            ignore_cleanup_errors=True)) for _ in range(2))
        next(iter(batches(way, shuffle, first)))        # imports
        begin, used = time.perf_counter(), time.process_time()
        seen = sum(len(batch) for batch in batches(way, shuffle, folder))
        print(time.perf_counter() - begin, time.process_time() - used)
    assert seen == count // BATCH * BATCH, seen


def serve():
    """moto's server, in a process of its own."""
    server = subprocess.Popen(
        [sys.executable, "-c", "from moto.server import ThreadedMotoServer as"
         " S; s = S(port=0, verbose=False); s.start();"
         " print(*s.get_host_and_port(), flush=True); s._thread.join()"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    host, port = server.stdout.readline().split()
    url = "http://127.0.0.1:" + port
    urllib.request.urlopen(url).close()
    os.environ.update(ENVIRONMENT, AWS_ENDPOINT_URL=url, S3_ENDPOINT_URL=url)
    return server


def measured(way, shuffle, count):
    """What read() prints, in a process that begins with an empty cache."""
    command = [sys.executable, __file__, "--read=" + way,
               "--packs=%d" % count] + ["--shuffle"] * shuffle
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise measure.Failed("%s: %s" % (way, run.stderr[-2000:]))
    return tuple(map(float, run.stdout.split()[-2:]))


def table(count, rounds):
    megabytes = count * CAPACITY * 2 / 1e6
    found = [["", "order", "MB/s", "CPU s/GB"]]
    for shuffle in (False, True):
        times = measure.take_turns({
            way: lambda way=way: measured(way, shuffle, count)
            for way in WAYS}, rounds)
        for way, pairs in times.items():
            clock, used = map(statistics.median, zip(*pairs))
            found.append([way, "shuffled" if shuffle else "in order",
                          "%.0f" % (megabytes / clock),
                          "%.1f" % (used / megabytes * 1000)])
    versions = ", ".join("%s %s" % (name, metadata.version(name)) for name in (
        "mosaicml-streaming", "litdata", "s3fs", "moto"))
    return ["packs from object storage", versions, measure.machine(),
            "%.0f MB, rows of %d tokens, batches of %d; medians of %d rounds"
            % (megabytes, CAPACITY, BATCH, rounds), ""] + measure.table(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--packs", type=int, default=16384)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--read", help=argparse.SUPPRESS)
    parser.add_argument("--shuffle", action="store_true",
                        help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        return read(options.read, options.shuffle, options.packs)
    server = serve()
    try:
        with tempfile.TemporaryDirectory() as folder:
            upload(options.packs, folder)
        measure.show(table(options.packs, options.rounds))
    finally:
        server.kill()


if __name__ == "__main__":
    measure.run_main(main)
