// SPDX-License-Identifier: Apache-2.0
// What all have in common who make a rank's part of a network, layer by layer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/schedule.hpp"

namespace rehearse::schedule {

/// What a layer of a part is called, for people, and the block it belongs to: those of the layer that it is of.
struct Label {
    std::string name;
    int block = -1;

    Label(const Layer& of) : name(of.name), block(of.block) {}  // NOLINT: a layer is what it is called after
    /// For a layer of its own beside that layer: `what` follows its name.
    Label with(std::string_view what) const {
        Label more = *this;
        more.name += what;
        return more;
    }
};

/// One layer more; its index in the part.
inline int append_layer(Part& part, Label label, Op op, std::vector<int> inputs, Origin origin) {
    Shape output = output_shape(op);
    part.network.layers.push_back(
        {std::move(label.name), std::move(op), std::move(inputs), std::move(output), -1, label.block});
    part.origins.push_back(std::move(origin));
    return static_cast<int>(part.network.layers.size()) - 1;
}

/// The part of each of `parts` ranks along one axis of the mesh.
class PartMaker {
public:
    PartMaker(const Network& network, std::string axis_name, int axis, std::int64_t parts)
        : network_(network), axis_name_(std::move(axis_name)), axis_(axis), parts_(parts) {
        part_.network.name = network.name;
        part_.network.state = network.state;
    }

protected:
    int append(Label label, Op op, std::vector<int> inputs, Origin origin) {
        return append_layer(part_, std::move(label), std::move(op), std::move(inputs), std::move(origin));
    }

    const Network& network_;
    std::string axis_name_;
    int axis_;
    std::int64_t parts_;
    Part part_;
};

}  // namespace rehearse::schedule
