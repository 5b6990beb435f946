// SPDX-License-Identifier: Apache-2.0
// The decisions of MPI libraries against their documented thresholds.
#include "models/mpi_libraries.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace rehearse::models {
namespace {

std::string taken(const char* library, std::int64_t ranks, std::int64_t per_node, double bytes) {
    return to_string(mpi_library(library).all_reduce(ranks, per_node, Bytes{bytes}));
}

// ompi_coll_tuned_allreduce_intra_dec_fixed to 4.0: less than 10,000 bytes by recursive doubling, else rings.
TEST(MpiLibraries, OpenMpiBefore41DoublesBelowTenThousandBytes) {
    for (const std::int64_t ranks : {2, 16, 1000}) {
        EXPECT_EQ(taken("openmpi(4.0)", ranks, 1, 9999), "doubling");
        EXPECT_EQ(taken("openmpi(4.0)", ranks, 1, 10000), "ring");
        EXPECT_EQ(taken("openmpi(1.10.7)", ranks, 1, 1e9), "ring");
    }
}

// The same of 4.1 and 5.0, at both sides of its switch points.
TEST(MpiLibraries, OpenMpiFrom41GoesByTheNumberOfRanks) {
    struct Point {
        std::int64_t ranks;
        double bytes;
        const char* taken;
    };
    for (const Point& each :
         {Point{2, 4095, "doubling"},     Point{2, 4096, "ring"},         Point{3, 8192, "doubling"},
          Point{3, 16384, "ring"},        Point{2, 262143, "ring"},       Point{2, 262144, "halving"},
          Point{4, 15, "ring"},           Point{7, 8191, "doubling"},     Point{7, 8192, "halving"},
          Point{15, 8191, "doubling"},    Point{16, 63, "ring"},          Point{31, 4096, "halving"},
          Point{63, 128, "halving"},      Point{64, 262143, "doubling"},  Point{127, 262144, "halving"},
          Point{128, 131071, "tree"},     Point{255, 131072, "doubling"}, Point{256, 4096, "halving"},
          Point{2047, 2048, "doubling"},  Point{2047, 16384, "halving"},  Point{2048, 2048, "ring"},
          Point{4096, 16384, "doubling"}, Point{4096, 32768, "halving"},  Point{100000, 100, "tree"}})
        EXPECT_EQ(taken("openmpi", each.ranks, 4, each.bytes), each.taken) << each.ranks << " ranks, " << each.bytes;
    EXPECT_EQ(taken("openmpi", 32, 4, 1e6), taken("openmpi(5.0.3)", 32, 4, 1e6));
}

// MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE is 2048, and a message of that size is short.
TEST(MpiLibraries, MpichSpeaksForNodesAndIsShortTo2048) {
    EXPECT_EQ(taken("mpich", 32, 4, 2048), "hierarchical(tree,doubling)");
    EXPECT_EQ(taken("mpich", 32, 4, 2049), "hierarchical(tree,halving)");
    EXPECT_EQ(taken("mpich", 32, 1, 2048), "doubling");
    EXPECT_EQ(taken("mpich", 4, 4, 1e6), "halving");  // one node
}

// MPICH_ALLREDUCE_MAX_SMP_SIZE is 262144.
TEST(MpiLibraries, CrayMpichSpeaksForNodesTo256KiB) {
    EXPECT_EQ(taken("cray-mpich", 64, 8, 262144), "hierarchical(tree,halving)");
    EXPECT_EQ(taken("cray-mpich", 64, 8, 262145), "halving");
}

TEST(MpiLibraries, RefuseVersionsThatTheyDoNotKnow) {
    EXPECT_TRUE(is_mpi_library("openmpi(4.0)"));
    EXPECT_FALSE(is_mpi_library("openmp"));
    EXPECT_FALSE(is_mpi_library("nccl"));
    for (const char* text : {"openmpi(1.0)", "openmpi(new)", "openmpi(4.1", "openmpi(4.1.2.3)", "openmpi()"})
        EXPECT_THROW(mpi_library(text), InputError) << text;
}

}  // namespace
}  // namespace rehearse::models
