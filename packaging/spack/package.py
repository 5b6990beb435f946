# SPDX-License-Identifier: Apache-2.0
from spack.package import *


class Rehearse(CMakePackage):
    """Rehearse predicts how deep-learning training scales on machines that one does not hold,
    runs the same schedule over MPI, and compares the two timelines."""

    homepage = "https://github.com/rehearse/rehearse"
    git = "https://github.com/rehearse/rehearse.git"

    license("Apache-2.0")

    version("main", branch="main")

    variant("sim", default=True, description="Predictions, by SimGrid")
    variant("mpi", default=True, description="Training for real, over MPI")
    variant("onednn", default=True, description="Kernels of oneDNN")
    variant("cpu", default=True, description="Our own kernels for CPUs, by Highway")
    variant("bench", default=True, description="Measurements of kernels")
    variant("onnx", default=True, description="Import of .onnx networks")
    variant("hdf5", default=True, description="Checkpoints and data in HDF5")
    variant("sqlite", default=True, description="Tuned kernels and resumable searches")
    variant("cairo", default=True, description="Pictures as PNG and PDF")
    variant("gui", default=False, description="The window, by Qt 6")
    variant("python", default=False, description="The Python module")
    variant("cuda", default=False, description="Kernels for NVIDIA GPUs")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    generator("ninja")

    depends_on("fmt@9:")
    depends_on("tomlplusplus")
    depends_on("nlohmann-json")
    depends_on("cli11")
    depends_on("protobuf")
    depends_on("hwloc")
    depends_on("pugixml")
    depends_on("re2")
    depends_on("zlib-api")
    depends_on("simgrid@3.32:", when="+sim")
    depends_on("mpi", when="+mpi")
    depends_on("onednn@2.6:", when="+onednn")
    depends_on("highway", when="+cpu")
    depends_on("benchmark", when="+bench")
    depends_on("onnx", when="+onnx")
    depends_on("hdf5", when="+hdf5")
    depends_on("sqlite", when="+sqlite")
    depends_on("cairo+pdf+svg", when="+cairo")
    depends_on("qt-base@6.4: +widgets", when="+gui")
    depends_on("python@3.11:", when="+python")
    depends_on("py-pybind11@2.10:", when="+python")
    depends_on("cuda@12:", when="+cuda")
    depends_on("googletest", type="test")

    conflicts("+python", when="~sim", msg="the Python module predicts")

    def cmake_args(self):
        options = [
            self.define_from_variant("REHEARSE_" + name.upper(), name)
            for name in (
                "sim",
                "mpi",
                "onednn",
                "cpu",
                "bench",
                "onnx",
                "hdf5",
                "sqlite",
                "cairo",
                "gui",
                "python",
                "cuda",
            )
        ]
        return options + [self.define("REHEARSE_TESTS", self.run_tests)]

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        rehearse = Executable(self.prefix.bin.rehearse)
        rehearse("--version")
        if self.spec.satisfies("+sim"):
            rehearse(
                "predict",
                "--model",
                "resnet50",
                "--machine",
                "summit",
                "--devices",
                "6,384",
                "--batch",
                "32",
            )
