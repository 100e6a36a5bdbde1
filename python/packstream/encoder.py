"""encoder.py - tokenize rows of text and chats into ids and labels, with a
Hugging Face tokenizer.

An Encoder encodes many rows at a time.  A row becomes one sequence, or two for
a pair of a chosen and a rejected answer.  A row that cannot be encoded exactly
is rejected with the reason.

Targets are determined by character position.  A chat is rendered as a whole
and tokenized once; the assistant's turns are the text between {% generation %}
marks if the template has them.  Otherwise the conversation is also rendered
before each assistant turn, with the generation prompt, and including the
turn.  The turn is the difference; both texts must be prefixes of the whole
chat.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from array import array
from typing import (Any, Callable, Dict, List, Mapping, NamedTuple, Optional,
                    Sequence, Set, Tuple)

import numpy as np

from packstream.errors import printable
from packstream.library import ffi, lib, need_library
from packstream.schema import Channel, Columns
from packstream.views import IGNORED

# The required and the optional columns of each kind of row.  The first kind
# whose required columns all exist is used.
KINDS = {"messages": (("messages",),
                      ("system", "tools", "chat_template_kwargs")),
         "completion": (("prompt", "completion"),
                        ("tools", "chat_template_kwargs")),
         "pair": (("chosen", "rejected"),
                  ("prompt", "tools", "chat_template_kwargs")),
         "conversations": (("conversations",),
                           ("system", "tools", "chat_template_kwargs")),
         "text": (("text",), ())}
LABELS = {"labels": Channel("i4", fill=IGNORED)}
CHANNELS = {"messages": LABELS, "conversations": LABELS,
            "completion": LABELS, "text": {},
            "pair": {**LABELS, "pair": Channel("u8", per="sequence"),
                     "chosen": Channel("u1", per="sequence")}}
# Roles, by the names used in ShareGPT and similar data
ROLES = {"human": "user", "user": "user", "gpt": "assistant",
         "chatgpt": "assistant", "model": "assistant",
         "assistant": "assistant", "system": "system", "tool": "tool",
         "observation": "tool"}
MARKS = re.compile(r"\{%[-+]?\s*generation\s*[-+]?%\}")
MAX_PROMPTS = 64            # maximum cached generation prompts
SENTINEL = "packstream 5f0c9b27e1d84a63"    # text that no header contains
Messages = List[Dict[str, Any]]


class Refused(ValueError):
    """The reason that a row cannot be encoded."""


class Piece(NamedTuple):
    """A text that becomes a sequence.  Targets are the characters of `spans`,
    or everything after the tokens shared with `prompt`."""
    text: str
    rendered: bool = False      # by a template, including special tokens
    prompt: Optional[str] = None
    spans: Optional[Sequence[Tuple[int, int]]] = None


class Encoded(NamedTuple):
    """The sequences of some rows, the number of rows without text, and the
    rejected rows with their reasons."""
    columns: Columns
    refused: List[Tuple[int, str]]
    empty: int
    merged: int         # sequences with a token that spans both texts


def kind_of(names: Sequence[str]) -> str:
    for kind, (needed, _) in KINDS.items():
        if set(needed) <= set(names):
            return kind
    raise ValueError(
        "no column messages, conversations, prompt and completion, chosen and "
        "rejected, or text (columns: %s): name one of text or messages with "
        "--column"
        % printable(", ".join(names), 4096))


def columns_of(names: Sequence[str], column: Optional[str]) -> List[str]:
    """Returns the columns to read, required columns first."""
    if column is None:
        needed, others = KINDS[kind_of(names)]
        return [*needed, *(name for name in others if name in names)]
    if column not in names:
        raise ValueError("no column %s (columns: %s)" % (
            printable(column), printable(", ".join(names), 4096)))
    return [column, *(name for name in KINDS["messages"][1]
                      if name in names and name != column)]


def is_messages(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def checked(value: Any, name: str) -> Any:
    """Returns a text, or messages without empty keys."""
    if isinstance(value, str):
        return value
    if value is None:
        raise Refused("%s: there is no value" % printable(name))
    if not is_messages(value):
        raise Refused("%s: neither text nor a list of messages"
                      % printable(name))
    return [message_of(message, "%s: message %d" % (printable(name), i))
            for i, message in enumerate(value)]


def message_of(given: Any, what: str) -> Dict[str, Any]:
    """Returns a message with a role, also for ShareGPT's `from` and
    `value`."""
    message = {key: item for key, item in given.items() if item is not None} \
        if isinstance(given, Mapping) else {}
    if "role" not in message and "from" in message:
        source = message.pop("from")
        if not isinstance(source, str) or source not in ROLES:
            raise Refused("%s is from %s: known are %s" % (
                what, printable(ascii(source)), ", ".join(ROLES)))
        message["role"] = ROLES[source]
        if "value" in message:
            message["content"] = message.pop("value")
    if not isinstance(message.get("role"), str):
        raise Refused("%s is not an object with a role" % what)
    return message


def parsed(value: Any) -> Any:
    """Returns tools or options, which can be JSON strings in tables."""
    return json.loads(value or "null") if isinstance(value, str) else value


def shared(one: Sequence, other: Sequence) -> int:
    """Returns the length of the common prefix of two sequences."""
    n = min(len(one), len(other))
    return next((i for i in range(n) if one[i] != other[i]), n)


class Template:
    """The chat template of a tokenizer, with a row's tools and options.
    `prompts` caches the template's generation prompts."""

    def __init__(self, tokenizer: Any, row: Mapping[str, Any],
                 prompts: Set[str]):
        from transformers.utils import chat_template_utils
        try:
            self.tools = parsed(row.get("tools")) or None
            options = parsed(row.get("chat_template_kwargs"))
            if options is not None and not isinstance(options, Mapping):
                raise TypeError("chat_template_kwargs is not an object")
            self.text = tokenizer.get_chat_template(tools=self.tools)
        except ImportError:
            raise
        except Exception as problem:
            raise Refused("tools, chat_template_kwargs: %s"
                          % problem) from None
        self.options = {**tokenizer.special_tokens_map,
                        **(options or {})}
        self._render = chat_template_utils.render_jinja_template
        self._prompts = prompts

    def render(self, messages: Messages, prompt: bool = False) -> str:
        return self._rendered(messages, add_generation_prompt=prompt)[0]

    def _rendered(self, messages: Messages, **more: Any
                  ) -> Tuple[str, List[Tuple[int, int]]]:
        try:
            texts, marks = self._render(
                [messages], tools=self.tools, chat_template=self.text,
                **{**self.options, **more})
        except ImportError:             # jinja2 is missing or too old
            raise
        except Exception as problem:    # a template can raise anything
            raise Refused("the chat template fails: %s: %s" % (
                type(problem).__name__, problem)) from None
        return texts[0], marks[0] if marks else []

    def assistant_turns(self, messages: Messages) -> Piece:
        if MARKS.search(self.text):
            text, spans = self._rendered(messages,
                                         return_assistant_tokens_mask=True)
        else:
            text = self.render(messages)
            spans = [self._turn(messages, i, text)
                     for i, message in enumerate(messages)
                     if message["role"] == "assistant"]
        if not any(begin < end for begin, end in spans):
            raise Refused("the assistant says nothing: no token is a target")
        return Piece(text, True, spans=spans)

    def _turn(self, messages: Messages, i: int, text: str) -> Tuple[int, int]:
        """Returns the range of characters of message i that the assistant
        generates."""
        before = self.render(messages[:i], prompt=True)
        through = text if i + 1 == len(messages) else \
            self.render(messages[:i + 1])
        if not text.startswith(through):
            raise Refused("the chat template changes message %d when others "
                          "follow: mark what the assistant says with "
                          "{%% generation %%}" % i)
        if not through.startswith(before):
            raise Refused("message %d does not begin with the generation "
                          "prompt of the chat template: mark what the "
                          "assistant says with {%% generation %%}" % i)
        if not self._has_prompt(before, messages[:i]) and \
                not self._begins(messages, i, before, through):
            raise Refused("the chat template has no generation prompt, so "
                          "where message %d begins is not known: mark what "
                          "the assistant says with {%% generation %%}" % i)
        return len(before), len(through)

    def _has_prompt(self, before: str, messages: Messages) -> bool:
        """True if `before` ends with a generation prompt that is not blank.
        Cached prompts avoid rendering the chat again without a prompt."""
        if self._prompts and before.endswith(tuple(self._prompts)):
            return True
        without = self.render(messages)
        prompt = before[shared(before, without):]
        if before == without + prompt and prompt.strip() and \
                len(self._prompts) < MAX_PROMPTS:
            self._prompts.add(prompt)
        return bool(prompt.strip())

    def _begins(self, messages: Messages, i: int, before: str,
                through: str) -> bool:
        """True if message i starts with its content, without a header.  The
        test uses SENTINEL as content, which cannot be part of a header."""
        content = messages[i].get("content")
        if not isinstance(content, str) or not content.strip() or \
                not through[len(before):].lstrip().startswith(content.strip()):
            return False
        tried = self.render([*messages[:i],
                             {**messages[i], "content": SENTINEL}])
        return tried.startswith(before) and \
            tried[len(before):].lstrip().startswith(SENTINEL)

    def completion(self, prompt: Messages, completion: Messages) -> Piece:
        begin = self.render(prompt, prompt=True)
        text = self.render([*prompt, *completion])
        if not text.startswith(begin):
            raise Refused("the chat template changes the prompt when the "
                          "completion follows")
        return Piece(text, True, begin)


