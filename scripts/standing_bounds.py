#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bounds on figures that cannot follow from what is published, computed anew: the table of docs/systems/standing.md.

  standing_bounds.py build/dev/cli/rehearse                                      # prints the table
  standing_bounds.py build/dev/cli/rehearse --check docs/systems/standing.md     # exit 1 where the page has another

Each row is a published figure between two that are computed: by what is published on either side of it. A row whose figure
lies outside is an error, with or without --check.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Rehearse:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder

    def ask(self, *words):
        made = subprocess.run([self.binary, *words, "--format", "json", "-q"], capture_output=True, text=True)
        if made.returncode != 0:
            sys.exit(f"{' '.join(words)}: {made.stderr}")
        return json.loads(made.stdout)

    def points(self, *words):
        """Of each number of devices, from the first one on."""
        return self.ask("predict", *words, "--no-band")["points"]

    def file(self, name, text):
        path = pathlib.Path(self.folder) / name
        path.write_text(text)
        return str(path)


def text_of(*path):
    return ROOT.joinpath(*path).read_text()


def deeplab(rehearse):
    """By both tables of a V100's kernels in 16 bits that there are: cuDNN 7.3.1 and 7.6.2."""
    turned = '\n[[setting]]\nname = "layout"\nvalue = "nhwc-turned"\nsource = "calibrate/published/rules"\n'
    framework = rehearse.file("climate.toml", text_of("frameworks", "climate-horovod.toml") + turned)
    summit = text_of("models", "machines", "summit.toml")
    like = 'like = "v100-sxm2"'
    assert summit.count(like) == 1
    older = rehearse.file("summit-cudnn7.3.toml", summit.replace(like, like + '\nprice_model = "v100-cudnn7.3"'))
    rates = []
    for machine in (older, "summit"):
        points = rehearse.points("--model", "deeplabv3plus", "--machine", machine, "--devices", "1,27360", "--batch", "2",
                                 "--optimizer", "adam", "--framework", framework, "--precision", "mixed",
                                 "--plan", "data:lag=1")
        rates.append([point["samples_per_s"] for point in points])
    low, high = rates
    petaflops = 14.41e-3
    yield "DeepLabv3+ f16, one V100, samples/s", 2.67, low[0], high[0], "kernels of cuDNN 7.3.1 and of 7.6.2"
    yield ("DeepLabv3+ f16, 27,360 V100, PF/s", 999, low[1] * petaflops, high[1] * petaflops,
           "the same; the jobs had that of CUDA 9.2")


def tiramisu(rehearse):
    """What one P100 does follows from the abstract alone: 21.0 PF/s are 79.0 % of 5,300 of it."""
    one, all_of_them = rehearse.points("--model", "tiramisu", "--machine", "piz-daint", "--devices", "1,5300", "--batch", "1",
                                       "--optimizer", "adam", "--framework", "climate-horovod")
    flops = 3703e9  # a sample, as the paper counts
    implied = 21.0e15 / 5300 / 0.79
    yield ("Tiramisu, one P100, TF/s, by 21.0 PF/s at 79.0 %", implied / 1e12, 0.85 * one["samples_per_s"] * flops / 1e12,
           1.15 * one["samples_per_s"] * flops / 1e12, "predicted, 15 % on either side")
    kept = all_of_them["samples_per_s"] / one["samples_per_s"] / 5300
    read = min(1.0, 112e9 / 57e6 / (5300 * implied / flops))
    yield ("... 5,300 P100, efficiency, %", 79.0, 100 * read, 100 * kept,
           "all samples from Lustre at 112 GB/s; none, and no rank late")


def cosmoflow(rehearse):
    """On one node 0.535 TF/s, 69.33 GFLOP a sample: 8,192 of these read 8.4 MB each a step."""
    nodes, step = 8192, 69.33e9 / 0.535e12
    sample = 128 ** 3 * 4
    points = rehearse.points("--model", "cosmoflow", "--machine", "cori-knl", "--devices", f"1,{nodes}", "--batch", "1")
    exposed = points[1]["step_s"] - points[0]["step_s"]
    lustre = step / max(step, nodes * sample / 408e9)
    yield ("CosmoFlow, 8,192 nodes of Cori, efficiency, %", 77, 100 * lustre, 100 * step / (step + exposed),
           "samples from Lustre at 408 GB/s; from the burst buffer")
    yield ("... PF/s", 3.5, 0.535e-3 * nodes * lustre, 0.535e-3 * nodes * step / (step + exposed),
           "the same of one node's 0.535 TF/s, which is from memory")


