"""datatrove_packs.py TEXT.jsonl FOLDER [HIST] - a datatrove step that packs:
each task writes the packs of its documents, FOLDER/00000.pks and so on.

PackWriter follows filters in a pipeline, with any executor.  All tasks learn
from the histogram of the corpus, and `cat FOLDER/*.pks` makes one stream.

SPDX-License-Identifier: MIT
"""

import subprocess
import sys

if __name__ == "__main__" and len(sys.argv) not in (3, 4):
    sys.exit(__doc__)

import packstream
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.readers import JsonlReader


class PackWriter(PipelineStep):
    type, name = "WRITER", "packs"

    def __init__(self, folder, encode, vocab_size, *options):
        super().__init__()
        self.folder, self.encode = folder, encode
        self.vocab_size, self.options = vocab_size, options

    def run(self, data, rank=0, world_size=1):
        packer = subprocess.Popen(
            ["packstream", "-q", *self.options,
             "-o", "%s/%05d.pks" % (self.folder, rank)], stdin=subprocess.PIPE)
        with packer, packstream.TokenWriter(
                packer.stdin, vocab_size=self.vocab_size) as writer:
            for document in data:
                writer.write(self.encode(document.text))
                self.update_doc_stats(document)
                yield document
        if packer.returncode != 0:
            raise RuntimeError("packstream exits with %d" % packer.returncode)


def encode(text):                # for a test; use your tokenizer instead
    return list(text.encode()) + [256]


if __name__ == "__main__":
    options = ["-L512", "--overlong=split"]
    options += ["--learn-from=" + name for name in sys.argv[3:]]
    LocalPipelineExecutor(
        [JsonlReader(sys.argv[1]),
         PackWriter(sys.argv[2], encode, 257, *options)],
        tasks=2, workers=2, logging_dir=sys.argv[2] + "/logs").run()
