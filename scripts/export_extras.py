# SPDX-License-Identifier: Apache-2.0
"""What the program export_onnx.py has beside the export: PyTorch's own counts, networks without memory for their weights,
losses. As functions, one around the other:

  with light():
      network = my_package.Gpt(layers=96)
  with weightless(network), ending_in("cross-entropy", network, inputs) as inputs:
      export(network, inputs, "gpt.onnx", said=counts(network, inputs))
"""
import argparse
import contextlib
import importlib
import re
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode

PROGRAM = """Exports a PyTorch network as Rehearse reads it: for training, named by its modules, without its weights, with what
PyTorch counts (`rehearse models FILE --check`). A Python expression for the network, the shapes of its inputs, batch first
("int:" for ids), and the file:
  export_onnx.py 'torchvision.models.resnet50()' 2x3x224x224 resnet50.onnx
  export_onnx.py --loss mse 'my_package.Autoencoder()' 2x1x64x64 coder.onnx
  export_onnx.py --light 'my_package.Gpt(layers=96, width=12288)' int:1x2048 large.onnx"""


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
        elif name == "mkldnn_rnn_layer":  # PyTorch 2: both products of all steps of an LSTM in one
            self.sum += out[0].numel() // out[0].shape[-1] * (args[1].numel() + args[2].numel())
        return out


def counts(network, inputs, samples=None):
    """What `rehearse models FILE --check` compares: multiply-adds of one sample, and of how many these are the mean."""
    samples = samples or inputs[0].shape[0]
    with torch.no_grad(), Count() as count:
        network(*inputs)
    return {"multiply_adds": count.sum / samples, "samples": samples}


@contextlib.contextmanager
def light():
    """Parameters of the networks that are made within have their shapes and no data."""
    def register(module, name, parameter):
        if parameter is not None and parameter.device.type != "meta":
            parameter = torch.nn.Parameter(parameter.detach().to("meta"), requires_grad=parameter.requires_grad)
        usual(module, name, parameter)
    usual, torch.nn.Module.register_parameter = torch.nn.Module.register_parameter, register
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = usual


@contextlib.contextmanager
def weightless(network):
    """Gives each parameter that has no data one zero for all of its elements, and keeps PyTorch's export from copying it."""
    given = {}
    for module in list(network.modules()):
        for name, parameter in list(module.named_parameters(recurse=False)):
            if parameter.device.type == "meta":
                zeros = torch.zeros((), dtype=parameter.dtype).expand(parameter.shape)
                new = given.setdefault(parameter, torch.nn.Parameter(zeros, requires_grad=parameter.requires_grad))
                new.clone = lambda new=new, **_: new  # PyTorch's tracer copies what it is given, and needs no copy
                setattr(module, name, new)
    # PyTorch 1.13 copies all parameters to infer shapes, for which the graph's types are enough.
    usual = getattr(torch._C, "_jit_pass_onnx_graph_shape_type_inference", None)
    if given and usual is not None:
        torch._C._jit_pass_onnx_graph_shape_type_inference = lambda graph, _, opset: usual(graph, {}, opset)
    try:
        yield
    finally:
        if given and usual is not None:
            torch._C._jit_pass_onnx_graph_shape_type_inference = usual


def cross_entropy(made, labels):
    """Of scores {samples, classes}, {samples, tokens, classes} or {samples, classes, sizes...}."""
    tokens = made.dim() == 3
    return torch.nn.functional.cross_entropy(made.flatten(0, 1) if tokens else made, labels.flatten() if tokens else labels)


# Spelled out: PyTorch 1.13 exports none of mse_loss and l1_loss.
LOSSES = {
    "mse": lambda made, target: (made - target).pow(2).mean(),
    "l1": lambda made, target: (made - target).abs().mean(),
    "bce": torch.nn.functional.binary_cross_entropy_with_logits,
    "cross-entropy": cross_entropy,
}


@contextlib.contextmanager
def ending_in(loss, network, inputs):
    """Lets `network` make one of LOSSES, of its output and of a target, which is a further input: yields the inputs with
    one. None: the network is as it was."""
    if loss is None:
        yield tuple(inputs)
        return
    if loss not in LOSSES:
        raise ValueError(f"{loss!r}: no loss; there are {', '.join(LOSSES)}")
    forward = network.forward
    with torch.no_grad():
        made = network(*inputs)
    labels = made.shape[:1] + made.shape[2:] if made.dim() > 3 else made.shape[:-1]
    target = torch.zeros(labels, dtype=torch.long) if loss == "cross-entropy" else torch.zeros_like(made)
    network.forward = lambda *all_inputs: LOSSES[loss](forward(*all_inputs[:-1]), all_inputs[-1])
    try:
        yield (*inputs, target)
    finally:
        del network.forward


@contextlib.contextmanager
def prepared(make, inputs, without_memory, loss):
    """The network that `make` returns, its inputs and its counts, as export takes them."""
    with light() if without_memory else contextlib.nullcontext():
        network = make()
    with weightless(network), ending_in(loss, network, inputs) as inputs:
        yield network, inputs, counts(network, inputs)


def main(export):
    parser = argparse.ArgumentParser(description=PROGRAM, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", help="a Python expression, modules by their full names")
    parser.add_argument("inputs", nargs="+", help="shapes of the inputs, then the file")
    parser.add_argument("--opset", type=int, default=16)
    parser.add_argument("--weights", action="store_true", help="keep the weights in the file")
    parser.add_argument("--light", action="store_true", help="make weights that take no memory")
    parser.add_argument("--loss", choices=sorted(LOSSES), help="of its output and a target, which is its last input")
    options = parser.parse_args()
    if options.light and options.weights:
        parser.error("--light makes no weights that a file could have: leave out --weights")
    sys.path.insert(0, "")  # modules of the folder where one stands
    modules = {name: importlib.import_module(name) for name in re.findall(r"[A-Za-z_]\w*(?=\.)", options.network)[:1]}
    inputs = [torch.zeros([int(size) for size in shape.replace("int:", "").split("x")],
                          dtype=torch.long if shape.startswith("int:") else torch.float) for shape in options.inputs[:-1]]
    make = lambda: eval(options.network, {"torch": torch, **modules})  # noqa: E731 (the user's own expression)
    with prepared(make, inputs, options.light, options.loss) as (network, inputs, counts):
        export(network, inputs, options.inputs[-1], options.opset, options.weights, counts)
