// SPDX-License-Identifier: Apache-2.0
#include "run/data/graphs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/error.hpp"
#include "core/index.hpp"
#include "run/random.hpp"
#include "run/tensors.hpp"

namespace rehearse::run {
namespace {

enum Purpose : std::uint64_t { class_of, word_of, link_of, atom_of };
constexpr float nowhere = -1;
constexpr std::int32_t no_label = -1;

constexpr double own_words = 0.5;      // share of a node's words that are its class's
constexpr double own_links = 0.8;      // share of links that stay in a class
constexpr std::int64_t labelled = 20;  // nodes of a class, as in Kipf and Welling 2017

// Hydrogen, carbon, nitrogen, oxygen, fluorine: what QM9's molecules are made of, and what one adds to the energy.
struct Element {
    std::int32_t number;
    double energy, charge;
};
constexpr std::array elements_of_molecules{Element{1, -0.2, 0.3}, Element{6, 0.4, 0.1}, Element{7, 0.1, -0.2},
                                           Element{8, -0.3, -0.4}, Element{9, -0.5, -0.3}};
constexpr double bond = 1.4, nearest = 1.0, reach = 1.5;  // Å
constexpr std::int64_t least_atoms = 9;

using Point = std::array<double, 3>;

double distance(const Point& a, const Point& b) { return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]); }

// At a bond's length from an earlier atom, not too near to any: the best of a few tries.
Point next_atom(const std::vector<Point>& atoms, Uniform& random) {
    constexpr int tries = 12;
    if (atoms.empty()) return {0, 0, 0};
    Point best{};
    double best_gap = -1;
    for (int i = 0; i < tries && best_gap < nearest; ++i) {
        const Point& near = atoms[static_cast<std::size_t>(random.next() * static_cast<double>(atoms.size()))];
        const double z = 2 * random.next() - 1, angle = 2 * std::numbers::pi * random.next(), r = std::sqrt(1 - z * z);
        const Point here{near[0] + bond * r * std::cos(angle), near[1] + bond * r * std::sin(angle),
                         near[2] + bond * z};
        double gap = bond;
        for (const Point& other : atoms) gap = std::min(gap, distance(here, other));
        if (gap > best_gap) best_gap = gap, best = here;
    }
    return best;
}

}  // namespace

Graphs::Graphs(const Network& network, std::uint64_t seed) : numbers_(fed_inputs(network, false)), seed_(seed) {
    const auto reads = [&](std::string_view name) {
        return std::ranges::find(numbers_, name, &FedInput::data_set) != numbers_.end();
    };
    const SoftmaxLoss* const loss = labelled_loss(network);
    if (loss != nullptr) classes_ = loss->classes;
    molecules_ = reads("positions") && reads("molecule") && reads("energy") && loss == nullptr;
    const bool linked = reads("from") && reads("to");
    if (!linked || (!molecules_ && (!reads("edge_weights") || loss == nullptr)))
        throw InputError(
            fmt::format("--data graphs: network '{}' reads none: choose gcn-cora, gcn-small or schnet", network.name));
}

std::span<float> Graphs::named(std::string_view name, std::span<float> input) const {
    std::size_t first = 0;
    for (const FedInput& each : numbers_) {
        if (each.data_set == name) return input.subspan(first, at(each.size()));
        first += at(each.size());
    }
    require(false, "the network reads it");
    return {};
}

void Graphs::fill(std::int64_t index, std::span<float> input, std::span<std::int32_t> ids,
                  std::span<std::int32_t> labels) const {
    const std::uint64_t own = key(seed_, static_cast<std::uint64_t>(index));
    std::vector<float> unread;
    if (input.empty()) {  // who reads labels alone asks for the same graph
        std::int64_t all = 0;
        for (const FedInput& each : numbers_) all += each.size();
        unread.resize(at(all));
        input = unread;
    }
    molecules_ ? fill_molecule(own, input, ids) : fill_communities(own, input, labels);
}

void Graphs::fill_communities(std::uint64_t own, std::span<float> input, std::span<std::int32_t> labels) const {
    const std::int64_t nodes = numbers_.front().op.shape.front();
    std::vector<std::int32_t> classes(at(nodes));
    Uniform random{key(own, class_of)};
    for (std::int32_t& each : classes) each = static_cast<std::int32_t>(random.next() * static_cast<double>(classes_));
    fill_words(own, classes, input.first(at(numbers_.front().size())));
    fill_links(own, classes, {named("from", input), named("to", input)}, named("edge_weights", input));
    if (labels.empty()) return;
    std::vector<std::int64_t> told(at(classes_));
    for (std::size_t i = 0; i < classes.size(); ++i)
        labels[i] = told[at(classes[i])]++ < labelled ? classes[i] : no_label;
}

