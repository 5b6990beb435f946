// SPDX-License-Identifier: Apache-2.0
#include "schedule/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.hpp"

namespace rehearse::schedule {

namespace {

/// The dimension along which an output lies in pieces: channels of an image, else the features.
std::int64_t cut_dim(const Shape& shape) { return shape.size() >= 3 ? 0 : static_cast<std::int64_t>(shape.size()) - 1; }

Shape piece_of(Shape shape, std::int64_t parts) {
    shape[static_cast<std::size_t>(cut_dim(shape))] /= parts;
    return shape;
}

class Splitter {
public:
    Splitter(const Network& network, std::string axis_name, int axis, std::int64_t parts)
        : network_(network),
          axis_name_(std::move(axis_name)),
          axis_(axis),
          parts_(parts),
          needed_(needs_input_gradient(network)),
          held_(network.layers.size()) {
        part_.network.name = network.name;
        part_.network.state = network.state;
    }

    Part run() {
        for (index_ = 0; index_ < network_.layers.size(); ++index_) {
            std::visit([&](const auto& op) { held_[index_] = split(op); }, layer().op);
        }
        if (!cut_any_) {
            throw InputError(
                fmt::format("network '{}' has no layer that can be cut into {} equal parts", network_.name, parts_));
        }
        return std::move(part_);
    }

private:
    /// An output as the ranks hold it: the layer of the part that gives it, whole or in pieces.
    struct Held {
        int at = -1;
        bool in_pieces = false;
        int gathered = -1;  // the layer that gives the whole, when it has been asked for
    };

    const Layer& layer() const { return network_.layers[index_]; }
    Held& source(std::size_t input) { return held_[static_cast<std::size_t>(layer().inputs[input])]; }

    int append(std::string name, Op op, std::vector<int> inputs, Origin origin) {
        Shape output = output_shape(op);
        part_.network.layers.push_back({std::move(name), std::move(op), std::move(inputs), std::move(output)});
        part_.origins.push_back(std::move(origin));
        return static_cast<int>(part_.network.layers.size()) - 1;
    }

    int communicate(Movement movement, std::string name, int from) {
        const Shape& shape = part_.network.layers[static_cast<std::size_t>(from)].output;
        return append(std::move(name), Communication{movement, axis_name_, shape, parts_, cut_dim(shape), 0}, {from},
                      {});
    }

    int whole(Held& held) {
        if (!held.in_pieces) return held.at;
        if (held.gathered < 0) {
            const std::string& name = part_.network.layers[static_cast<std::size_t>(held.at)].name;
            held.gathered = communicate(Movement::gather, name + ".gather", held.at);
        }
        return held.gathered;
    }

    /// Every rank computes the layer as it is.
    Held on_all() {
        std::vector<int> inputs;
        for (std::size_t i = 0; i < layer().inputs.size(); ++i) inputs.push_back(whole(source(i)));
        const Held made{append(layer().name, layer().op, std::move(inputs), {static_cast<int>(index_), 0, {}})};
        const int owner = layer().weights_of;
        if (owner >= 0) part_.network.layers.back().weights_of = held_[static_cast<std::size_t>(owner)].at;
        return made;
    }

    /// Each rank computes its channels or features alone.
    Held by_piece(Op op, std::vector<Cut> cuts) {
        std::vector<int> inputs;
        for (std::size_t i = 0; i < layer().inputs.size(); ++i) inputs.push_back(source(i).at);
        return {append(layer().name, std::move(op), std::move(inputs), {static_cast<int>(index_), 0, std::move(cuts)}),
                true};
    }

    bool all_in_pieces() {
        for (std::size_t i = 0; i < layer().inputs.size(); ++i) {
            if (!source(i).in_pieces) return false;
        }
        return !layer().inputs.empty();
    }

    Cut cut(int tensor, int dim) const { return {tensor, dim, axis_, 1}; }

    /// Some of the layer's columns or filters on each rank.
    Held by_columns(Op op, std::vector<Cut> cuts) {
        int input = whole(source(0));
        if (needed_[index_]) input = communicate(Movement::copy, layer().name + ".copy", input);
        cut_any_ = true;
        return {append(layer().name, std::move(op), {input}, {static_cast<int>(index_), 0, std::move(cuts)}), true};
    }

