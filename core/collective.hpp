// SPDX-License-Identifier: Apache-2.0
// A collective is described once, as rounds of transfers. sim prices the rounds, kernels/comm executes the same ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

/// all_reduce: every rank ends with the sum of all. reduce_scatter: each with its piece of the sum. all_gather: every
/// rank with all pieces. broadcast: with rank 0's. all_to_all: piece i of rank j becomes piece j of rank i.
enum class CollectiveKind { all_reduce, reduce_scatter, all_gather, broadcast, all_to_all };
std::string_view to_string(CollectiveKind kind);  // "allreduce", "reducescatter", "allgather", ...

/// "ring", "doubling", "halving", "tree", or "hierarchical(inside,across)" with one of the former inside the node and
/// one across nodes.
struct Algorithm {
    std::string name = "ring";
    std::string inside, across;  // of "hierarchical"
    bool operator==(const Algorithm&) const = default;
};
std::string to_string(const Algorithm& algorithm);
/// InputError with the choices ("did you mean") when there is no such algorithm or it cannot be used there.
Algorithm parse_algorithm(std::string_view text);

struct AlgorithmName {
    std::string_view name, summary;
};
/// What the command line, the tests and the help list.
std::vector<AlgorithmName> all_reduce_algorithms();

/// The ranks that take part: `size` of them, `per_node` consecutive ones on each node (all of them when equal to size).
struct Group {
    std::int64_t size = 1;
    std::int64_t per_node = 1;
};

enum class Combine { copy, reduce };

/// In its round, `from` sends elements [begin, end) of its buffer as they were when the round began; `to` puts them in
/// the same place or adds them. Ranks are numbered in the group. No rank reads what it receives in the same round.
struct Transfer {
    std::int64_t from = 0, to = 0;
    std::int64_t begin = 0, end = 0;
    Combine combine = Combine::copy;
    bool operator==(const Transfer&) const = default;
};

/// Consecutive rounds that are alike: the same flows up to a renaming of ranges, the same sizes (to one element).
struct Phase {
    std::int64_t first_round = 0;
    std::int64_t repeats = 1;
};

/// An all-reduce (sum) of `elements` over `group`. Afterwards every rank holds the sum in [0, elements).
class AllReduce {
public:
    /// InputError when the algorithm cannot serve the group (hierarchical needs size % per_node == 0).
    AllReduce(Algorithm algorithm, Group group, std::int64_t elements);

    std::int64_t rounds() const;
    std::vector<Phase> phases() const;
    /// All transfers of a round; empty ranges are left out.
    std::vector<Transfer> round(std::int64_t index) const;

    const Algorithm& algorithm() const { return algorithm_; }
    Group group() const { return group_; }
    std::int64_t elements() const { return elements_; }

private:
    Algorithm algorithm_;
    Group group_;
    std::int64_t elements_;
};

}  // namespace rehearse
