#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts/export_onnx.py writes is what PyTorch counts: networks with parts that PyTorch itself does not export in
training (stochastic depth, dropout of recurrent layers and of channels), with buffers and tied weights.

  exporter.py REHEARSE [--large]

--large: instead, networks whose weights or shapes are large, made without weights; minutes each.

`rehearse models FILE --check` must find parameters equal and multiply-adds within 0.1 %, of networks with weights and
of such that were made without (light); each module is in training afterwards. Exits with 77, which ctest calls skipped,
where PyTorch is absent; torchvision's networks are left out where that is.
"""
import itertools
import pathlib
import subprocess
import sys
import tempfile
import warnings

HERE = pathlib.Path(__file__).resolve().parent


def networks():
    import torch
    from torch import nn

    class Sentences(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.drop, self.head = nn.Embedding(50, 12), nn.Dropout2d(0.2), nn.Linear(20, 5)
            self.cells = nn.LSTM(12, 10, 2, batch_first=True, dropout=0.3, bidirectional=True)

        def forward(self, ids):
            made = self.cells(self.words(ids))[0].transpose(1, 2)
            return self.head(self.drop(made[..., None]).flatten(2).mean(2))

    class Graph(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 4)
            self.register_buffer("neighbours", torch.rand(10, 10))

        def forward(self, x):
            return self.b(self.neighbours @ torch.relu(self.neighbours @ self.a(x))).mean(1)

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.norm, self.head = nn.Embedding(40, 16), nn.LayerNorm(16), nn.Linear(16, 40, bias=False)
            self.head.weight = self.words.weight

        def forward(self, ids):
            return self.head(self.norm(self.norm(self.words(ids)) * 2))

    class Positions(nn.Module):
        """A table of relative positions, whose rows are picked for each pair of places, as in MViT v2."""
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Parameter(torch.rand(11, 8)), nn.Linear(6, 3)

        def forward(self, x):
            places = torch.arange(6)
            return self.head(torch.einsum("bqc,qkc->bqk", x, self.table[places[:, None] - places + 5])).mean(1)

    class Defaults(nn.Module):
        """Takes what its callers seldom say: PyTorch's exporter would make inputs of it."""
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 3)

        def forward(self, x, mask=None, features=False, scale=1.5, parts=2):
            x = self.a(x) * scale
            return x if features else self.b(x.view(-1, parts, 4).flatten(1))

    ids = torch.zeros(2, 9, dtype=torch.long)
    yield "defaults", Defaults, torch.zeros(2, 8)
    yield "positions", Positions, torch.zeros(2, 6, 8)
    yield "sentences", Sentences, ids
    yield "graph", Graph, torch.zeros(2, 10, 6)
    yield "tied", Tied, ids
    try:
        from torchvision.models import mobilenet_v3_small
        from torchvision.models.convnext import CNBlockConfig, ConvNeXt
    except ModuleNotFoundError as error:
        print(f"convnext, mobilenet_v3: left out: {error}")
        return
    yield "convnext", lambda: ConvNeXt([CNBlockConfig(8, 16, 2), CNBlockConfig(16, None, 1)], 0.4, num_classes=6), torch.zeros(2, 3, 32, 32)
    yield "mobilenet_v3", mobilenet_v3_small, torch.zeros(2, 3, 64, 64)


def large_networks():
    import torch
    from torchvision import models
    flow = torch.zeros(2, 3, 128, 128)
    yield "raft_small", models.optical_flow.raft_small, (flow, flow)
    yield "raft_large", models.optical_flow.raft_large, (flow, flow)
    yield "mvit_v2_s", models.video.mvit_v2_s, (torch.zeros(1, 3, 16, 224, 224),)
    yield "regnet_y_128gf", models.regnet_y_128gf, (torch.zeros(1, 3, 384, 384),)


def main():
    warnings.filterwarnings("ignore")
    sys.path.insert(0, str(HERE.parents[1] / "scripts"))
    try:
        import onnx  # noqa: F401
        import export_extras
        import export_onnx
        if "--large" in sys.argv[2:]:
            import torchvision  # noqa: F401
    except ModuleNotFoundError as error:
        print(f"skipped: {error} (Debian: python3-torch, python3-torchvision, python3-onnx)")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory(prefix="rehearse-torch-") as folder:
        cases = itertools.product(networks(), (False, True))
        if "--large" in sys.argv[2:]:
            cases = ((network, True) for network in large_networks())
        for (name, make, inputs), light in cases:
            inputs = inputs if isinstance(inputs, tuple) else (inputs,)
            name += " without weights" * light
            file = pathlib.Path(folder) / f"{name}.onnx"
            with export_extras.prepared(make, inputs, light, None) as (module, made, counts):
                export_onnx.export(module, made, file, said=counts)
            run = subprocess.run([sys.argv[1], "models", str(file), "--check"], capture_output=True, text=True, timeout=300)
            right = run.returncode == 0 and all(each.training for each in module.modules())
            failed += not right
            print(f"{name}: {'equal' if right else run.stdout + run.stderr}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
