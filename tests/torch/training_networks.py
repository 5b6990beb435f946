# SPDX-License-Identifier: Apache-2.0
"""Small networks whose training is held to PyTorch's: one of each kind that users bring.

NETWORKS maps a name to a function that returns (module, shape of one sample or ("tokens", vocabulary, length), classes,
shape of one sample's labels); it raises ModuleNotFoundError where layers are torchvision's and that is absent. A module
gives scores {batch, classes, labels...} or, of tokens, {batch, length, classes}.
"""
import torch
from torch import nn

import networks
from unusual_networks import UNUSUAL


class Residual(nn.Module):
    def __init__(self, inner, shortcut=None, after=None):
        super().__init__()
        self.inner, self.shortcut, self.after = inner, shortcut or nn.Identity(), after or nn.Identity()

    def forward(self, x):
        return self.after(self.inner(x) + self.shortcut(x))


def resnet():
    def block(a, b, stride):
        inner = nn.Sequential(nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(),
                              nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b))
        short = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b)) if a != b else None
        return Residual(inner, short, nn.ReLU())
    return nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                         block(8, 8, 1), block(8, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 7))


def mobilenet():
    def block(a, b, stride, wider=4):
        inner = nn.Sequential(nn.Conv2d(a, wider * a, 1, bias=False), nn.BatchNorm2d(wider * a), nn.ReLU6(),
                              nn.Conv2d(wider * a, wider * a, 3, stride, 1, groups=wider * a, bias=False),
                              nn.BatchNorm2d(wider * a), nn.ReLU6(),
                              nn.Conv2d(wider * a, b, 1, bias=False), nn.BatchNorm2d(b))
        return Residual(inner) if a == b and stride == 1 else inner
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(), block(8, 8, 1),
                         block(8, 12, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 5))


def efficientnet():
    from torchvision.ops import SqueezeExcitation

    def block(a, b, stride):
        inner = nn.Sequential(nn.Conv2d(a, 3 * a, 1, bias=False), nn.BatchNorm2d(3 * a, eps=1e-3), nn.SiLU(),
                              nn.Conv2d(3 * a, 3 * a, 5, stride, 2, groups=3 * a, bias=False),
                              nn.BatchNorm2d(3 * a, eps=1e-3), nn.SiLU(),
                              SqueezeExcitation(3 * a, 4, activation=nn.SiLU), nn.Conv2d(3 * a, b, 1, bias=False),
                              nn.BatchNorm2d(b, eps=1e-3))
        return Residual(inner) if a == b and stride == 1 else inner
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.Hardswish(), block(8, 8, 1),
                         block(8, 12, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 5))


def convnext():
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt
    return ConvNeXt([CNBlockConfig(8, 16, 2), CNBlockConfig(16, None, 1)], num_classes=6, layer_scale=0.5)


def vit():
    from torchvision.models import VisionTransformer
    return VisionTransformer(image_size=16, patch_size=4, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32,
                             num_classes=5)


class Mean(nn.Module):
    """The mean of an encoder's tokens, scored."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        return self.head(self.layers(x).mean(1))


class Norms(nn.Module):
    """A discriminator: normalization of instances and groups, leaky slopes."""

    def __init__(self):
        super().__init__()
        parts = []
        for a, b in ((3, 8), (8, 12)):
            parts += [nn.Conv2d(a, b, 4, 2, 1, bias=False), nn.InstanceNorm2d(b, affine=True), nn.LeakyReLU(0.2)]
        self.parts = nn.Sequential(*parts, nn.GroupNorm(4, 12), nn.Conv2d(12, 2, 4), nn.Flatten())

    def forward(self, x):
        return self.parts(x)


def generator():
    parts = []
    for a, b in ((6, 12), (12, 8)):
        parts += [nn.ConvTranspose2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU()]
    return nn.Sequential(*parts, nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Tanh())


def gpt():
    return networks.Gpt(vocabulary=37, width=16, heads=2, layers=2, tokens=8)


class LlamaTokens(nn.Module):
    """A block of a Llama between its tables: RMS norm, rotary embeddings, grouped queries, SwiGLU."""

    def __init__(self):
        super().__init__()
        self.words, self.block = nn.Embedding(23, 64), networks.Llama()
        self.norm, self.head = networks.RmsNorm(64), nn.Linear(64, 23, bias=False)

    def forward(self, ids):
        return self.head(self.norm(self.block(self.words(ids))))


NETWORKS = {
    "resnet": lambda: (resnet(), (3, 16, 16), 7, ()),
    "mobilenet": lambda: (mobilenet(), (3, 16, 16), 5, ()),
    "efficientnet": lambda: (efficientnet(), (3, 16, 16), 5, ()),
    "convnext": lambda: (convnext(), (3, 32, 32), 6, ()),
    "vit": lambda: (vit(), (3, 16, 16), 5, ()),
    "encoder": lambda: (Mean(), (6, 16), 5, ()),
    "gpt": lambda: (gpt(), ("tokens", 37, 8), 37, (8,)),
    "lstm": lambda: (networks.LastOf(nn.LSTM, True), (7, 10), 5, ()),
    "gru": lambda: (networks.LastOf(nn.GRU), (7, 10), 5, ()),
    "discriminator": lambda: (Norms(), (3, 16, 16), 2, ()),
    "generator": lambda: (generator(), (6, 3, 3), 3, (24, 24)),
    "unet2d": lambda: (networks.UNet(2, 4), (1, 16, 16), 3, (16, 16)),
    "unet3d": lambda: (networks.UNet(3, 2), (1, 8, 8, 8), 3, (8, 8, 8)),
    "llama": lambda: (LlamaTokens(), ("tokens", 23, 16), 23, (16,)),
}
NETWORKS |= UNUSUAL
