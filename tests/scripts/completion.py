#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""completion.py REHEARSE: bash, zsh and fish complete what a user begins, each asked as it is by its Tab key.

The three must offer the same: a command, an option, a word of an option, a machine's name, a kind of `bench`. What is
not installed is named and left out; exits with 77 where none of them is.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ASKED = {
    "rehearse pred": "predict",
    "rehearse predict --mach": "--machine",
    "rehearse predict --machine summi": "summit",
    "rehearse predict --model resnet15": "resnet152",
    "rehearse predict --format js": "json",
    "rehearse machines perlmutter-c": "perlmutter-cpu",
    "rehearse bench strea": "stream",
    "rehearse completion fis": "fish",
}

BASH = """
source "$1/rehearse"
COMP_WORDS=($2) COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _rehearse; echo "${COMPREPLY[*]}"
"""
FISH = 'source "$argv[1]/rehearse.fish"; complete -C "$argv[2]" | string split -f1 \\t'
# A terminal of its own, whose line is what stands there after Tab.
ZSH = r"""
zmodload zsh/zpty
zpty inner zsh -f -i
zpty -w inner "stty cols 200 rows 50; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; bindkey '^I' complete-word; bindkey '^U' kill-whole-line; zstyle ':completion:*' insert-tab false; PS1='<rea''dy>'"
zpty -r inner answer '*<ready>*'  # the line editor's prompt: before that the terminal itself echoes what is typed
shift
for line in "$@"; do
    zpty -w -n inner "$line"$'\t'' #end'
    zpty -r inner answer '*#end*'
    print -r -- "${answer//[$'\r\n']/ }"
    zpty -w -n inner $'\x15'
done
"""


def script(shell, rehearse, folder):
    name = {"bash": "rehearse", "zsh": "_rehearse", "fish": "rehearse.fish"}[shell]
    subprocess.run([rehearse, "completion", shell, "--output", str(folder / name)], check=True)


def answers(shell, folder):
    """What each line of ASKED became."""
    if shell == "zsh":
        done = subprocess.run(["zsh", "-f", "-c", ZSH, "zsh", str(folder), *ASKED], capture_output=True, text=True, timeout=120)
        return [" ".join(line.replace("\b", "").split()) for line in done.stdout.splitlines()], done.stderr
    text, said = [], ""
    for line in ASKED:
        command = ["bash", "-c", BASH, "bash", str(folder), line] if shell == "bash" else ["fish", "-c", FISH, str(folder), line]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        text.append(" ".join(done.stdout.split()))
        said += done.stderr
    return text, said


def main():
    rehearse = pathlib.Path(sys.argv[1]).resolve()
    os.environ.update(HOME="/nonexistent", XDG_CONFIG_HOME="/nonexistent", TERM="dumb")
    shells = [shell for shell in ("bash", "zsh", "fish") if shutil.which(shell)]
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for shell in shells:
            script(shell, rehearse, folder)
            found, said = answers(shell, folder)
            for (line, wanted), answer in zip(ASKED.items(), found + [""] * len(ASKED)):
                good = wanted in answer.split() and "unmatched" not in answer
                failed += not good
                print(f"{'good' if good else 'FAILED'} {shell}: {line} -> {answer}")
            if said:
                print(f"FAILED {shell} says: {said}")
                failed += 1
    print("not installed:", ", ".join({"bash", "zsh", "fish"} - set(shells)) or "none")
    return 77 if not shells else 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
