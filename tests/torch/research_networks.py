# SPDX-License-Identifier: Apache-2.0
"""Networks as papers' code has them, small: scans, splines, flows, fields, sets, graphs, weights that are computed."""
import math

import torch
from torch import nn
from torch.nn import functional as F


def before(x):
    """Of each token the one before it."""
    return F.pad(x, (0, 0, 1, -1))


class RwkvTime(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.decay, self.first = nn.Parameter(-5 * torch.rand(d)), nn.Parameter(torch.randn(d))
        self.mix = nn.ParameterList(nn.Parameter(torch.rand(1, 1, d)) for _ in range(3))
        self.k, self.v, self.r, self.out = (nn.Linear(d, d, bias=False) for _ in range(4))

    def forward(self, x):
        k, v, r = (f(x * m + before(x) * (1 - m)) for f, m in zip((self.k, self.v, self.r), self.mix))
        w, made = -torch.exp(self.decay), []
        above, below, most = torch.zeros_like(k[:, 0]), torch.zeros_like(k[:, 0]), torch.full_like(k[:, 0], -1e38)
        for t in range(k.shape[1]):
            q = torch.maximum(most, self.first + k[:, t])
            a, b = torch.exp(most - q), torch.exp(self.first + k[:, t] - q)
            made.append((a * above + b * v[:, t]) / (a * below + b))
            q = torch.maximum(most + w, k[:, t])
            a, b = torch.exp(most + w - q), torch.exp(k[:, t] - q)
            above, below, most = a * above + b * v[:, t], a * below + b, q
        return self.out(torch.sigmoid(r) * torch.stack(made, 1))


class Rwkv(nn.Module):
    """A language model whose tokens are mixed by a decaying sum (Peng et al. 2023)."""

    def __init__(self, words=60, d=24):
        super().__init__()
        self.words, self.norms = nn.Embedding(words, d), nn.ModuleList(nn.LayerNorm(d) for _ in range(4))
        self.time, self.mix = RwkvTime(d), nn.Parameter(torch.rand(1, 1, d))
        self.k, self.v, self.r = nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d, bias=False), nn.Linear(d, d, bias=False)
        self.head = nn.Linear(d, words, bias=False)

    def forward(self, ids):
        x = self.norms[0](self.words(ids))
        x = x + self.time(self.norms[1](x))
        y = self.norms[2](x)
        y = y * self.mix + before(y) * (1 - self.mix)
        x = x + torch.sigmoid(self.r(y)) * self.v(torch.relu(self.k(y)).square())
        return self.head(self.norms[3](x))


class Mamba(nn.Module):
    """A selective scan (Gu and Dao 2023), step by step."""

    def __init__(self, d=16, n=4, rank=2):
        super().__init__()
        e = 2 * d
        self.sizes = [rank, n, n]
        self.norm, self.up, self.conv = nn.LayerNorm(d), nn.Linear(d, 2 * e, bias=False), nn.Conv1d(e, e, 4, padding=3, groups=e)
        self.pick, self.step, self.down = nn.Linear(e, rank + 2 * n, bias=False), nn.Linear(rank, e), nn.Linear(e, d, bias=False)
        self.a, self.skip = nn.Parameter(torch.log(torch.arange(1, n + 1).float()).repeat(e, 1)), nn.Parameter(torch.ones(e))

    def forward(self, x):
        y, gate = self.up(self.norm(x)).chunk(2, -1)
        y = F.silu(self.conv(y.transpose(1, 2))[..., :x.shape[1]]).transpose(1, 2)
        step, b, c = self.pick(y).split(self.sizes, -1)
        step = F.softplus(self.step(step))
        keep = torch.exp(step[..., None] * -torch.exp(self.a))
        come = step[..., None] * b[:, :, None] * y[..., None]
        state, made = torch.zeros_like(come[:, 0]), []
        for t in range(x.shape[1]):
            state = keep[:, t] * state + come[:, t]
            made.append((state * c[:, t, None]).sum(-1))
        return x + self.down((torch.stack(made, 1) + y * self.skip) * F.silu(gate))


class S4(nn.Module):
    """A state space as a convolution whose kernel is computed of weights (Gu et al. 2022)."""

    def __init__(self, d=8, n=4, tokens=20):
        super().__init__()
        self.a, self.b, self.c = (nn.Parameter(torch.rand(d, n)) for _ in range(3))
        self.skip, self.enter, self.leave = nn.Parameter(torch.randn(d)), nn.Linear(3, d), nn.Linear(d, 2)
        self.register_buffer("steps", torch.arange(tokens).float())

    def forward(self, x):
        u = self.enter(x).transpose(1, 2)
        kernel = (self.c[..., None] * self.b[..., None] * torch.exp(-self.a.exp()[..., None] * self.steps / 10)).sum(1)
        y = F.conv1d(F.pad(u, (x.shape[1] - 1, 0)), kernel.flip(-1)[:, None], groups=u.shape[1])
        return self.leave(F.gelu(y + self.skip[:, None] * u).transpose(1, 2))


