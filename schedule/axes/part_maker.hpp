// SPDX-License-Identifier: Apache-2.0
// What all have in common who make a rank's part of a network, layer by layer.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/schedule.hpp"

namespace rehearse::schedule {

/// One layer more; its index in the part.
inline int append_layer(Part& part, std::string name, Op op, std::vector<int> inputs, Origin origin) {
    Shape output = output_shape(op);
    part.network.layers.push_back({std::move(name), std::move(op), std::move(inputs), std::move(output)});
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
    int append(std::string name, Op op, std::vector<int> inputs, Origin origin) {
        return append_layer(part_, std::move(name), std::move(op), std::move(inputs), std::move(origin));
    }

    const Network& network_;
    std::string axis_name_;
    int axis_;
    std::int64_t parts_;
    Part part_;
};

}  // namespace rehearse::schedule
