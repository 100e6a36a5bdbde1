#!/usr/bin/env python3
"""state-torch.py - compares the BERT in C with PyTorch's own layers.

usage: bert_state varlen | state-torch.py layers|transformers

Reads the output of tests/gen/bert_state: a packed batch, the model's weights
and its results.  Here each sequence goes through the network separately, in
double precision, built from torch.nn's layers or by the package
"transformers".  Losses, the encoder's output and the gradient of every tensor
have to agree.

SPDX-License-Identifier: MIT
"""

import sys

import torch
from torch import nn
from torch.nn import functional as F

NEAR = {4: 1e-4, 8: 1e-10}


class State:
    """A batch, weights, and the results."""

    def __init__(self, file):
        self.sequences, self.tensors = [], []
        for line in iter(file.readline, b"end\n"):
            word, *rest = line.decode().split()
            getattr(self, "read_" + word)(rest)
        self.hidden = self.numbers(file, *self.shape)
        self.weights = self.arena(file)
        self.gradients = self.arena(file)
        assert not file.read(1), "bytes behind the end"

    def read_config(self, rest):
        (self.vocab, self.width, self.layers, self.heads, self.wide,
         self.positions, self.types) = map(int, rest)

    def read_sequence(self, rest):
        row, length, label = map(int, rest[:3])
        weight, mlm, nsp = map(float, rest[3:])
        self.sequences.append({"row": row, "length": length, "label": label,
                               "weight": weight, "mlm": mlm, "nsp": nsp,
                               "masked": []})

    def read_tokens(self, rest):
        self.sequences[-1]["tokens"] = torch.tensor([list(map(int, rest))])

    def read_types(self, rest):
        self.sequences[-1]["types"] = torch.tensor([list(map(int, rest))])

    def read_masked(self, rest):
        self.sequences[-1]["masked"].append(
            (int(rest[0]), int(rest[1]), float(rest[2])))

    def read_total(self, rest):
        self.total = float(rest[0])

    def read_numbers(self, rest):
        self.size = int(rest[0])

    def read_hidden(self, rest):
        self.shape = tuple(map(int, rest))

    def read_tensor(self, rest):
        self.tensors.append((rest[0], int(rest[1]), int(rest[2])))

    def numbers(self, file, rows, columns):
        data = bytearray(file.read(rows * columns * self.size))
        kind = {4: torch.float32, 8: torch.float64}[self.size]
        return torch.frombuffer(data, dtype=kind).double().view(rows, columns)

    def arena(self, file):
        return {name: self.numbers(file, rows, columns).squeeze(0)
                for name, rows, columns in self.tensors}


def gelu(x):
    return F.gelu(x, approximate="tanh")


class Layers(nn.Module):
    """BERT built from torch.nn's layers."""

    def __init__(self, state):
        super().__init__()
        width = state.width
        self.word = nn.Embedding(state.vocab, width)
        self.position = nn.Embedding(state.positions, width)
        self.kind = nn.Embedding(state.types, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.encoder = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, state.heads, state.wide, dropout=0, activation=gelu,
                layer_norm_eps=1e-12, batch_first=True)
            for _ in range(state.layers))
        self.pooler = nn.Linear(width, width)
        self.transform = nn.Linear(width, width)
        self.transform_norm = nn.LayerNorm(width, eps=1e-12)
        self.decoder = nn.Linear(width, state.vocab)
        self.classes = nn.Linear(width, 2)
        self.decoder.weight = self.word.weight

    def forward(self, tokens, types):
        places = torch.arange(tokens.shape[1])
        x = self.norm(self.word(tokens) + self.position(places)
                      + self.kind(types))
        for layer in self.encoder:
            x = layer(x)
        y = self.transform_norm(gelu(self.transform(x)))
        return x, self.decoder(y), self.classes(
            torch.tanh(self.pooler(x[:, 0])))

    def parts(self):
        """Names of tensors, and our parameters that correspond to them."""
        front = "bert.embeddings."
        back = "cls.predictions.transform."
        yield [front + "word_embeddings.weight"], self.word.weight
        yield [front + "position_embeddings.weight"], self.position.weight
        yield [front + "token_type_embeddings.weight"], self.kind.weight
        yield from both(front + "LayerNorm", self.norm)
        for i, layer in enumerate(self.encoder):
            yield from layer_parts(f"bert.encoder.layer.{i}.", layer)
        yield from both("bert.pooler.dense", self.pooler)
        yield ["cls.predictions.bias"], self.decoder.bias
        yield from both(back + "dense", self.transform)
        yield from both(back + "LayerNorm", self.transform_norm)
        yield from both("cls.seq_relationship", self.classes)


