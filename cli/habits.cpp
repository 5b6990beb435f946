// SPDX-License-Identifier: Apache-2.0
#include "cli/habits.hpp"

#include <fmt/format.h>

#include <memory>

#include "core/error.hpp"
#include "core/tile_model.hpp"

namespace rehearse::cli {

namespace {

// Tensor cores take 16-bit images pixel by pixel. A framework that keeps them channel by channel has what a convolution
// reads turned first, and what it writes turned back (cuDNN does it): each is read and written once more.
Seconds turned(const Problem& problem, const DeviceClass& device) {
    const auto* conv = std::get_if<Conv2d>(&problem.op);
    if (conv == nullptr || problem.type == DataType::f32 || problem.pass == Pass::update) return Seconds{0};
    const auto copy = [&](const Shape& shape) {
        return price({Activation{Nonlinearity::relu, shape}, Pass::forward, problem.batch, problem.type}, device).time;
    };
    return copy({conv->channels, conv->height, conv->width}) + copy(output_shape(problem.op));
}

}  // namespace

Machine with_passes(Machine machine, const Machine& other) {
    const auto& as = other.classes.front().tiles;
    if (as == nullptr) throw InputError(fmt::format("passes: machine '{}' has no [device.tiles]", other.name));
    for (DeviceClass& device : machine.classes) {
        if (device.tiles == nullptr) continue;
        TileModel tiles = *device.tiles;
        tiles.elementwise_passes = as->elementwise_passes;
        tiles.score_passes = as->score_passes;
        tiles.loss_passes = as->loss_passes;
        device.tiles = std::make_shared<const TileModel>(std::move(tiles));
    }
    return machine;
}

Price with_habits(Price price, const Problem& problem, const DeviceClass& device, const TrainingRun& run) {
    if (run.layout == "nchw") price.time += turned(problem, device);
    if (run.update_passes > 0 && updated(problem.op)) {
        const double once = static_cast<double>(*updated(problem.op)) * size_of(problem.type).value;
        const Bytes moved = bytes_moved(problem.op, problem.pass, problem.type, problem.batch);
        price.time = price.time * (run.update_passes * once / moved.value);
    }
    return price;
}

}  // namespace rehearse::cli