    /// Some of the layer's rows or channels on each rank; the ranks add up, then comes the bias.
    Held by_rows(Op op, Cut rows, bool bias) {
        cut_any_ = true;
        const int partial = append(layer().name, std::move(op), {source(0).at}, {static_cast<int>(index_), 0, {rows}});
        int at = communicate(Movement::sum, layer().name + ".sum", partial);
        if (bias) {
            const Bias add{layer().output, cut_dim(layer().output)};
            at = append(layer().name + ".bias", add, {at}, {static_cast<int>(index_), 1, {}});
        }
        return {at};
    }

    Held split(const Conv2d& op) {
        Conv2d mine = op;
        std::vector<Cut> filters{cut(0, 0)};
        if (op.bias) filters.push_back(cut(1, 0));
        if (op.groups > 1) {
            if (!source(0).in_pieces || op.groups % parts_ != 0) return on_all();
            mine.channels /= parts_;
            mine.filters /= parts_;
            mine.groups /= parts_;
            return by_piece(mine, std::move(filters));
        }
        if (source(0).in_pieces) {
            if (op.relu) return on_all();  // it comes after the sum and the bias
            mine.channels /= parts_;
            mine.bias = false;
            return by_rows(mine, cut(0, 1), op.bias);
        }
        if (op.filters % parts_ != 0) return on_all();
        mine.filters /= parts_;
        return by_columns(mine, std::move(filters));
    }

    Held split(const MatMul& op) {
        if (op.tied) return on_all();
        MatMul mine = op;
        if (source(0).in_pieces) {
            if (op.activation) return on_all();  // it comes after the sum and the bias
            mine.k /= parts_;
            mine.bias = false;
            return by_rows(mine, cut(0, 0), op.bias);
        }
        if (op.n % parts_ != 0) return on_all();
        mine.n /= parts_;
        std::vector<Cut> columns{cut(0, 1)};
        if (op.bias) columns.push_back(cut(1, 0));
        return by_columns(mine, std::move(columns));
    }

    Held split(const BatchNorm& op) {
        if (!all_in_pieces()) return on_all();
        BatchNorm mine = op;
        mine.channels /= parts_;
        part_.network.state -= 2 * (op.channels - mine.channels);
        return by_piece(mine, {cut(0, 0), cut(1, 0)});
    }

    Held split(const Pool2d& op) {
        if (!all_in_pieces()) return on_all();
        Pool2d mine = op;
        mine.channels /= parts_;
        return by_piece(mine, {});
    }

    template <typename Elementwise>
    Held split_elementwise(Elementwise op) {
        if (!all_in_pieces()) return on_all();
        op.shape = piece_of(op.shape, parts_);
        return by_piece(std::move(op), {});
    }
    Held split(const Activation& op) { return split_elementwise(op); }
    Held split(const Add& op) { return split_elementwise(op); }
    // A piece of one row a sample lies in one run of memory, so its mask can be drawn as the whole's is.
    Held split(const Dropout& op) { return op.shape.size() == 2 ? on_all() : split_elementwise(op); }
    Held split(const Flatten& op) { return op.shape.size() == 2 ? on_all() : split_elementwise(op); }
    Held split(const auto&) { return on_all(); }

    const Network& network_;
    std::string axis_name_;
    int axis_;
    std::int64_t parts_;
    std::vector<bool> needed_;
    std::vector<Held> held_;  // by layer of the whole
    Part part_;
    std::size_t index_ = 0;
    bool cut_any_ = false;
};

}  // namespace

Part whole(const Network& network) {
    Part part{network, {}, {}};
    for (std::size_t i = 0; i < network.layers.size(); ++i) part.origins.push_back({static_cast<int>(i), 0, {}});
    return part;
}

Part split_tensor(const Network& network, const std::string& axis_name, int axis, std::int64_t parts) {
    return Splitter{network, axis_name, axis, parts}.run();
}

}  // namespace rehearse::schedule
