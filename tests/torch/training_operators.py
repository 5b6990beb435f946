# SPDX-License-Identifier: Apache-2.0
"""One operator each, between a convolution and a dense layer, so that its gradient reaches weights: what
held_to_training.py --operators trains. The names are PyTorch's."""
import torch
from torch import nn
from torch.nn import functional as F


class Between(nn.Module):
    """x {3, 8, 8}: convolution to {4, 8, 8}, the operator, scores of 5 classes."""

    def __init__(self, operator, channels=4):
        super().__init__()
        self.before = nn.Conv2d(3, channels, 3, padding=1)
        self.operator = operator if isinstance(operator, nn.Module) else None
        self.function = operator
        with torch.no_grad():
            made = operator(torch.zeros(2, channels, 8, 8))
        self.after = nn.Linear(made.numel() // 2, 5)

    def forward(self, x):
        return self.after(self.function(self.before(x)).flatten(1))


class Rows(nn.Module):
    """Rows {64, 4} of the image, for layers of sequences."""

    def __init__(self, layer, pick=lambda made: made):
        super().__init__()
        self.layer, self.pick = layer, pick

    def forward(self, x):
        return self.pick(self.layer(x.flatten(2).transpose(1, 2)[:, :12]))


class WithTable(nn.Module):
    """A function of the image and of a tensor that is not trained."""

    def __init__(self, function, *shape, seed=2):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.register_buffer("table", torch.randn(*shape, generator=generator))
        self.function = function

    def forward(self, x):
        return self.function(x, self.table)


class WithWeights(nn.Module):
    def __init__(self, function, *shape):
        super().__init__()
        self.weights = nn.Parameter(torch.randn(*shape))
        self.function = function

    def forward(self, x):
        return self.function(x, self.weights)


class BothStates(nn.Module):
    def __init__(self, kind, given=False, **more):
        super().__init__()
        self.cells = kind(4, 6, batch_first=True, **more)
        self.given = given

    def forward(self, x):
        _, states = self.cells(x)
        states = states if isinstance(states, tuple) else (states,)
        return torch.cat([state.transpose(0, 1).flatten(1) for state in states], 1)


# Said not to run, before the first step: none today. Circular padding is left out: PyTorch 1.13 exports it a pixel off.
REFUSED = set()
IMAGE, INDEX = (3, 8, 8), torch.tensor([3, 0, 3, 1])


def image(name, operator, **more):
    return {name: lambda: (Between(operator() if isinstance(operator, type) else operator, **more), IMAGE, 5, ())}


def many(functions):
    return {name: (lambda f=f: (Between(f), IMAGE, 5, ())) for name, f in functions.items()}


NETWORKS = many({
    # functions of each element
    **{kind: (lambda x, f=getattr(F, kind): f(x)) for kind in (
        "relu6", "elu", "selu", "celu", "gelu", "silu", "mish", "softplus", "softsign", "hardswish", "hardsigmoid",
        "hardtanh", "leaky_relu", "logsigmoid", "tanhshrink", "hardshrink", "softshrink")},
    **{kind: (lambda x, f=getattr(torch, kind): f(x)) for kind in (
        "abs", "neg", "exp", "sin", "cos", "atan", "erf", "floor", "ceil", "round", "sign", "sigmoid", "tanh", "square")},
    "sqrt": lambda x: torch.sqrt(x * x + 1), "log": lambda x: torch.log(x * x + 1), "pow": lambda x: (x * x + 1) ** 1.5,
    "reciprocal": lambda x: torch.reciprocal(x * x + 1), "rsqrt": lambda x: torch.rsqrt(x * x + 1),
    "log1p": lambda x: torch.log1p(x * x), "expm1": torch.expm1, "threshold": lambda x: F.threshold(x, 0.1, 0.5),
    "remainder": lambda x: torch.remainder(x, 0.7), "fmod": lambda x: torch.fmod(x, 0.7),
    "clamp": lambda x: x.clamp(-0.2, 0.3), "maximum": lambda x: torch.maximum(x, x.roll(1, 1)),
    "minimum": lambda x: torch.minimum(x, x.flip(2)), "where": lambda x: torch.where(x > 0, x, 0.1 * x * x),
    "masked_fill": lambda x: x.masked_fill(x < 0, 0.5), "glu": lambda x: F.glu(x, 1), "prelu": nn.PReLU(4),
    "atan2": lambda x: torch.atan2(x, x * x + 1), "div_rounded": lambda x: x + torch.div(x, 0.3, rounding_mode="floor"),
    # along axes
    "sum": lambda x: x.sum(1), "mean": lambda x: x.mean((1, 3)), "prod": lambda x: (x + 1).prod(1), "amax": lambda x: x.amax(2),
    "amin": lambda x: x.amin((2, 3)), "max_dim": lambda x: x.max(1)[0], "var": lambda x: x.var((2, 3)),
    "std": lambda x: x.std(1), "norm": lambda x: x.norm(dim=1), "l1_norm": lambda x: x.norm(p=1, dim=2),
    "logsumexp": lambda x: x.logsumexp(1), "cumsum": lambda x: x.cumsum(2), "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: F.log_softmax(x, 3), "softmin": lambda x: F.softmin(x, 2), "normalize": lambda x: F.normalize(x),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x.flip(1), 1), "topk": lambda x: x.topk(3, 2)[0],
    "sort": lambda x: x.sort(3)[0], "argmax": lambda x: x + x.argmax(1, keepdim=True),
    "topk_gate": lambda x: x * (x >= x.topk(2, 1)[0][:, 1:2]), "gather_topk": lambda x: x.gather(3, x.topk(3, 3)[1]),
    # what moves
    "permute": lambda x: x.permute(0, 2, 3, 1), "flip": lambda x: x.flip(2), "roll": lambda x: x.roll((2, -3), (2, 3)),
    "index": lambda x: x[:, :, INDEX], "index_select": lambda x: x.index_select(3, INDEX), "narrow": lambda x: x[:, 1:3, ::2, 2:],
    "chunk": lambda x: torch.cat([part * (i + 1) for i, part in enumerate(x.chunk(2, 1))], 1),
    "split": lambda x: x.split([1, 3], 1)[1], "unbind": lambda x: x.unbind(1)[2], "stack": lambda x: torch.stack([x, 2 * x], 2),
    "repeat": lambda x: x.repeat(1, 2, 1, 1), "expand": lambda x: x.mean(1, keepdim=True).expand(-1, 3, -1, -1),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 1), "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2), "channel_shuffle": lambda x: x.view(-1, 2, 2, 8, 8).transpose(1, 2).flatten(1, 2),
    "unfold": lambda x: F.unfold(x, 3, padding=1, stride=2), "tensor_unfold": lambda x: x.unfold(2, 4, 2),
    "tril": lambda x: x.tril(), "triu": lambda x: x.triu(1), "diagonal": lambda x: x.diagonal(dim1=2, dim2=3),
    "gather": lambda x: x.gather(3, torch.tensor([0, 7, 3]).expand(x.shape[0], 4, 8, 3)),
    "index_put": lambda x: put(x), "scatter": lambda x: x.scatter(1, torch.zeros_like(x[:, :1], dtype=torch.long), x[:, 1:2]),
    **{f"pad_{mode}": (lambda x, mode=mode: F.pad(x, (1, 2, 2, 0), mode)) for mode in ("constant", "reflect", "replicate")},
    "crop": lambda x: F.pad(x, (-1, -2, 0, 0)),
    # other sizes
    "nearest": lambda x: F.interpolate(x, scale_factor=2), "nearest_odd": lambda x: F.interpolate(x, size=(11, 5)),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False),
    "bilinear_corners": lambda x: F.interpolate(x, size=(11, 5), mode="bilinear", align_corners=True),
    "bilinear_smaller": lambda x: F.interpolate(x, size=(3, 5), mode="bilinear", align_corners=False),
    "bicubic": lambda x: F.interpolate(x, size=(12, 10), mode="bicubic", align_corners=False),
    "bicubic_corners": lambda x: F.interpolate(x, size=(12, 10), mode="bicubic", align_corners=True),
    "linear": lambda x: F.interpolate(x.flatten(2), size=40, mode="linear", align_corners=False),
    "trilinear": lambda x: F.interpolate(x.view(-1, 2, 2, 8, 8), size=(3, 10, 4), mode="trilinear", align_corners=False),
    "adaptive_avg_pool": lambda x: F.adaptive_avg_pool2d(x, 4), "adaptive_max_pool": lambda x: F.adaptive_max_pool2d(x, 2),
    "avg_pool": lambda x: F.avg_pool2d(x, 3, 2, 1), "avg_pool_inside": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "avg_pool_ceil": lambda x: F.avg_pool2d(x, 3, 2, ceil_mode=True), "max_pool_ceil": lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True),
    "max_pool_dilated": lambda x: F.max_pool2d(x, 2, 1, dilation=2), "max_pool1d": lambda x: F.max_pool1d(x.flatten(2), 3),
    "avg_pool3d": lambda x: F.avg_pool3d(x.view(-1, 1, 4, 8, 8), 2), "lp_pool": lambda x: F.lp_pool2d(x.exp(), 2, 2),
    "global_lp": lambda x: x.norm(dim=(2, 3)),
    # products
    "bmm": lambda x: x.flatten(2) @ x.flatten(2).transpose(1, 2), "matmul": lambda x: x @ x.transpose(2, 3),
    "einsum_gram": lambda x: torch.einsum("bchw,bdhw->bcd", x, x), "einsum_outer": lambda x: torch.einsum("bc,bd->bcd", x.mean((2, 3)), x.amax((2, 3))),
    "einsum_swap": lambda x: torch.einsum("bchw->bhwc", x), "einsum_heads": lambda x: torch.einsum("bchw,bcvw->bchv", x, x),
    "bilinear_form": nn.Sequential(nn.Flatten(2), nn.Linear(64, 6), nn.Flatten(), nn.Linear(24, 7)),
    "cdist": lambda x: (x.flatten(2)[:, :, None] - x.flatten(2)[:, None]).square().sum(-1),
})


