# SPDX-License-Identifier: Apache-2.0
"""Networks of the zoo in plain PyTorch: module, where its parameters lie in what `run --save` writes, samples, loss."""
import dataclasses
from typing import Callable, Optional

import h5py
import torch
from torch import nn


@dataclasses.dataclass
class Network:
    module: Callable
    tensors: Optional[Callable] = None  # of a module: the tensor's name here -> Tensor
    samples: Optional[Callable] = None  # (count, path): writes them, returns inputs and labels
    loss: Optional[Callable] = None     # None: only the number of parameters is compared


@dataclasses.dataclass
class Tensor:
    """One tensor of ours: which parameters it holds, one after the other, and how each of them lies in it."""
    parameters: list
    to_torch: Callable = lambda x, parameter: x.reshape(parameter.shape)
    from_torch: Callable = lambda x: x

    def load(self, values):
        begin = 0
        for parameter in self.parameters:
            part = values[begin:begin + parameter.numel()]
            parameter.copy_(self.to_torch(part, parameter))
            begin += parameter.numel()

    def gradient(self):
        return torch.cat([self.from_torch(parameter.grad).reshape(-1) for parameter in self.parameters])


def dense(name, layer):
    found = {f"{name}/weights": Tensor([layer.weight], lambda x, p: x.reshape(p.shape[1], p.shape[0]).T, lambda g: g.T)}
    if layer.bias is not None:
        found[f"{name}/bias"] = Tensor([layer.bias])
    return found


# Gates lie as ONNX has them: of an LSTM input, output, forget, cell for PyTorch's input, forget, cell, output; of a GRU
# update, reset, hidden for reset, update, hidden.
ORDERS = {"lstm": [0, 2, 3, 1], "gru": [1, 0, 2]}


def in_order(x, places):
    parts = x.reshape(len(places), -1)
    return torch.cat([parts[i] for i in places])


def recurrent(name, layer, cell):
    order = ORDERS[cell]
    inverse = [order.index(i) for i in range(len(order))]

    def gates(*parameters):
        return Tensor(list(parameters), lambda x, p: in_order(x, order).reshape(p.shape), lambda g: in_order(g, inverse))
    return {f"{name}/weights": gates(layer.weight_ih_l0), f"{name}/recurrence": gates(layer.weight_hh_l0),
            f"{name}/bias": gates(layer.bias_ih_l0, layer.bias_hh_l0)}


class LanguageModel(nn.Module):
    def __init__(self, hidden, words=10000):
        super().__init__()
        self.embedding = nn.Embedding(words, hidden)
        self.lstm1 = nn.LSTM(hidden, hidden, batch_first=True)
        self.lstm2 = nn.LSTM(hidden, hidden, batch_first=True)
        self.scores = nn.Linear(hidden, words)

    def forward(self, ids):
        return self.scores(self.lstm2(self.lstm1(self.embedding(ids))[0])[0])

    def tensors(self):
        return {"embedding/weights": Tensor([self.embedding.weight]), **recurrent("lstm1", self.lstm1, "lstm"),
                **recurrent("lstm2", self.lstm2, "lstm"), **dense("scores", self.scores)}


class PlainGru(nn.Module):
    """As nn.GRU, but for the reset gate, which multiplies the state before its product (Cho et al. 2014)."""

    def __init__(self, inputs, hidden):
        super().__init__()
        self.weight_ih_l0 = nn.Parameter(torch.randn(3 * hidden, inputs))
        self.weight_hh_l0 = nn.Parameter(torch.randn(3 * hidden, hidden))
        self.bias_ih_l0 = nn.Parameter(torch.randn(3 * hidden))
        self.bias_hh_l0 = nn.Parameter(torch.randn(3 * hidden))

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.weight_hh_l0.shape[1])
        reset_w, update_w, hidden_w = self.weight_hh_l0.chunk(3)
        reset_b, update_b, hidden_b = self.bias_hh_l0.chunk(3)
        for t in range(x.shape[1]):
            r, u, n = (x[:, t] @ self.weight_ih_l0.T + self.bias_ih_l0).chunk(3, dim=1)
            r, u = torch.sigmoid(r + h @ reset_w.T + reset_b), torch.sigmoid(u + h @ update_w.T + update_b)
            n = torch.tanh(n + (r * h) @ hidden_w.T + hidden_b)
            h = (1 - u) * n + u * h
        return h


class Keywords(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.scores = PlainGru(10, 400), nn.Linear(400, 12)

    def forward(self, x):
        return self.scores(self.gru(x))

    def tensors(self):
        return {**recurrent("gru", self.gru, "gru"), **dense("scores", self.scores)}


class Gnmt(nn.Module):
    """Its parameters alone: dropout would have to draw the same numbers."""

    def __init__(self, words=32320, n=1024):
        super().__init__()
        self.embedding = nn.Embedding(words, n)  # of both languages
        self.encoder = nn.ModuleList([nn.LSTM(n, n, bidirectional=True), nn.LSTM(2 * n, n), nn.LSTM(n, n), nn.LSTM(n, n)])
        self.decoder = nn.ModuleList([nn.LSTM(n, n)] + [nn.LSTM(2 * n, n) for _ in range(3)])
        self.query, self.key = nn.Linear(n, n, bias=False), nn.Linear(n, n, bias=False)
        self.sum_bias, self.vector = nn.Parameter(torch.zeros(n)), nn.Parameter(torch.zeros(n))
        self.scale = nn.Parameter(torch.zeros(1))
        self.scores = nn.Linear(n, words)


def cross_entropy(module, inputs, labels):
    scores = module(inputs)
    return nn.functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), labels.reshape(-1))


def tokens(length, words):
    def make(count, path):
        torch.manual_seed(5)
        ids, labels = torch.randint(0, words, (2, count, length))
        with h5py.File(path, "w") as file:
            file["tokens"], file["labels"] = ids.numpy().astype("int32"), labels.numpy().astype("int32")
        return ids, labels
    return make


def numbers(shape, classes):
    def make(count, path):
        torch.manual_seed(5)
        inputs, labels = torch.randn(count, *shape), torch.randint(0, classes, (count,))
        with h5py.File(path, "w") as file:
            file["data"], file["labels"] = inputs.numpy(), labels.numpy().astype("int32")
        return inputs.double(), labels
    return make


NETWORKS = {
    "lstm-ptb-small": Network(lambda: LanguageModel(200), LanguageModel.tensors, tokens(20, 10000), cross_entropy),
    "lstm-ptb-medium": Network(lambda: LanguageModel(650)),
    "lstm-ptb-large": Network(lambda: LanguageModel(1500)),
    "gru-keywords": Network(Keywords, Keywords.tensors, numbers((49, 10), 12), cross_entropy),
    "gnmt": Network(Gnmt),
}
