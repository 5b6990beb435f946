#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `rehearse schedule --to` writes, read by programs that are not ours: Chakra's files by protoc with the public
field numbers of et_def.proto, time-independent traces by SimGrid's smpirun; GOAL by a reader of its grammar here.

programs.py REHEARSE
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Names and numbers of mlcommons/chakra, schema/protobuf/et_def.proto, as far as these files use them.
SCHEMA = """syntax = "proto3";
package ChakraProtoMsg;
message AttributeProto { string name = 1; oneof value { int32 int32_val = 7; int64 int64_val = 9; uint64 uint64_val = 13;
  bool bool_val = 27; string string_val = 29; } }
message GlobalMetadata { string version = 1; repeated AttributeProto attr = 2; }
enum NodeType { INVALID_NODE = 0; METADATA_NODE = 1; MEM_LOAD_NODE = 2; MEM_STORE_NODE = 3; COMP_NODE = 4;
  COMM_SEND_NODE = 5; COMM_RECV_NODE = 6; COMM_COLL_NODE = 7; }
message Node { uint64 id = 1; string name = 2; NodeType type = 3; repeated uint64 ctrl_deps = 4; repeated uint64 data_deps = 5;
  uint64 start_time_micros = 6; uint64 duration_micros = 7; repeated AttributeProto attr = 10; }
"""


def write(rehearse, folder, form, *plan, model="lenet5"):
    subprocess.run([rehearse, "schedule", "--model", model, "--machine", "summit", "--batch", "32", *plan, "--to", form,
                    "--prefix", folder / form, "--force", "-q"], check=True, capture_output=True)