def climatenet(rehearse):
    """Its samples were read from Lustre, whether beside the step before or between steps is not said."""
    words = ["--model", "climatenet", "--machine", "cori-knl", "--devices", "9608", "--batch", "8", "--framework",
             "caffe-cori", "--input", "lustre", "--plan",
             "server=14:place=beside,groups=8,data=1201:allreduce=halving:bucket=1B:first=1B"]
    steps = [rehearse.points(*words, "--loader", "inline:stack=289MBps" + how)[0]["step_s"] for how in (":read=ahead", "")]
    yield ("climate network, 9,608 nodes of Cori, s a step", 12.16, *steps,
           "samples from Lustre, read beside the step before; between steps")


def elastic(rehearse):
    """A second figure that has no bound: it grows with the number of jobs."""
    gains = []
    for jobs in (50, 200):
        made = rehearse.ask("cluster", "--machine", "azure-nc24rs-v2", "--devices", "16", "--workload",
                            f"poisson:model=resnet50-v1+vgg16+alexnet:jobs={jobs}:hourly=10:minutes=60:batch=32-2048:most=16",
                            "--policy", "fixed-batch,elastic")
        by_policy = {policy["policy"]: policy["mean_completion_s"] for policy in made["policies"]}
        gains.append(by_policy["fixed-batch"] / by_policy["elastic"])
    yield "elastic batches, completion, x (up to)", 10, *gains, "50 and 200 jobs, 10 an hour, on 16 GPUs"


def dlrm(rehearse):
    """How many rows a bag has and what an update writes beside them is not said; both are in its programs.

    dlrm_data_pytorch.py draws 1 to 100 rows of a bag (50.5) unless it is told --num-indices-per-lookup-fixed. PyTorch's
    operators write a row of gradient for each lookup and read it again, and its authors sorted lookups by 8 bits of the row
    a pass (pytorch/pytorch, pull request 23057; radix_sort_parallel of pytorch/FBGEMM): pairs of 16 bytes made of rows of 8,
    read twice and written once in each of the three passes that a million rows take.
    """
    made = rehearse.ask("predict", "--model", "dlrm-small", "--machine", "clx-opa", "--devices", "1", "--batch", "2048",
                        "--plan", "data:tables=shared", "--explain", "--no-band")
    step = made["points"][0]["step_s"]
    tables = sum(part["total_s"] for part in made["explanation"] if part["what"].startswith("embeddingbag"))
    assert 0 < tables < step
    lookups, row = 2048 * 8 * 100, 64 * 4
    rate = 3 * lookups * row / tables  # of memory: rows read, read again and written
    low = step - tables * (1 - 50.5 / 100)
    high = step + lookups * (2 * row + 8 + 16 + 3 * 3 * 16) / rate
    yield ("DLRM, one socket, ms a step", 38, 1e3 * low, 1e3 * high,
           "50.5 rows a bag, updated in place; 100, by sorted rows of gradient")


# What runs of MLPerf's CosmoFlow logged (mlcommons/hpc_results_v0.7, v1.0 and v2.0, result_1): samples a card and epoch, and ms
# that evaluation took for one, which reads by the same program and passes forward. ABCI's epoch is without what lies behind its
# evaluation (docs/validation/causes.md).
LOGGED = {
    "mlperf-hpc-other-003": ("2,048 V100 of ABCI, s of training an epoch", 5.09, 128, 6.6),
    "mlperf-hpc-other-006": ("64 RTX 5000 of Frontera, s an epoch", None, 4096, 99.7),
    "mlperf-hpc-other-015": ("512 A100 of JUWELS Booster", None, 1024, 27.7),
    "mlperf-hpc-other-010": ("1,024 A100 of JUWELS Booster", None, 512, 18.9),
    "mlperf-hpc-other-016": ("512 A100 of Perlmutter", None, 1024, 8.6),
    "mlperf-hpc-other-019": ("1,024 A100 of Perlmutter", None, 512, 8.9),
    "mlperf-hpc-other-040": ("512 A100 of Selene (v2.0)", None, 1024, 2.45),
}
# Where an evaluation of each sample is less than training's rest: on these cards, by device, the gradients of weights are the
# first suspect.
BY_SAMPLE = {"Perlmutter": ("perlmutter", "a100-40gb"), "Selene": ("selene", "a100-80gb")}


