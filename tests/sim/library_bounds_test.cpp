// SPDX-License-Identifier: Apache-2.0
// What holds on any machine, whatever its figures: times grow with the data, nothing is faster than the wires, short
// sums grow with the logarithm of the nodes, exchanges with the ranks.
#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/collectives/library.hpp"
#include "models/models.hpp"
#include "sim/collective/libraries/library_times.hpp"
#include "tests/sim/times_of_library.hpp"

namespace rehearse::sim {
namespace {

constexpr double most_bytes = 8.0 * (1 << 30);

// NVSwitch and rails, direct links, PCIe alone, one GPU a node, dies with cards of their own, shared cards.
struct Kind {
    std::string machine;
    std::int64_t devices, most_nodes;
    friend void PrintTo(const Kind& kind, std::ostream* out) {
        *out << kind.machine << ", " << kind.devices << " devices a node";
    }
};
class LibraryBounds : public testing::TestWithParam<Kind> {
protected:
    template <typename F>
    void each_size(std::int64_t nodes, const F& f) {
        if (nodes * GetParam().devices < 2) return;
        const LibraryTimes one = times(GetParam().machine, nodes, static_cast<int>(GetParam().devices));
        for (double bytes = 8; bytes <= most_bytes; bytes *= 2) f(one, bytes);
    }
    std::vector<std::int64_t> nodes() const {
        std::vector<std::int64_t> all;
        for (std::int64_t n = 1; n <= GetParam().most_nodes; n *= 4) all.push_back(n);
        return all;
    }
};

// Twice the data may find more thread blocks, whose pieces are then smaller: some of their steps are shorter.
TEST_P(LibraryBounds, TimesGrowWithTheDataByEachAlgorithmAndProtocol) {
    for (const std::int64_t n : nodes()) {
        for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                          CollectiveKind::reduce_scatter, CollectiveKind::broadcast}) {
            std::map<std::pair<LibraryAlgorithm, LibraryProtocol>, LibraryPrice> last;
            each_size(n, [&](const LibraryTimes& one, double bytes) {
                for (const Estimate& each : estimates(one.communicator(), kind, bytes)) {
                    const std::string a{library_algorithm_words[static_cast<std::size_t>(each.algorithm)]};
                    const std::string q{library_protocol_words[static_cast<std::size_t>(each.protocol)]};
                    const LibraryPrice now = one.price(kind, Bytes{bytes}, a, q);
                    LibraryPrice& before = last[{each.algorithm, each.protocol}];
                    EXPECT_GE(now.time.value, before.time.value * (now.blocks == before.blocks ? 0.9999 : 0.85))
                        << n << " nodes, " << a << '/' << q << ", " << bytes << " B";
                    before = now;
                }
            });
        }
    }
}

// All data but a node's own part come in over its cards, and all but one device's over its links.
TEST_P(LibraryBounds, NothingIsFasterThanTheWires) {
    for (const std::int64_t n : nodes()) {
        for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                          CollectiveKind::broadcast, CollectiveKind::all_to_all}) {
            each_size(n, [&](const LibraryTimes& one, double bytes) {
                if (n == 1) return;
                const NodeView& view = one.communicator().view;
                const double wires = static_cast<double>(view.rails) * view.nic_wire * 1e9;
                const auto apart = static_cast<double>(n), p = static_cast<double>(view.devices);
                const double in = kind == CollectiveKind::all_to_all  ? bytes * p * (apart - 1) / apart
                                  : kind == CollectiveKind::broadcast ? bytes
                                                                      : bytes * (apart - 1) / apart;
                EXPECT_GE(one.price(kind, Bytes{bytes}).time.value, in / wires) << n << " nodes, " << bytes << " B";
            });
        }
    }
}

// A tree has twice the logarithm of the nodes in steps between them: from 4 to 16 and to 64 nodes as much more each.
TEST_P(LibraryBounds, ShortSumsGrowWithTheLogarithmOfTheNodes) {
    if (GetParam().most_nodes < 64) return;
    const auto time = [&](std::int64_t nodes) {
        const LibraryTimes one = times(GetParam().machine, nodes, static_cast<int>(GetParam().devices));
        return one.price(CollectiveKind::all_reduce, Bytes{8}).time.value;
    };
    EXPECT_GT(time(16), time(4));
    EXPECT_NEAR(time(64) - time(16), time(16) - time(4), 0.25 * (time(16) - time(4)));
}

// Each rank sends one message to each other: four times the nodes, four times the messages.
TEST_P(LibraryBounds, ShortExchangesGrowWithTheRanks) {
    if (GetParam().most_nodes < 64) return;
    const auto time = [&](std::int64_t nodes) {
        const LibraryTimes one = times(GetParam().machine, nodes, static_cast<int>(GetParam().devices));
        return one.price(CollectiveKind::all_to_all, Bytes{8}).time.value;
    };
    EXPECT_NEAR((time(64) - time(16)) / (time(16) - time(4)), 4, 0.5);
    EXPECT_GT(time(64) - time(16), 48 * static_cast<double>(GetParam().devices) * 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Machines, LibraryBounds,
                         testing::Values(Kind{"eos", 8, 64}, Kind{"eos", 1, 64}, Kind{"perlmutter", 4, 64},
                                         Kind{"polaris", 4, 64}, Kind{"vista", 1, 64}, Kind{"lumi-g", 8, 64},
                                         Kind{"aws-p4d", 8, 4}, Kind{"abci", 4, 64}, Kind{"dell-dss8440", 8, 4},
                                         Kind{"frontera-rtx", 4, 16}));

// What was wrong: L40S, RTX 4090, K80 and others were unknown, and an RTX 3090 was taken for a Turing.
TEST(NcclDevices, AreAllOfNvidias) {
    const Machine machine = models::load_machine("eos");
    const auto architecture = [&](const char* name) -> std::string {
        for (const LibraryArchitecture& each : machine.collectives.library->architectures) {
            for (const std::string& pattern : each.devices) {
                const bool open = pattern.ends_with('*');
                const std::string_view stem{pattern.data(), pattern.size() - (open ? 1 : 0)};
                if (open ? std::string_view{name}.starts_with(stem) : stem == name) return each.name;
            }
        }
        return "";
    };
    for (const auto& [device, expected] : {std::pair{"k80", "pascal"},
                                           {"p4", "pascal"},
                                           {"t4", "volta"},
                                           {"rtx5000", "volta"},
                                           {"rtx3090", "ampere"},
                                           {"rtx4090", "ampere"},
                                           {"l4", "ampere"},
                                           {"l40s", "ampere"},
                                           {"h100-pcie", "hopper"},
                                           {"gb200", "blackwell"}})
        EXPECT_EQ(architecture(device), expected) << device;
}

}  // namespace
}  // namespace rehearse::sim