def messages(data):
    """The messages of a file, each behind its length."""
    at = 0
    while at < len(data):
        size = shift = 0
        while True:
            size |= (data[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 0x80:
                break
        yield data[at:at + size]
        at += size


def decoded(folder, message, kind):
    run = subprocess.run(["protoc", f"--proto_path={folder}", f"--decode=ChakraProtoMsg.{kind}", "et_def.proto"], input=message,
                         check=True, capture_output=True, cwd=folder)
    return run.stdout.decode()


def check(what, good):
    if not good:
        sys.exit(f"wrong: {what}")


def chakra(rehearse, folder):
    if shutil.which("protoc") is None:
        return print("chakra: skipped, no protoc")
    (folder / "et_def.proto").write_text(SCHEMA)
    write(rehearse, folder, "chakra", "--plan", "data=2,tensor=2", "--devices", "4")
    check("groups", json.loads((folder / "chakra.groups.json").read_text()) and len(list(folder.glob("chakra.*.et"))) == 4)
    head, *nodes = messages((folder / "chakra.0.et").read_bytes())
    check("version", decoded(folder, head, "GlobalMetadata").strip() == 'version: "1.0.0"')
    seen, kinds = set(), set()
    for node in nodes:
        text = decoded(folder, node, "Node")
        check(f"a field that the schema does not have: {text}", not re.search(r"^\s*\d+:", text, re.M))
        number = int((re.search(r"^id: (\d+)", text, re.M) or [0, 0])[1])
        check("data_deps", all(int(each) in seen for each in re.findall(r"data_deps: (\d+)", text)))
        seen.add(number)
        kind = re.search(r"type: (\w+)", text)[1]
        kinds.add(kind)
        needed = {"COMP_NODE": ["is_cpu_op", "num_ops", "tensor_size"],
                  "COMM_COLL_NODE": ["is_cpu_op", "comm_type", "comm_size", "comm_priority", "pg_name"]}[kind]
        check(f"attributes of {text}", all(f'name: "{each}"' in text for each in needed))
    check(f"kinds {kinds}", kinds == {"COMP_NODE", "COMM_COLL_NODE"} and len(seen) == len(nodes))
    print(f"chakra: {len(nodes)} nodes a rank")
    back(rehearse, folder)


def step_of(rehearse, *words):
    run = subprocess.run([rehearse, "predict", *words, "--machine", "summit", "--format", "json", "-q"], capture_output=True, text=True)
    return json.loads(run.stdout)["points"][0]["step_s"] if run.returncode == 0 else run.stderr


def back(rehearse, folder):
    """Read again, a step takes as long as its schedule in exact mode, but for the slowest of four cards (1 % at most) and
    what four cards of a node slow each other (two doublings): both are in a prediction's pace, not in its prices."""
    files = sorted(folder.glob("chakra.*.et"), reverse=True)  # the rank is in the name
    plain = step_of(rehearse, "--model", "lenet5", "--batch", "32", "--plan", "data=2,tensor=2", "--devices", "4", "--mode", "exact")
    again = step_of(rehearse, "--schedule", *files, "--groups", folder / "chakra.groups.json")
    check(f"{again} s again, {plain} s by the schedule", 0.98 * plain < again * 1.011**2 and again <= plain)
    check("a group that nobody tells of", "which no file tells of" in step_of(rehearse, "--schedule", *files))
    check("a rank is missing", "rank 1 is missing" in step_of(rehearse, "--schedule", files[0], files[1], files[3]))
    check("no other network beside it", "--model does not go with --schedule" in step_of(rehearse, "--schedule", *files, "--model", "lenet5"))
    print(f"chakra: {again} s again")


def goal(rehearse, folder):
    write(rehearse, folder, "goal", "--plan", "pipe=2:microbatches=2,data=2", "--devices", "4")
    text = (folder / "goal.goal").read_text()
    check("num_ranks", text.startswith("num_ranks 4\n"))
    sent, received, rank = {}, {}, None
    for line in text.splitlines()[1:]:
        if match := re.fullmatch(r"rank (\d+) \{", line):
            rank, labels = int(match[1]), set()
        elif match := re.fullmatch(r"(l\d+): (send|recv) (\d+)b (?:to|from) (\d+) tag (\d+)", line):
            labels.add(match[1])
            ends = (rank, int(match[4])) if match[2] == "send" else (int(match[4]), rank)
            (sent if match[2] == "send" else received).setdefault((*ends, match[5]), []).append(int(match[3]))
        elif match := re.fullmatch(r"(l\d+): calc (\d+)", line):
            labels.add(match[1])
        elif match := re.fullmatch(r"(l\d+) requires (l\d+)", line):
            check(f"labels of {line}", {match[1], match[2]} <= labels)
        else:
            check(f"line '{line}'", line in ("", "}"))
    check("every message is received", sent and sent == received)
    print(f"goal: {sum(map(len, sent.values()))} messages")


def smpi(rehearse, folder):
    if shutil.which("smpirun") is None:
        return print("smpi: skipped, no smpirun")
    (folder / "platform.xml").write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        '<cluster id="c" prefix="h" suffix="" radical="0-3" speed="1Gf" bw="10GBps" lat="1us"/></platform>')
    (folder / "hosts").write_text("h0\nh1\nh2\nh3\n")
    # Activations of a pipeline are above what SMPI sends off before its receiver has asked for it (64 KiB).
    for plan, model in (("data=2,tensor=2", "lenet5"), ("pipe=4:microbatches=8", "resnet50"),
                        ("pipe=2:microbatches=4,data=2", "resnet50")):
        write(rehearse, folder, "smpi", "--plan", plan, "--devices", "4", model=model)
        replay(folder, plan)


def replay(folder, plan):
    run = subprocess.run(["smpirun", "-np", "4", "-platform", folder / "platform.xml", "-hostfile", folder / "hosts", "-replay",
                          folder / "smpi.ti", "--log=replay.thresh:critical", "--log=smpi_replay.thresh:info"],
                         capture_output=True, text=True, cwd=folder, env=dict(os.environ, LC_ALL="C"))
    found = re.search(r"Simulation time ([0-9.e+-]+)", run.stdout + run.stderr)
    check(f"smpirun of {plan}: {run.returncode} {run.stdout[-600:]} {run.stderr[-600:]}", run.returncode == 0 and found)
    # One thing after the other: no less than what one rank computes.
    units = sum(int(line.split()[2]) for line in (folder / "smpi.0.ti").read_text().splitlines() if " compute " in line)
    check(f"{found[1]} s for {units} ns of computation", float(found[1]) >= units * 1e-9 and float(found[1]) < 10 * units * 1e-9 + 1)
    print(f"smpi, {plan}: {found[1]} s")


def main():
    with tempfile.TemporaryDirectory() as name:
        for each in (chakra, goal, smpi):
            each(sys.argv[1], pathlib.Path(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
