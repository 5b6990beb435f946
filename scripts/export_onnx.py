#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports a PyTorch network as Rehearse reads it: for training, named by its modules, without its weights.

As a function, which needs PyTorch 1.13 or later and nothing else:
  from export_onnx import export
  export(network, (torch.zeros(2, 3, 224, 224),), "resnet50.onnx")
As a program, with export_extras.py beside it: a Python expression for the network, the shapes of its inputs, batch first
("int:" for ids), and the file, which then says, too, what PyTorch counts (`rehearse models FILE --check`):
  export_onnx.py 'torchvision.models.resnet50()' 2x3x224x224 resnet50.onnx
  export_onnx.py --loss mse 'my_package.Autoencoder()' 2x1x64x64 coder.onnx
  export_onnx.py --light 'my_package.Gpt(layers=96, width=12288)' int:1x2048 large.onnx
"""
import inspect
import io
import sys

import torch

# Random in training, and nothing that PyTorch exports: left out, as in inference.
LEFT_OUT = ("StochasticDepth", "DropPath", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout")
TYPES = {torch.float32: 1, torch.uint8: 2, torch.int8: 3, torch.int16: 5, torch.int32: 6, torch.int64: 7, torch.bool: 9,
         torch.float16: 10, torch.float64: 11, torch.bfloat16: 16}  # as onnx.proto numbers them
KEPT = 65536  # bytes of a tensor of floats whose data stays in the file


def field(number, data):
    """A field of protobuf: a number, or bytes (https://protobuf.dev/programming-guides/encoding)."""
    def varint(value):
        return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)
    return varint(number << 3) + varint(data) if isinstance(data, int) else varint(number << 3 | 2) + varint(len(data)) + data


def initializer(name, value):
    """A tensor of the graph, a large one of floats without its data."""
    large = value.is_floating_point() and value.numel() * value.element_size() > KEPT
    data = b"" if large else field(9, bytes(value.detach().contiguous().flatten().view(torch.uint8).tolist()))
    return field(5, b"".join(field(1, size) for size in value.shape) + field(2, TYPES[value.dtype]) + field(8, name.encode()) + data)


def with_tensors(file, state):
    """The bytes of an .onnx file that has `state` besides: fields of protobuf that follow a message are fields of it."""
    return file + field(7, b"".join(initializer(*each) for each in state.items()))


def leave_out(network):
    """Lets pass what is random in training and PyTorch does not export, as in inference, and says so."""
    kinds = set()
    for module in network.modules():
        kind = type(module).__name__
        if kind in LEFT_OUT:
            kinds.add(kind)
            module.training = False
        elif isinstance(module, torch.nn.RNNBase) and module.dropout:
            kinds.add(f"dropout of {kind}")
            module.dropout = 0.0
    if kinds:
        print(f"left out, as PyTorch does not export it: {', '.join(sorted(kinds))}", file=sys.stderr)


def export(network, inputs, path, opset=13, weights=False, said=()):
    """Writes `network`, fed with `inputs` whose first dimension is the batch; with `weights`, these too. `said`: pairs
    of a key and a value for the file's metadata."""
    before = [(module, {key: value for key, value in vars(module).items() if key in ("training", "dropout")})
              for module in network.modules()]
    names, stream = [f"input{i}" for i in range(len(inputs))], io.BytesIO()
    options = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    try:
        leave_out(network.train())
        torch.onnx.export(network, tuple(inputs), stream, opset_version=opset, training=torch.onnx.TrainingMode.PRESERVE,
                          do_constant_folding=False, export_params=weights, input_names=names,
                          dynamic_axes={name: {0: "batch"} for name in names}, **options)
    finally:
        for module, state in before:
            vars(module).update(state)
    said = {"parameters": sum(each.numel() for each in network.parameters()),
            "buffers": ",".join(name for name, _ in network.named_buffers()), **dict(said)}
    file = stream.getvalue() if weights else with_tensors(stream.getvalue(), network.state_dict())
    with open(path, "wb") as out:
        out.write(file + b"".join(field(14, field(1, f"rehearse.{key}".encode()) + field(2, str(value).encode()))
                                  for key, value in said.items()))


if __name__ == "__main__":
    from export_extras import main
    main(export, __doc__)