class Splines(nn.Module):
    """A layer of a Kolmogorov-Arnold network (Liu et al. 2024)."""

    def __init__(self, inputs, outputs, cells=5, order=3):
        super().__init__()
        self.order = order
        knots = torch.arange(-order, cells + order + 1) * (2 / cells) - 1
        self.register_buffer("knots", knots.expand(inputs, -1).contiguous())
        self.base, self.scale = nn.Parameter(torch.randn(outputs, inputs)), nn.Parameter(torch.randn(outputs, inputs))
        self.spline = nn.Parameter(torch.randn(outputs, inputs, cells + order))

    def forward(self, x):
        g, y = self.knots, x[..., None]
        made = ((y >= g[:, :-1]) & (y < g[:, 1:])).to(x.dtype)
        for k in range(1, self.order + 1):
            made = ((y - g[:, :-(k + 1)]) / (g[:, k:-1] - g[:, :-(k + 1)]) * made[..., :-1]
                    + (g[:, k + 1:] - y) / (g[:, k + 1:] - g[:, 1:-k]) * made[..., 1:])
        weights = (self.spline * self.scale[..., None]).flatten(1)
        return F.linear(F.silu(x), self.base) + F.linear(made.flatten(1), weights)


class Flow(nn.Module):
    """Affine couplings (Dinh et al. 2017): the logarithm of a density."""

    def __init__(self, d=6, hidden=24, steps=4):
        super().__init__()
        def net(*last):
            return nn.Sequential(nn.Linear(d, hidden), nn.LeakyReLU(), nn.Linear(hidden, d), *last)
        self.scales, self.shifts = (nn.ModuleList(net(*last) for _ in range(steps)) for last in ([nn.Tanh()], []))
        self.register_buffer("masks", torch.arange(steps)[:, None].add(torch.arange(d)).remainder(2).float())

    def forward(self, x):
        volume = x.new_zeros(x.shape[0])
        for scale, shift, mask in zip(self.scales, self.shifts, self.masks):
            kept = mask * x
            s, t = scale(kept) * (1 - mask), shift(kept) * (1 - mask)
            x, volume = kept + (1 - mask) * (x - t) * torch.exp(-s), volume - s.sum(1)
        return volume - x.square().sum(1) / 2 - x.shape[1] / 2 * math.log(2 * math.pi)


class Field(nn.Module):
    """A radiance field (Mildenhall et al. 2020): points of rays and their directions to colours and density."""

    def __init__(self, w=48):
        super().__init__()
        self.near, self.far = nn.ModuleList((nn.Linear(63, w), nn.Linear(w, w))), nn.ModuleList((nn.Linear(w + 63, w), nn.Linear(w, w)))
        self.density, self.feature, self.view, self.colour = nn.Linear(w, 1), nn.Linear(w, w), nn.Linear(w + 27, w // 2), nn.Linear(w // 2, 3)

    @staticmethod
    def encoded(x, count):
        return torch.cat([x] + [f(x * 2.0 ** i) for i in range(count) for f in (torch.sin, torch.cos)], -1)

    def forward(self, x):
        places, h = self.encoded(x[..., :3], 10), self.encoded(x[..., :3], 10)
        for layer in self.near:
            h = F.relu(layer(h))
        h = torch.cat([places, h], -1)
        for layer in self.far:
            h = F.relu(layer(h))
        seen = F.relu(self.view(torch.cat([self.feature(h), self.encoded(x[..., 3:], 4)], -1)))
        return torch.cat([self.colour(seen).sigmoid(), F.relu(self.density(h))], -1)


class SetTransformer(nn.Module):
    """Attention by way of inducing points, and to seeds (Lee et al. 2019): both are weights, repeated for each sample."""

    def __init__(self, d=24):
        super().__init__()
        self.points, self.seeds = nn.Parameter(torch.randn(1, 6, d)), nn.Parameter(torch.randn(1, 3, d))
        self.enter, self.leave = nn.Linear(4, d), nn.Linear(3 * d, 2)
        self.a, self.b, self.c = (nn.MultiheadAttention(d, 4, batch_first=True) for _ in range(3))
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(2))

    def forward(self, x):
        x = self.enter(x)
        points = self.points.expand(x.shape[0], -1, -1)
        h = self.norms[0](points + self.a(points, x, x, need_weights=False)[0])
        y = self.norms[1](x + self.b(x, h, h, need_weights=False)[0])
        seeds = self.seeds.repeat(x.shape[0], 1, 1)
        return self.leave((seeds + self.c(seeds, y, y, need_weights=False)[0]).flatten(1))


class Equilibrium(nn.Module):
    """One cell again and again, from zeros (Bai et al. 2019)."""

    def __init__(self, c=8):
        super().__init__()
        self.enter, self.a, self.b = nn.Conv2d(3, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1, bias=False), nn.Conv2d(c, c, 3, padding=1, bias=False)
        self.norms, self.leave = nn.ModuleList(nn.GroupNorm(4, c) for _ in range(3)), nn.Linear(16 * c, 10)

    def forward(self, x):
        u = self.enter(x)
        z = torch.zeros_like(u)
        for _ in range(3):
            y = self.norms[1](u + self.b(self.norms[0](F.relu(self.a(z)))))
            z = self.norms[2](F.relu(z + y))
        return self.leave(F.avg_pool2d(z, 4).flatten(1))