def cosmoflow_mlperf(rehearse):
    """What a sample's input takes is not published, but no more than an evaluation's."""
    words = ["validate", "--set", "published", "--rows", "--filter", "|".join([*LOGGED, "mlperf-hpc-other-028"])]
    alone = "[[rule]]\nwhy = 'operators alone'\nwhen = { model = 'CosmoFlow-MLPerf' }\nloader = 'ahead'\n"
    uncut = alone
    for machine, (name, like) in BY_SAMPLE.items():
        text, key = text_of("models", "machines", f"{name}.toml"), f'like = "{like}"'
        assert text.count(key) == 1
        path = rehearse.file(f"{name}-by-sample.toml", text.replace(key, key + '\nvolumes = "by-sample"'))
        uncut += f"\n[[rule]]\nwhy = 'not cut'\nwhen = {{ machine = '{machine}' }}\nmachine = '{path}'\n"
    rows, slowest = ({row["id"]: row for row in rehearse.ask(*words, "--rules", rehearse.file("rules.toml", rules))["rows"]}
                     for rules in (alone, uncut))
    for name, (what, logged, samples, evaluated) in LOGGED.items():
        by_sample = rows[name]["machine"] in BY_SAMPLE
        high = slowest[name]["cold_predicted"] + 1e-3 * evaluated * samples
        yield (f"CosmoFlow, {what}", logged or rows[name]["published"], rows[name]["cold_predicted"], high,
               "operators by their prices; gradients of weights uncut, and an evaluation of each sample" if by_sample else
               "operators by their prices; and an evaluation of each sample beside them")
    longhorn = {row["id"]: row for row in rehearse.ask(*words)["rows"]}["mlperf-hpc-other-028"]
    low = longhorn["cold_predicted"]
    sample, inflate = 128 ** 3 * 4 * 2, 295e6  # zlib 1.2.11 -6, one core (README of jibsen/brieflz)
    yield ("CosmoFlow, 128 V100 of Longhorn", longhorn["published"], low, low + 4096 * sample / inflate,
           "samples inflated (gzip) for nothing; one after another by one core at 295 MB/s")


def spatial(rehearse):
    """Four times as many blocks of as many samples; how many is not in our table (calibrate/published/cosmoflow.csv)."""
    gains = []
    for batch in (32, 128):
        few, many = (rehearse.points("--model", "cosmoflow-512", "--machine", "lassen", "--devices", str(devices),
                                     "--global-batch", str(batch), "--plan", f"data={batch},spatial={devices // batch}")[0]
                     for devices in (512, 2048))
        gains.append(few["step_s"] / many["step_s"])
    yield "CosmoFlow of 512^3, 2,048 V100 over 512, x", 1.77, *gains, "32 and 128 samples in all, cut along the depth"


def pipedream(rehearse):
    """15 copies of VGG-16's convolutions and one of its dense layers, over a data parallelism that is not described.

    Its cluster A is Azure's VMs of four V100 at 10 Gb/s. At most as fast as 15 of them that wait for nothing.
    """
    azure = text_of("models", "machines", "azure-nc24rs-v3.toml")
    fast, share = 'value = "25Gbps"', "fraction = { value = 0.166"
    assert azure.count(fast) == 1 and azure.count(share) == 1
    cluster = rehearse.file("cluster-a.toml", azure.replace(fast, 'value = "10Gbps"').replace(share, "fraction = { value = 0.8"))
    rates = [rehearse.points("--model", "vgg16", "--machine", machine, *words)[0]["samples_per_s"] for machine, words in (
        (f"{cluster}@tcp", ("--devices", "16", "--batch", "64", "--plan", "data")),
        (f"{cluster}@tcp", ("--devices", "16", "--global-batch", "3840", "--plan", "pipe=16:copies=15+1:microbatches=60")),
        ("azure-nc24rs-v3@tcp", ("--devices", "16", "--batch", "64", "--plan", "data")),
        ("azure-nc24rs-v3@tcp", ("--devices", "1", "--batch", "64", "--plan", "data")))]
    yield ("PipeDream, VGG-16, 15-1 on 16 V100, x", 5.28, rates[1] / rates[0], 15 * rates[3] / rates[2],
           "drained, Ethernet at 80 %; undrained, sums by one TCP stream as on Azure's V100")


def figure(value):
    digits = f"{float(f'{value:.2g}'):,.12g}" if value >= 10 else f"{value:.2g}"
    return digits


def missing(lines, page):
    """Prints a table's lines; whether the page, if there is one, has another."""
    print("\n".join(lines))
    text = pathlib.Path(page).read_text() if page else ""
    lacks = [line for line in lines if page and line not in text]
    for line in lacks:
        print(f"{page} does not have: {line}", file=sys.stderr)
    return bool(lacks)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--check", metavar="PAGE")
    arguments = parser.parse_args()
    lines, failed = [], False
    with tempfile.TemporaryDirectory() as folder:
        rehearse = Rehearse(arguments.binary, folder)
        for part in (deeplab, tiramisu, cosmoflow, climatenet, elastic, dlrm, cosmoflow_mlperf, spatial, pipedream):
            for what, published, low, high, by in part(rehearse):
                lines.append(f"| {what} | {published:,.3g} | {figure(low)} to {figure(high)} | {by} |")
                if not low <= published <= high:
                    print(f"{what}: {published} is not between {low} and {high}", file=sys.stderr)
                    failed = True
    sys.exit(1 if missing(lines, arguments.check) or failed else 0)


if __name__ == "__main__":
    main()
