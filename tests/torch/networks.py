# SPDX-License-Identifier: Apache-2.0
"""Networks that PyTorch users bring, each with an input: what the torch tests export and count.

NETWORKS maps a name to a function that returns (module, inputs, dynamic axes), and raises ModuleNotFoundError where the
network is torchvision's and that is absent.
"""
import math

import torch
from torch import nn

from research_networks import RESEARCH
from unusual_networks import UNUSUAL

IMAGE = {"x": {0: "batch"}}


def image(module, size=64, channels=3, batch=2):
    return module, (torch.zeros(batch, channels, size, size),), {"x": {0: "batch"}}


class Gpt(nn.Module):
    """A decoder in PyTorch's plain spelling: embeddings, causal mask, GELU, layer norm."""

    def __init__(self, vocabulary=101, width=48, heads=4, layers=2, tokens=16, new=nn.GELU):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(tokens, width)
        self.blocks = nn.ModuleList(Block(width, heads, tokens, new) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Block(nn.Module):
    def __init__(self, width, heads, tokens, new):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), new(), nn.Linear(4 * width, width))
        self.register_buffer("mask", torch.tril(torch.ones(tokens, tokens)).view(1, 1, tokens, tokens))

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (y.view(n, t, self.heads, c // self.heads).transpose(1, 2)
                   for y in self.qkv(self.norm1(x)).split(c, dim=2))
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(c // self.heads)
        scores = scores.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).contiguous().view(n, t, c))
        return x + self.mlp(self.norm2(x))


class TanhGelu(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Llama(nn.Module):
    """One block of a Llama: RMS norm, rotary embeddings, grouped queries, SwiGLU."""

    def __init__(self, width=64, heads=4, groups=2, tokens=16):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, groups * self.size, bias=False)
        self.v = nn.Linear(width, groups * self.size, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, 3 * width, bias=False)
        self.down = nn.Linear(3 * width, width, bias=False)
        angle = torch.outer(torch.arange(tokens).float(), 1e4 ** (-torch.arange(0, self.size, 2).float() / self.size))
        angle = torch.cat([angle, angle], -1)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def turn(self, x):
        a, b = x.chunk(2, -1)
        return x * self.cos + torch.cat([-b, a], -1) * self.sin

    def forward(self, x):
        n, t, c = x.shape
        y = self.norm1(x)
        q = self.turn(self.q(y).view(n, t, self.heads, self.size).transpose(1, 2))
        k = self.turn(self.k(y).view(n, t, self.groups, self.size).transpose(1, 2))
        v = self.v(y).view(n, t, self.groups, self.size).transpose(1, 2)
        again = self.heads // self.groups
        k, v = (z[:, :, None].expand(n, self.groups, again, t, self.size).reshape(n, self.heads, t, self.size)
                for z in (k, v))
        p = ((q @ k.transpose(2, 3)) * self.size ** -0.5).softmax(-1)
        x = x + self.o((p @ v).transpose(1, 2).reshape(n, t, c))
        y = self.norm2(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


class UNet(nn.Module):
    def __init__(self, dims=2, width=8, channels=1):
        super().__init__()
        conv = nn.Conv2d if dims == 2 else nn.Conv3d
        norm = nn.BatchNorm2d if dims == 2 else nn.BatchNorm3d
        up = nn.ConvTranspose2d if dims == 2 else nn.ConvTranspose3d
        self.pool = (nn.MaxPool2d if dims == 2 else nn.MaxPool3d)(2)

        def block(a, b):
            return nn.Sequential(conv(a, b, 3, padding=1, bias=False), norm(b), nn.ReLU(),
                                 conv(b, b, 3, padding=1, bias=False), norm(b), nn.ReLU())

        self.down1, self.down2, self.low = block(channels, width), block(width, 2 * width), block(2 * width, 4 * width)
        self.up2, self.up1 = up(4 * width, 2 * width, 2, 2), up(2 * width, width, 2, 2)
        self.join2, self.join1 = block(4 * width, 2 * width), block(2 * width, width)
        self.last = conv(width, 3, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(self.pool(a))
        y = self.up2(self.low(self.pool(b)))
        y = self.up1(self.join2(torch.cat([b, y], 1)))
        return self.last(self.join1(torch.cat([a, y], 1)))


class ResizingUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 2, 1), nn.Conv2d(16, 4, 3, 1, 1)

    def forward(self, x):
        a = torch.relu(self.a(x))
        b = nn.functional.interpolate(torch.relu(self.b(a)), scale_factor=2, mode="bilinear", align_corners=False)
        return self.c(torch.cat([a, b], 1))


class LastOf(nn.Module):
    """A recurrent network, and a dense layer on its last step."""

    def __init__(self, kind, both=False, layers=2):
        super().__init__()
        self.cells = kind(10, 24, layers, batch_first=True, bidirectional=both)
        self.dense = nn.Linear(48 if both else 24, 5)

    def forward(self, x):
        return self.dense(self.cells(x)[0][:, -1])


class Shared(nn.Module):
    """One convolution and one dense layer that are used twice."""

    def __init__(self):
        super().__init__()
        self.conv, self.dense, self.head = nn.Conv2d(4, 4, 3, padding=1), nn.Linear(36, 36), nn.Linear(36, 3)

    def forward(self, x):
        y = self.conv(torch.relu(self.conv(x))).flatten(1)
        return self.head(torch.relu(self.dense(torch.relu(self.dense(y)))))


class Encoder(nn.Module):
    def __init__(self, batch_first, activation="relu", norm_first=False):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=batch_first, activation=activation,
                                           norm_first=norm_first)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        return self.layers(x)


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Transformer(32, 4, 1, 1, 64, batch_first=True)

    def forward(self, x, y):
        return self.layers(x, y)


