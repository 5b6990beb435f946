#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of the documents that commands write, in docs/schemas, held to what the program does write.

document_schemas.py BINARY [MPIRUN...]     runs the commands below and checks each document against its schema: a key that
                                           is missing, new or of another type fails, with its path, and so does a kind
                                           that cli/ names and no command below writes
document_schemas.py --record BINARY ...    makes the schemas from these documents; read the difference before you commit it
A key that some documents of a kind lack is optional. MPIRUN: the words that start ranks. Needs python3-jsonschema; exits
with 77 without it.
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
OPEN = {"configuration", "host", "args"}  # what was asked, on which host, and of which step: by command
PREDICT = "predict --model resnet50 --machine summit --devices 6,384 --batch 32"
COMMANDS = [
    PREDICT + " --explain --memory --links",
    PREDICT + " --pilot 6=2000/s",
    PREDICT + " --noise 0.05 --dataset 1281167 --epochs 90 --precision mixed",
    PREDICT + " --quorum 75%",
    "predict --model lenet5 --machine adam-commodity --devices 4 --plan server=1,data --batch 8 --data-servers 2 --cache 80GB --sample 110kB --dataset 50000",
    "predict --model resnet50 --machine titanx-server --devices 1,2 --global-batch 200",
    "predict --model lenet5 --machine summit --devices 6 --input nvme --sample 57MB --stage alpine --dataset 63000 --checkpoint alpine --checkpoint-every 1000",
    "predict --model lenet5 --machine summit --devices 6 --grow 4:resnet32 --steps 8",
    "predict --model lenet5 --machine summit --devices 6,24 --batch 32 --pilot 6=1980/s --pilot 12=3400/s",
    "search --model lenet5 --machine titanx-server --devices 4 --global-batch 256",
    "search --model lenet5 --machine summit --devices 6 --global-batch 256 --dataset 50000 --epochs 3 --objective cost --node-power 2200",
    "schedule --model vgg16 --plan pipe=2:microbatches=4 --steps",
    "schedule --model lenet5 --plan data=2",
    "models",
    "models resnet32",
    "models bert-base --depth 1",
    "models resnet50 resnet101",
    "machines",
    "machines summit",
    "frameworks",
    "frameworks chainermn",
    "explain conv2d:n32c64h56w56k64r3s3:pad1:stride1:f16:forward --machine summit",
    "explain --model resnet50 --machine summit --devices 384 --step bucket0:allreduce",
    "learners --model lenet5 --machine titanx-server --devices 2",
    "learners --model lenet5 --machine titanx-server --devices 2 --dataset 50000 --epochs 30 --critical-batch 500",
    "study --model gpt-h{{width}}-a2-l1-v16@8 --space width=8|16 --space learning-rate=1e-2..1:log --population 2 --rounds 2 --steps 2 --batch 2 --machine titanx-server",
    "study --model gpt-h16-a2-l1-v16@8 --space learning-rate=1e-2..1:log --population 4 --machine titanx-server --devices 2",
    "cluster --machine summit --devices 24 --workload poisson:model=vgg16:jobs=3:batch=256:most=6",
    "cluster --jobs ROOT/tests/data/cluster/jobs.csv --speeds ROOT/tests/data/cluster/speeds.csv --devices 2 --run {}/ran --policy fifo",
    "cluster --jobs {}/later.csv --speeds ROOT/tests/data/cluster/speeds.csv --devices 2 --run {}/none --policy fifo --end 1ms",
    "compare {}/predicted.json {}/measured.json",
    "bench conv conv2d:n1c8h8w8k8r3s3:pad1:stride1:f32:forward --rounds 1 --budget 1",
    "bench nccl-table --machine selene --nodes 2",
    "predict --schedule {}/job.0.et {}/job.1.et --machine titanx-server",
    "calibrate --samples ROOT/tests/docs/all_reduce_perf.txt --machine selene --machine-out {}/samples.toml",
    "predict --model lenet5 --machine {}/samples.toml --devices 2",
    "calibrate --trace ROOT/tests/data/profiles/mlp.json.gz --model mlp --batch 16 --machine cori-haswell --machine-out {}/trace.toml",
    "study --model gpt-h16-a2-l1-v16@8 --space learning-rate=1e-2..1:log --population 2 --rounds 1 --steps 2 --batch 2",
    "report {}/weak.json --output {}/application",
    "report {}/request.toml --output {}/requested",
    "models {}/counted.onnx --check",
    "bench stream --filter L1 --threads 1 --rounds 1 --budget 1",
    "bench peak --threads 1 --rounds 1 --budget 1",
    "bench embedding --rounds 1 --budget 1",
    "bench files {}/samples --rounds 1 --budget 1",
    "bench gemm matmul:n8m8n8k8:f32:forward --tune --rounds 1 --budget 1",
    "bench tuned",
    "run --model lenet5 --batch 4 --steps 2 --check-gradients",
    "run --model lenet5 --batch 4 --steps 8 --plan data:learners=1 --tune-learners 2 --tuning-steps 2",
    "run --model lenet5 --batch 4 --steps 3 --target-loss 0.01 --target-samples 8",
    "run --model gpt-h16-a2-l2-v20@8 --batch 4 --steps 3 --learning-rate 1e30",
    "validate --filter p100",
    "validate --set neusight --filter elementwise",
    "validate --set megatron --samples {}/vtrain.csv",
    "validate --set nccl --samples {}/nccl.csv",
    "validate --set llm",
    "validate --set published --filter azure-batchai-horovod-00[1-3]|aries-osu-00",
    "validate --set published --rows --filter azure-batchai-horovod-(001|057)|deepspeed-002",
]
RANKS = [  # as COMMANDS, by two ranks or as many as its server and workers
    (2, "bench allreduce --max 64B --rounds 1 --budget 1"),
    (3, "run --model lenet5 --batch 4 --steps 3 --plan server=1,data --patience 20s"),
]
FILES = ["application/report.json", "requested/report.json", "predicted.json"]  # documents in files of their own
PREPARE = [
    "predict --model resnet32 --machine titanx-server --devices 2 --batch 32 --trace {}/predicted.json",
    "predict --model resnet32 --machine titanx-server --devices 2 --batch 16 --trace {}/measured.json",
    "schedule --model resnet32 --machine titanx-server --plan data=2 --batch 32 --to chakra --prefix {}/job",
    "predict --model lenet5 --machine titanx-server --devices 1,2 --format json --output {}/weak.json",
]
REQUEST = """
[request]
title = "A request"
applicant = "Us"
project = "We train."
machine = "cori-knl"
[job]
model = "lenet5"
[weak]
batch = 8
nodes = [1, 4]
[training]
dataset = 63000
epochs = 20
input = "lustre"
checkpoint = "lustre"
checkpoint_every = 200
[[phase]]
name = "Trainings"
period = "first year"
runs = 6
nodes = 4
epochs = 20
"""
ENDED_EARLY = ["search", "cluster", "calibration", "validation", "tuned", "bench"]  # by a signal, they say "partial"
OF_OTHER_HOSTS = {  # rows of a processor that has not the instructions of all types, or has those of more
    "rehearse.bench-peak/1": [
        {"type": "f32", "threads": 1, "instruction": "avx2", "flops_per_s": 1e11, "error": 0.01},
        {"type": "f16", "threads": 1, "absent": "this CPU has no AVX512_FP16"},
    ],
}
# Keys, behind that of their object, that some documents have and others not: where the roof could be measured beside
# other work; of what kind the rows are that a filter leaves.
SOMETIMES = {"rows/memory_bound_fraction",
             *(f"summary/{kind}" for kind in ("conv2d", "matmul", "recurrent", "anchored", "cold"))}
