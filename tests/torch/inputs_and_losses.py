#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks of several inputs, and losses in the graph, held to PyTorch: two towers, ids with masks, an encoder and a
decoder with words of their own; mean squares, absolute values, binary cross-entropy, cross-entropy of tokens of which
some ask for nothing, and a sum of two losses.

  inputs_and_losses.py REHEARSE [--only NAME,...] [--backend reference] [--ranks 2]

Of each: loss (to 1e-5) and gradients (to 1e-4 of each tensor's norm) of one step, then the losses of three steps of SGD
with momentum. On two ranks no case has labels that ask for nothing: DistributedDataParallel averages ranks, whatever
number of labels each has, and so do we. Exits with 77, which ctest calls skipped, where PyTorch is absent.
"""
import argparse
import pathlib
import sys
import tempfile
import warnings

HERE = pathlib.Path(__file__).resolve().parent
BATCH, STEPS = 4, 3


def cases():
    import networks
    from torch.nn import functional as F

    class Towers(nn.Module):
        def __init__(self):
            super().__init__()
            self.image, self.vector, self.head = nn.Conv2d(3, 8, 3), nn.Linear(5, 8), nn.Linear(16, 4)

        def forward(self, x, y):
            return self.head(torch.cat([torch.relu(self.image(x)).mean((2, 3)), torch.tanh(self.vector(y))], 1))

    class Columns(nn.Module):
        """Tables that read a column each of one tensor of ids, and pairs of what they give, as DLRM's programs do."""

        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList([nn.Embedding(11, 6) for _ in range(2)] + [nn.EmbeddingBag(11, 6, mode="sum")])
            self.bottom, self.top = nn.Linear(5, 6), nn.Linear(12, 3)

        def forward(self, x, ids):
            one, two, bag = self.tables
            z = torch.stack([self.bottom(x), one(ids[:, 0, 1]), two(ids[:, -1, 0]), bag(ids[:, 1])], 1)
            pairs = torch.bmm(z, z.transpose(1, 2))
            i, j = torch.tril_indices(4, 4, -1)
            return self.top(torch.cat([z[:, 0], pairs[:, i, j]], 1))

    class Masked(nn.Module):
        """A layer of an encoder whose padding is hidden, in Hugging Face's spelling, PyTorch's, or by ids alone."""

        def __init__(self, spelling):
            super().__init__()
            self.spelling = spelling
            self.words, self.kinds = nn.Embedding(31, 16), nn.Embedding(2, 16)
            self.q, self.k, self.v, self.o = (nn.Linear(16, 16) for _ in range(4))
            self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 3)

        def forward(self, ids, mask, kinds):
            x = self.words(ids) + self.kinds(kinds)
            n, t, c = x.shape
            q, k, v = (f(x).view(n, t, 2, 8).transpose(1, 2) for f in (self.q, self.k, self.v))
            scores = q @ k.transpose(-1, -2) / 8 ** 0.5
            if self.spelling == "added":
                scores = scores + (1.0 - mask[:, None, None, :].to(x.dtype)) * -10000.0
            elif self.spelling == "filled":
                scores = scores.masked_fill(mask[:, None, None, :] == 0, float("-inf"))
            else:
                scores = scores.masked_fill((ids == 0)[:, None, None, :], -1e9)
            y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, c)
            return self.head(self.norm(x + self.o(y))[:, 0])

    class Translator(nn.Module):
        def __init__(self):
            super().__init__()
            self.source, self.target = nn.Embedding(23, 16), nn.Embedding(29, 16)
            self.both = nn.Transformer(16, 2, 1, 1, 32, dropout=0, batch_first=True)
            self.head = nn.Linear(16, 29)
            self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(6))

        def forward(self, x, y):
            return self.head(self.both(self.source(x), self.target(y), tgt_mask=self.mask))

    class Trained(nn.Module):
        """A network and what it is trained for, its last input."""

        def __init__(self, net, loss):
            super().__init__()
            self.net, self.loss = net, loss

        def forward(self, *inputs):
            return self.loss(self.net(*inputs[:-1]), inputs[-1])

    def dense():
        return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))

    def coder():
        return nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.SiLU(), nn.ConvTranspose2d(4, 1, 4, 2, 1))

    class Next(nn.Module):
        """A language model that is given a text, and is asked for what follows each token."""

        def __init__(self, ignored):
            super().__init__()
            self.net, self.ignored = networks.Gpt(vocabulary=37, width=16, heads=2, layers=1, tokens=8), ignored

        def forward(self, ids, labels):
            scores = self.net(ids)[:, :-1]
            return F.cross_entropy(scores.reshape(-1, 37), labels[:, 1:].reshape(-1), ignore_index=self.ignored)

    class EachRow(nn.Module):
        """A language model that is asked for the loss of each token, and weighs them itself."""

        def __init__(self):
            super().__init__()
            self.net = networks.Gpt(vocabulary=37, width=16, heads=2, layers=1, tokens=8)

        def forward(self, ids, labels):
            rows = F.cross_entropy(self.net(ids).transpose(1, 2), labels, reduction="none")
            return (rows * rows).mean()

    class Messages(nn.Module):
        """A graph with each sample: what a node sends goes along the edges, and is added up; spelled with torch.gather and
        scatter_add, and a mean over what comes in."""

        def __init__(self, mean):
            super().__init__()
            self.send, self.keep, self.head, self.mean = nn.Linear(5, 8), nn.Linear(5, 8), nn.Linear(8, 3), mean

        def forward(self, x, source, target):
            sent = torch.tanh(self.send(x))
            sent = sent.gather(1, source.unsqueeze(-1).expand(-1, -1, 8))
            sums = torch.zeros_like(x[:, :, :1]).expand(-1, -1, 8).scatter_add(1, target.unsqueeze(-1).expand(-1, -1, 8), sent)
            if self.mean:
                count = torch.zeros_like(x[:, :, 0]).scatter_add(1, target, torch.ones_like(target, dtype=x.dtype))
                sums = sums / count.clamp(min=1).unsqueeze(-1)
            return self.head(torch.relu(self.keep(x) + sums).mean(1))

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 5), nn.Linear(16, 8)

        def forward(self, x, labels):
            y = torch.relu(self.body(x))
            return F.cross_entropy(self.a(y), labels) + 0.1 * (self.b(y) - x).pow(2).mean()

    def ids(count, length, most):
        return torch.randint(0, most, (count, length))

    def ids_of_three(count):
        return torch.randint(0, 11, (count, 3, 2))

    def ids_with_ends(count):
        made = torch.randint(1, 31, (count, 7))
        made[:, 5:] = torch.where(torch.rand(count, 2) < 0.5, 0, made[:, 5:])
        return made

    def some(labels, ignored):
        labels[torch.rand(labels.shape) < 0.3] = ignored
        labels[:, 1] = 3  # each sample asks for something
        return labels

    def masks(count):
        return (torch.arange(7)[None] < torch.randint(2, 8, (count, 1))).long()

    def scores(module, inputs, labels):
        made = module(*inputs)
        return F.cross_entropy(made.transpose(1, 2) if made.dim() == 3 else made, labels)

    def own(module, inputs, labels):
        return module(*inputs)

    # Name: module, data sets in the order of the inputs, labels (None: the graph's own loss), further options
    def with_labels(module, sets, labels, more=()):
        return module, sets, labels, scores, list(more)

    def with_loss(module, sets, more=()):
        return module, sets, None, own, list(more)

    count = BATCH * STEPS
    labels = torch.randint(0, 3, (count,))
    for spelling in ("added", "filled", "by_ids"):
        sets = {"tokens": ids_with_ends(count), "input1": masks(count), "input2": ids(count, 7, 2)}
        yield f"mask_{spelling}", with_labels(Masked(spelling), sets, labels)
    yield "towers", with_labels(Towers(), {"data": torch.randn(count, 3, 8, 8), "input1": torch.randn(count, 5)}, labels)
    yield "columns", with_labels(Columns(), {"data": torch.randn(count, 5), "input1": ids_of_three(count)}, labels)
    yield "translator", with_labels(Translator(), {"tokens": ids(count, 9, 23), "input1": ids(count, 6, 29)},
                                    ids(count, 6, 29))
    for kind in ("sums", "means"):
        graphs = {"data": torch.randn(count, 6, 5), "input1": ids(count, 10, 6), "input2": ids(count, 10, 6)}
        yield f"messages_{kind}", with_labels(Messages(kind == "means"), graphs, labels)
    numbers = {"data": torch.randn(count, 8), "input1": torch.rand(count, 4)}
    yield "squares", with_loss(Trained(dense(), lambda y, t: (y - t).pow(2).mean()), numbers)
    yield "absolute", with_loss(Trained(dense(), lambda y, t: (y - t).abs().mean()), numbers)
    yield "binary", with_loss(Trained(dense(), F.binary_cross_entropy_with_logits), numbers)
    yield "images", with_loss(Trained(coder(), lambda y, t: (y - t).square().mean((1, 2, 3)).mean()),
                              {"data": torch.randn(count, 1, 8, 8), "input1": torch.rand(count, 1, 8, 8)})
    yield "classes", with_loss(Trained(dense(), F.cross_entropy), {"data": numbers["data"], "labels": labels})
    yield "logarithms", with_loss(Trained(dense(), lambda y, t: F.nll_loss(y.log_softmax(-1), t)),
                                  {"data": numbers["data"], "labels": labels})
    yield "two_losses", with_loss(Two(), {"data": numbers["data"], "labels": labels})
    text = ids(count, 8, 37)
    yield "each_row", with_loss(EachRow(), {"tokens": text, "input1": ids(count, 8, 37)})
    yield "next", with_loss(Next(-100), {"tokens": text, "labels": some(text.clone(), -100)})
    yield "next_ignored", with_loss(Next(36), {"tokens": text, "labels": some(text.clone(), 36)}, ["--ignore-label", "36"])


