// SPDX-License-Identifier: Apache-2.0
// Ring and recursive halving and doubling by point-to-point calls, for SMPI to simulate: prints the seconds that the
// slowest rank takes. Written from the papers' descriptions, not from core/collectives/collective.cpp.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

int begin_of(long elements, int ranks, int chunk) { return static_cast<int>(elements * chunk / ranks); }

void ring(std::vector<float>& data, std::vector<float>& got, int rank, int ranks) {
    const long elements = static_cast<long>(data.size());
    const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    for (int round = 0; round < 2 * (ranks - 1); ++round) {
        const int out = ((rank - round) % ranks + ranks) % ranks, in = (out + ranks - 1) % ranks;
        const int out_size = begin_of(elements, ranks, out + 1) - begin_of(elements, ranks, out);
        const int in_size = begin_of(elements, ranks, in + 1) - begin_of(elements, ranks, in);
        MPI_Sendrecv(data.data() + begin_of(elements, ranks, out), out_size, MPI_FLOAT, next, 0, got.data(), in_size,
                     MPI_FLOAT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

// Ranks are a power of two. Halves with the neighbour, quarters at distance 2, ... (Rabenseifner 2004): the
// largest messages travel the shortest way. The other way round is as many bytes, but not as long where links are
// shared.
void halving(std::vector<float>& data, std::vector<float>& got, int rank, int ranks) {
    int size = static_cast<int>(data.size());
    for (int apart = 1; apart < ranks; apart *= 2) {
        size /= 2;
        MPI_Sendrecv(data.data(), size, MPI_FLOAT, rank ^ apart, 0, got.data(), size, MPI_FLOAT, rank ^ apart, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int apart = ranks / 2; apart >= 1; apart /= 2) {
        MPI_Sendrecv(data.data(), size, MPI_FLOAT, rank ^ apart, 0, got.data(), size, MPI_FLOAT, rank ^ apart, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        size *= 2;
    }
}

void doubling(std::vector<float>& data, std::vector<float>& got, int rank, int ranks) {
    for (int apart = 1; apart < ranks; apart *= 2) {
        MPI_Sendrecv(data.data(), static_cast<int>(data.size()), MPI_FLOAT, rank ^ apart, 0, got.data(),
                     static_cast<int>(got.size()), MPI_FLOAT, rank ^ apart, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc < 3) MPI_Abort(MPI_COMM_WORLD, 2);
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<float> data(std::strtoul(argv[2], nullptr, 10)), got(data.size());
    const double start = MPI_Wtime();
    if (std::strcmp(argv[1], "ring") == 0) ring(data, got, rank, ranks);
    if (std::strcmp(argv[1], "halving") == 0) halving(data, got, rank, ranks);
    if (std::strcmp(argv[1], "doubling") == 0) doubling(data, got, rank, ranks);
    const double mine = MPI_Wtime() - start;
    std::vector<double> all(static_cast<std::size_t>(ranks));
    MPI_Gather(&mine, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    double slowest = 0;
    for (const double time : all) slowest = time > slowest ? time : slowest;
    if (rank == 0) std::printf("seconds %.9f\n", slowest);
    MPI_Finalize();
}
