// SPDX-License-Identifier: Apache-2.0
// Networks that pass messages along the edges of a graph, which comes with each sample: numbers of the rows that an
// edge leads from and to, as many edges as there is room for, -1 where there is none.
//
//   rows of nodes ─ dense ─ takerows(from) ─ times each edge's number or filter ─ addrows(to) ─ rows of nodes
//
// gcn-cora: Kipf and Welling 2017, two layers, 16 hidden, on the citations of Cora: 2,708 papers of 1,433 words and 7
// subjects, 5,278 links in both directions and one from each paper to itself; `edge_weights` are what its normalization
// makes of degrees. schnet: Schütt et al. 2018 as PyTorch Geometric's SchNet has it by default (128 features and
// filters, six blocks, 50 Gaussians to 10 Å), on molecules of up to 29 atoms (QM9), each atom's neighbours being all
// others; the loss is the squared error of the energy.
#include "models/zoo/graphs.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <numbers>
#include <string>

#include "models/builder.hpp"

namespace rehearse::models {
namespace {

struct Edges {
    int from = 0, to = 0;  // layers
    std::int64_t count = 0;
};

int take_rows(NetworkBuilder& b, const std::string& name, int table, int ids) {
    Shape taken = b.shape(table);
    taken.front() = b.shape(ids).front();
    return b.layer(name, Rearrangement{"takerows", {b.shape(table), b.shape(ids)}, taken}, {table, ids});
}

int add_rows(NetworkBuilder& b, const std::string& name, int values, int ids, std::int64_t rows) {
    Shape sums = b.shape(values);
    sums.front() = rows;
    return b.layer(name, Rearrangement{"addrows", {b.shape(values), b.shape(ids)}, sums}, {values, ids});
}

Edges edges(NetworkBuilder& b, std::int64_t count) {
    return {b.layer("from", Input{{count}}, {}), b.layer("to", Input{{count}}, {}), count};
}

int product(NetworkBuilder& b, const std::string& name, int a, int c) {
    return b.layer(name, Elementwise{"mul", b.shape(a), {b.shape(a), b.shape(c)}}, {a, c});
}

struct Citations {
    std::string name;
    std::int64_t papers = 0, words = 0, links = 0, hidden = 16, subjects = 0;
    double keep = 1;
};

Network gcn(const Citations& size) {
    NetworkBuilder b(size.name, {size.papers, size.words});
    const Edges links = edges(b, size.links);
    const int given = b.layer("edge_weights", Input{{size.links}}, {});
    const int weights = b.layer("edge_weights.column", Flatten{{size.links}, {size.links, 1}}, {given});
    const auto drop = [&](const std::string& name, int x) { return size.keep < 1 ? b.dropout(name, x, size.keep) : x; };
    const auto layer = [&](const std::string& name, int x, std::int64_t features) {
        const MatMul dense{.m = size.papers, .n = features, .k = b.shape(x).back(), .bias = false};
        x = take_rows(b, name + ".messages", b.layer(name + ".dense", dense, {x}), links.from);
        x = add_rows(b, name + ".sums", product(b, name + ".weighted", x, weights), links.to, size.papers);
        return b.layer(name + ".bias", Bias{b.shape(x), 1}, {x});
    };
    int x = layer("layer1", drop("dropout1", NetworkBuilder::input), size.hidden);
    x = layer("layer2", drop("dropout2", b.relu("relu", x)), size.subjects);
    b.layer("loss", SoftmaxLoss{.classes = size.subjects, .rows = size.papers}, {x});
    return b.build();
}

class SchNet {
public:
    Network build() {
        int x = b_.layer("embedding", Embedding{atoms, kinds, width}, {NetworkBuilder::input});
        edges_ = edges(b_, atoms * (atoms - 1));
        const int positions = b_.layer("positions", Input{{atoms, 3}}, {});
        const int molecule = b_.layer("molecule", Input{{atoms}}, {});
        const int d = distances(positions);
        const int near = cutoff(d), gaussians = spread(d);
        for (int i = 0; i < blocks; ++i) x = block(fmt::format("block{}", i), x, gaussians, near);
        x = softplus("head.softplus", dense("head.dense1", x, width / 2));
        x = add_rows(b_, "head.sum", dense("head.dense2", x, 1), molecule, 1);
        loss(b_.layer("head.energy", Flatten{{1, 1}}, {x}));
        return b_.build();
    }

private:
    static constexpr std::int64_t atoms = 29, kinds = 100, width = 128, gaussians_ = 50;
    static constexpr int blocks = 6;
    static constexpr double reach = 10;  // Å

