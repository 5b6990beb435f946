#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds every command that reads JSON to take or to refuse it: values of valid files become others of any type.

mutated_json.py BINARY [COUNT]      COUNT mutations of each file (default 15; 0: every value by every other)

An exit code other than 0, 1 (of compare), 2 and 3, a signal, or a message that calls itself a bug is a finding.
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

OTHERS = [None, True, -1, 0, 0.5, 1e300, -1e300, 2**64 - 1, 2**63, "", "x", [], {}, [1], [[]], {"a": 1}, "removed"]
SAMPLES = {"context": {"host_name": "h", "date": "2024-01-01T00:00:00", "layout": "nchw"},
           "benchmarks": [{"name": f"conv2d:n32c64h56w56k{k}r3s3:pad1:stride1:f32:forward/onednn/auto", "run_type": "iteration",
                           "real_time": 10.0 * k, "time_unit": "us", "error_occurred": False} for k in (64, 128, 256, 512)]}
INSPECTOR = [{"header": {"id": "0x1", "rank": 0, "n_ranks": 4, "nnodes": 1},
              "metadata": {"inspector_output_format_version": "v4.0", "hostname": "n1"},
              "coll_perf": {"coll": "AllReduce", "coll_sn": i, "coll_msg_size_bytes": 1048576 * i, "coll_exec_time_us": 100 * i}}
             for i in (1, 2, 3)]
NETWORK = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128,
           "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100, "hidden_act": "silu",
           "max_position_embeddings": 64, "tie_word_embeddings": False, "rope_scaling": None}


def places(value, path=()):
    """The path of every value of a document, but the document."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(each, (*path, key))


def text_of(document):
    """A record a line of what is a list of them (NCCL Inspector)."""
    return "".join(json.dumps(record) + "\n" for record in (document if isinstance(document, list) else [document]))


def changed(document, path, other):
    copy = json.loads(json.dumps(document))
    holder = copy
    for key in path[:-1]:
        holder = holder[key]
    if other == "removed":
        del holder[path[-1]]
    else:
        holder[path[-1]] = other
    return copy


def with_file(binary, reader, file):
    return [binary, *(str(file) if word == "FILE" else word for word in reader)]


def found_bug(command, timeout=60):
    try:
        done = subprocess.run(command, capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return f"longer than {timeout} s"
    if done.returncode not in (0, 1, 2, 3) or b"This is a bug" in done.stderr:
        return f"exit {done.returncode}: {done.stderr.decode(errors='replace').strip()[:200]}"
    return None


def made(binary, folder, name, words):
    path = folder / name
    subprocess.run([binary, *words, str(path)], check=True, capture_output=True)
    return json.loads(path.read_text(encoding="utf-8"))


def commands(binary, folder):
    """Of each kind a document, and the commands that read it in place of FILE."""
    job = ["--model", "lenet5", "--devices", "2", "--batch", "4"]
    predict = ["predict", *job, "--machine", "summit"]
    words = ["--explain", "--memory", "--format", "json", "--output"]
    prediction = made(binary, folder, "prediction.json", [*predict, *words])
    made(binary, folder, "other.json", ["predict", *job, "--machine", "selene", *words])
    timeline = made(binary, folder, "timeline.json", [*predict, "--trace"])
    out = ["--machine", "summit", "--machine-out", str(folder / "out.toml"), "--force"]
    # A report of two jobs is refused when both files have been read, before it holds prices to published runs.
    yield "prediction", prediction, [["report", "FILE", str(folder / "other.json"), "--output", str(folder / "report")],
                                     [*predict, "--pilot", "FILE"]]
    yield "timeline", timeline, [["compare", "FILE", str(folder / "timeline.json")],
                                 ["export", "FILE", "--to", "csv", str(folder / "out.csv")]]
    yield "samples", SAMPLES, [["calibrate", "--samples", "FILE", "--between", "nodes", *out], ["calibrate", "--kernels", "FILE", *out]]
    yield "inspector", INSPECTOR, [["calibrate", "--samples", "FILE", "--between", "devices", *out]]
    yield "config", NETWORK, [["models", "FILE", "--sizes", "tokens=16"]]


def main():
    binary, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 15
    chance = random.Random(5)
    findings = tries = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for kind, document, readers in commands(binary, folder):
            all_ways = [(path, other) for path in places(document) for other in OTHERS]
            ways = all_ways if count == 0 else chance.sample(all_ways, min(count, len(all_ways)))
            file = folder / "changed.json"
            file.write_text(text_of(document), encoding="utf-8")
            for reader in readers:
                done = subprocess.run(with_file(binary, reader, file), capture_output=True, check=False)
                if done.returncode != 0 and b"a report is of one job" not in done.stderr:
                    sys.exit(f"{kind}: {' '.join(reader)}: not even the whole file is taken: {done.stderr.decode()}")
            for path, other in ways:
                file.write_text(text_of(changed(document, path, other)), encoding="utf-8")
                for reader in readers:
                    tries += 1
                    bug = found_bug(with_file(binary, reader, file))
                    if bug:
                        findings += 1
                        print(f"{kind}: {'.'.join(map(str, path))} = {json.dumps(other)}: {' '.join(reader[:2])}: {bug}")
    print(f"{tries} damaged files, {findings} findings")
    sys.exit(1 if findings or tries == 0 else 0)


if __name__ == "__main__":
    main()
