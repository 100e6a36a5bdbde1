"""object.py - compares packs of URLs with those of the same file on disk.

    python3 object.py CHECK [ARGUMENT]... | each FOLDER

Needs packstream installed by pip, with fsspec and aiohttp, and the program
packstream on the PATH; the check s3 also needs s3fs and moto.  The server of
http:// is below: it answers ranges, has ETags, and fails on request.

SPDX-License-Identifier: MIT
"""

import concurrent.futures
import contextlib
import http.server
import importlib.util
import os
import pickle
import re
import subprocess
import sys
import threading
import time

import forked
import numpy as np
import packstream
from packstream import packs as numpy_reader

assert not {"fsspec", "aiohttp", "packstream.remote"} & set(sys.modules)

from packstream import files, remote                          # noqa: E402

remote.DELAY = 0.001
# Less than the files have.
remote.TAIL_BYTES, files.CHUNK_BYTES = 8192, 2048
LENGTH, BLOCK_PACKS = 64, 8


def write(path, seed, count=2000, options=(), longest=30):
    """A pack file of short sequences in small blocks."""
    rng = np.random.default_rng(seed)
    tokens = os.path.splitext(path)[0] + ".tok"
    with packstream.TokenWriter(tokens, vocab_size=1000) as writer:
        for n in rng.integers(1, longest, count):
            writer.write(rng.integers(1, 1000, n))
    subprocess.run(["packstream", "-q", "-L", str(LENGTH), "-d", "32",
                    "--block-packs", str(BLOCK_PACKS), *options, "-o", path,
                    tokens], check=True)
    return path