// Each node has about one in thirty of the words, whose numbers add up to 1; a class likes those whose number has its
// rest by the number of classes.
void Graphs::fill_words(std::uint64_t own, std::span<const std::int32_t> classes, std::span<float> features) const {
    Uniform random{key(own, word_of)};
    const std::size_t words = features.size() / classes.size();
    const std::size_t count = std::max<std::size_t>(4, words / 30);
    std::ranges::fill(features, 0.0F);
    for (std::size_t node = 0; node < classes.size(); ++node) {
        for (std::size_t i = 0; i < count; ++i) {
            auto word = static_cast<std::size_t>(random.next() * static_cast<double>(words));
            const auto kinds = static_cast<std::size_t>(classes_);
            if (random.next() < own_words) word = word / kinds * kinds + at(classes[node]);
            features[node * words + std::min(word, words - 1)] += 1.0F / static_cast<float>(count);
        }
    }
}

// From each node to itself first, then both ways; weights are 1 / sqrt(d_i d_j), as in Kipf and Welling 2017.
void Graphs::fill_links(std::uint64_t own, std::span<const std::int32_t> classes, Links links,
                        std::span<float> weights) const {
    Uniform random{key(own, link_of)};
    const auto nodes = static_cast<double>(classes.size());
    std::size_t made = 0;
    const auto link = [&](std::size_t a, std::size_t b) {
        links.from[made] = static_cast<float>(a);
        links.to[made++] = static_cast<float>(b);
    };
    for (std::size_t i = 0; i < classes.size() && made < links.from.size(); ++i) link(i, i);
    while (made + 1 < links.from.size()) {
        const auto a = static_cast<std::size_t>(random.next() * nodes);
        auto b = static_cast<std::size_t>(random.next() * nodes);
        const bool same = random.next() < own_links;
        while (a == b || (same && classes[a] != classes[b])) {  // a class of one node would look for ever
            b = static_cast<std::size_t>(random.next() * nodes);
            if (random.next() < 0.01) break;
        }
        link(a, b);
        link(b, a);
    }
    std::vector<float> degrees(classes.size());
    for (std::size_t i = 0; i < made; ++i) ++degrees[static_cast<std::size_t>(links.to[i])];
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (i >= made) links.from[i] = links.to[i] = nowhere;
        weights[i] = i >= made ? 0
                               : 1 / std::sqrt(degrees[static_cast<std::size_t>(links.from[i])] *
                                               degrees[static_cast<std::size_t>(links.to[i])]);
    }
}

void Graphs::fill_molecule(std::uint64_t own, std::span<float> input, std::span<std::int32_t> ids) const {
    Uniform random{key(own, atom_of)};
    const std::span<float> positions = named("positions", input), molecule = named("molecule", input);
    const auto room = static_cast<std::int64_t>(molecule.size());
    const std::int64_t least = std::min(least_atoms, room);
    const auto count = least + static_cast<std::int64_t>(random.next() * static_cast<double>(room - least + 1));
    std::vector<Point> atoms;
    std::vector<Element> kinds;
    double energy = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        kinds.push_back(elements_of_molecules[static_cast<std::size_t>(random.next() * elements_of_molecules.size())]);
        atoms.push_back(next_atom(atoms, random));
        energy += kinds.back().energy;
        for (std::size_t j = 0; j + 1 < atoms.size(); ++j)
            energy += 4 * kinds[j].charge * kinds.back().charge * std::exp(-distance(atoms[j], atoms.back()) / reach);
    }
    const Links links{named("from", input), named("to", input)};
    std::ranges::fill(links.from, nowhere);
    std::ranges::fill(links.to, nowhere);
    std::ranges::fill(positions, 0.0F);
    std::ranges::fill(molecule, nowhere);
    std::size_t made = 0;
    for (std::size_t a = 0; a < atoms.size(); ++a) {
        molecule[a] = 0;
        for (std::size_t c = 0; c < 3; ++c) positions[3 * a + c] = static_cast<float>(atoms[a][c]);
        for (std::size_t b = 0; b < atoms.size() && made < links.from.size(); ++b) {
            if (a == b) continue;
            links.from[made] = static_cast<float>(a);
            links.to[made++] = static_cast<float>(b);
        }
    }
    named("energy", input).front() = static_cast<float>(energy);
    for (std::size_t a = 0; a < ids.size(); ++a) ids[a] = a < kinds.size() ? kinds[a].number : 0;
}

}  // namespace rehearse::run
