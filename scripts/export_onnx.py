#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports a PyTorch network as Rehearse reads it: for training, named by its modules, without its weights.

As a program, with a Python expression for the network and the shapes of its inputs, batch first ("int:" for ids):
  export_onnx.py 'torchvision.models.resnet50()' 2x3x224x224 resnet50.onnx
  export_onnx.py 'my_package.Gpt(layers=12)' int:2x1024 gpt.onnx
  export_onnx.py --loss mse 'my_package.Autoencoder()' 2x1x64x64 coder.onnx
  export_onnx.py --light 'my_package.Gpt(layers=96, width=12288)' int:1x2048 large.onnx
As a function:
  from export_onnx import export
  export(network, (torch.zeros(2, 3, 224, 224),), "resnet50.onnx")
--light makes a network whose weights take no memory, however many they are; the forward pass that PyTorch traces is
still computed: one sample is enough. In a program: with light(): network = ..., then export.

Needs PyTorch 1.13 or later and nothing else, and no GPU; `rehearse.torch.network` does the same without a file. An export for inference would fold batch normalization into convolutions and leave
dropout out. The file says besides, which ONNX itself does not, which tensors are buffers, not parameters, and how many
parameters and multiply-adds PyTorch counts: `rehearse models FILE --check` compares.
"""
import argparse
import contextlib
import importlib
import inspect
import io
import re
import sys
import warnings

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Count(TorchDispatchMode):
    """Multiply-adds of the convolutions and products that PyTorch dispatches."""
    sum = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name == "convolution":  # the taps of a filter, at each place of the result, or of the input if transposed
            self.sum += (args[0] if args[6] else out).numel() * args[1].numel() // args[1].shape[0]
        elif name in ("mm", "bmm"):
            self.sum += out.numel() * args[0].shape[-1]
        elif name in ("addmm", "baddbmm"):
            self.sum += out.numel() * args[1].shape[-1]
        elif name.startswith("_scaled_dot_product"):  # PyTorch 2: both products of attention in one
            q, k, v = args[:3]
            self.sum += q.numel() // q.shape[-1] * k.shape[-2] * (q.shape[-1] + v.shape[-1])
        return out


# Random in training, and nothing that PyTorch exports: they are left out, as in inference.
LEFT_OUT = ("StochasticDepth", "DropPath", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout")


def leave_out(network):
    """Puts aside what PyTorch cannot export of a network in training; returns a function that puts it back."""
    modules = [module for module in network.modules() if type(module).__name__ in LEFT_OUT]
    cells = [(module, module.dropout) for module in network.modules() if isinstance(module, torch.nn.RNNBase) and module.dropout]
    for module in modules:
        module.eval()
    for module, _ in cells:
        module.dropout = 0.0
    kinds = sorted({type(module).__name__ for module in modules} | {f"dropout of {type(module).__name__}" for module, _ in cells})
    if kinds:
        print(f"left out, as PyTorch does not export it: {', '.join(kinds)}", file=sys.stderr)

    def back():
        for module in modules:
            module.train()
        for module, dropout in cells:
            module.dropout = dropout
    return back


@contextlib.contextmanager
def light():
    """Parameters of the networks that are made within have their shapes and no data; `export` gives them one number."""
    def register(module, name, parameter):
        if parameter is not None and parameter.device.type != "meta":
            parameter = torch.nn.Parameter(parameter.detach().to("meta"), requires_grad=parameter.requires_grad)
        usual(module, name, parameter)
    usual, torch.nn.Module.register_parameter = torch.nn.Module.register_parameter, register
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = usual


def give_numbers(network):
    """Gives each parameter that has no data one zero for all of its elements."""
    given = {}
    for module in list(network.modules()):
        for name, parameter in list(module.named_parameters(recurse=False)):
            if parameter.device.type == "meta":
                zeros = torch.zeros((), dtype=parameter.dtype).expand(parameter.shape)
                new = given.setdefault(parameter, torch.nn.Parameter(zeros, requires_grad=parameter.requires_grad))
                new.clone = lambda new=new, **_: new  # PyTorch's tracer copies what it is given, and needs no copy
                setattr(module, name, new)


def is_light(network):
    return any(each.numel() > 1 and not any(each.stride()) for each in network.parameters())


@contextlib.contextmanager
def shapes_without_numbers():
    """PyTorch 1.13 copies all parameters to infer shapes, for which the graph's types are enough."""
    usual = getattr(torch._C, "_jit_pass_onnx_graph_shape_type_inference", None)
    if usual is not None:
        torch._C._jit_pass_onnx_graph_shape_type_inference = lambda graph, _, opset: usual(graph, {}, opset)
    try:
        yield
    finally:
        if usual is not None:
            torch._C._jit_pass_onnx_graph_shape_type_inference = usual


