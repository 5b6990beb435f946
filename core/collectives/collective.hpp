// SPDX-License-Identifier: Apache-2.0
// A collective is described once, as rounds of transfers. sim prices the rounds, kernels/comm executes the same ones.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/halo.hpp"

namespace rehearse {

/// halo is what ranks that share images do (schedule/axes/spatial.hpp), in a layout of its own.
enum class CollectiveKind { all_reduce, reduce_scatter, all_gather, broadcast, all_to_all, halo };
std::string_view to_string(CollectiveKind kind);  // "all-reduce"
/// "allreduce", as one word: on the command line, as the pass of an event, at the end of a step's name.
std::string_view pass_of(CollectiveKind kind);
std::vector<CollectiveKind> collective_kinds();  // but halo: those that can be asked for by name

/// A name of algorithms(kind). "hierarchical(inside,across)" has one of the others inside the node and one across
/// nodes; "torus(RxC)" may leave its sides to torus_sides.
struct Algorithm {
    std::string name = "ring";
    std::string inside{}, across{};      // of "hierarchical"
    std::int64_t rows = 0, columns = 0;  // of "torus"; 0: to be chosen
    Halo halo{};                         // of "lend" and "return"
    bool operator==(const Algorithm&) const = default;
};
std::string to_string(const Algorithm& algorithm);
/// Whether it sums; adasum does not.
inline bool is_sum(const Algorithm& algorithm) { return algorithm.name != "adasum"; }
/// InputError with the choices ("did you mean") when there is no such algorithm or it cannot be used there.
Algorithm parse_algorithm(std::string_view text, CollectiveKind kind = CollectiveKind::all_reduce);

struct AlgorithmName {
    std::string_view name, summary;
};
/// What the command line, the tests and the help list. Of all-reduces those that sum: not adasum, which combines.
std::vector<AlgorithmName> algorithms(CollectiveKind kind);

/// Rows and columns of a torus of n ranks, numbered row by row: as written, or, where the algorithm leaves it open, R x
/// C with R the largest divisor of n that is not above its square root (1 for a prime: a ring).
std::pair<std::int64_t, std::int64_t> torus_sides(const Algorithm& algorithm, std::int64_t n);

/// In how many pieces the pipelined algorithms (chain; doubletree, of each half) send `elements`; 1 for the others.
/// With as many pieces, the rounds for other numbers of elements are the same but for their sizes. A piece has 2^15
/// elements (128 KiB in f32, which an L2 cache holds) or more, so that there are 64 at most.
std::int64_t pipeline_pieces(const Algorithm& algorithm, std::int64_t elements);

/// A ring through the ranks that a group has on one node: order[i] passes on to order[i + 1], the last one to the
/// first.
struct NodeRing {
    std::vector<std::int64_t> order;
    double share = 1;  // of the data, in a ring inside a node; those of all rings add up to 1
};

/// The ranks that take part: `size` of them, `per_node` consecutive ones on each node (all of them when equal to size).
struct Group {
    std::int64_t size = 1;
    std::int64_t per_node = 1;
    /// How "ring" goes through a node: by all of these at once, each with its share of every chunk, where the group or
    /// a hierarchical algorithm's inner part lies in it, and along the first where a ring comes from another node.
    /// Null: one ring in the order of ranks.
    std::shared_ptr<const std::vector<NodeRing>> rings{};
};

struct Range {
    std::int64_t begin = 0, end = 0;
    bool operator==(const Range&) const = default;
};

/// What becomes of elements that arrive: they replace, or are added to, what is there. Adasum's: `beside` is a copy
/// that the next two go through. `dots` and `blend` are a rank's own (from == to), of the vectors a = [begin, end) and
/// b, `shift` further on: dots puts a.b, |a|^2 and |b|^2 into the last three elements of the memory; blend makes both
/// of them (1 - a.b / 2|a|^2) a + (1 - a.b / 2|b|^2) b, by what is there.
enum class Combine { copy, reduce, beside, dots, blend };
/// How often what has arrived is gone through together with what was there.
constexpr double passes(Combine combine) { return combine == Combine::reduce ? 1 : combine == Combine::beside ? 2 : 0; }

/// In its round, `from` sends elements [begin, end) of its memory as they were when the round began; `to` puts them
/// `shift` further on in its own, or adds them there. Ranks are numbered in the group. What goes from one rank to
/// another in a round stands together and is one message; from == to is a copy within a rank, without a message. No
/// rank reads what it receives in the same round but Bruck's all-to-all, which passes blocks on through the same slots.
struct Transfer {
    std::int64_t from = 0, to = 0;
    std::int64_t begin = 0, end = 0;
    Combine combine = Combine::copy;
    std::int64_t shift = 0;
    bool operator==(const Transfer&) const = default;
};

/// A message of a round: all transfers from one rank to another.
struct Message {
    std::int64_t from = 0, to = 0, elements = 0;
    Combine combine = Combine::copy;
    bool operator==(const Message&) const = default;
};

/// Consecutive rounds that are alike: the same flows up to a renaming of ranges, the same sizes (to one element).
struct Phase {
    std::int64_t first_round = 0;
    std::int64_t repeats = 1;
};

struct Rounds;

/// Of `elements` of data that every rank has or gets; chunk(r) of them are rank r's. Afterwards,
/// - all_reduce: every rank holds the sum of all in [0, elements); by adasum, what that makes of them
/// - reduce_scatter: rank r holds the sum in chunk(r); the rest of its memory is undefined
/// - all_gather: every rank holds in [0, elements) the chunk(r) of each rank r
/// - broadcast: every rank holds the root's
/// - halo, lend: a rank's memory is its halo.own rows, then the halo.size that it needs. What others have of these has
///   come into the second part
/// - halo, return: what a rank has of halo.size rows, then twice room for halo.own: what of its own rows came from
/// ranks
///   before it, and from those after it, added up there; these parts are 0 at the beginning
/// - all_to_all: rank d holds chunk(d) of each rank s from elements + s * slot() on; [0, elements) is left as it was.
class Collective {
public:
    /// InputError when the algorithm cannot serve the group (hierarchical needs size % per_node == 0, torus R x C).
    Collective(CollectiveKind kind, Algorithm algorithm, Group group, std::int64_t elements, std::int64_t root = 0);

    std::int64_t rounds() const;
    const std::vector<Phase>& phases() const;
    /// All transfers of a round; empty ranges are left out.
    std::vector<Transfer> round(std::int64_t index) const;
    /// The same as messages.
    std::vector<Message> messages(std::int64_t index) const;

    CollectiveKind kind() const { return kind_; }
    const Algorithm& algorithm() const { return algorithm_; }
    Group group() const { return group_; }
    std::int64_t elements() const { return elements_; }
    std::int64_t root() const { return root_; }
    Range chunk(std::int64_t rank) const;
    std::int64_t slot() const;
    /// Elements of a rank's memory: the data, and behind it the slots of an all-to-all, or room for adasum.
    std::int64_t extent() const;

private:
    CollectiveKind kind_;
    Algorithm algorithm_;
    Group group_;
    std::int64_t elements_, root_;
    std::shared_ptr<const Rounds> rounds_;
};

/// An all-reduce (sum) of `elements` over `group`.
inline Collective all_reduce(Algorithm algorithm, Group group, std::int64_t elements) {
    return {CollectiveKind::all_reduce, std::move(algorithm), group, elements};
}

}  // namespace rehearse
