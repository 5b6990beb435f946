#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/reference, written from the tables of the program and from docs/schemas.

reference_pages.py BINARY            fails where a page differs from what the program says, where the reader of machine
                                     files or a shipped file knows another key than the page, or where the sources read
                                     an environment variable that no page names
reference_pages.py BINARY --record   writes the pages anew
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

import wrap_prose

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"
HEAD = """# JSON documents

What commands write with `--format json`, and in files of their own (`report.json`, a timeline as `.json`). Each document names its kind in `schema`; the unit of a figure stands in the name of
its key (`_s`, `_bytes`, `_flops`). The JSON Schemas lie in [docs/schemas](../schemas); a test holds them to real output.

<!-- Written by scripts/reference_pages.py from docs/schemas. -->
"""
READERS = r"\b(?:text|count|number|yes|texts|counts|indices|numbers|figure<\w+>|figure_if_given<\w+>|take|above_zero|share|share_of|named)"
NOT_KEYS = {"value", "*"}  # of a figure's own table


def type_text(schema):
    kinds = schema.get("type", "any")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return " or ".join(kind for kind in kinds if kind != "null") + (", may be null" if "null" in kinds else "")


def rows(schema, path=""):
    """(path, type, unit or "", optional) of each key, those of objects in lists as rows[].key."""
    required = set(schema.get("required", []))
    for key, each in schema.get("properties", {}).items():
        where = f"{path}{key}"
        if "const" in each:
            continue
        inner, suffix = each, ""
        while "items" in inner:
            inner, suffix = inner["items"], suffix + "[]"
        yield where + suffix, type_text(each), each.get("description", ""), key not in required
        yield from rows(inner, where + suffix + ".")
        if isinstance(inner.get("additionalProperties"), dict):
            yield where + suffix + ".NAME", type_text(inner["additionalProperties"]), "", False
            yield from rows(inner["additionalProperties"], where + suffix + ".NAME.")


def documents():
    """documents.md, which links a page a kind."""
    kinds = sorted((ROOT / "docs" / "schemas").glob("*.json"))
    index = HEAD + "\n| document | keys | schema |\n|---|---|---|\n"
    pages = {}
    for file in kinds:
        schema = json.loads(file.read_text())
        found = list(rows(schema))
        name = f"document-{file.stem}.md"
        index += f"| [`{schema['title']}`]({name}) | {len(found)} | [{file.name}](../schemas/{file.name}) |\n"
        text = f"# {schema['title']}\n\nKeys of this [JSON document](documents.md); NAME stands for a name of yours.\n"
        text += "\n<!-- Written by scripts/reference_pages.py from docs/schemas. -->\n\n| key | type | unit |\n|---|---|---|\n"
        for path, kind, unit, optional in found:
            text += f"| `{path}` | {kind}{', sometimes' if optional else ''} | {unit} |\n"
        pages[name] = text
    return pages | {"documents.md": index}


def pages(binary):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([binary, "manual", "--reference", folder], check=True)
        made = {file.name: file.read_text() for file in pathlib.Path(folder).iterdir()} | documents()
    return {name: wrap_prose.fixed(text) for name, text in made.items()}


def machine_pages():
    return "".join(file.read_text() for file in sorted(FOLDER.glob("machine-files*.md")))


def keys_of_page():
    return set(re.findall(r"^\| `(\w+)` \|", machine_pages(), re.MULTILINE))


def keys_of_reader():
    found = set()
    for file in (ROOT / "models" / "reader").glob("machine_*.cpp"):
        text = file.read_text()
        if file.name == "machine_parse_collectives.cpp":  # it reads models/libraries, too
            text = text[text.index("CollectiveSoftware parse_collectives(Reader& top)"):]
        for call in re.findall(READERS + r"\(([^;]*?)[,)]", text):
            found.update(re.findall(r'"(\w+)"', call))
        found.update(re.findall(READERS + r'\(\w+, "(\w+)"', text))
    library = (ROOT / "core" / "collectives" / "library.hpp").read_text()
    found |= set(re.findall(r'(?:Transport|Architecture)Figure\{"(\w+)"', library))
    return found - NOT_KEYS


def tables_of_reader():
    found = set()
    for name in ("", "_charge", "_collectives", "_device", "_fabric", "_node", "_software"):
        for file in (ROOT / "models" / "reader").glob(f"machine*{name}.cpp" if name else "machine_parse.cpp"):
            found.update(re.findall(r'\b(?:table|tables|named_tables|all_tables)\("([\w-]+)"', file.read_text()))
    return found - {"architecture", "version"}  # of models/libraries


def keys_of_files():
    """Keys with a value in the files that are shipped."""
    found = set()

    def walk(table):
        for key, value in table.items():
            if isinstance(value, dict):
                if "value" in value:
                    found.add(key)
                else:
                    walk(value)
            elif isinstance(value, list) and value and isinstance(value[0], dict):
                for each in value:
                    walk(each)
            else:
                found.add(key)
    for file in [*(ROOT / "models" / "machines").glob("*.toml"), ROOT / "models" / "devices.toml"]:
        walk(tomllib.loads(file.read_text()))
    return found


def variables():
    """What the sources read with getenv, also out of a list of names."""
    found = set()
    for file in ROOT.glob("*/**/*.cpp"):
        if file.relative_to(ROOT).parts[0] in ("build", "tests", "fuzz"):
            continue
        text = file.read_text()
        if "getenv" in text:
            found.update(re.findall(r'"([A-Z][A-Z_]{3,})"', text))
    return found


def main():
    made = pages(pathlib.Path(sys.argv[1]).resolve())
    if "--record" in sys.argv:
        FOLDER.mkdir(exist_ok=True)
        for old in FOLDER.glob("*.md"):
            old.unlink()
        for name, text in made.items():
            (FOLDER / name).write_text(text)
    wrong = []
    here = {file.name: file.read_text() for file in FOLDER.glob("*.md")}
    wrong += [f"docs/reference/{name}: differs from what the program says; reference_pages.py --record writes it"
              for name in sorted(made.keys() | here.keys()) if made.get(name) != here.get(name)]
    page, tables = keys_of_page(), tables_of_reader()
    wrong += [f"machine-files.md: the reader knows '{key}', the page does not" for key in sorted(keys_of_reader() - page)]
    wrong += [f"machine-files.md: a shipped machine has '{key}', the page does not" for key in sorted(keys_of_files() - page)]
    wrong += [f"machine-files.md: '{key}' is read nowhere" for key in sorted(page - keys_of_reader() - keys_of_files() - tables)]
    text = machine_pages()
    wrong += [f"machine-files.md: no table '{table}'" for table in sorted(tables) if not re.search(rf"\b{table}\b", text)]
    named = set(re.findall(r"^\| `([A-Z_]+)` \|", (FOLDER / "environment.md").read_text(), re.MULTILINE))
    wrong += [f"environment.md: the sources read {name}" for name in sorted(variables() - named)]
    print("\n".join(wrong))
    print(f"{len(made)} pages, {len(page)} keys of machine files, {len(named)} variables; {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
