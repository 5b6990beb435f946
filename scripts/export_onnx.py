#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports a PyTorch network (1.13 or later) as Rehearse reads it: for training, named by its modules, without its weights.
  from export_onnx import export
  export(network, (torch.zeros(2, 3, 224, 224),), "resnet50.onnx")  # inputs have the batch first
"""
import inspect
import sys
import torch

# Random in training, and nothing that PyTorch exports: left out, as in inference.
LEFT_OUT = ("StochasticDepth", "DropPath", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout")
TYPES = {torch.float32: 1, torch.uint8: 2, torch.int8: 3, torch.int16: 5, torch.int32: 6, torch.int64: 7, torch.bool: 9,
         torch.float16: 10, torch.float64: 11, torch.bfloat16: 16}  # as onnx.proto numbers them

def field(number, data):
    """A field of protobuf: a number, or bytes (https://protobuf.dev/programming-guides/encoding)."""
    def varint(value):
        return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)
    return varint(number << 3) + varint(data) if isinstance(data, int) else varint(number << 3 | 2) + varint(len(data)) + data

def initializer(name, value):
    """A tensor of the graph, as a field of the file; one of floats above 64 KiB without its data."""
    large = value.is_floating_point() and value.numel() * value.element_size() > 65536
    data = b"" if large else field(9, bytes(value.detach().contiguous().flatten().view(torch.uint8).tolist()))
    sizes = b"".join(field(1, size) for size in value.shape)
    return field(7, field(5, sizes + field(2, TYPES[value.dtype]) + field(8, name.encode()) + data))

def leave_out(network):
    """Lets pass what is random in training and PyTorch does not export, as in inference, and says so."""
    out = [module for module in network.modules() if type(module).__name__ in LEFT_OUT
           or isinstance(module, torch.nn.RNNBase) and module.dropout]
    if out:
        print("left out, as PyTorch does not export it:", *sorted({type(module).__name__ for module in out}), file=sys.stderr)
    for module in out:
        module.training = False

def padding(network):
    """Rows of tables that PyTorch leaves as they are (padding_idx), by their names; ONNX has no such rows: says so."""
    rows = [f"{name}.weight:{module.padding_idx}" for name, module in network.named_modules()
            if getattr(module, "padding_idx", None) is not None]
    if rows:
        print("trained like all others, as ONNX knows no padding_idx: rows", *rows, file=sys.stderr)
    return {"padding": ",".join(rows)} if rows else {}

def export(network, inputs, path, opset=16, weights=False, said=()):
    """Writes `network`, with `weights` or without; `said`: pairs of a key and a value for the file's metadata."""
    axes, forward = {f"input{i}": {0: "batch"} for i in range(len(inputs))}, network.forward
    kept = {module: dict(vars(module)) for module in network.modules()}
    try:
        leave_out(network.train())
        if not isinstance(network, torch.jit.ScriptModule):  # PyTorch would feed in other arguments' defaults, too
            network.forward = lambda *given: forward(*given)
        torch.onnx.export(network, tuple(inputs), str(path), opset_version=opset, training=torch.onnx.TrainingMode.PRESERVE,
                          do_constant_folding=False, export_params=weights, input_names=list(axes), dynamic_axes=axes,
                          **{each: False for each in inspect.signature(torch.onnx.export).parameters if each == "dynamo"})
    finally:
        for module, state in kept.items():
            module.__dict__ = state
    said = {"parameters": sum(each.numel() for each in network.parameters()),
            "buffers": ",".join(name for name, _ in network.named_buffers()), **padding(network), **dict(said)}
    with open(path, "ab") as file:  # what follows a message of protobuf is further fields of it
        file.write(b"".join(() if weights else (initializer(*each) for each in network.state_dict().items())))
        file.write(b"".join(field(14, field(1, f"rehearse.{key}".encode()) + field(2, str(said[key]).encode())) for key in said))

if __name__ == "__main__":  # the program's options lie beside it
    from export_extras import main
    main(export)
