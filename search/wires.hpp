// SPDX-License-Identifier: Apache-2.0
// What moving data costs on a mesh's axes, as a line over the bytes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/collectives/collective.hpp"
#include "core/machine.hpp"
#include "search/choices.hpp"
#include "sim/collective/price.hpp"

namespace rehearse::search {

struct Line {
    double start_s = 0, s_per_byte = 0;
    double at(double bytes) const { return bytes <= 0 ? 0 : start_s + bytes * s_per_byte; }
};

/// The machine without the nodes behind the first `devices`, whose links are idle.
Machine part_of(const Machine& machine, std::int64_t devices);

/// Simulated (folded) at two sizes when first asked for, then remembered.
class Wires {
public:
    explicit Wires(const Machine& machine) : machine_(machine) {}

    struct Sum {
        Line line;
        std::string algorithm;
    };
    /// Of the all-reduces of gradients tried (all_reduces(), and direct in switches that sum), the one that takes least
    /// for about a usual bucket (34 MB).
    const Sum& sum(const Shape& shape);
    /// Reduce-scatter or all-gather of the whole along data, as a plan has it beside this all-reduce; empty: that has
    /// none.
    Line piecewise(CollectiveKind kind, const Shape& shape, const std::string& all_reduce = {});
    struct Halves {
        Line scatter, gather;
        std::string algorithm;  // the all-reduce to name in the plan; empty: none need be
    };
    /// Of the algorithms that scatter and gather (all_halves()) the one that takes least, for such a bucket, for both.
    const Halves& halves(const Shape& shape);
    /// From each stage to the next, and from the last one around to the first, by all ranks of it at once.
    std::vector<Line> hops(const Shape& shape);

private:
    /// Collectives on the mesh of one shape after the other.
    struct Times {
        std::optional<sim::CollectiveTimes> of;
        Shape shape;
    };
    /// Seconds of a collective of f32.
    double seconds(Times& times, CollectiveKind kind, const Shape& shape, const char* axis,
                   const std::string& algorithm, std::int64_t elements);
    Line measured(Times& times, CollectiveKind kind, const Shape& shape, const char* axis,
                  const std::string& algorithm);

    /// What a plan with this all-reduce scatters and gathers by.
    std::string half_of(const Shape& shape, const std::string& all_reduce) const;
    const Machine& part_for(std::int64_t devices);

    const Machine& machine_;
    std::map<std::int64_t, Machine> parts_;  // by their nodes
    Times sum_times_, hop_times_;            // shapes of sums stay while pairs of stages are looked at
    std::map<Shape, Sum> sums_;
    std::map<Shape, Halves> halves_;
    std::map<std::tuple<Shape, CollectiveKind, std::string, std::string>, Line> lines_;
};

/// What a machine's ranks sum by: algorithms that every machine has, and its library of collectives.
std::vector<std::string> all_reduces(const Machine& machine);
/// Of these, what they scatter and gather by; empty: the plan language's default.
std::vector<std::string> all_halves(const Machine& machine);

}  // namespace rehearse::search