def put(x):
    y = x * 1.5
    y[:, 1:3, 2] = x[:, :2, 5]
    return y


def later(name, make):
    return {name: lambda: (Between(make()), IMAGE, 5, ())}


NETWORKS |= {k: v for each in (
    later("group_norm", lambda: nn.GroupNorm(2, 4)), later("instance_norm", lambda: nn.InstanceNorm2d(4)),
    later("layer_norm", lambda: nn.LayerNorm([8, 8])), later("layer_norm_plain", lambda: nn.LayerNorm(8, elementwise_affine=False)),
    later("batch_norm_eps", lambda: nn.BatchNorm2d(4, eps=1e-2, momentum=0.3)), later("batch_norm_plain", lambda: nn.BatchNorm2d(4, affine=False)),
    later("local_response_norm", lambda: nn.LocalResponseNorm(3, 0.1)),
    later("conv1d", lambda: nn.Sequential(nn.Flatten(2), nn.Conv1d(4, 6, 3, 2, 1))),
    later("conv_dilated", lambda: nn.Conv2d(4, 4, 3, padding=2, dilation=2, groups=2)),
    later("conv_same", lambda: nn.Conv2d(4, 4, 4, padding="same")),
    later("conv_transpose1d", lambda: nn.Sequential(nn.Flatten(2), nn.ConvTranspose1d(4, 2, 3, 2, 1, 1))),
    later("conv_transpose_groups", lambda: nn.ConvTranspose2d(4, 4, 3, 2, 1, 1, groups=2)),
    later("weight_norm", lambda: nn.utils.weight_norm(nn.Conv2d(4, 4, 3))),
    later("computed_weights", lambda: WithWeights(lambda x, w: x * w.exp(), 4, 1, 1)),
    later("mixed_by_softmax", lambda: WithWeights(lambda x, w: w.softmax(0)[0] * x + w.softmax(0)[1] * x.tanh(), 2)),
    later("weights_twice", lambda: WithWeights(lambda x, w: x * w + w, 4, 1, 1)),
    later("einsum_weights", lambda: WithWeights(lambda x, w: torch.einsum("bchw,cd->bdhw", x, w), 4, 3)),
    later("einsum_heads_weights", lambda: WithWeights(lambda x, w: torch.einsum("bchw,wde->bchde", x, w), 8, 2, 3)),
    later("weights_left", lambda: WithWeights(lambda x, w: w @ x, 3, 8)),
    later("broadcast_weights", lambda: WithWeights(lambda x, w: x + w, 1, 4, 1, 8)),
    later("table_product", lambda: WithTable(lambda x, t: x @ t, 8, 3)), later("table_left", lambda: WithTable(lambda x, t: t @ x, 3, 8)),
    later("table_sum", lambda: WithTable(lambda x, t: x * t + t, 4, 1, 8)), later("table_joined", lambda: WithTable(lambda x, t: torch.cat([x, t.expand(x.shape[0], -1, -1, -1)], 1), 1, 2, 8, 8)),
    later("grid_sample", lambda: WithTable(lambda x, t: F.grid_sample(x, t.tanh().expand(x.shape[0], -1, -1, -1), align_corners=False), 1, 5, 6, 2)),
    later("grid_sample_moved", lambda: lambda x: F.grid_sample(x, x[:, :2].tanh().permute(0, 2, 3, 1), padding_mode="border", align_corners=True)),
    later("grid_sample_cubic", lambda: WithTable(lambda x, t: F.grid_sample(x, t.expand(x.shape[0], -1, -1, -1), "bicubic", "reflection", align_corners=False), 1, 5, 6, 2)),
    later("grid_sample_nearest", lambda: WithTable(lambda x, t: F.grid_sample(x, t.tanh().expand(x.shape[0], -1, -1, -1), "nearest", align_corners=False), 1, 5, 6, 2)),
    later("lstm", lambda: Rows(nn.LSTM(4, 6, batch_first=True), lambda made: made[0])),
    later("lstm_two_layers", lambda: Rows(nn.LSTM(4, 6, 2, batch_first=True, bidirectional=True), lambda made: made[0])),
    later("lstm_no_bias", lambda: Rows(nn.LSTM(4, 6, bias=False, batch_first=True), lambda made: made[0])),
    later("lstm_states", lambda: Rows(BothStates(nn.LSTM))), later("lstm_states_both", lambda: Rows(BothStates(nn.LSTM, bidirectional=True))),
    later("lstm_sequence_first", lambda: Rows(SequenceFirst())),
    later("gru_states", lambda: Rows(BothStates(nn.GRU, bidirectional=True))), later("rnn_relu", lambda: Rows(nn.RNN(4, 6, nonlinearity="relu", batch_first=True), lambda made: made[0])),
    later("lstm_given", lambda: Rows(Given(nn.LSTM))), later("gru_given", lambda: Rows(Given(nn.GRU))),
    later("multihead_attention", lambda: Rows(SelfAttention())), later("attention_bias", lambda: Rows(SelfAttention(True))),
    later("encoder_layer", lambda: Rows(nn.TransformerEncoderLayer(4, 2, 8, 0, batch_first=True, norm_first=True))),
    later("decoder_layer", lambda: Rows(Decoder())),
    # what looks like an operator of ours and is another
    later("pad_shifts", lambda: lambda x: F.pad(x, (2, -2, -1, 1))),
    later("gelu_10", lambda: lambda x: F.gelu(x * 20).clamp(-10, 10)), later("silu_bounded", lambda: lambda x: F.silu(x * 8).clamp(max=6)),
    later("hardsigmoid_of_relu6", lambda: lambda x: F.relu6(x + 3) / 6),
    later("bilinear_by_scale", lambda: lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear", align_corners=False)),
    later("nearest_by_scale", lambda: lambda x: F.interpolate(x, scale_factor=3.05)),
    later("layer_norm_1p", lambda: WithWeights(lambda x, w: F.layer_norm(x, (8,), 1 + w, w * 2), 8)),
    later("instance_norm_exp", lambda: WithWeights(lambda x, w: F.instance_norm(x, None, None, w.exp(), w), 4)),
    later("group_norm_1p", lambda: WithWeights(lambda x, w: F.group_norm(x, 2, 1 + w, w), 4)),
    later("batch_norm_1p", lambda: WithWeights(lambda x, w: F.batch_norm(x, torch.zeros(4), torch.ones(4), 1 + w, w, True), 4)),
    later("layer_norm_of_table", lambda: WithTable(lambda x, t: F.layer_norm(x, (8,), t, t), 8)),
    later("rms_norm_1p", lambda: WithWeights(lambda x, w: rms(x) * (1 + w), 8)),
    later("rms_norm_of_rows", lambda: WithWeights(lambda x, w: rms(x) * w, 8, 1)),
    later("mixed_by_weights", lambda: WithWeights(lambda x, w: x * w + x.flip(3) * (1 - w), 8)),
    later("computed_for_rows", lambda: WithWeights(lambda x, w: x * w.exp()[:, None], 8)),
    later("computed_for_channels", lambda: WithWeights(lambda x, w: F.prelu(x, w.sigmoid()) * (1 + w).view(1, -1, 1, 1), 4)),
    later("filters_repeated", lambda: WithWeights(lambda x, w: F.conv2d(x, w.repeat(4, 1, 1, 1), groups=4), 1, 1, 3, 3)),
    later("attention_heads_last", lambda: Rows(Heads("b n (d h)"))), later("attention_not_transposed", lambda: Rows(Heads("b h n d"))),
    later("attention_of_channels", lambda: Rows(Heads("channels"), lambda made: made)),
) for k, v in each.items()}


def rms(x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)


class Heads(nn.Module):
    """Attention of two heads over rows of 4 numbers, whose heads lie otherwise than side by side."""

    def __init__(self, how):
        super().__init__()
        self.inner, self.how = nn.Linear(4, 24 if how == "channels" else 4), how

    def split(self, x):
        if self.how == "b n (d h)":
            return x.view(x.shape[0], x.shape[1], -1, 2).permute(0, 3, 1, 2)
        if self.how == "channels":  # as many a head as there are rows (El-Nouby et al. 2021)
            return x.view(x.shape[0], x.shape[1], 2, -1).permute(0, 2, 3, 1)
        return x.reshape(x.shape[0], 2, x.shape[1], -1)

    def forward(self, x):
        x = self.inner(x)
        q, k, v = (self.split(each) for each in (x, x.tanh(), x.sin()))
        made = (q @ k.transpose(-1, -2) / 2).softmax(-1) @ v
        if self.how == "b n (d h)":
            made = made.permute(0, 2, 3, 1)
        if self.how == "channels":
            made = made.permute(0, 3, 1, 2)
        return made.reshape(x.shape)


class Tokens(nn.Module):
    """Rows of a table that is computed, scores of 11 words."""

    def __init__(self, function):
        super().__init__()
        self.table, self.scores, self.function = nn.Parameter(torch.randn(11, 8)), nn.Linear(8, 11), function

    def forward(self, ids):
        return self.scores(F.embedding(ids, self.function(self.table)))


NETWORKS |= {"embedding_scaled": lambda: (Tokens(lambda table: table * 0.1), ("tokens", 11, 6), 11, (6,)),
             "embedding_normalized": lambda: (Tokens(F.normalize), ("tokens", 11, 6), 11, (6,))}


class SequenceFirst(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.LSTM(4, 6)

    def forward(self, x):
        return self.cells(x.transpose(0, 1))[0].transpose(0, 1)


class Given(nn.Module):
    """Cells that begin with states of the network's own."""

    def __init__(self, kind):
        super().__init__()
        self.cells, self.begin, self.both = kind(4, 6, batch_first=True), nn.Linear(4, 6), kind is nn.LSTM

    def forward(self, x):
        begin = self.begin(x[:, 0]).tanh()[None]
        return self.cells(x, (begin, begin * 0.5) if self.both else begin)[0]


class SelfAttention(nn.Module):
    def __init__(self, biased=False):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.bias = nn.Parameter(torch.randn(12, 12)) if biased else None

    def forward(self, x):
        return self.attention(x, x, x, attn_mask=self.bias, need_weights=False)[0]


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(4, 2, 8, 0, batch_first=True)

    def forward(self, x):
        return self.layer(x, x[:, :5] * 2, tgt_mask=nn.Transformer.generate_square_subsequent_mask(12))
