#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports a PyTorch network as Rehearse reads it: for training, named by its modules, without its weights.

As a program, with a Python expression for the network and the shapes of its inputs, batch first ("int:" for ids):
  rehearse-export-onnx 'torchvision.models.resnet50()' 2x3x224x224 resnet50.onnx
  rehearse-export-onnx 'my_package.Gpt(layers=12)' int:2x1024 gpt.onnx
As a function:
  from export_onnx import export
  export(network, (torch.zeros(2, 3, 224, 224),), "resnet50.onnx")

PyTorch 1.13 and later, without a GPU. An export for inference would fold batch normalization into convolutions and leave
dropout out; the file says besides which tensors are buffers, not parameters, which ONNX itself does not.
"""
import argparse
import importlib
import inspect
import io
import re

import torch


def export(network, inputs, path, opset=13, weights=False):
    """Writes `network`, fed with `inputs` whose first dimension is the batch, to `path`; with `weights`, these too."""
    network.train()
    names = [f"input{i}" for i in range(len(inputs))]
    options = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    stream = io.BytesIO()
    torch.onnx.export(network, tuple(inputs), stream, opset_version=opset, input_names=names,
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      dynamic_axes={name: {0: "batch"} for name in names}, **options)
    import onnx  # Debian: python3-onnx; elsewhere: pip install onnx
    model = onnx.load_model_from_string(stream.getvalue())
    for tensor in [] if weights else model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.raw_data) > 65536:
            tensor.ClearField("raw_data")
    buffers = model.metadata_props.add()
    buffers.key = "rehearse.buffers"
    buffers.value = ",".join(name for name, _ in network.named_buffers())
    with open(path, "wb") as file:
        file.write(model.SerializeToString())


def tensor(text):
    kind, shape = ("int", text[4:]) if text.startswith("int:") else ("float", text)
    return torch.zeros([int(size) for size in shape.split("x")], dtype=torch.long if kind == "int" else torch.float)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", help="a Python expression, modules by their full names")
    parser.add_argument("inputs", nargs="+", help="shapes of the inputs, then the file")
    parser.add_argument("--opset", type=int, default=13)
    parser.add_argument("--weights", action="store_true", help="keep the weights in the file")
    options = parser.parse_args()
    *shapes, path = options.inputs
    modules = {}
    for name in re.findall(r"[A-Za-z_][\w]*(?=\.)", options.network)[:1]:
        modules[name] = importlib.import_module(name)
    network = eval(options.network, {"torch": torch, **modules})  # the user's own expression
    export(network, [tensor(shape) for shape in shapes], path, options.opset, options.weights)


if __name__ == "__main__":
    main()