def write(path, sets, labels):
    with h5py.File(path, "w") as file:
        for name, values in sets.items():
            file[name] = values.numpy().astype("float32" if values.is_floating_point() else "int32")
        if labels is not None:
            file["labels"] = labels.numpy().astype("int32")


def hold(options, case, folder):
    module, sets, labels, loss_of, more = case
    module.train()
    held.make_unique(module)
    start = {key: value.clone() for key, value in module.state_dict().items()}
    before = held.flat(module.parameters())
    write(folder / "data.h5", sets, labels)
    export_onnx.export(module, tuple(values[:2] for values in sets.values()), folder / "net.onnx",
                       opset=16 if options.name.startswith("messages") else 13, weights=True)
    module.load_state_dict(start)

    def loss(first, size):
        part = slice(first, first + size)
        return loss_of(module, [values[part] for values in sets.values()], None if labels is None else labels[part])

    options.plan = ""
    losses, weights, gradients = held.rehearse(options, folder, "one", ["--steps", "1", "--learning-rate", "1e-30", *more],
                                               options.ranks)
    places = held.places_of(weights, before)
    wrong = []
    value = loss(0, BATCH)
    value.backward()
    right = held.flat([weight.grad for weight in module.parameters()])
    off = abs(losses[0] - value.item()) / abs(value.item())
    far = 0
    if options.ranks == 1:
        far, where = held.apart(gradients, right, places, 1e-2 * np.linalg.norm(right) / np.sqrt(len(right)))
        if not far <= 1e-4:
            wrong.append(f"gradients are {far:.2e} off ({where})")
    if not off <= 1e-5:
        wrong.append(f"loss {losses[0]} for {value.item()}")
    optimizer, theirs = torch.optim.SGD(module.parameters(), lr=0.02, momentum=0.9), []
    for step in range(STEPS):
        optimizer.zero_grad()
        value = loss(step * BATCH, BATCH)
        value.backward()
        optimizer.step()
        theirs.append(value.item())
    losses, _, _ = held.rehearse(options, folder, "sgd",
                                 ["--steps", str(STEPS), "--learning-rate", "0.02", "--momentum", "0.9", *more], options.ranks)
    steps = max(abs(a - b) / abs(b) for a, b in zip(losses, theirs))
    if len(losses) != STEPS or not steps <= 1e-5:
        wrong.append(f"losses {losses} for {theirs}")
    print(f"{options.name}: loss {off:.1e}, gradients {far:.1e}, steps {steps:.1e}", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rehearse")
    parser.add_argument("--only", default="")
    parser.add_argument("--backend", default="")
    parser.add_argument("--ranks", type=int, default=1)
    options = parser.parse_args()
    global torch, nn, np, h5py, held, export_onnx
    try:
        sys.path[:0] = [str(HERE), str(HERE.parents[1] / "scripts")]
        import h5py
        import numpy as np
        import onnx  # noqa: F401
        import torch
        from torch import nn
        import export_onnx
        import held_to_training as held
    except ModuleNotFoundError as error:
        print(f"skipped: {error} (Debian: python3-torch, python3-onnx, python3-h5py)")
        return 77
    held.torch, held.nn, held.np, held.h5py = torch, nn, np, h5py
    torch.set_num_threads(1)
    torch.manual_seed(1)
    warnings.filterwarnings("ignore")  # of tracing, which says what it leaves out
    failed = count = 0
    for name, case in cases():
        if (options.only and name not in options.only.split(",")) or (options.ranks > 1 and name.startswith("next")):
            continue
        options.name, count = name, count + 1
        with tempfile.TemporaryDirectory(prefix="rehearse-torch-") as folder:
            try:
                wrong = hold(options, case, pathlib.Path(folder))
            except RuntimeError as error:
                wrong = [str(error)]
        for line in wrong:
            print(f"{name}: {line}", flush=True)
        failed += bool(wrong)
    print(f"{count - failed} of {count} networks train as PyTorch trains them")
    return 1 if failed or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
