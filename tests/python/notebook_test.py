# SPDX-License-Identifier: Apache-2.0
"""The notebook of scaling evidence, cell after cell in one interpreter; what a cell ends with must show itself as a table."""
import ast
import json
import pathlib
import sys

PATH = pathlib.Path(__file__).resolve().parents[2] / "python" / "notebook" / "scaling_evidence.ipynb"


def main():
    names, shown = {}, 0
    for number, cell in enumerate(json.loads(PATH.read_text())["cells"]):
        if cell["cell_type"] != "code":
            continue
        assert not cell["outputs"], f"cell {number} was saved with its output"
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) and isinstance(tree.body[-1].value, ast.Name) else None
        exec(compile(tree, f"cell {number}", "exec"), names)
        if last is not None:
            html = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)._repr_html_()
            assert html.count("<tr") > 3, html
            shown += 1
    assert shown == 3, shown
    assert names["knee"] >= 64, names["knee"]


if __name__ == "__main__":
    sys.exit(main())
