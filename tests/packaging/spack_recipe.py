#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""packaging/spack/package.py without Spack: what its directives say is recorded, and held to this project.

spack_recipe.py              each variant is an option of cmake/RehearseDependencies.cmake and each option a variant, with the
                             same default libraries behind it; the recipe names every library that CMake looks for
spack_recipe.py --cmake-line VARIANTS...   prints the options that the recipe gives CMake, as for `spack install rehearse +gui ~mpi`
"""
import pathlib
import re
import shutil
import subprocess
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECIPE = ROOT / "packaging" / "spack" / "package.py"
INTERNAL = {"CLI", "FUZZ", "TESTS", "CUDNN"}  # of developers; CUDNN goes with CUDA, TESTS with --test
LIBRARIES = {  # as CMake finds them: the package of Spack's builtin repository
    "fmt": "fmt", "tomlplusplus": "tomlplusplus", "nlohmann_json": "nlohmann-json", "CLI11": "cli11", "Protobuf": "protobuf",
    "ZLIB": "zlib-api", "hwloc": "hwloc", "pugixml": "pugixml", "re2": "re2", "simgrid": "simgrid", "hwy": "highway",
    "ONNX": "onnx", "MPI": "mpi", "benchmark": "benchmark", "SQLite3": "sqlite", "cairo": "cairo", "hdf5": "hdf5",
    "CUDAToolkit": "cuda", "Qt6": "qt-base", "Python3": "python", "pybind11": "py-pybind11", "GTest": "googletest",
    "PkgConfig": "pkgconfig"}


class Recorder(types.ModuleType):
    """The names of spack.package that the recipe uses; each call of a directive is kept."""

    def __init__(self):
        super().__init__("spack.package")
        self.variants, self.dependencies, self.generators, self.versions = {}, {}, [], []
        for name in ("license", "conflicts", "maintainers"):
            setattr(self, name, lambda *_, **__: None)
        self.__all__ = ["CMakePackage", "Executable", "conflicts", "depends_on", "generator", "license", "on_package_attributes",
                        "run_after", "variant", "version"]

    def variant(self, name, default=None, description=None):
        assert isinstance(default, bool) and description, name
        self.variants[name] = default

    def depends_on(self, spec, type=None, when=None):
        self.dependencies[re.match(r"[\w-]+", spec)[0]] = (spec, type, when)

    def generator(self, *names):
        self.generators += names

    def version(self, name, **where):
        self.versions.append((name, where))

    def run_after(self, _):
        return lambda function: function

    def on_package_attributes(self, **_):
        return lambda function: function

    class Executable:
        pass

    class CMakePackage:
        """CMakePackage.define and define_from_variant, as Spack's documentation has them."""
        run_tests = False

        def define(self, name, value):
            return f"-D{name}:BOOL={'ON' if value else 'OFF'}" if isinstance(value, bool) else f"-D{name}:STRING={value}"

        def define_from_variant(self, name, variant):
            return self.define(name, self.chosen[variant])


def recipe():
    spack, package = types.ModuleType("spack"), Recorder()
    sys.modules |= {"spack": spack, "spack.package": package}
    names = {}
    exec(compile(RECIPE.read_text(), "package.py", "exec"), names)
    return package, names["Rehearse"]


def cmake_line(words):
    package, Rehearse = recipe()
    built = Rehearse()
    built.chosen = dict(package.variants)
    for word in words:
        assert word[0] in "+~" and word[1:] in package.variants, f"no variant {word}"
        built.chosen[word[1:]] = word[0] == "+"
    return ["-G", "Ninja", *built.cmake_args()]


def main():
    if "--cmake-line" in sys.argv:
        print(*cmake_line(sys.argv[2:]))
        return 0
    package, _ = recipe()
    cmake = (ROOT / "cmake" / "RehearseDependencies.cmake").read_text()
    cmake = re.sub(r"#.*", "", cmake)
    options = set(re.findall(r"rehearse_option\(([A-Z]\w+)", cmake)) - INTERNAL
    assert {name.upper() for name in package.variants} == options, options ^ {name.upper() for name in package.variants}
    # What `spack style` wants: flake8 and black with lines of 99 characters.
    long = [each for each in RECIPE.read_text().splitlines() if len(each) > 99]
    assert not long, long
    for tool in ("black", "flake8"):
        if shutil.which(tool):
            words = ["--check", "-q"] if tool == "black" else ["--ignore=F403,F405"]
            subprocess.run([tool, *words, "--line-length" if tool == "black" else "--max-line-length", "99", RECIPE], check=True)
    line = cmake_line([])
    assert {re.match(r"-DREHEARSE_(\w+)", each)[1] for each in line[2:]} == options | {"TESTS"}, line
    assert "-DREHEARSE_GUI:BOOL=OFF" in line and "-DREHEARSE_GUI:BOOL=ON" in cmake_line(["+gui"])
    looked_for = set(re.findall(r"find_package\((\w+)", cmake)) | set(re.findall(r"pkg_check_modules\((\w+)", cmake))
    looked_for -= {"Threads", "OpenMP"}  # the compiler's
    assert looked_for <= LIBRARIES.keys(), f"which package of Spack is {looked_for - LIBRARIES.keys()}?"
    missing = {LIBRARIES[name] for name in looked_for} - package.dependencies.keys()
    assert not missing, f"the recipe does not name {missing}"
    for spec, _, when in package.dependencies.values():
        assert when is None or when[0] == "+" and when[1:] in package.variants, (spec, when)
    assert package.generators == ["ninja"] and "ninja" in package.dependencies
    project = re.search(r"cmake_minimum_required\(VERSION ([0-9.]+)\)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert package.dependencies["cmake"][0] == f"cmake@{project}:", package.dependencies["cmake"]
    for name in ("CMakeLists.txt", "cmake/RehearseDependencies.cmake", "cmake/RehearseTargets.cmake"):
        text = re.sub(r"#.*", "", (ROOT / name).read_text())
        assert not re.search(r"FetchContent|ExternalProject|file\(DOWNLOAD|-march=native|-mtune=native", text), name
    print(f"{len(package.variants)} variants, {len(package.dependencies)} dependencies")
    return 0


if __name__ == "__main__":
    sys.exit(main())
