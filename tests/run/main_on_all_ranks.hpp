// SPDX-License-Identifier: Apache-2.0
// main() of the test programs of run that mpirun starts.
#pragma once

#include "run/train.hpp"
#include "tests/kernels/comm/mpi_main.hpp"

int main(int argc, char** argv) {
    const rehearse::run::Session session{argc, argv};
    return session.run("test", [&] { return rehearse::test::run_on_all_ranks(argc, argv); });
}
