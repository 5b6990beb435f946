#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training by `rehearse run` held to PyTorch's: the same weights, the same samples.

Of each network of training_networks.py: the loss (to 1e-5) and the gradients (to 1e-4 of each tensor's norm) of one step,
then three steps of SGD with momentum and of Adam: losses and what the weights become. With --ranks 2 some of them are
trained data-parallel, against PyTorch's DistributedDataParallel over gloo; with --plan, under another plan, against one
process. All weights are different numbers, so that
each element that Rehearse saves is found among PyTorch's by its value at the start; every one must be found once.

  held_to_training.py REHEARSE [--operators] [--only resnet,gpt] [--backend reference] [--ranks 2 [--plan tensor=2]] [--keep FOLDER]
"""
import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import warnings

HERE = pathlib.Path(__file__).resolve().parent
BATCH, STEPS = 4, 3
WAYS = {
    "sgd": (["--optimizer", "sgd", "--learning-rate", "0.02", "--momentum", "0.9"],
            lambda w: torch.optim.SGD(w, lr=0.02, momentum=0.9)),
    # A larger epsilon: where a gradient is 0 but for rounding, Adam would follow the rounding.
    "adam": (["--optimizer", "adam", "--learning-rate", "0.002", "--momentum", "0.9", "--beta2", "0.99", "--epsilon",
              "0.001"],
             lambda w: torch.optim.Adam(w, lr=0.002, betas=(0.9, 0.99), eps=0.001)),
}
FOR_RANKS = ["gpt", "unet2d", "lstm"]


def make_unique(module):
    """All weights different numbers, close to what they were."""
    torch.manual_seed(3)
    weights = list(module.parameters())
    with torch.no_grad():
        for weight in weights:
            weight.add_(0.02 * torch.randn_like(weight))
        flat = torch.cat([weight.flatten() for weight in weights])
        while len(torch.unique(flat)) < len(flat):
            order = torch.argsort(flat)
            again = torch.zeros_like(flat, dtype=torch.bool)
            again[order[1:]] = flat[order[1:]] == flat[order[:-1]]
            flat[again] += 0.001 * torch.randn(int(again.sum()))
        begin = 0
        for weight in weights:
            weight.copy_(flat[begin:begin + weight.numel()].view_as(weight))
            begin += weight.numel()


def flat(tensors):
    return torch.cat([tensor.detach().flatten() for tensor in tensors]).double().numpy()


def data_of(sample, classes, labels, path, count):
    torch.manual_seed(5)
    marks = torch.randint(0, classes, (count, *labels))
    with h5py.File(path, "w") as file:
        if sample[0] == "tokens":
            inputs = torch.randint(0, sample[1], (count, sample[2]))
            file["tokens"] = inputs.numpy().astype("int32")
        else:
            inputs = torch.randn(count, *sample)
            file["data"] = inputs.numpy()
        file["labels"] = marks.numpy().astype("int32")
    return inputs, marks


def loss_of(module, inputs, marks, tokens):
    scores = module(inputs)
    return nn.functional.cross_entropy(scores.transpose(1, 2) if tokens else scores, marks)


def rehearse(options, folder, name, more, ranks=1):
    save, gradients = folder / f"{name}.weights.h5", folder / f"{name}.gradients.h5"
    command = [options.rehearse, "run", "--model", str(folder / "net.onnx"), "--data", str(folder / "data.h5"), "--order",
               "given", "--batch", str(BATCH if options.plan else BATCH // ranks), "--format", "json", "--force", "-q", "--save", str(save),
               "--save-gradients", str(gradients), *more]
    if options.plan:
        command += ["--plan", options.plan]
    if options.backend:
        command += ["--backend", options.backend]
    if ranks > 1:
        command = ["mpirun", "--oversubscribe", "--allow-run-as-root", "-n", str(ranks)] + command
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ, OMP_NUM_THREADS="1"))
    if done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()[-600:]}")
    return [step["loss"] for step in json.loads(done.stdout)["steps"]], tensors_in(save), tensors_in(gradients)


def tensors_in(path):
    found = {}
    with h5py.File(path) as file:
        for layer, group in file.items():
            for tensor, values in group.items():
                if tensor != "statistics":
                    found[f"{layer}/{tensor}"] = np.array(values, dtype=np.float64).flatten()
    return found


def places_of(ours, theirs):
    """By tensor, where each of its elements lies among PyTorch's; every one of these once."""
    order = np.argsort(theirs)
    places = {}
    for name, values in ours.items():
        at = np.minimum(np.searchsorted(theirs[order], values), len(order) - 1)
        if not np.array_equal(theirs[order][at], values):
            raise RuntimeError(f"'{name}' does not begin with the file's weights")
        places[name] = order[at]
    met = np.sort(np.concatenate(list(places.values())))
    if not np.array_equal(met, np.arange(len(theirs))):
        raise RuntimeError(f"{len(set(met))} of {len(theirs)} weights are trained")
    return places


def apart(ours, theirs, places, least):
    """The largest distance of a tensor, relative to its norm; of the network's where it is next to nothing."""
    worst, where = 0, ""
    for name, values in ours.items():
        right = theirs[places[name]]
        off = np.linalg.norm(values - right) / max(np.linalg.norm(right), least * np.sqrt(len(right)))
        if off >= worst:
            worst, where = off, name
    return worst, where


def torch_steps(module, make, inputs, marks, tokens, ranks):
    if ranks == 1:
        optimizer, losses = make(module.parameters()), []
        for step in range(STEPS):
            optimizer.zero_grad()
            part = slice(step * BATCH, (step + 1) * BATCH)
            loss = loss_of(module, inputs[part], marks[part], tokens)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, flat(module.parameters())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    queue = torch.multiprocessing.get_context("fork").SimpleQueue()
    shards = torch.multiprocessing.start_processes(shard, (ranks, port, module, make, inputs, marks, tokens, queue), ranks,
                                                   join=False, start_method="fork")
    # What a pipe does not hold keeps its writer waiting, so it is read before the shards are waited for; of a shard that
    # failed nothing comes.
    while queue.empty():
        if shards.join(0.05):
            break
    result = queue.get()
    while not shards.join():
        pass
    return result


def shard(rank, ranks, port, module, make, inputs, marks, tokens, queue):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    parallel = nn.parallel.DistributedDataParallel(module)
    optimizer, losses, size = make(parallel.parameters()), [], BATCH // ranks
    for step in range(STEPS):
        optimizer.zero_grad()
        first = step * BATCH + rank * size
        loss = loss_of(parallel, inputs[first:first + size], marks[first:first + size], tokens)
        loss.backward()
        optimizer.step()
        mean = loss.detach() / ranks
        torch.distributed.all_reduce(mean)
        losses.append(mean.item())
    if rank == 0:
        queue.put((losses, flat(module.parameters())))


def hold(options, name, folder):
    """What is wrong, as a list of lines."""
    torch.manual_seed(1)
    module, sample, classes, labels = options.networks[name]()
    tokens = sample[0] == "tokens"
    module.train()
    make_unique(module)
    start = {key: value.clone() for key, value in module.state_dict().items()}
    inputs, marks = data_of(sample, classes, labels, folder / "data.h5", BATCH * STEPS)
    pixels = len(labels) > 1
    # Scores of pixels are told from other images by the softmax that they end in.
    try:
        export_onnx.export(nn.Sequential(module, nn.Softmax(1)) if pixels else module, (inputs[:2],), folder / "net.onnx",
                           opset=16 if options.operators else 13, weights=True)
    except Exception as error:  # what PyTorch itself cannot export is none of ours
        if not options.operators:
            raise
        print(f"{name}: PyTorch does not export it: {str(error).splitlines()[0][:100]}", flush=True)
        return []
    module.load_state_dict(start)  # the export ran the network, which moves running statistics
    before = flat(module.parameters())
    wrong, said = [], []
    ranks = options.ranks

    losses, weights, gradients = rehearse(options, folder, "one", ["--steps", "1", "--learning-rate", "1e-30"], ranks)
    places = places_of(weights, before)
    if ranks == 1:
        loss = loss_of(module, inputs[:BATCH], marks[:BATCH], tokens)
        loss.backward()
        right = flat([weight.grad for weight in module.parameters()])
        off = abs(losses[0] - loss.item()) / abs(loss.item())
        # A shift before a normalization has no gradient but for rounding: a hundredth of the usual element is the least.
        least = 1e-2 * np.linalg.norm(right) / np.sqrt(len(right))
        far, where = apart(gradients, right, places, least)
        said.append(f"loss {off:.1e}, gradients {far:.1e} ({where})")
        if not off <= 1e-5:
            wrong.append(f"loss {losses[0]} for {loss.item()}")
        if not far <= 1e-4:
            wrong.append(f"gradients are {far:.2e} off ({where})")
    for way, (flags, make) in WAYS.items():
        module.load_state_dict(start)
        right_losses, right = torch_steps(module, make, inputs, marks, tokens, 1 if options.plan else ranks)
        losses, weights, _ = rehearse(options, folder, way, ["--steps", str(STEPS), *flags], ranks)
        off = max(abs(a - b) / abs(b) for a, b in zip(losses, right_losses))
        moved = np.linalg.norm(right - before)
        far = np.sqrt(sum(np.linalg.norm(values - right[places[key]]) ** 2 for key, values in weights.items())) / moved
        said.append(f"{way}: losses {off:.1e}, steps {far:.1e}")
        if len(losses) != STEPS or not off <= 1e-5:
            wrong.append(f"{way}: losses {losses} for {right_losses}")
        if not far <= 1e-3:
            wrong.append(f"{way}: the weights' way is {far:.2e} off")
    print(f"{name}{f' on {ranks} ranks' if ranks > 1 else ''}: {'; '.join(said)}", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rehearse")
    parser.add_argument("--only", default="")
    parser.add_argument("--operators", action="store_true", help="networks of one operator each: training_operators.py")
    parser.add_argument("--backend", default="")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--plan", default="")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    global torch, nn, np, h5py, training_networks, export_onnx
    try:
        sys.path[:0] = [str(HERE), str(HERE.parents[1] / "scripts")]
        import h5py
        import numpy as np
        import onnx  # noqa: F401
        import torch
        import torch.distributed
        import torch.multiprocessing
        from torch import nn
        import export_onnx
        import training_networks
        import training_operators
    except ModuleNotFoundError as error:
        print(f"skipped: {error} (Debian: python3-torch, python3-onnx, python3-h5py)")
        return 77
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")  # of tracing, which says what it leaves out
    failed = held = 0
    options.networks = training_operators.NETWORKS if options.operators else training_networks.NETWORKS
    names = options.only.split(",") if options.only else FOR_RANKS if options.ranks > 1 else options.networks
    for name in names:
        with tempfile.TemporaryDirectory(prefix="rehearse-torch-") as made:
            folder = options.keep / name if options.keep else pathlib.Path(made)
            folder.mkdir(parents=True, exist_ok=True)
            try:
                wrong = hold(options, name, folder)
            except ModuleNotFoundError as error:
                print(f"{name}: left out: {error}", flush=True)
                continue
            except RuntimeError as error:
                wrong = [str(error)]
            if options.operators and name in training_operators.REFUSED:
                said = len(wrong) == 1 and wrong[0].startswith("exit 2") and ("priced" in wrong[0] or "kernel" in wrong[0])
                wrong = [] if said else wrong or ["it runs: no longer REFUSED"]
        for line in wrong:
            print(f"{name}: {line}", flush=True)
        failed += bool(wrong)
        held += 1
    print(f"{held - failed} of {held} networks train as PyTorch trains them")
    return 77 if held == 0 else 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