def both(name, module):
    yield [name + ".weight"], module.weight
    yield [name + ".bias"], module.bias


def layer_parts(name, layer):
    three = [name + "attention.self." + x for x in ("query", "key", "value")]
    yield [x + ".weight" for x in three], layer.self_attn.in_proj_weight
    yield [x + ".bias" for x in three], layer.self_attn.in_proj_bias
    yield from both(name + "attention.output.dense", layer.self_attn.out_proj)
    yield from both(name + "attention.output.LayerNorm", layer.norm1)
    yield from both(name + "intermediate.dense", layer.linear1)
    yield from both(name + "output.dense", layer.linear2)
    yield from both(name + "output.LayerNorm", layer.norm2)


class Package(nn.Module):
    """BERT of the package "transformers"."""

    def __init__(self, state):
        super().__init__()
        from transformers import BertConfig, BertForPreTraining
        self.model = BertForPreTraining(BertConfig(
            vocab_size=state.vocab, hidden_size=state.width,
            num_hidden_layers=state.layers, num_attention_heads=state.heads,
            intermediate_size=state.wide, type_vocab_size=state.types,
            max_position_embeddings=state.positions, hidden_act="gelu_new",
            hidden_dropout_prob=0, attention_probs_dropout_prob=0))

    def forward(self, tokens, types):
        out = self.model(tokens, token_type_ids=types,
                         output_hidden_states=True)
        return (out.hidden_states[-1], out.prediction_logits,
                out.seq_relationship_logits)

    def parts(self):
        for name, parameter in self.model.named_parameters():
            yield [name], parameter


def load(net, weights):
    """Loads all weights, and checks that none is missing or left over."""
    left = set(weights)
    with torch.no_grad():
        for names, parameter in net.parts():
            parameter.copy_(torch.cat([weights[x] for x in names]))
            left -= set(names)
    assert not left, f"unknown: {left}"


class Check:
    """Compares, and keeps the worst difference."""

    def __init__(self, near):
        self.near, self.worst, self.failed = near, 0, False

    def same(self, what, ours, theirs, size=None):
        size = theirs.norm().item() if size is None else size
        off = (ours - theirs).norm().item()
        self.worst = max(self.worst, off / size if off else 0)
        if not off <= self.near * size:
            print(f"{what}: {off:.3g} off, of {size:.3g}", file=sys.stderr)
            self.failed = True


def run_sequence(net, sequence, state, check):
    """The sequence's part of the total."""
    hidden, logits, classes = net(sequence["tokens"], sequence["types"])
    total = torch.zeros(())
    rows = slice(sequence["row"], sequence["row"] + sequence["length"])
    check.same("hidden", state.hidden[rows], hidden[0])
    if sequence["masked"]:
        place, label, weight = map(torch.tensor, zip(*sequence["masked"]))
        losses = F.cross_entropy(logits[0, place], label, reduction="none")
        check.same("masked", torch.tensor(sequence["mlm"]), losses.mean())
        total = total + (losses * weight).sum()
    if sequence["label"] >= 0:
        loss = F.cross_entropy(classes, torch.tensor([sequence["label"]]))
        check.same("next", torch.tensor(sequence["nsp"]), loss)
        total = total + loss * sequence["weight"]
    return total


def check_gradients(net, state, check):
    for names, parameter in net.parts():
        parts = parameter.grad.split([len(state.gradients[x]) for x in names])
        for name, part in zip(names, parts):
            # Softmax ignores keys' biases: their gradients are rounding
            # errors, and the queries' gradients give the scale.
            like = state.gradients[name.replace("key.bias", "query.bias")]
            check.same(name, state.gradients[name], part,
                       like.norm().item())


def main():
    torch.set_default_dtype(torch.float64)
    state = State(sys.stdin.buffer)
    net = {"layers": Layers, "transformers": Package}[sys.argv[1]](state)
    net.double().train()
    load(net, state.weights)
    check = Check(NEAR[state.size])
    total = sum(run_sequence(net, x, state, check) for x in state.sequences)
    total.backward()
    check.same("total", torch.tensor(state.total), total)
    check_gradients(net, state, check)
    print(f"{len(state.sequences)} sequences, {len(state.tensors)} tensors: "
          f"{check.worst:.2g} off at the worst")
    sys.exit(check.failed)


main()