class Handler(http.server.BaseHTTPRequestHandler):
    """GET of a range.  `fault`, if the server has one, is called with each
    request, and returns whether it answered."""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        server = self.server
        try:
            with open(self.path[1:].split("?")[0], "rb") as file:
                data = file.read()
                about = os.fstat(file.fileno())
        except FileNotFoundError:
            return self.send_error(404)
        begin, end = re.fullmatch(r"bytes=(\d*)-(\d*)",
                                  self.headers["Range"]).groups()
        if not begin:
            begin, end = max(0, len(data) - int(end)), len(data) - 1
        self.begin, self.end = int(begin), min(int(end) + 1, len(data))
        self.size = len(data)
        self.etag = '"%x-%x"' % (about.st_mtime_ns, about.st_ino)
        with server.lock:
            server.requests.append((self.begin, self.end - self.begin))
            fault = server.fault and server.fault(self)
        if fault is None:
            self.answer(data[self.begin:self.end])
        else:
            fault(self, data)

    def answer(self, body, status=206, **headers):
        self.send_response(status)
        for name, value in {
                "Content_Length": len(body), "ETag": self.etag,
                "Content_Range": "bytes %d-%d/%d" % (self.begin, self.end - 1,
                                                     self.size),
                **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 100

    def handle_error(self, *_):
        pass


@contextlib.contextmanager
def served():
    server = Server(("127.0.0.1", 0), Handler)
    server.lock, server.requests, server.fault = threading.Lock(), [], None
    server.url = "http://127.0.0.1:%d/" % server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


def same(batches, wanted):
    n = 0
    for batch, other in zip(batches, wanted, strict=True):
        assert set(batch) == set(other)
        for name in other:
            assert np.array_equal(batch[name], other[name]), name
        n += len(other["index"])
    assert n
    return n


def raises(kind, text, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except kind as error:
        assert re.search(text, str(error)), error
        return error
    raise AssertionError("no %s: %s" % (kind.__name__, text))


def whole(packs, order=None):
    return list(packs.batches(100, order=order))


# ---- Reading ----

def reads():
    """In any order; each block with one request, the file with two more."""
    write("a.pks", 1), write("b.pks", 2), write("z.pks", 3, options=["--zstd"])
    with open("ab.pks", "wb") as file:
        for name in "ab":
            with open(name + ".pks", "rb") as part:
                file.write(part.read())
    with served() as server:
        for name in ("a.pks", "ab.pks", "z.pks"):
            local = packstream.open(name)
            before = len(server.requests)
            packs = packstream.open(server.url + name)
            assert len(packs) == len(local) > 400
            opened = len(server.requests)
            assert opened - before == (5 if name == "ab.pks" else 2)
            same(packs.batches(32), local.batches(32))
            blocks = len(local) // BLOCK_PACKS
            asked = server.requests[opened:]
            assert blocks - 8 <= len(asked) <= blocks + 3
            assert len(set(asked)) == len(asked)
            order = numpy_reader.shuffled(len(local), 7, 1)
            for arguments in ((32, 1, 3), (32, 0, 1, 100),
                              (7, 1, 2, 5, order)):
                same(packs.batches(*arguments), local.batches(*arguments))
            same([packs.take([5, 3, -1]), packs[2:9]],
                 [local.take([5, 3, -1]), local[2:9]])
            # All of it was in memory.
            assert len(server.requests) <= opened + len(asked) + 2
            deals = [packstream.Deal(p, 4, 1, 2, hidden=64, shuffle=3)
                     for p in (local, packs)]
            assert list(deals[0]) == list(deals[1])
        several = [server.url + "a.pks", "b.pks"]
        same(packstream.open(several).batches(32),
             packstream.open(["a.pks", "b.pks"]).batches(32))


def ahead():
    """The first block is available once the second has been requested."""
    write("x.pks", 1, 1000)
    second = threading.Event()
    waited = []

    def wait(handler, data):
        waited.append(second.wait(20))
        handler.answer(data[handler.begin:handler.end])

    def choose(handler):
        if len(server.requests) == opened + 1:
            return wait
        second.set()
        return None

    with served() as server:
        packs = packstream.open(server.url + "x.pks")
        opened = len(server.requests)
        server.fault = choose
        next(packs.batches(8))
    assert waited == [True]


def sparse():
    """Few packs of large blocks: fetches their rows and tables, not blocks."""
    files.REQUEST_BYTES, files.COSTS_AT_ONCE = 1000, 5000
    write("x.pks", 1, 20000, ["--block-packs=4096"], longest=60)
    local = packstream.open("x.pks")
    with served() as server:
        packs = packstream.open(server.url + "x.pks")
        opened = len(server.requests)
        same([packs.take([3, 2000])], [local.take([3, 2000])])
        costs = [p.costs(np.arange(len(p)), 1, 1) for p in (packs, local)]
        assert np.array_equal(*costs)
        assert sum(n for _, n in server.requests[opened:]) < \
            os.path.getsize("x.pks") // 2
        # But whole blocks, if many packs of each are read soon.
        files.REQUEST_BYTES = 5000
        packs = packstream.open(server.url + "x.pks")
        opened = len(server.requests)
        whole(packs, numpy_reader.shuffled(len(packs), 1, 0))
        assert len(server.requests) - opened <= len(packs) // 4096 + 1


def numpy_alone():
    """The reader without the extension."""
    write("x.pks", 1), write("z.pks", 3, options=["--zstd"])
    local = numpy_reader.open_packs("x.pks")
    with served() as server:
        packs = numpy_reader.open_packs(server.url + "x.pks")
        same(packs.batches(32), local.batches(32))
        same(packs.batches(8, 1, 3), local.batches(8, 1, 3))
        same([packs.take([100, 5])], [local.take([100, 5])])
        assert len(set(server.requests)) == len(server.requests)
        raises(packstream.PackError, "compressed", numpy_reader.open_packs,
               server.url + "z.pks")


# ---- Failures ----

def stall(handler, data):
    time.sleep(2)


def unavailable(handler, data):
    handler.answer(b"", 503)


def cut(handler, data):
    """The connection ends within the body."""
    body = data[handler.begin:handler.end]
    handler.answer(body[:len(body) // 2], Content_Length=len(body))
    handler.close_connection = True


def short(handler, data):
    handler.end -= 1
    handler.answer(data[handler.begin:handler.end])


def long(handler, data):
    handler.answer(data[handler.begin:handler.end] + b"x")


def another_range(handler, data):
    handler.begin, handler.end = handler.begin - 64, handler.end - 64
    handler.answer(data[handler.begin:handler.end])


def flipped(handler, data):
    body = bytearray(data[handler.begin:handler.end])
    body[len(body) // 2] ^= 1
    handler.answer(bytes(body))


def sometimes(fault, every):
    """Every n-th request fails once, and succeeds when it is repeated."""
    seen = {}

    def choose(handler):
        key = handler.begin, handler.end
        seen.setdefault(key, len(seen))
        if seen[key] % every == 1:
            seen[key] = 0
            return fault
        return None
    return choose


def faults():
    """Faults that can be retried, and others with their messages."""
    write("x.pks", 1, 1000)
    wanted = whole(packstream.open("x.pks"))
    with served() as server:
        url = server.url + "x.pks"
        for fault in (stall, unavailable, cut, short, long, another_range,
                      flipped):
            remote.TIMEOUT = 1 if fault is stall else 30
            packs = packstream.open(url)
            server.fault = sometimes(fault, {
                stall: 15, flipped: 1000}.get(fault, 3))
            same(packs.batches(100), wanted)
            server.fault = None
        remote.ATTEMPTS = 2
        for fault, kind, text in (
                (stall, OSError, "Timeout"), (unavailable, OSError, "503"),
                (cut, OSError, "x.pks: cannot read"), (short, OSError, "gave"),
                (long, OSError, "sent more"),
                (flipped, packstream.PackError, "pack .* block at byte")):
            packs = packstream.open(url + "?secret=1")
            server.fault = lambda handler, fault=fault: fault
            remote.TIMEOUT = 0.2 if fault is stall else 30
            assert "secret" not in str(raises(kind, text, whole, packs))
            concurrent.futures.wait(packs.files[0].remote._flying.values())
            server.fault, remote.TIMEOUT = None, 30
            same(packs.batches(100), wanted)    # still works afterwards
        server.fault = lambda _: lambda handler, data: handler.answer(
            data, 200, Content_Range="")
        raises(OSError, "requests for ranges", packstream.open, url)
        server.fault = lambda _: lambda handler, data: handler.answer(
            data[handler.begin:handler.end], ETag="")
        raises(packstream.PackError, "neither an ETag", packstream.open, url)
        server.fault = None
        raises(FileNotFoundError, "no such file", packstream.open, url + "x")


def replaced():
    """By a file of the same size and geometry, whose packs are valid."""
    write("x.pks", 1, 1000), write("y.pks", 2, 1000)
    text = "x.pks: the file was replaced"
    with served() as server, open("y.pks", "rb") as other:
        packs = packstream.open(server.url + "x.pks", cache_bytes=1 << 14)
        plain = numpy_reader.open_packs(server.url + "x.pks")
        there = pickle.dumps(packs)
        begun = packs.batches(8)
        next(begun)
        os.rename("x.pks", "old.pks")
        assert raises(packstream.PackError, text, list, begun)
        with open("x.pks", "wb") as file:
            file.write(other.read())
        for call in (lambda: whole(packs), lambda: packs[200],
                     lambda: plain.take([77]),
                     lambda: pickle.loads(there)[0]):
            raises(packstream.PackError, text, call)
        assert forked.run(raises, packstream.PackError, text, whole,
                          packs) == 0


# ---- The cache ----

def kept(folder):
    return sum(os.path.getsize(os.path.join(at, name))
               for at, _, names in os.walk(folder) for name in names)


def cache():
    """Small ones; a folder shared by several processes, one that fills up, one
    with damage."""
    write("x.pks", 1, 1000)
    local = packstream.open("x.pks")
    size = os.path.getsize("x.pks")
    order = numpy_reader.shuffled(len(local), 1, 1)
    wanted = list(local.batches(16, order=order))
    with served() as server:
        url = server.url + "x.pks"
        for limit in (0, 3000, size // 4):
            same(packstream.open(url, cache_bytes=limit).batches(
                16, order=order), wanted)
            packs = packstream.open(url, cache_dir="small",
                                    cache_bytes=limit)
            same(packs.batches(16, order=order), wanted)
            assert kept("small") <= limit + 20, (kept("small"), limit)
        before = len(server.requests)       # the packs read last
        same([packs.take(order[-3:])], [local.take(order[-3:])])
        assert len(server.requests) == before
        packs = packstream.open(url, cache_dir="cache")
        same(packs.batches(16, order=order), wanted)
        before = len(server.requests)
        status = forked.run(lambda: same(packs.batches(16, order=order),
                                         wanted))
        assert status == 0 and len(server.requests) == before + 2
        for folder, _, names in os.walk("cache"):
            for i, name in enumerate(sorted(names)):
                if name != "size" and i % 10 == 0:
                    with open(os.path.join(folder, name), "r+b") as file:
                        file.seek(100)
                        file.write(b"damage")
        same(packs.batches(16, order=order), wanted)
        os.chmod("cache", 0o500)
        same(packs.batches(16, order=order), wanted)
        os.chmod("cache", 0o700)


# ---- Users of URLs ----

def tokens_of(pack):
    return pack["tokens"].copy()


def torch():
    """PackDataset and Deal, with workers, resumed from a state."""
    from torch.utils.data import DataLoader
    write("x.pks", 1)
    with served() as server:
        url = server.url + "x.pks"
        local = packstream.open("x.pks")
        for source in (url, packstream.open(url, cache_dir="cache")):
            data, wanted = (packstream.PackDataset(one, 8, shuffle=3)
                            for one in (source, "x.pks"))
            for workers in (0, 2):
                same(DataLoader(data, batch_size=None, num_workers=workers),
                     wanted)
        data = packstream.PackDataset(url, 8, shuffle=3)
        batches = iter(data)
        for _ in range(20):
            next(batches)
        state = data.state_dict()
        resumed = packstream.PackDataset(url, 8, shuffle=3)
        resumed.load_state_dict(state)
        same(resumed, batches)
        packs = packstream.open(url, tokens_of)
        deal = packstream.Deal(packs, 4, 0, 2, hidden=64, shuffle=5)
        for method in ("fork", "spawn"):
            loader = DataLoader(packs, batch_sampler=deal, num_workers=1,
                                collate_fn=np.stack,
                                multiprocessing_context=method)
            for tokens, numbers in zip(loader, deal, strict=True):
                assert np.array_equal(tokens, local.take(numbers)["tokens"])


def memory():
    """A file system without ETags."""
    import fsspec
    write("x.pks", 1, 1000), write("y.pks", 2, 1000)
    stored = fsspec.filesystem("memory")
    stored.put("x.pks", "/x.pks")
    packs = packstream.open("memory://x.pks", cache_bytes=0)
    same(packs.batches(100), packstream.open("x.pks").batches(100))
    system = packs.files[0].remote._fs
    cat_file = system._cat_file

    async def replace(*arguments, **options):
        data = await cat_file(*arguments, **options)
        stored.put("y.pks", "/x.pks")
        return data

    system._cat_file = replace
    for call in (lambda: packs[200], lambda: whole(packs)):
        raises(packstream.PackError, "replaced", call)


def follow(page, names):
    """Runs the Python blocks of a page, with these words replaced."""
    with open(page) as file:
        blocks = re.findall("^```python\n(.*?)^```", file.read(), re.M | re.S)
    known = {}
    for block in blocks:
        for word, name in names.items():
            block = block.replace(word, name)
        if "PackDataset" not in block or importlib.util.find_spec("torch"):
            exec(compile(block, page, "exec"), known)
    assert len(blocks) > 1
    return known


def s3(page):
    """moto's server, with the same calls, and with those of a page."""
    import s3fs
    from moto.server import ThreadedMotoServer
    os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test",
                      AWS_DEFAULT_REGION="us-east-1")
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    options = {"endpoint_url": "http://%s:%d" % server.get_host_and_port()}
    stored = s3fs.S3FileSystem(**options)
    stored.mkdir("bucket")
    write("x.pks", 1), write("y.pks", 2), write("z.pks", 3, options=["--zstd"])
    for name in ("x.pks", "z.pks"):
        stored.put(name, "bucket/" + name)
        packs = packstream.open("s3://bucket/" + name,
                                storage_options=options)
        local = packstream.open(name)
        order = numpy_reader.shuffled(len(local), 7, 1)
        same(packs.batches(32, order=order), local.batches(32, order=order))
    stored.ls("bucket")          # s3fs caches the list
    stored.put("y.pks", "bucket/x.pks")
    packs = packstream.open("s3://bucket/x.pks", cache_bytes=0,
                            storage_options=options)
    same(packs.batches(100), packstream.open("y.pks").batches(100))
    stored.put("x.pks", "bucket/x.pks")
    raises(packstream.PackError, "replaced", whole, packs)
    for name in ("corpus.pks", "a.pks", "b.pks"):
        stored.put("x.pks", "bucket/" + name)
    os.environ["AWS_ENDPOINT_URL"] = options["endpoint_url"]
    known = follow(page, {"https://minio:9000": options["endpoint_url"],
                          "/scratch/packs": "cache"})
    assert len(known["packs"]) == 2 * len(packstream.open("x.pks"))
    assert known["packs"][0]["n_tok"] and kept("cache")
    stored.touch("bucket/empty.pks")
    for name, kind, text in (("no.pks", FileNotFoundError, ""),
                             ("empty.pks", packstream.PackError, "empty")):
        raises(kind, text, packstream.open, "s3://bucket/" + name,
               storage_options=options)
    server.stop()


if __name__ == "__main__":
    forked.main(globals())
