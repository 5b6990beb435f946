# SPDX-License-Identifier: Apache-2.0
"""The notebook of scaling evidence, run and made a page by jupyter-nbconvert, as people send it on: no cell fails, and the page
has the tables and pictures. Exits with 77 where nbconvert or a kernel is missing."""
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

PATH = pathlib.Path(__file__).resolve().parents[2] / "python" / "notebook" / "scaling_evidence.ipynb"


def main():
    missing = [name for name in ("nbconvert", "ipykernel") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"{', '.join(missing)}: not here (jupyter-nbconvert, python3-ipykernel)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "nbconvert", "--to", "html", "--execute", "--output-dir", folder, PATH]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
        page = (pathlib.Path(folder) / "scaling_evidence.html").read_text()
    assert page.count("<table") >= 3, page.count("<table")
    assert "Traceback" not in page
    return 0


if __name__ == "__main__":
    sys.exit(main())
