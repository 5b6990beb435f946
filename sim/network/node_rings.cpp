// SPDX-License-Identifier: Apache-2.0
#include "sim/network/node_rings.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "core/index.hpp"

namespace rehearse::sim {

namespace {

constexpr double rounding = 1e-9;

using Cycle = std::vector<std::int64_t>;

/// Rows of a linear program in its canonical form; the last column is the right-hand side, the last row the objective.
class Tableau {
public:
    Tableau(std::size_t rows, std::size_t columns) : columns_(columns), cells_((rows + 1) * columns), basis_(rows) {}

    double& cell(std::size_t row, std::size_t column) { return cells_[row * columns_ + column]; }
    std::size_t& basis(std::size_t row) { return basis_[row]; }

    void maximize() {
        // The steepest column first; Bland's rule, which cannot go round in circles, where that takes long.
        std::size_t steps = 0;
        for (;;) {
            const bool first = ++steps > 50 * basis_.size();
            const std::size_t column = entering(first);
            if (column == columns_) return;
            pivot(leaving(column), column);
        }
    }

private:
    std::size_t entering(bool first) {
        std::size_t best = columns_;
        double least = -rounding;
        for (std::size_t c = 0; c + 1 < columns_; ++c) {
            if (cell(basis_.size(), c) >= least) continue;
            best = c;
            if (first) break;
            least = cell(basis_.size(), c);
        }
        return best;
    }

    // Every column has a bound: all capacities are finite.
    std::size_t leaving(std::size_t column) {
        std::size_t best = 0;
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t r = 0; r < basis_.size(); ++r) {
            if (cell(r, column) <= rounding) continue;
            const double ratio = cell(r, columns_ - 1) / cell(r, column);
            const bool tie = ratio <= least + rounding && ratio >= least - rounding;
            if (tie ? basis_[r] < basis_[best] : ratio < least) {
                best = r;
                least = ratio;
            }
        }
        return best;
    }

    void pivot(std::size_t row, std::size_t column) {
        const double by = 1 / cell(row, column);
        for (std::size_t c = 0; c < columns_; ++c) cell(row, c) *= by;
        for (std::size_t r = 0; r <= basis_.size(); ++r) {
            const double times = cell(r, column);
            if (r == row || times == 0) continue;
            for (std::size_t c = 0; c < columns_; ++c) cell(r, c) -= times * cell(row, c);
        }
        basis_[row] = column;
    }

    std::size_t columns_;
    std::vector<double> cells_;
    std::vector<std::size_t> basis_;  // the column of each row's own variable
};

/// What goes from each member to each other over one link that joins them, in each of the groups' parts of nodes; 0
/// where some part has no such link.
std::vector<double> direct_capacity(const Groups& groups, const Wiring& wiring) {
    const std::int64_t n = groups.shape.per_node, size = groups.shape.size;
    std::vector<double> capacity(at(n * n), std::numeric_limits<double>::infinity());
    const std::int64_t first_node = wiring.node_of(groups.rank(0, 0));
    for (std::int64_t group = 0; group < groups.count; ++group) {
        for (std::int64_t begin = 0; begin < size; begin += n) {
            const bool elsewhere = wiring.node_of(groups.rank(group, begin)) != first_node;
            if (elsewhere && wiring.alike_inside()) break;  // as on the first node
            for (std::int64_t pair = 0; pair < n * n; ++pair) {
                const std::int64_t from = groups.rank(group, begin + pair / n),
                                   to = groups.rank(group, begin + pair % n);
                capacity[at(pair)] = std::min(capacity[at(pair)], wiring.direct(from, to).value);
            }
        }
    }
    return capacity;
}

void extend(Cycle& path, std::span<const double> capacity, std::int64_t n, std::vector<Cycle>& cycles) {
    if (std::ssize(path) == n) {
        if (capacity[at(path.back() * n)] > 0) cycles.push_back(path);
        return;
    }
    for (std::int64_t next = 1; next < n; ++next) {
        if (!(capacity[at(path.back() * n + next)] > 0) || std::ranges::find(path, next) != path.end()) continue;
        path.push_back(next);
        extend(path, capacity, n, cycles);
        path.pop_back();
    }
}

// The least along it.
double through(const Cycle& cycle, std::span<const double> capacity) {
    const std::int64_t n = std::ssize(cycle);
    double least = std::numeric_limits<double>::infinity();
    for (std::int64_t i = 0; i < n; ++i) {
        least = std::min(least, capacity[at(cycle[at(i)] * n + cycle[at((i + 1) % n)])]);
    }
    return least;
}

// Members of every group lie in blocks of per_node, each on one node.
bool in_blocks(const Groups& groups, const Wiring& wiring) {
    const std::int64_t n = groups.shape.per_node, size = groups.shape.size;
    if (size % n != 0) return false;
    for (std::int64_t group = 0; group < groups.count; ++group) {
        for (std::int64_t begin = 0; begin < size; begin += n) {
            const std::int64_t first = groups.rank(group, begin), last = groups.rank(group, begin + n - 1);
            if (wiring.node_of(first) != wiring.node_of(last)) return false;
        }
    }
    return true;
}

}  // namespace

