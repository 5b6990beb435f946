// SPDX-License-Identifier: Apache-2.0
// Runs the cases of a test program on all ranks of a job, as a job of `rehearse run` is run.
#include "run/train.hpp"
#include "tests/kernels/comm/mpi_main.hpp"

int main(int argc, char** argv) {
    const rehearse::run::Session session{argc, argv};
    return session.run("test", [&] { return rehearse::test::run_on_all_ranks(argc, argv); });
}