TABLES = {"peaks_flops_per_s"}  # by the types of numbers that the host computes in
WORDS = {"", "otherData"}  # of the format, even in capitals: a document, and what a Chrome trace says of itself
FORMS = {  # kinds whose documents have forms, told apart by what was asked: all keys of each form are needed
    "rehearse.bench/1": lambda asked: "kind" in asked,
    "rehearse.validation/1": lambda asked: asked["set"],
}
UNITS = [("_per_s", "a second"), ("_s", "seconds"), ("_bytes", "bytes"), ("_flops", "floating-point operations")]


def ask(program, command, folder, *more):
    """Stdout of the program, given as the words that start it."""
    words = [word.replace("{}", str(folder)).replace("ROOT", str(ROOT)).replace("{{", "{").replace("}}", "}")
             for word in command.split()]
    unmeasured = os.environ | {"REHEARSE_HOME": folder}  # what a host has measured adds keys
    done = subprocess.run([*program, *words, *more, "-q"], capture_output=True, text=True, cwd=folder, env=unmeasured)
    if done.returncode not in (0, 1) or "--format" in more and not done.stdout:
        sys.exit(f"rehearse {command}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def entry(number, text):
    """A field of protobuf that holds bytes, shorter than 128."""
    return bytes([number << 3 | 2, len(text)]) + text


def prepare(program, folder):
    """What the commands read."""
    for command in PREPARE:
        ask(program, command, folder)
    said = entry(14, entry(1, b"rehearse.parameters") + entry(2, b"25557032"))  # ModelProto.metadata_props
    (folder / "counted.onnx").write_bytes((ROOT / "tests/data/onnx/light_resnet50.onnx").read_bytes() + said)
    for name, table in (("vtrain", "megatron/vtrain_single"), ("nccl", "nccl/measured")):
        rows = (ROOT / "calibrate" / f"{table}.csv").read_text().splitlines(keepends=True)
        (folder / f"{name}.csv").write_text("".join(rows[:12]))
    (folder / "request.toml").write_text(REQUEST)
    (folder / "later.csv").write_text("name,model,arrival_s,samples,devices,batch\na,lenet5,9,64,2,16\n")
    (folder / "samples").mkdir()
    for i in range(4):
        (folder / "samples" / str(i)).write_bytes(bytes(100_000))


def documents(binary, mpirun):
    """What the commands write, by kind: "prediction" of "rehearse.prediction/1"."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prepare([binary], folder)
        started = [([binary], command) for command in COMMANDS]
        started += [([*mpirun, "-n", str(ranks), binary], command) for ranks, command in RANKS]
        written = [(command, ask(program, command, folder, "--format", "json")) for program, command in started]
        written += [(file, (folder / file).read_text()) for file in FILES]
    for command, text in written:
        document = json.loads(text)
        schema = document.get("schema") or document["otherData"]["schema"]  # a Chrome trace keeps it there
        found.setdefault(schema, []).append((command, document))
    for schema, rows in OF_OTHER_HOSTS.items():
        _, document = found[schema][0]
        found[schema].append(("of another host", document | {"rows": rows}))
    _, document = found["rehearse.bench/1"][0]
    row = document["rows"][0] | {"memory_bound_fraction": 0.5}
    found["rehearse.bench/1"].append(("where the roof was measured", document | {"rows": [row]}))
    for kind in ENDED_EARLY:
        rows = found[f"rehearse.{kind}/1"]
        rows.append((f"{rows[0][0]}, ended early", rows[0][1] | {"partial": True}))
    return found


def unheard_of(found):
    """Kinds that the sources of cli/ name and no command above has written; a name's end may be the command's word."""
    named = {kind for file in sorted((ROOT / "cli").glob("*.cpp")) for kind in re.findall(r'\bdocument\(\s*"([a-z-]+)"', file.read_text())}
    written = {kind.removeprefix("rehearse.").split("/")[0] for kind in found}
    return sorted(kind for kind in named if not any(each == kind or kind.endswith("-") and each.startswith(kind) for each in written))


def type_of(value):
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return {str: "string", list: "array", dict: "object", type(None): "null"}[type(value)]


def is_table_of_names(dicts):
    """Whether keys are names of the user's, as of layers or links, and not words of the format."""
    return any(not re.fullmatch(r"[a-z][a-z0-9_]*(_GBps)?", key) for one in dicts for key in one)


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
        if name in TABLES or name not in WORDS and is_table_of_names(dicts):
            schema["additionalProperties"] = schema_of([item for one in dicts for item in one.values()])
        else:
            keys = list(dict.fromkeys(key for one in dicts for key in one))
            schema["properties"] = {key: schema_of([one[key] for one in dicts if key in one], key) for key in keys}
            schema["required"] = [key for key in keys if f"{name}/{key}" not in SOMETIMES and all(key in one for one in dicts)]
            schema["additionalProperties"] = False
    return schema


def needs(schema):
    """What of a schema says which keys there must be."""
    kept = {key: needs(each) for key, each in schema.get("properties", {}).items()}
    kept = {"properties": kept} if (kept := {key: each for key, each in kept.items() if each}) else {}
    if "items" in schema and (items := needs(schema["items"])):
        kept["items"] = items
    return kept | ({"required": schema["required"]} if schema.get("required") else {})


def forms_of(kind, documents):
    forms = {}
    for document in documents:
        forms.setdefault(FORMS[kind](document["configuration"]), []).append(document)
    return [needs(schema_of(each)) for each in forms.values()]


def path_of(kind):
    return FOLDER / (kind.replace("rehearse.", "").replace("/", "-") + ".json")


def record(found):
    FOLDER.mkdir(exist_ok=True)
    for kind, each in found.items():
        schema = schema_of([document for _, document in each])
        of_trace = schema["properties"].get("otherData", schema)
        of_trace["properties"]["schema"] = {"const": kind}
        if kind in FORMS:
            schema["anyOf"] = forms_of(kind, [document for _, document in each])
        head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": kind}
        path_of(kind).write_text(json.dumps(head | schema, indent=1) + "\n")


def main():
    try:
        import jsonschema
    except ImportError:
        print("python3-jsonschema is not installed")
        return 77
    recording = sys.argv[1] == "--record"
    binary, *mpirun = sys.argv[2 if recording else 1:]
    found = documents(pathlib.Path(binary).resolve(), mpirun or ["mpirun", "--oversubscribe"])
    if recording:
        record(found)
    missing = unheard_of(found)
    for kind in missing:
        print(f"no command here writes a document '{kind}': add one to COMMANDS")
    wrong = len(missing)
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
