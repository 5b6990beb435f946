#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the examples that users read: of every `rehearse COMMAND --help` and of every ```sh block of a page.

`examples.py --build build/dev help` runs those of all help texts, `... docs/search.md` those of a page, one after the other
in a folder of their own; `... --slow slow help docs/search.md` only those that are slow, `... check help docs/search.md` none,
but that every page with examples is among those named, and every rule of use; `... pages` prints the pages with examples.
Each must end with exit code 0, or with what rules.toml expects. rules.toml also says which are made short and which are
not run here, with the reason; all of it is printed. Exits with 1 when an example or a rule fails.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ASSIGNMENT = re.compile(r"^\w+=\S+$")
STARTS = re.compile(r"^(mpirun .*)?\$?(rehearse|rehearse-gui|scripts/\S+|build/\S+) |^mpirun ")


def pages():
    """Pages that users read, as their paths from the root."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("docs/**/*.md")]
    return sorted({page.relative_to(ROOT).as_posix() for page in found} - {"CHANGELOG.md"})


def commands_of(text):
    """Whole commands of a script's text: lines that go on are joined, a loop is one command."""
    commands, loop = [], []
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if not loop and (not line.strip() or line.lstrip().startswith("#")):
            continue
        if loop or line.startswith("for "):
            loop.append(line)
            if line.strip() == "done":
                commands.append("\n".join(loop))
                loop = []
        else:
            commands.append(line.strip())
    return commands


def examples_of_page(page):
    return [c for language, block in FENCE.findall((ROOT / page).read_text()) if language == "sh" for c in commands_of(block)]


def unmarked(page):
    """Commands that stand in a block that is not marked as sh, so that nobody would run them."""
    text = (ROOT / page).read_text()
    return [line for language, block in FENCE.findall(text) if language != "sh" for line in block.splitlines() if STARTS.match(line)]


def ask(build, *arguments):
    return subprocess.run([build / "cli" / "rehearse" if build else "rehearse", *arguments], capture_output=True, text=True, check=True).stdout


def examples_of_help(build):
    names = re.findall(r"^  ([a-z]+) ", ask(build, "--help").split("Subcommands:")[1], re.MULTILINE)
    examples = []
    for name in names:
        own = commands_of(ask(build, name, "--help").partition("Examples:\n")[2])
        if not own:
            sys.exit(f"rehearse {name} --help: it has no examples")
        examples += own
    return examples


class Rules:
    """What rules.toml says of a command, and which of its rules were of use."""

    def __init__(self, path):
        self.all = tomllib.loads(path.read_text())
        self.used = set()

    def matching(self, kind, text):
        for number, rule in enumerate(self.all.get(kind, [])):
            if re.search(rule["match"], text, re.DOTALL):
                self.used.add((kind, number))
                yield rule

    def unused(self):
        return [f"[[{kind}]] {rule['match']}" for kind, rules in self.all.items() for number, rule in enumerate(rules)
                if (kind, number) not in self.used]

    def apply(self, command):
        """The command as it is run, why it is not run (or None), its good exit codes, and whether it is slow."""
        why = next((rule["why"] for rule in self.matching("skip", command)), None)
        if why:
            return command, why, [0], False
        codes = next((rule["exit"] for rule in self.matching("expect", command)), [0])
        slow = any(True for _ in self.matching("slow", command))
        for rule in self.matching("short", command):
            command = re.sub(rule["match"], rule["by"], command, flags=re.DOTALL)
        return command, None, codes, slow


def of_build(text, build):
    """An example that names a build folder, with the one that is tested; without one, what is installed."""
    return re.sub(r"build/(release|dev)/", f"{build}/", text) if build else re.sub(r"build/(release|dev)/(cli|gui)/", "", text)


def surroundings(build, folder):
    environment = dict(os.environ)
    programs = f"{build}/cli:{build}/gui:" if build else ""
    environment.update(
        PATH=f"{programs}{ROOT}/scripts:{os.environ['PATH']}", REHEARSE_HOME=str(folder / "home"), HOME=str(folder),
        OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
        OMPI_MCA_mpi_yield_when_idle="1", OMPI_MCA_btl_vader_single_copy_mechanism="none",
        OMP_NUM_THREADS="1", QT_QPA_PLATFORM="offscreen")
    return environment


def shell(command, folder, environment):
    return subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900)


def run(source, examples, rules, build, with_slow):
    """Runs a source's examples; the number that failed."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="rehearse_docs_") as name:
        folder = pathlib.Path(name)
        environment = surroundings(build, folder)
        for link in ("scripts", "build", "tests", "packaging"):  # what a checkout has
            (folder / link).symlink_to(ROOT / link)
        for rule in rules.matching("prepare", source):
            done = shell(rule["run"], folder, environment | {"ROOT": str(ROOT)})
            if done.returncode != 0:
                sys.exit(f"{source}: preparing '{rule['run']}' failed:\n{done.stdout}")
        assigned = ""
        for example in examples:
            if ASSIGNMENT.match(example):
                assigned += of_build(example, build) + "\n"
                continue
            command, why, codes, slow = rules.apply(example)
            if why or slow != with_slow:
                print(f"not run: {example}\n    {why or ('slow: docs.slow (label long)' if slow else 'not slow')}", flush=True)
                continue
            if command != example:
                print(f"shortened: {example}")
            begin = time.monotonic()
            done = shell(assigned + of_build(command, build), folder, environment)
            seconds = time.monotonic() - begin
            good = done.returncode in codes
            print(f"{'exit' if good else 'FAILED: exit'} {done.returncode} in {seconds:.1f} s: {command}", flush=True)
            if not good:
                failed += 1
                print(f"    expected exit {codes}; it printed\n{done.stdout[-4000:]}", flush=True)
    return failed


def examples_of(source, build):
    return examples_of_help(build) if source == "help" else examples_of_page(source)


def check(rules, build, named):
    """Every page's commands are marked as such, every page is tested, and every rule is of use."""
    failures = [f"{page}: a block with this command is not marked as sh: {line}" for page in pages() for line in unmarked(page)]
    sources = {source: examples_of(source, build) for source in ["help", *pages()]}
    failures += [f"{source}: it has examples since cmake found those that have: run cmake again"
                 for source, examples in sources.items() if examples and source not in named]
    for source, examples in sources.items():
        if examples:
            list(rules.matching("prepare", source))
        for example in examples:
            rules.apply(example)
            for _ in rules.matching("short", example):
                pass
    failures += [f"rules.toml: matches no example: {rule}" for rule in rules.unused()]
    print(f"{sum(map(len, sources.values()))} examples in {sum(map(bool, sources.values()))} sources")
    print("\n".join(failures))
    return len(failures)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "dev")
    parser.add_argument("--installed", action="store_true", help="run the programs that are installed, not those of --build")
    parser.add_argument("--slow", action="store_true", help="those that rules.toml calls slow, and no others")
    parser.add_argument("source", nargs="+", help="help, a page, pages, or check or slow and all of them")
    options = parser.parse_args()
    if options.source == ["pages"]:
        print("\n".join(page for page in pages() if examples_of(page, None)))
        return 0
    rules = Rules(HERE / "rules.toml")
    build = None if options.installed else options.build.resolve()
    if not shutil.which("mpirun"):
        sys.exit("mpirun is not here")
    if options.source[0] == "check":
        return 1 if check(rules, build, options.source[1:]) else 0
    sources = options.source[1:] if options.source[0] == "slow" else options.source
    return 1 if sum(run(source, examples_of(source, build), rules, build, options.slow) for source in sources) else 0


if __name__ == "__main__":
    sys.exit(main())
