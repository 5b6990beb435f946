# SPDX-License-Identifier: Apache-2.0
"""Networks in spellings that are less usual: states carried by hand, weights that are computed, queries that are
weights, frames folded into the batch, a bias by relative position, a choice of experts, a scripted loop."""
import math

import torch
from torch import nn
from torch.nn import functional as F


class Steps(nn.Module):
    """A cell by hand, from a state of zeros as large as the batch."""

    def __init__(self, kind):
        super().__init__()
        self.cell, self.head, self.two = kind(8, 12), nn.Linear(12, 4), kind is nn.LSTMCell

    def forward(self, x):
        zeros = x.new_zeros(x.shape[0], 12)
        state = (zeros, zeros) if self.two else zeros
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
        return self.head(state[0] if self.two else state)


class Perceiver(nn.Module):
    """Latent queries that are weights, repeated for each sample (Jaegle et al. 2021)."""

    def __init__(self, width=32):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(4, width))
        self.cross = nn.MultiheadAttention(width, 4, batch_first=True, kdim=20, vdim=20)
        self.norm, self.own = nn.LayerNorm(width), nn.MultiheadAttention(width, 2, batch_first=True)
        self.head = nn.Linear(width, 5)

    def forward(self, x):
        y = self.latents.unsqueeze(0).repeat(x.shape[0], 1, 1)
        y = y + self.cross(y, x, x)[0]
        y = y + self.own(self.norm(y), self.norm(y), self.norm(y), need_weights=False)[0]
        return self.head(y.mean(1))


class Normalized(nn.Module):
    """weight_norm (Salimans and Kingma 2016) and standardized weights (Qiao et al. 2019)."""

    def __init__(self):
        super().__init__()
        self.a = nn.utils.weight_norm(nn.Conv2d(3, 8, 3, padding=1))
        self.b = nn.Conv2d(8, 8, 3, stride=2, bias=False)
        self.c = nn.utils.weight_norm(nn.ConvTranspose2d(8, 4, 4, 2, 1))
        self.head = nn.utils.weight_norm(nn.Linear(4, 5))

    def forward(self, x):
        w = self.b.weight
        w = (w - w.mean((1, 2, 3), keepdim=True)) / (w.std((1, 2, 3), keepdim=True) + 1e-5)
        x = F.conv2d(F.leaky_relu(self.a(x), 0.1), w, stride=2)
        return self.head(F.leaky_relu(self.c(x), 0.1).mean((2, 3)))


class Film(nn.Module):
    """Frames as images of one batch, then an LSTM over them."""

    def __init__(self):
        super().__init__()
        self.frames = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                                    nn.Conv2d(8, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU())
        self.steps, self.head = nn.LSTM(8, 12, batch_first=True), nn.Linear(12, 4)

    def forward(self, x):
        n, t, c, h, w = x.shape
        y = self.frames(x.view(n * t, c, h, w)).mean((2, 3)).view(n, t, -1)
        return self.head(self.steps(y)[0][:, -1])


class Relative(nn.Module):
    """Attention with a bias by relative position (Raffel et al. 2020, "T5"), and RMS norm."""

    def __init__(self, width=32, heads=4, tokens=10):
        super().__init__()
        self.words, self.heads, self.size = nn.Embedding(50, width), heads, width // heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.bias, self.scale = nn.Embedding(2 * tokens, heads), nn.Parameter(torch.ones(width))
        self.head = nn.Linear(width, 50, bias=False)

    def forward(self, ids):
        x = self.words(ids)
        n, t, c = x.shape
        y = self.scale * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))
        q, k, v = (part(y).view(n, t, self.heads, self.size).transpose(1, 2) for part in (self.q, self.k, self.v))
        places = torch.arange(t)
        bias = self.bias(places[None] - places[:, None] + t).permute(2, 0, 1).unsqueeze(0)
        y = ((q @ k.transpose(3, 2) + bias).softmax(-1) @ v).transpose(1, 2).reshape(n, t, c)
        return self.head(x + self.o(y))


class Experts(nn.Module):
    """Each token to two of four experts, as weights of all of them."""

    def __init__(self, width=16, experts=4):
        super().__init__()
        self.gate, self.head = nn.Linear(width, experts, bias=False), nn.Linear(width, 5)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, 24), nn.SiLU(), nn.Linear(24, width))
                                     for _ in range(experts))

    def forward(self, x):
        weights = self.gate(x).softmax(-1)
        best, which = weights.topk(2, -1)
        weights = torch.zeros_like(weights).scatter(-1, which, best / best.sum(-1, keepdim=True))
        for i, expert in enumerate(self.experts):
            x = x + weights[..., i:i + 1] * expert(x)
        return self.head(x.mean(1))


@torch.jit.script
def several_times(x, w):
    made = []
    for _ in range(3):
        x = torch.tanh(x @ w)
        made.append(x)
    return torch.stack(made, 1).sum(1)


class Scripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights, self.head = nn.Parameter(torch.randn(8, 8) / math.sqrt(8)), nn.Linear(8, 4)

    def forward(self, x):
        return self.head(several_times(x, self.weights))


class Translator(nn.Module):
    """An encoder's last states are a decoder's first."""

    def __init__(self, kind=nn.LSTM):
        super().__init__()
        self.encoder, self.decoder, self.head = kind(10, 12, batch_first=True), kind(10, 12, batch_first=True), nn.Linear(12, 5)

    def forward(self, x):
        _, states = self.encoder(x[:, :4])
        return self.head(self.decoder(x[:, 4:], states)[0][:, -1])


# Name: (module, shape of one sample or ("tokens", vocabulary, length), classes, shape of one sample's labels)
UNUSUAL = {
    "lstm_cell": lambda: (Steps(nn.LSTMCell), (5, 8), 4, ()),
    "gru_cell": lambda: (Steps(nn.GRUCell), (5, 8), 4, ()),
    "perceiver": lambda: (Perceiver(), (9, 20), 5, ()),
    "normalized_weights": lambda: (Normalized(), (3, 12, 12), 5, ()),
    "film": lambda: (Film(), (5, 3, 16, 16), 4, ()),
    "relative": lambda: (Relative(), ("tokens", 50, 10), 50, (10,)),
    "experts": lambda: (Experts(), (6, 16), 5, ()),
    "scripted": lambda: (Scripted(), (8,), 4, ()),
    "translator": lambda: (Translator(), (9, 10), 5, ()),
    "translator_gru": lambda: (Translator(nn.GRU), (9, 10), 5, ()),
}
