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


class Gcn(nn.Module):
    """Graphs of a batch one after the other: rows of the second one follow those of the first."""

    def __init__(self, words, subjects, hidden=16):
        super().__init__()
        self.dense1, self.dense2 = nn.Linear(words, hidden, bias=False), nn.Linear(hidden, subjects, bias=False)
        self.bias1, self.bias2 = nn.Parameter(torch.zeros(hidden)), nn.Parameter(torch.zeros(subjects))

    def forward(self, graph):
        features, start, end, weights = graph
        nodes = torch.arange(features.shape[0]) * features.shape[1]
        start, end = (start + nodes[:, None]).reshape(-1), (end + nodes[:, None]).reshape(-1)
        x = features.reshape(-1, features.shape[-1])
        for dense_, bias in ((self.dense1, self.bias1), (self.dense2, self.bias2)):
            x = dense_(x if dense_ is self.dense1 else torch.relu(x))
            messages = x[start] * weights.reshape(-1, 1)
            x = torch.zeros_like(x).index_add_(0, end, messages) + bias
        return x

    def tensors(self):
        return {**dense("layer1.dense", self.dense1), **dense("layer2.dense", self.dense2),
                "layer1.bias/bias": Tensor([self.bias1]), "layer2.bias/bias": Tensor([self.bias2])}


def graphs(nodes, words, links, classes):
    def make(count, path):
        torch.manual_seed(5)
        features, weights = torch.randn(count, nodes, words), torch.rand(count, links)
        start, end = torch.randint(0, nodes, (2, count, links))
        end[:, :nodes] = torch.arange(nodes)  # no node without messages: its ReLU would stand at 0
        labels = torch.randint(0, classes, (count, nodes))
        labels[:, ::3] = -100  # asked of two nodes in three
        with h5py.File(path, "w") as file:
            file["data"], file["edge_weights"] = features.numpy(), weights.numpy()
            file["from"], file["to"] = start.numpy().astype("float32"), end.numpy().astype("float32")
            file["labels"] = labels.numpy().astype("int32")
        return (features.double(), start, end, weights.double()), labels
    return make


class Block(nn.Module):
    def __init__(self, width, gaussians):
        super().__init__()
        self.filter1, self.filter2 = nn.Linear(gaussians, width), nn.Linear(width, width)
        self.dense1 = nn.Linear(width, width, bias=False)
        self.dense2, self.dense3 = nn.Linear(width, width), nn.Linear(width, width)


class SchNet(nn.Module):
    def __init__(self, width=128, gaussians=50, blocks=6, reach=10.0):
        super().__init__()
        self.embedding = nn.Embedding(100, width)
        self.blocks = nn.ModuleList(Block(width, gaussians) for _ in range(blocks))
        self.head1, self.head2 = nn.Linear(width, width // 2), nn.Linear(width // 2, 1)
        self.reach, self.gaussians = reach, gaussians

    def forward(self, sample):
        kinds, positions, start, end, molecule = sample
        energies = []
        for z, r, i, j, part in zip(kinds, positions, start, end, molecule):
            i, j = i[i >= 0], j[j >= 0]  # edges that there are
            d = (r[i] - r[j]).norm(dim=1, keepdim=True)
            near = 0.5 * (torch.cos(d * torch.pi / self.reach) + 1)
            centres = torch.linspace(0, self.reach, self.gaussians, dtype=d.dtype)
            spread = torch.exp(-0.5 / (centres[1] - centres[0])**2 * (d - centres)**2)
            x = self.embedding(z)
            for block in self.blocks:
                filters = block.filter2(softplus(block.filter1(spread))) * near
                y = torch.zeros_like(x).index_add_(0, j, block.dense1(x)[i] * filters)
                x = x + block.dense3(softplus(block.dense2(y)))
            x = self.head2(softplus(self.head1(x)))
            energies.append(x[part >= 0].sum())
        return torch.stack(energies)

    def tensors(self):
        found = {"embedding/weights": Tensor([self.embedding.weight])}
        for i, block in enumerate(self.blocks):
            found |= {**dense(f"block{i}.filter.dense1", block.filter1), **dense(f"block{i}.filter.dense2", block.filter2)}
            found |= {**dense(f"block{i}.dense1", block.dense1), **dense(f"block{i}.dense2", block.dense2),
                      **dense(f"block{i}.dense3", block.dense3)}
        return found | dense("head.dense1", self.head1) | dense("head.dense2", self.head2)


def softplus(x):
    return nn.functional.softplus(x) - torch.log(torch.tensor(2.0, dtype=x.dtype))


def molecules(count, path, room=29):
    torch.manual_seed(5)
    kinds, positions = torch.randint(1, 10, (count, room)), 2 * torch.randn(count, room, 3)
    links = room * (room - 1)
    start, end = torch.full((2, count, links), -1)
    molecule, energy = torch.full((count, room), -1), torch.randn(count, 1)
    for n in range(count):
        atoms = [29, 12, 7, 20][n % 4]
        pairs = [(a, b) for a in range(atoms) for b in range(atoms) if a != b]
        start[n, :len(pairs)] = torch.tensor([a for a, _ in pairs])
        end[n, :len(pairs)] = torch.tensor([b for _, b in pairs])
        molecule[n, :atoms] = 0
    with h5py.File(path, "w") as file:
        file["tokens"], file["positions"], file["energy"] = kinds.numpy().astype("int32"), positions.numpy(), energy.numpy()
        for name, values in (("from", start), ("to", end), ("molecule", molecule)):
            file[name] = values.numpy().astype("float32")
    return (kinds, positions.double(), start, end, molecule), energy.double()


def squared_error(module, inputs, energy):
    return ((module(inputs) - energy[:, 0])**2).mean()


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
    "gcn-cora": Network(lambda: Gcn(1433, 7)),
    "gcn-small": Network(lambda: Gcn(64, 4), Gcn.tensors, graphs(256, 64, 1280, 4), cross_entropy),
    "schnet": Network(SchNet, SchNet.tensors, molecules, squared_error),
}