def cross_entropy(made, labels):
    """Of scores {samples, classes}, {samples, tokens, classes} or {samples, classes, sizes...}."""
    tokens = made.dim() == 3
    return torch.nn.functional.cross_entropy(made.flatten(0, 1) if tokens else made, labels.flatten() if tokens else labels)


# Of ONNX's messages (onnx.proto): numbers of the fields that are read or left out here, and the type of 32-bit floats.
GRAPH, METADATA, INITIALIZER, INPUT, DATA_TYPE, RAW_DATA, FLOAT = 7, 14, 5, 11, 2, 9, 1
DIMS, TENSOR_NAME, VALUE_NAME = 1, 8, 1
TYPES = {torch.float32: FLOAT, torch.uint8: 2, torch.int8: 3, torch.int32: 6, torch.int64: 7, torch.bool: 9,
         torch.float16: 10, torch.float64: 11, torch.bfloat16: 16}
KEPT = 65536            # bytes of a tensor whose data stays
LARGEST = 2**31 - 2**20  # bytes of a message of protobuf


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, data):
    """A field of protobuf that holds bytes (https://protobuf.dev/programming-guides/encoding)."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def fields(message):
    """(number, value, whole) of each field of a message of protobuf: an integer or bytes, and the field as it stands."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(message):
        begun = at
        key = number()
        if key & 7 == 0:
            value = number()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or number()
            value = message[at:at + size]
            at += size
        yield key >> 3, value, message[begun:at]


def without_weights(model):
    """The bytes of an .onnx file without the data of its tensors of floats above 64 KiB, whose shapes stay."""
    def bare(tensor):
        found = list(fields(tensor))
        large = (DATA_TYPE, FLOAT) in [each[:2] for each in found] and any(n == RAW_DATA and len(v) > KEPT for n, v, _ in found)
        return b"".join(whole for n, _, whole in found if not (large and n == RAW_DATA))

    def light(graph):
        return b"".join(field(INITIALIZER, bare(value)) if n == INITIALIZER else bytes(whole) for n, value, whole in fields(graph))
    return b"".join(field(GRAPH, light(value)) if n == GRAPH else bytes(whole) for n, value, whole in fields(memoryview(model)))


def is_large(state):
    """Whether the tensors are more than one message of protobuf can be."""
    return sum(each.numel() * each.element_size() for each in state.values()) > LARGEST


def with_tensors(model, state):
    """The bytes of an .onnx file whose inputs named in `state` are its tensors, of which the small ones have their data:
    how a network comes that is larger than a message of protobuf can be."""
    def of(name, value):
        tensor = b"".join(varint(DIMS << 3) + varint(size) for size in value.shape) + varint(DATA_TYPE << 3) + varint(TYPES[value.dtype])
        small = value.numel() * value.element_size() <= KEPT
        data = field(RAW_DATA, bytes(value.detach().contiguous().flatten().view(torch.uint8).tolist())) if small else b""
        return field(INITIALIZER, tensor + field(TENSOR_NAME, name.encode()) + data)

    def light(graph):
        out = b""
        for n, value, whole in fields(graph):
            name = next((bytes(v).decode() for k, v, _ in fields(value) if k == VALUE_NAME), "") if n == INPUT else ""
            out += of(name, state[name]) if name in state else bytes(whole)
        return out
    return b"".join(field(GRAPH, light(value)) if n == GRAPH else bytes(whole) for n, value, whole in fields(memoryview(model)))


