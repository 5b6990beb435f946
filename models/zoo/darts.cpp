// SPDX-License-Identifier: Apache-2.0
// DARTS' network of mixed operators (Liu et al. 2019, section 2 and appendix A.1): an edge of a cell computes all of
// its operators, and adds them up by shares that are trained, the softmax of a row of a table of numbers. All cells of
// a kind have the same table, {edges, 8}: the Parameters "normal" and "reduction". The eighth operator, none, adds
// nothing, but takes its share. Unlike the authors' (github.com/quark0/darts, as remembered), batch normalizations of
// operators have gamma and beta.
#include "models/zoo/darts.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "models/builder.hpp"

namespace rehearse::models {
namespace {

/// Sizes of a network: channels before the first cell, which has as many, cells, nodes of a cell that are computed.
struct Sizes {
    std::int64_t image, channels, stem, cells, nodes;
};

class Search {
public:
    Search(const std::string& name, const Sizes& sizes)
        : sizes_(sizes), b_(name, Shape{3, sizes.image, sizes.image}), edges_(sizes.nodes * (sizes.nodes + 3) / 2) {}

    Network build() {
        for (Table* table : {&normal_, &reduction_}) table->shares = shares(table->name);
        int before = b_.batch_norm(
            "stem.bn", b_.conv("stem", NetworkBuilder::input, sizes_.stem * sizes_.channels, square(3, 1, 1)));
        int last = before;
        std::int64_t channels = sizes_.channels;
        bool halved = false;
        for (std::int64_t i = 0; i < sizes_.cells; ++i) {
            const bool halves = i == sizes_.cells / 3 || i == 2 * sizes_.cells / 3;
            if (halves) channels *= 2;
            const int made = cell(fmt::format("cell{}", i), before, last, channels, halves, halved);
            before = std::exchange(last, made);
            halved = halves;
        }
        b_.loss(b_.dense("scores", b_.flatten("flatten", b_.global_average_pool("mean", last)), 10));
        return b_.build();
    }

private:
    struct Table {
        const char* name;
        int shares = -1;  // the layer of all edges' shares
    };
    static constexpr std::int64_t operators = 8;  // none among them, the first

    int shares(const std::string& name) {
        const Shape all{edges_, operators};
        return b_.layer(name + ".shares", SoftmaxAlong{all, 1}, {b_.layer(name, Parameter{all}, {})});
    }

    int cell(const std::string& name, int before, int last, std::int64_t channels, bool halves, bool halved) {
        const int first =
            halved ? factorized(name + ".before", before, channels) : pointwise(name + ".before", before, channels);
        std::vector<int> states{first, pointwise(name + ".last", last, channels)};
        std::int64_t edge = 0;
        for (std::int64_t node = 0; node < sizes_.nodes; ++node) {
            int sum = -1;
            const std::vector<int> from = states;
            for (std::size_t i = 0; i < from.size(); ++i, ++edge) {
                const std::string own = fmt::format("{}.node{}.from{}", name, node, i);
                const int mixed_up = mixed(own, from[i], halves && i < 2 ? 2 : 1, halves ? reduction_ : normal_, edge);
                sum = sum < 0 ? mixed_up : b_.add(own + ".add", sum, mixed_up);
            }
            states.push_back(sum);
        }
        return b_.concat(name + ".concat", {states.begin() + 2, states.end()});
    }

    int mixed(const std::string& name, int from, std::int64_t stride, const Table& table, std::int64_t edge) {
        const std::int64_t channels = b_.shape(from).front();
        const std::vector<std::pair<const char*, int>> made{
            {"maxpool",
             b_.batch_norm(name + ".maxpool.bn", b_.max_pool(name + ".maxpool", from, square(3, stride, 1)))},
            {"averagepool", b_.batch_norm(name + ".averagepool.bn",
                                          b_.average_pool(name + ".averagepool", from, square(3, stride, 1)))},
            {"skip", stride == 1 ? from : factorized(name + ".skip", from, channels)},
            {"separable3", separable(name + ".separable3", from, square(3, stride, 1))},
            {"separable5", separable(name + ".separable5", from, square(5, stride, 2))},
            {"dilated3", dilated(name + ".dilated3", from, square(3, stride, 2))},
            {"dilated5", dilated(name + ".dilated5", from, square(5, stride, 4))},
        };
        const Shape shape = b_.shape(made.back().second);
        const auto count = static_cast<std::int64_t>(made.size());
        Rearrangement all{.kind = "join", .inputs = {}, .output = {count, elements(shape)}, .numbers = {0}};
        std::vector<int> rows;
        for (const auto& [what, layer] : made) {
            const Flatten row{shape, {1, elements(shape)}};
            rows.push_back(b_.layer(fmt::format("{}.{}.row", name, what), row, {layer}));
            all.inputs.push_back(row.to);
        }
        const int stack = b_.layer(name + ".join", std::move(all), std::move(rows));
        const Rearrangement row{
            .kind = "slice", .inputs = {{edges_, operators}}, .output = {1, count}, .numbers = {edge, 1, 1, 1}};
        const int shares = b_.layer(name + ".shares", row, {table.shares});
        const int sum = b_.layer(name + ".mixed", BatchedMatMul{{1, count}, {count, elements(shape)}}, {shares, stack});
        return b_.layer(name, Flatten{{1, elements(shape)}, shape}, {sum});
    }

    int pointwise(const std::string& name, int from, std::int64_t filters) {
        return b_.batch_norm(name + ".bn", b_.conv(name, b_.relu(name + ".relu", from), filters, square(1)));
    }
    /// Two convolutions of one pixel in four, the second one shifted by one pixel each way.
    int factorized(const std::string& name, int from, std::int64_t filters) {
        const int x = b_.relu(name + ".relu", from);
        const Shape whole = b_.shape(x);
        const Rearrangement shift{.kind = "slice",
                                  .inputs = {whole},
                                  .output = {whole[0], whole[1] - 1, whole[2] - 1},
                                  .numbers = {0, 1, 1, 1, 1, 1}};
        const int shifted = b_.layer(name + ".shifted", shift, {x});
        const int even = b_.conv(name + ".even", x, filters / 2, square(1, 2));
        const int odd = b_.conv(name + ".odd", shifted, filters - filters / 2, square(1, 2));
        return b_.batch_norm(name + ".bn", b_.concat(name + ".concat", {even, odd}));
    }
    int separable(const std::string& name, int from, Window window) {
        const std::int64_t channels = b_.shape(from).front();
        const int first = depthwise(name + ".1", from, window, channels);
        window.stride_h = window.stride_w = 1;
        return depthwise(name + ".2", first, window, channels);
    }
    int dilated(const std::string& name, int from, Window window) {
        window.dilation_h = window.dilation_w = 2;
        return depthwise(name, from, window, b_.shape(from).front());
    }
    int depthwise(const std::string& name, int from, const Window& window, std::int64_t channels) {
        const int x = b_.conv(name + ".depthwise", b_.relu(name + ".relu", from), channels, window, false, channels);
        return b_.batch_norm(name + ".bn", b_.conv(name + ".pointwise", x, channels, square(1)));
    }

    Sizes sizes_;
    NetworkBuilder b_;
    std::int64_t edges_;
    Table normal_{"normal"}, reduction_{"reduction"};
};

}  // namespace

Network darts() { return Search{"darts", {32, 16, 3, 8, 4}}.build(); }
Network darts_small() { return Search{"darts-small", {16, 4, 2, 3, 2}}.build(); }

}  // namespace rehearse::models