class Plus(nn.Module):
    """A scalar that is added (a fault of older versions)."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(8, 1)

    def forward(self, x):
        return self.dense(x) + 1.0


def theirs():
    import torchvision
    return torchvision.models


def vision(name, size=64, **how):
    return lambda: image(getattr(theirs(), name)(weights=None, **how), size)


def segmentation(name, aux=False):
    def make():
        class Out(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = getattr(theirs().segmentation, name)(weights=None, weights_backbone=None, aux_loss=aux)

            def forward(self, x):
                made = self.net(x)
                return (made["out"], made["aux"]) if aux else made["out"]
        return image(Out(), 64)
    return make


def video(name, frames=8, size=32):
    return lambda: (getattr(theirs().video, name)(weights=None), (torch.zeros(2, 3, frames, size, size),), IMAGE)


def clip(name):
    """MViT, whose positions are those of clips of one size."""
    return lambda: (getattr(theirs().video, name)(weights=None), (torch.zeros(2, 3, 16, 224, 224),), IMAGE)


def generator():
    parts = []
    for a, b in ((16, 64), (64, 32), (32, 16)):
        parts += [nn.ConvTranspose2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU()]
    return nn.Sequential(*parts, nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh()), (torch.zeros(2, 16, 4, 4),), IMAGE


def discriminator():
    parts = []
    for a, b in ((3, 16), (16, 32), (32, 64)):
        parts += [nn.Conv2d(a, b, 4, 2, 1, bias=False), nn.InstanceNorm2d(b, affine=True), nn.LeakyReLU(0.2)]
    return nn.Sequential(*parts, nn.GroupNorm(4, 64), nn.Conv2d(64, 1, 8), nn.Flatten(), nn.Sigmoid()), \
        (torch.zeros(2, 3, 64, 64),), IMAGE


def rows(module, *shape):
    return lambda: (module(), (torch.zeros(*shape),), {"x": {0: "batch"}})


NETWORKS = {name: vision(name, 224) for name in ("alexnet", "vgg11", "vgg16_bn")}
NETWORKS |= {name: vision(name) for name in (
    "convnext_tiny", "convnext_small", "densenet121", "densenet169", "efficientnet_b0", "efficientnet_b3",
    "efficientnet_v2_s", "mnasnet0_5", "mnasnet1_0", "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large",
    "regnet_y_400mf", "regnet_x_400mf", "regnet_y_1_6gf", "resnet18", "resnet34", "resnet50", "resnext50_32x4d",
    "wide_resnet50_2", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "squeezenet1_0", "squeezenet1_1",
    "swin_t", "swin_v2_t")}
NETWORKS |= {
    "googlenet": vision("googlenet", 96, init_weights=False, aux_logits=False),
    "inception_v3": vision("inception_v3", 96, init_weights=False, aux_logits=False),
    "vit_b_16": vision("vit_b_16", 64, image_size=64),
    "vit_b_32": vision("vit_b_32", 64, image_size=64),
    "maxvit_t": vision("maxvit_t", 224),
}
NETWORKS |= {name: segmentation(name) for name in (
    "fcn_resnet50", "deeplabv3_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large")}
NETWORKS |= {name: video(name) for name in ("r3d_18", "mc3_18", "r2plus1d_18")}
NETWORKS |= {
    "gpt": lambda: (Gpt(), (torch.zeros(2, 16, dtype=torch.long),), {"x": {0: "batch"}}),
    "gpt_tanh": lambda: (Gpt(new=TanhGelu), (torch.zeros(2, 16, dtype=torch.long),), {"x": {0: "batch"}}),
    "llama_block": rows(Llama, 2, 16, 64),
    "encoder": rows(lambda: Encoder(True), 2, 12, 32),
    "encoder_gelu_prenorm": rows(lambda: Encoder(True, "gelu", True), 2, 12, 32),
    "encoder_sequence_first": lambda: (Encoder(False), (torch.zeros(12, 2, 32),), {"x": {1: "batch"}}),
    "transformer": lambda: (Both(), (torch.zeros(2, 9, 32), torch.zeros(2, 7, 32)),
                            {"x": {0: "batch"}, "y": {0: "batch"}}),
    "lstm": rows(lambda: LastOf(nn.LSTM), 2, 7, 10),
    "lstm_both": rows(lambda: LastOf(nn.LSTM, True), 2, 7, 10),
    "gru": rows(lambda: LastOf(nn.GRU), 2, 7, 10),
    "rnn": rows(lambda: LastOf(nn.RNN, layers=1), 2, 7, 10),
    "unet2d": lambda: image(UNet(), 32, 1),
    "unet3d": lambda: (UNet(3, 4), (torch.zeros(2, 1, 16, 16, 16),), IMAGE),
    "unet_resize": lambda: image(ResizingUNet(), 32),
    "gan_generator": generator,
    "gan_discriminator": discriminator,
    "shared": rows(Shared, 2, 4, 3, 3),
    "plus_scalar": rows(Plus, 2, 8),
}



def unusual(make):
    def made():
        module, sample, *_ = make()
        tokens = sample[0] == "tokens"
        return module, (torch.zeros(2, sample[2], dtype=torch.long) if tokens else torch.randn(2, *sample),), IMAGE
    return made


NETWORKS |= {name: unusual(make) for name, make in UNUSUAL.items()} | RESEARCH

# All that torchvision 0.14 has beside those above: minutes each.
LARGE = {name: vision(name) for name in (
    "convnext_base", "convnext_large", "densenet161", "densenet201", "efficientnet_b1", "efficientnet_b2", "efficientnet_b4",
    "efficientnet_b5", "efficientnet_b6", "efficientnet_b7", "efficientnet_v2_m", "efficientnet_v2_l", "mnasnet0_75",
    "mnasnet1_3", "regnet_x_800mf", "regnet_x_1_6gf", "regnet_x_3_2gf", "regnet_x_8gf", "regnet_x_16gf", "regnet_x_32gf",
    "regnet_y_800mf", "regnet_y_3_2gf", "regnet_y_8gf", "regnet_y_16gf", "regnet_y_32gf", "regnet_y_128gf", "resnet101",
    "resnet152", "resnext101_32x8d", "resnext101_64x4d", "shufflenet_v2_x1_5", "shufflenet_v2_x2_0", "swin_s", "swin_b",
    "swin_v2_s", "swin_v2_b", "wide_resnet101_2")}
LARGE |= {name: vision(name, 32) for name in ("vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg19", "vgg19_bn")}
LARGE |= {"vit_l_16": vision("vit_l_16", image_size=64), "vit_l_32": vision("vit_l_32", image_size=64),
          "vit_h_14": vision("vit_h_14", 56, image_size=56),
          "googlenet_aux": vision("googlenet", 256, init_weights=False, aux_logits=True),
          "inception_v3_aux": vision("inception_v3", 299, init_weights=False, aux_logits=True)}
LARGE |= {f"{name}_aux": segmentation(name, aux=True) for name in (
    "fcn_resnet50", "fcn_resnet101", "deeplabv3_resnet101", "deeplabv3_mobilenet_v3_large")}
LARGE |= {"mvit_v1_b": clip("mvit_v1_b"), "mvit_v2_s": clip("mvit_v2_s"), "s3d": video("s3d", 16, 224)}

# Heads beside the last one, which no graph for inference has.
HEADS_IN_TRAINING = {"googlenet_aux", "inception_v3_aux"}

# What a file no longer says, so that nobody can read it back: by network, or by network and mode.
LOST = {f"{name}.eval": "the biases of convolutions went into the folded batch normalizations"
        for name in ("vgg11_bn", "vgg13_bn", "vgg16_bn", "vgg19_bn")}
LOST |= {"s4.eval": "its kernel was computed by the export", "places.eval": "its angles were computed by the export",
         "splines.eval": "its scales went into the weights that they multiply"}
LOST |= {f"{name}.eval": "the zeros that the bias of keys becomes look like weights"
         for name in ("swin_v2_t", "swin_v2_s", "swin_v2_b")}
LOST |= {f"{name}.eval": "the heads beside the last one are no part of a graph for inference" for name in HEADS_IN_TRAINING}