# Spelled out: PyTorch 1.13 exports none of mse_loss and l1_loss.
LOSSES = {
    "mse": lambda made, target: (made - target).pow(2).mean(),
    "l1": lambda made, target: (made - target).abs().mean(),
    "bce": torch.nn.functional.binary_cross_entropy_with_logits,
    "cross-entropy": cross_entropy,
}


def end_in_loss(network, inputs, kind):
    """Lets `network` make its loss, of which the target is a further input; returns inputs with one, and what undoes it."""
    forward = network.forward
    with torch.no_grad():
        made = network(*inputs)
    labels = made.shape[:1] + made.shape[2:] if made.dim() > 3 else made.shape[:-1]
    target = torch.zeros(labels, dtype=torch.long) if kind == "cross-entropy" else torch.zeros_like(made)
    network.forward = lambda *all_inputs: LOSSES[kind](forward(*all_inputs[:-1]), all_inputs[-1])
    return (*inputs, target), lambda: delattr(network, "forward")


def export(network, inputs, path, opset=13, weights=False, loss=None):
    """Writes `network`, fed with `inputs` whose first dimension is the batch, to `path`; with `weights`, these too; with
    `loss`, one of LOSSES, a network that makes this loss of its output and of a target, its last input."""
    give_numbers(network)
    if loss is not None:
        inputs, undo = end_in_loss(network, inputs, loss)
        try:
            return export(network, inputs, path, opset, weights)
        finally:
            undo()
    network.train()
    put_back = leave_out(network)
    if weights and is_light(network):
        raise ValueError("--light makes no weights that a file could have: leave out --weights")
    names = [f"input{i}" for i in range(len(inputs))]
    options = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    stream = io.BytesIO()
    state = network.state_dict()
    large = is_light(network) or is_large(state)
    if large and weights:
        raise ValueError("its weights are more than the 2 GiB of one file: export it without them, and run --weights FILE.h5")
    try:
        if large:
            warnings.filterwarnings("ignore", module="torch.onnx")  # of statistics that move
        # PRESERVE: each module as it is, in training but for those that are left out.
        with shapes_without_numbers() if is_light(network) else contextlib.nullcontext():
            torch.onnx.export(network, tuple(inputs), stream, opset_version=opset, input_names=names,
                              training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
                              export_params=not large, dynamic_axes={name: {0: "batch"} for name in names}, **options)
    finally:
        put_back()
    file = stream.getvalue()
    if not weights:
        file = with_tensors(file, state) if large else without_weights(file)
    with torch.no_grad(), Count() as count:
        network(*inputs)
    said = {"buffers": ",".join(name for name, _ in network.named_buffers()),
            "parameters": sum(each.numel() for each in network.parameters()),
            "multiply_adds": count.sum / inputs[0].shape[0], "samples": inputs[0].shape[0]}
    for key, value in said.items():  # for `rehearse models FILE --check`
        file += field(METADATA, field(1, f"rehearse.{key}".encode()) + field(2, str(value).encode()))
    with open(path, "wb") as out:
        out.write(file)


def tensor(text):
    kind, shape = ("int", text[4:]) if text.startswith("int:") else ("float", text)
    return torch.zeros([int(size) for size in shape.split("x")], dtype=torch.long if kind == "int" else torch.float)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", help="a Python expression, modules by their full names")
    parser.add_argument("inputs", nargs="+", help="shapes of the inputs, then the file")
    parser.add_argument("--opset", type=int, default=13)
    parser.add_argument("--weights", action="store_true", help="keep the weights in the file")
    parser.add_argument("--light", action="store_true", help="make weights that take no memory")
    parser.add_argument("--loss", choices=sorted(LOSSES), help="of its output and a target, which is its last input")
    options = parser.parse_args()
    *shapes, path = options.inputs
    modules = {}
    sys.path.insert(0, "")  # modules of the folder where one stands
    for name in re.findall(r"[A-Za-z_][\w]*(?=\.)", options.network)[:1]:
        modules[name] = importlib.import_module(name)
    with light() if options.light else contextlib.nullcontext():
        network = eval(options.network, {"torch": torch, **modules})  # the user's own expression
    export(network, [tensor(shape) for shape in shapes], path, options.opset, options.weights, options.loss)


if __name__ == "__main__":
    main()