class Encoder:
    """`tokenizer` is a tokenizer.json, a folder for from_pretrained of
    transformers, or an object of either library.  `eos` is the token appended
    to texts: None means the tokenizer's eos token, "" means none."""

    def __init__(self, tokenizer: Any, eos: Optional[str] = None):
        self._chat, self._backend, digested = loaded(tokenizer)
        self._prompts: Set[str] = set()
        self._backend.no_truncation()
        self._backend.no_padding()
        vocabulary = self._backend.get_vocab(with_added_tokens=True)
        self.vocab_size = max(vocabulary.values(), default=0) + 1
        self.special = special_ids(tokenizer, self._chat, vocabulary)
        if eos:
            if eos not in vocabulary:
                raise ValueError("--eos=%s: the tokenizer has no such token"
                                 % printable(eos))
            self.special["eos"] = vocabulary[eos]
        self.eos = None if eos == "" else self.special.get("eos")
        self._needs_eos = self.eos is None and eos is None
        self.digest = header_digest(digested)
        # Digest of everything that determines tokens
        self.identity = hashlib.sha256(repr((
            self._backend.to_str(), getattr(self._chat, "chat_template", None),
        )).encode()).hexdigest()

    def check(self, chats: bool) -> None:
        """Raises ValueError if this encoder cannot encode chats or texts."""
        if chats:
            if self._chat is None:
                raise ValueError("chats need a chat template: name the folder "
                                 "of the tokenizer, not its tokenizer.json")
            self._chat.get_chat_template()
        elif self._needs_eos:
            raise ValueError("the tokenizer names no token that ends a text: "
                             "name it with --eos=TOKEN, or --eos= for none")

    def encode(self, kind: str, rows: Sequence[Any], first: int = 0
               ) -> Encoded:
        """Encodes rows, which are mappings, Refused, or None for a blank row.
        Pairs are numbered by their row; `first` is the number of the first
        row."""
        pieces: List[Piece] = []
        numbers: List[int] = []
        refused: List[Tuple[int, str]] = []
        make, empty = getattr(self, "_" + kind), 0
        for i, row in enumerate(rows):
            if row is None:
                continue
            try:
                if isinstance(row, Refused):
                    raise row
                made = make(row)
            except Refused as problem:
                refused.append((i, str(problem)))
                continue
            empty += not made
            pieces += made
            numbers += [i] * len(made)
        return self._encode(kind, pieces, numbers, refused, empty, first)

    # Encoding by kind of row.

    @staticmethod
    def _text(row: Mapping[str, Any]) -> List[Piece]:
        text = row.get("text")
        if not isinstance(text, str):
            raise Refused("text: not a string")
        return [Piece(text)] if text else []

    def _messages(self, row: Mapping[str, Any], name: str = "messages"
                  ) -> List[Piece]:
        messages = checked(row.get(name), name)
        if isinstance(messages, str) or not messages:
            raise Refused("%s: not a list of messages" % name)
        if row.get("system") and any("from" in turn for turn in row[name]):
            if messages[0]["role"] == "system":
                raise Refused("system: the conversation begins with another")
            messages.insert(0, {"role": "system", "content": row["system"]})
        return [self._template(row).assistant_turns(messages)]

    def _conversations(self, row: Mapping[str, Any]) -> List[Piece]:
        return self._messages(row, "conversations")

    def _completion(self, row: Mapping[str, Any]) -> List[Piece]:
        prompt, completion = (checked(row.get(name), name)
                              for name in ("prompt", "completion"))
        if prompt == completion == "":
            return []
        return [self._answer(row, prompt, completion)]

    def _pair(self, row: Mapping[str, Any]) -> List[Piece]:
        chosen, rejected = (checked(row.get(name), name)
                            for name in ("chosen", "rejected"))
        if chosen == rejected:
            raise Refused("chosen and rejected are equal")
        prompt = row.get("prompt")
        if prompt is None or is_messages(prompt) != is_messages(chosen):
            n = shared(chosen, rejected)
            if isinstance(chosen, str) and n and chosen[n - 1] == " ":
                n -= 1          # a token can include the space before a word
            prompt, chosen, rejected = chosen[:n], chosen[n:], rejected[n:]
        prompt = checked(prompt, "prompt")
        if prompt == "" and "" in (chosen, rejected):
            raise Refused("one of chosen and rejected is empty")
        return [self._answer(row, prompt, answer)
                for answer in (chosen, rejected)]

    def _answer(self, row: Mapping[str, Any], prompt: Any,
                completion: Any) -> Piece:
        if isinstance(prompt, str) != isinstance(completion, str):
            raise Refused("one of prompt and completion is text, the other is "
                          "messages")
        if isinstance(prompt, str):
            return Piece(prompt + completion, prompt=prompt)
        return self._template(row).completion(prompt, completion)

    def _template(self, row: Mapping[str, Any]) -> Template:
        if self._chat is None:
            raise Refused("messages, for which the tokenizer has no chat "
                          "template")
        return Template(self._chat, row, self._prompts)

    # Tokenization of pieces.

    def _encode(self, kind: str, pieces: List[Piece], numbers: List[int],
                refused: List[Tuple[int, str]], empty: int, first: int
                ) -> Encoded:
        encodings = self._tokens(pieces)
        ids, ends, targets = array("I"), [0], []
        rows, chosen, merged, bad = [], [], 0, dict(refused)
        each = 2 if kind == "pair" else 1
        for at in range(0, len(pieces), each):
            row = numbers[at]
            try:
                made = [self._sequence(pieces[i], *encodings[i])
                        for i in range(at, at + each)]
            except Refused as problem:
                bad[row] = str(problem)
                continue
            for i, (own, ranges, crossed) in enumerate(made):
                targets += [(ends[-1] + begin, ends[-1] + end)
                            for begin, end in ranges]
                ids.fromlist(own)
                ends.append(len(ids))
                rows.append(first + row)
                chosen.append(i == 0)
                merged += crossed
        tokens = np.array(ids, np.uint32)
        values = {"tokens": tokens.astype(
            np.uint16 if self.vocab_size <= 1 << 16 else np.uint32)}
        if kind != "text":
            labels = values["labels"] = np.full(len(tokens), IGNORED, np.int32)
            for begin, end in targets:
                labels[begin:end] = tokens[begin:end]
        if kind == "pair":
            values["pair"] = np.array(rows, np.uint64)
            values["chosen"] = np.array(chosen, np.uint8)
        return Encoded(Columns(np.array(ends, np.int64), values),
                       sorted(bad.items()), empty, merged)

    def _tokens(self, pieces: List[Piece]) -> List[Tuple[Any, Any]]:
        """Returns the encodings of each piece and of its prompt."""
        found: List[List[Any]] = [[None, None] for _ in pieces]
        for rendered in (False, True):
            jobs = [(i, j, text) for i, piece in enumerate(pieces)
                    if piece.rendered == rendered
                    for j, text in enumerate((piece.text, piece.prompt))
                    if text is not None]
            spans = any(piece.spans is not None for piece in pieces)
            encode = self._backend.encode_batch if spans else \
                self._backend.encode_batch_fast
            if spans:
                # Some post-processors exclude blanks from token offsets.
                self._backend.post_processor = None
            for (i, j, _), encoding in zip(jobs, each_encoded(
                    encode, [text for *_, text in jobs], not rendered)):
                found[i][j] = encoding
        return [tuple(pair) for pair in found]

    def _sequence(self, piece: Piece, encoding: Any, prompt: Any
                  ) -> Tuple[List[int], List[Tuple[int, int]], bool]:
        """Returns ids, the ranges of targets, and True if a token spans both
        prompt and completion."""
        for found in (encoding, prompt):
            if isinstance(found, Refused):
                raise found
        ids, crossed = encoding.ids, False
        if not piece.rendered and self.eos is not None and \
                ids[-1:] != [self.eos]:
            ids.append(self.eos)
        if not ids:
            raise Refused("the text has no tokens")
        if piece.spans is not None:
            ranges = token_ranges(piece, encoding)
        elif prompt is not None:
            begin = shared(prompt.ids, ids)
            n = len(prompt.ids)
            if begin < n:
                # Special tokens at the end of the prompt are not part of its
                # text.
                added = prompt.special_tokens_mask
                while n and added[n - 1]:
                    n -= 1
            crossed = begin < n
            ranges = [(begin, len(ids))]
        else:
            ranges = []         # all tokens are targets: no labels
        return ids, ranges, crossed


