#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of the documents that `--format json` writes, in docs/schemas, held to what the program does write.

document_schemas.py BINARY             runs the commands below and checks each document against its schema: a key that
                                       is missing, new or of another type fails, with its path
document_schemas.py BINARY --record    makes the schemas from these documents; read the difference before you commit it
A key that some documents of a kind lack is optional. Needs python3-jsonschema; exits with 77 without it.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "schemas"
OPEN = {"configuration", "host"}  # what was asked, and on which host: by command
PREDICT = "predict --model resnet50 --machine summit --devices 6,384 --batch 32"
COMMANDS = [
    PREDICT,
    PREDICT + " --explain --memory --links",
    PREDICT + " --pilot 6=2000/s",
    PREDICT + " --noise 0.05 --dataset 1281167 --epochs 90 --precision mixed",
    "predict --model gpt3-175b --machine selene --devices 64 --batch 8 --plan pipe=8:microbatches=8,tensor=8 --precision mixed --optimizer adam --explain",
    "search --model resnet32 --machine titanx-server --devices 8 --global-batch 256",
    "schedule --model vgg16 --plan pipe=2:microbatches=4 --steps",
    "schedule --model lenet5 --plan data=2",
    "models",
    "models resnet32",
    "models bert-base --depth 1",
    "models resnet50 resnet101",
    "machines",
    "machines summit",
    "machines eos",
    "frameworks",
    "frameworks chainermn",
    "explain conv2d:n32c64h56w56k64r3s3:pad1:stride1:f16:forward --machine summit",
    "explain --model resnet50 --machine summit --devices 384 --step bucket0:allreduce",
    "learners --model resnet32 --machine titanx-server --devices 8 --dataset 50000 --epochs 30 --critical-batch 500",
    "study --model gpt-h{{width}}-a2-l1-v16@8 --space width=8|16 --space learning-rate=1e-2..1:log --population 2 --rounds 2 --steps 2 --batch 2 --machine titanx-server",
    "study --model gpt-h16-a2-l1-v16@8 --space learning-rate=1e-2..1:log --population 4 --machine titanx-server --devices 2",
    "cluster --machine summit --devices 24 --workload poisson:model=vgg16:jobs=3:batch=256:most=6",
    "cluster --jobs ROOT/tests/data/cluster/jobs.csv --speeds ROOT/tests/data/cluster/speeds.csv --devices 2 --run {}/ran --policy fifo",
    "compare {}/predicted.json {}/measured.json",
    "bench conv conv2d:n1c8h8w8k8r3s3:pad1:stride1:f32:forward --budget 1",
    "bench nccl-table --machine selene --nodes 2",
    "predict --schedule {}/job.0.et {}/job.1.et --machine titanx-server",
    "calibrate --samples ROOT/tests/docs/all_reduce_perf.txt --machine selene --machine-out {}/samples.toml",
    "calibrate --trace ROOT/tests/data/profiles/mlp.json.gz --model mlp --batch 16 --machine cori-haswell --machine-out {}/trace.toml",
]
PREPARE = [
    "predict --model resnet32 --machine titanx-server --devices 2 --batch 32 --trace {}/predicted.json",
    "predict --model resnet32 --machine titanx-server --devices 2 --batch 16 --trace {}/measured.json",
    "schedule --model resnet32 --machine titanx-server --plan data=2 --batch 32 --to chakra --prefix {}/job",
]
SOMETIMES = {"memory_bound_fraction"}  # where the roof could be measured beside other work
TABLES = {"peaks_flops_per_s"}  # by the types of numbers that the host computes in
UNITS = [("_per_s", "a second"), ("_s", "seconds"), ("_bytes", "bytes"), ("_flops", "floating-point operations")]


def ask(binary, command, folder, *more):
    words = [word.replace("{}", folder).replace("ROOT", str(ROOT)).replace("{{", "{").replace("}}", "}")
             for word in command.split()]
    unmeasured = os.environ | {"REHEARSE_HOME": folder}  # what a host has measured adds keys
    done = subprocess.run([binary, *words, *more, "-q"], capture_output=True, text=True, cwd=folder, env=unmeasured)
    if done.returncode not in (0, 1):
        sys.exit(f"rehearse {command}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def documents(binary):
    """What the commands write, by kind: "prediction" of "rehearse.prediction/1"."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for command in PREPARE:
            ask(binary, command, folder)
        for command in COMMANDS:
            document = json.loads(ask(binary, command, folder, "--format", "json"))
            found.setdefault(document["schema"], []).append((command, document))
    return found


def type_of(value):
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return {str: "string", list: "array", dict: "object", type(None): "null"}[type(value)]


def is_table_of_names(dicts):
    """Whether keys are names of the user's, as of layers or links, and not words of the format."""
    return any(not re.fullmatch(r"[a-z][a-z0-9_]*", key) for one in dicts for key in one)


def schema_of(values, name=""):
    """The least schema that all values obey."""
    types = sorted({type_of(value) for value in values})
    schema = {"type": types[0] if len(types) == 1 else types} if types else {}
    unit = next((unit for suffix, unit in UNITS if name.endswith(suffix)), None)
    if unit and "number" in types:
        schema["description"] = unit
    if lists := [item for value in values if isinstance(value, list) for item in value]:
        schema["items"] = schema_of(lists, name)
    dicts = [value for value in values if isinstance(value, dict)]
    if dicts and name not in OPEN:
        if name in TABLES or is_table_of_names(dicts):
            schema["additionalProperties"] = schema_of([item for one in dicts for item in one.values()])
        else:
            keys = list(dict.fromkeys(key for one in dicts for key in one))
            schema["properties"] = {key: schema_of([one[key] for one in dicts if key in one], key) for key in keys}
            schema["required"] = [key for key in keys if key not in SOMETIMES and all(key in one for one in dicts)]
            schema["additionalProperties"] = False
    return schema


def path_of(kind):
    return FOLDER / (kind.replace("rehearse.", "").replace("/", "-") + ".json")


def record(found):
    FOLDER.mkdir(exist_ok=True)
    for kind, each in found.items():
        schema = schema_of([document for _, document in each])
        schema["properties"]["schema"] = {"const": kind}
        head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": kind}
        path_of(kind).write_text(json.dumps(head | schema, indent=1) + "\n")


def main():
    try:
        import jsonschema
    except ImportError:
        print("python3-jsonschema is not installed")
        return 77
    found = documents(pathlib.Path(sys.argv[1]).resolve())
    if "--record" in sys.argv:
        record(found)
    wrong = 0
    for kind, each in found.items():
        validator = jsonschema.Draft202012Validator(json.loads(path_of(kind).read_text()))
        for command, document in each:
            for error in validator.iter_errors(document):
                wrong += 1
                where = "/".join(str(part) for part in error.absolute_path) or "top"
                print(f"rehearse {command}: {kind} at {where}: {error.message[:300]}")
    print(f"{sum(map(len, found.values()))} documents of {len(found)} kinds, {wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