std::vector<Cycle> cycles_over(std::span<const double> capacity, std::int64_t n) {
    std::vector<Cycle> cycles;
    Cycle path{0};
    extend(path, capacity, n, cycles);
    return cycles;
}

std::vector<double> most_through(std::span<const Cycle> cycles, std::span<const double> capacity) {
    const std::int64_t n = cycles.empty() ? 0 : std::ssize(cycles.front());
    const double scale = std::ranges::max(capacity);
    std::map<std::int64_t, std::size_t> rows;  // by pair
    const auto pair_of = [n](const Cycle& cycle, std::int64_t i) { return cycle[at(i)] * n + cycle[at((i + 1) % n)]; };
    for (const Cycle& cycle : cycles) {
        for (std::int64_t i = 0; i < n; ++i) rows.try_emplace(pair_of(cycle, i), rows.size());
    }
    Tableau tableau{rows.size(), cycles.size() + rows.size() + 1};
    for (const auto& [pair, row] : rows) {
        tableau.cell(row, cycles.size() + row) = 1;
        tableau.cell(row, cycles.size() + rows.size()) = capacity[at(pair)] / scale;
        tableau.basis(row) = cycles.size() + row;
    }
    for (std::size_t c = 0; c < cycles.size(); ++c) {
        for (std::int64_t i = 0; i < n; ++i) tableau.cell(rows.at(pair_of(cycles[c], i)), c) = 1;
        tableau.cell(rows.size(), c) = -1;
    }
    tableau.maximize();
    std::vector<double> carried(cycles.size());
    for (std::size_t row = 0; row < rows.size(); ++row) {
        if (tableau.basis(row) >= cycles.size()) continue;
        carried[tableau.basis(row)] = scale * std::max(0.0, tableau.cell(row, cycles.size() + rows.size()));
    }
    return carried;
}

std::shared_ptr<const std::vector<NodeRing>> node_rings(const Groups& groups, const Wiring& wiring) {
    const std::int64_t n = groups.shape.per_node;
    if (n < 3 || n > most_ring_devices || wiring.machine().inside.one_ring) return nullptr;
    if (!in_blocks(groups, wiring)) return nullptr;
    const std::vector<double> capacity = direct_capacity(groups, wiring);
    const std::vector<Cycle> cycles = cycles_over(capacity, n);
    if (cycles.empty()) return nullptr;
    const std::vector<double> carried = most_through(cycles, capacity);
    double all = 0;
    for (const double one : carried) all += one;
    Cycle ranks(at(n));
    for (std::int64_t i = 0; i < n; ++i) ranks[at(i)] = i;
    if (through(ranks, capacity) >= all * (1 - rounding)) return nullptr;
    auto rings = std::make_shared<std::vector<NodeRing>>();
    for (std::size_t c = 0; c < cycles.size(); ++c) {
        if (carried[c] > rounding * all) rings->push_back({cycles[c], carried[c] / all});
    }
    return rings;
}

}  // namespace rehearse::sim