def each_encoded(encode: Callable[..., List[Any]], texts: List[str],
                 special: bool) -> List[Any]:
    """Returns the encoding of each text, or a Refused."""
    try:
        return encode(texts, add_special_tokens=special)
    except Exception:
        pass

    def alone(text: str) -> Any:
        try:
            text.encode()
            return encode([text], add_special_tokens=special)[0]
        except UnicodeEncodeError as problem:
            return Refused("character %d is half of a surrogate pair"
                           % problem.start)
        except Exception as problem:
            return Refused("the tokenizer fails: %s" % problem)
    return [alone(text) for text in texts]


def token_ranges(piece: Piece, encoding: Any) -> List[Tuple[int, int]]:
    def token_at(at: int) -> int:
        """Returns the first token at or after character `at`."""
        for place in range(at, len(piece.text)):
            token = encoding.char_to_token(place)
            if token is not None:
                begin, end = encoding.token_to_chars(token)
                if begin < at:
                    raise Refused(
                        "the token of %s is partly in the assistant's turn, "
                        "which begins or ends within it"
                        % ascii(piece.text[begin:end]))
                return token
        return len(encoding)
    return [(token_at(begin), token_at(end))
            for begin, end in piece.spans or () if begin < end]


def loaded(tokenizer: Any) -> Tuple[Any, Any, bytes]:
    """Returns the transformers tokenizer or None, the tokenizers tokenizer,
    and the bytes that identify it: those of tokenizer.json if it exists, as
    with tokcat --tokenizer."""
    from tokenizers import Tokenizer
    chat, path = None, None
    if isinstance(tokenizer, (str, os.PathLike)):
        path = os.fspath(tokenizer)
        if not os.path.exists(path):
            raise FileNotFoundError(
                "%s: no such tokenizer: name a tokenizer.json or the folder "
                "of a tokenizer, such as DIR after 'hf download MODEL "
                "--local-dir DIR'" % printable(path))
        if not os.path.isdir(path):
            with open(path, "rb") as file:
                text = file.read()
            try:
                return None, Tokenizer.from_buffer(text), text
            except Exception as problem:
                raise ValueError("%s: not a tokenizer.json: %s" % (
                    printable(path), problem)) from None
        from transformers import AutoTokenizer
        try:
            chat = AutoTokenizer.from_pretrained(path, local_files_only=True)
        except (OSError, ValueError) as problem:
            raise ValueError("%s: not the folder of a tokenizer: %s" % (
                printable(path), " ".join(str(problem).split()))) from None
        path = os.path.join(path, "tokenizer.json")
    elif hasattr(tokenizer, "apply_chat_template"):
        chat = tokenizer
    backend = tokenizer if chat is None else \
        getattr(chat, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        raise ValueError("a tokenizer of %s, not one of the package tokenizers"
                         % type(tokenizer if chat is None else chat).__name__)
    text = backend.to_str().encode()
    if path is not None:
        with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
            return chat, backend, file.read()
        return chat, backend, text
    return chat, Tokenizer.from_buffer(text), text      # a modifiable copy


def header_digest(text: bytes) -> bytes:
    need_library("a tokenizer's digest")
    digest = ffi.new("unsigned char[32]")
    lib.psn_tokenizer_digest(text, len(text), digest)
    return bytes(digest)


def special_ids(tokenizer: Any, chat: Any, vocabulary: Mapping[str, int]
                ) -> Dict[str, int]:
    """Returns the ids of the special tokens that the tokenizer names, or the
    tokenizer_config.json next to its tokenizer.json."""
    names = {"pad": "pad_token", "bos": "bos_token", "eos": "eos_token",
             "cls": "cls_token", "sep": "sep_token", "mask": "mask_token"}
    if chat is not None:
        found = {name: getattr(chat, names[name], None) for name in names}
    else:
        found = {}
        with contextlib.suppress(OSError, TypeError, ValueError), open(
                os.path.join(os.path.dirname(os.fspath(tokenizer)),
                             "tokenizer_config.json")) as file:
            config = json.load(file)
            found = {name: config.get(names[name]) for name in names}
    tokens = {name: token.get("content") if isinstance(token, dict) else token
              for name, token in found.items()}
    return {name: vocabulary[token] for name, token in tokens.items()
            if isinstance(token, str) and token in vocabulary}
