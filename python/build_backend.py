# SPDX-License-Identifier: Apache-2.0
"""Wheels of the package rehearse, for pip (PEP 517): CMake builds the module, this file packs it.

`pip install . --config-settings build-dir=build/release` takes a build folder that exists and was configured with
Python; without it one is made below build/. `--config-settings cmake-args=...` goes to CMake.
"""
import base64
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sysconfig
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def _project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _version():
    return re.search(r"^project\(rehearse VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]


def _built(settings):
    """The folder of the package as CMake leaves it."""
    settings = settings or {}
    build = pathlib.Path(settings.get("build-dir", ROOT / "build" / "wheel"))
    if not (build / "CMakeCache.txt").exists():
        options = ["-DCMAKE_BUILD_TYPE=Release", "-DREHEARSE_PYTHON=ON", "-DCMAKE_UNITY_BUILD=ON"]
        options += [f"-DREHEARSE_{part}=OFF" for part in ("TESTS", "GUI", "CLI", "BENCH", "CUDA", "MPI", "ONEDNN", "CPU")]
        if shutil.which("ninja"):
            options += ["-G", "Ninja"]
        subprocess.run(["cmake", "-S", ROOT, "-B", build, *options, *shlex.split(settings.get("cmake-args", ""))], check=True)
    threads = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count() or 1)  # make knows no bound of its own
    subprocess.run(["cmake", "--build", build, "--target", "rehearse_python", "--parallel", threads], check=True)
    return build / "python" / "rehearse"


def _metadata():
    project = _project()
    head = {
        "Metadata-Version": "2.1",
        "Name": project["name"],
        "Version": _version(),
        "Summary": project["description"],
        "License": project["license"]["text"],
        "Requires-Python": project["requires-python"],
        "Description-Content-Type": "text/markdown",
    }
    lines = "".join(f"{key}: {value}\n" for key, value in head.items())
    return lines + "\n" + (ROOT / project["readme"]).read_text()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    package = _built(config_settings)
    python = "cp" + sysconfig.get_config_var("py_version_nodot")
    tag = f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    info = f"rehearse-{_version()}.dist-info"
    files = {f"rehearse/{file.relative_to(package)}": file.read_bytes()
             for file in sorted(package.rglob("*")) if file.is_file() and "__pycache__" not in file.parts}
    files[f"{info}/METADATA"] = _metadata().encode()
    files[f"{info}/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: rehearse\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    wheel = f"rehearse-{_version()}-{tag}.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    name = f"rehearse-{_version()}"
    path = pathlib.Path(sdist_directory) / f"{name}.tar.gz"
    subprocess.run(["git", "-C", ROOT, "archive", "--format=tar.gz", f"--prefix={name}/", "-o", path, "HEAD"], check=True)
    return path.name