class Hyper(nn.Module):
    """A convolution whose weights another network makes (Ha et al. 2017), and weights that a low rank is added to."""

    def __init__(self):
        super().__init__()
        self.code, self.make = nn.Parameter(torch.randn(6)), nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8 * 27))
        self.weight, self.a, self.b = (nn.Parameter(torch.randn(*size)) for size in ((5, 8), (2, 8), (5, 2)))

    def forward(self, x):
        x = F.relu(F.conv2d(x, self.make(self.code).view(8, 3, 3, 3), padding=1))
        return F.linear(x.mean((2, 3)), self.weight + self.b @ self.a)


class Places(nn.Module):
    """Attention by distances (Dai et al. 2019, "Transformer-XL"): places have a product of their own."""

    def __init__(self, w=32, heads=4):
        super().__init__()
        self.heads, self.size = heads, w // heads
        self.enter, self.qkv, self.places, self.leave = nn.Linear(8, w), nn.Linear(w, 3 * w, bias=False), nn.Linear(w, w, bias=False), nn.Linear(w, 5)
        self.u, self.v = (nn.Parameter(torch.randn(heads, 1, self.size)) for _ in range(2))
        self.register_buffer("turns", 1e4 ** (-torch.arange(0.0, w, 2.0) / w))

    def forward(self, x):
        x = self.enter(x)
        n, t, w = x.shape
        angle = torch.arange(t - 1, -1, -1.0)[:, None] * self.turns
        r = self.places(torch.cat([angle.sin(), angle.cos()], -1)).view(t, self.heads, self.size).permute(1, 2, 0)
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, self.size).permute(2, 0, 3, 1, 4)
        moved = F.pad((q + self.v) @ r, (1, 0)).view(n, self.heads, t + 1, t)[:, :, 1:].reshape(n, self.heads, t, t)
        p = (((q + self.u) @ k.transpose(2, 3) + moved) * self.size ** -0.5).softmax(-1)
        return self.leave(x + (p @ v).transpose(1, 2).reshape(n, t, w))


class Capsules(nn.Module):
    """Routing by agreement (Sabour et al. 2017)."""

    def __init__(self, kinds=10, d=8):
        super().__init__()
        self.a, self.b = nn.Conv2d(1, 16, 9), nn.Conv2d(16, 32, 9, 2)
        self.weights = nn.Parameter(torch.randn(1, 144, kinds, d, 8))

    @staticmethod
    def squashed(v, dim=-1):
        length = v.square().sum(dim, keepdim=True)
        return length / (1 + length) * v / torch.sqrt(length + 1e-8)

    def forward(self, x):
        u = self.b(F.relu(self.a(x)))
        u = self.squashed(u.view(-1, 4, 8, 36).transpose(2, 3).reshape(-1, 144, 8))
        votes = (self.weights @ u[:, :, None, :, None])[..., 0]
        share = torch.zeros(x.shape[0], 144, 10, 1)
        for _ in range(2):
            v = self.squashed((share.softmax(2) * votes).sum(1, keepdim=True))
            share = share + (votes * v).sum(-1, keepdim=True)
        return self.squashed((share.softmax(2) * votes).sum(1)).norm(dim=-1)


class Modulated(nn.Module):
    """A generator whose normalizations have no scale of their own (de Vries et al. 2017)."""

    def __init__(self, z=16, c=16):
        super().__init__()
        self.enter, self.up, self.norm = nn.Linear(z, 16 * c), nn.ConvTranspose2d(c, c // 2, 4, 2, 1), nn.BatchNorm2d(c // 2, affine=False)
        self.scale, self.last = nn.Linear(z, c), nn.Conv2d(c // 2, 3, 3, padding=1)

    def forward(self, z):
        scale, shift = self.scale(z)[..., None, None].chunk(2, 1)
        x = self.norm(self.up(self.enter(z).view(z.shape[0], -1, 4, 4)))
        return torch.tanh(self.last(F.leaky_relu(x * (1 + scale) + shift, 0.2)))


def of(module, *shape):
    return lambda: (module(), (torch.randn(2, *shape),), {"x": {0: "batch"}})


RESEARCH = {
    "rwkv": lambda: (Rwkv(), (torch.zeros(2, 12, dtype=torch.long),), {"x": {0: "batch"}}),
    "mamba": of(Mamba, 10, 16), "s4": of(S4, 20, 3), "splines": of(lambda: nn.Sequential(Splines(6, 10), Splines(10, 4)), 6),
    "flow": of(Flow, 6), "field": of(Field, 9, 6), "set_transformer": of(SetTransformer, 9, 4),
    "equilibrium": of(Equilibrium, 3, 16, 16), "hyper": of(Hyper, 3, 12, 12), "places": of(Places, 8, 8),
    "capsules": of(Capsules, 1, 28, 28), "modulated": of(Modulated, 16),
}
