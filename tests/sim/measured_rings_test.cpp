// SPDX-License-Identifier: Apache-2.0
// Rings inside nodes of machine files, against bandwidths that others measured.
#include <gtest/gtest.h>

#include "models/models.hpp"
#include "sim/collective/price.hpp"

namespace rehearse::sim {
namespace {

// Bytes a second that each rank sends of an all-reduce of 1 GiB, as nccl-tests counts them (busbw), in GB/s.
double bus_bandwidth(const char* machine, std::int64_t ranks) {
    const Call call{.elements = std::int64_t{1} << 28, .algorithm = {}};
    const double bytes = 4.0 * static_cast<double>(call.elements), n = static_cast<double>(ranks);
    const Mesh mesh{{{"data", ranks}}};
    return 2 * (n - 1) / n * bytes / collective_time(call, mesh, models::load_machine(machine)).value / 1e9;
}

// NCCL on the first 2 to 8 GPUs of a DGX-1, 1 GiB (vTrain, Bang et al. 2024, MIT). Five are left out: no ring goes
// through them over NVLink, and NCCL takes trees.
TEST(MeasuredRings, OfACubeMeshAreMetWithinSixPercent) {
    for (const auto& [ranks, measured] :
         {std::pair<std::int64_t, double>{2, 22.55}, {3, 45.14}, {4, 85.36}, {6, 45.74}, {7, 87.01}, {8, 134.51}}) {
        EXPECT_NEAR(bus_bandwidth("dgx1-v100", ranks) / measured, 1, 0.06) << ranks;
    }
}

// 235 GB/s on A100 with 300 GB/s of NVLink each (calibrate/published/collectives.csv, eight on a switch): four joined
// all to all have the same 300.
TEST(MeasuredRings, OfFourA100TakeAllTheirLinks) {
    for (const char* machine : {"perlmutter", "juwels-booster", "horeka"}) {
        EXPECT_NEAR(bus_bandwidth(machine, 4) / 235, 1, 0.02) << machine;
    }
}

}  // namespace
}  // namespace rehearse::sim