    int each(const std::string& name, std::string function, int x, std::vector<double> numbers = {}) {
        Elementwise op{std::move(function), b_.shape(x), {b_.shape(x)}};
        op.numbers = std::move(numbers);
        return b_.layer(name, std::move(op), {x});
    }
    int dense(const std::string& name, int x, std::int64_t features, bool bias = true) {
        return b_.layer(name, MatMul{b_.shape(x).front(), features, b_.shape(x).back(), bias}, {x});
    }
    // log(1 + e^x) - log 2
    int softplus(const std::string& name, int x) {
        return each(name + ".shift", "add", each(name, "softplus", x), {-std::numbers::ln2});
    }

    int distances(int positions) {
        const int from = take_rows(b_, "positions.from", positions, edges_.from);
        const int to = take_rows(b_, "positions.to", positions, edges_.to);
        const Shape rows = b_.shape(from);
        const int apart = b_.layer("apart", Elementwise{"sub", rows, {rows, rows}}, {from, to});
        return b_.layer("distance", Reduction{"l2", rows, {1}, true}, {apart});
    }
    // (1 + cos(pi d / reach)) / 2
    int cutoff(int d) {
        const int turned = each("cutoff.cos", "cos", each("cutoff.angle", "mul", d, {std::numbers::pi / reach}));
        return each("cutoff", "mul", each("cutoff.one", "add", turned, {1}), {0.5});
    }
    // exp(-(d - mu)^2 / (2 delta^2)), the mu `delta` apart from 0 to `reach`.
    int spread(int d) {
        const double delta = reach / (gaussians_ - 1);
        const Shape rows{edges_.count, gaussians_};
        Elementwise centred{"sub", rows, {b_.shape(d)}};
        centred.constants = {{gaussians_}};
        int x = b_.layer("gaussians.centred", std::move(centred), {d});
        Given given;
        given.fixed.emplace_back();
        for (std::int64_t i = 0; i < gaussians_; ++i)
            given.fixed[0].push_back(static_cast<float>(static_cast<double>(i) * delta));
        b_.at(x).given = std::make_shared<const Given>(std::move(given));
        x = each("gaussians.scaled", "mul", each("gaussians.square", "square", x), {-0.5 / (delta * delta)});
        return each("gaussians", "exp", x);
    }

    int block(const std::string& name, int x, int gaussians, int near) {
        int filter = softplus(name + ".filter.softplus", dense(name + ".filter.dense1", gaussians, width));
        filter = product(b_, name + ".filter", dense(name + ".filter.dense2", filter, width), near);
        int y = take_rows(b_, name + ".neighbours", dense(name + ".dense1", x, width, false), edges_.from);
        y = add_rows(b_, name + ".sums", product(b_, name + ".messages", y, filter), edges_.to, atoms);
        y = softplus(name + ".softplus", dense(name + ".dense2", y, width));
        return b_.add(name + ".add", x, dense(name + ".dense3", y, width));
    }

    // The mean over the samples of (energy - target)^2: TermsLoss of (0, 1, -m) is m.
    void loss(int energy) {
        const int target = b_.layer("energy", Input{{1}}, {});
        int x = b_.layer("loss.off", Elementwise{"sub", {1}, {{1}, {1}}}, {energy, target});
        x = term("loss.turned", "mul", each("loss.square", "square", x), {0, 0, -1});
        b_.layer("loss", TermsLoss{1, 1}, {term("loss.terms", "add", x, {0, 1, 0})});
    }
    int term(const std::string& name, const char* function, int x, std::vector<float> values) {
        Elementwise op{function, {3}, {b_.shape(x)}};
        op.constants = {{3}};
        x = b_.layer(name, std::move(op), {x});
        b_.at(x).given = std::make_shared<const Given>(Given{.fixed = {std::move(values)}});
        return x;
    }

    NetworkBuilder b_{"schnet", Input{{atoms}, kinds}};
    Edges edges_{};
};

}  // namespace

Network gcn_cora() { return gcn({"gcn-cora", 2708, 1433, 2 * 5278 + 2708, 16, 7, 0.5}); }
Network gcn_small() { return gcn({"gcn-small", 256, 64, 2 * 512 + 256, 16, 4}); }
Network schnet() { return SchNet{}.build(); }

}  // namespace rehearse::models
