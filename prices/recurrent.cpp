// SPDX-License-Identifier: Apache-2.0
#include "prices/recurrent.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/error.hpp"
#include "prices/chip_kernels.hpp"

namespace rehearse {

namespace {

// Of the steps beyond the error of their product: libraries of 2015 to 2019 take other kernels for the same shape at
// other batches. DeepBench's 887 training rows that have a price model (docs/device_prices.md).
constexpr double of_steps = 0.4;

Price times(Price price, double count) {
    price.time = price.time * count;
    return price;
}

// One after the other; their errors are of one model, and add up.
Price both(const Price& a, const Price& b, std::string source) {
    const Seconds time = a.time + b.time;
    const double error = time > Seconds{0} ? (a.time * a.error + b.time * b.error) / time : 0.0;
    return {time, error, std::move(source)};
}

Price of_input(const Recurrent& op, Pass pass, std::int64_t batch, DataType type, const DeviceClass& device) {
    const MatMul product{.m = op.steps, .n = gates_of(op) * op.hidden, .k = op.inputs, .bias = false};
    Price input = times(price({product, pass, batch, type}, device), static_cast<double>(op.directions));
    input.source = fmt::format("products with the input: {}", input.source);
    return input;
}

}  // namespace

Price RecurrentPrice::whole() const { return both(input, steps, fmt::format("{}; {}", steps.source, input.source)); }

RecurrentPrice recurrent_price(const Recurrent& op, Pass pass, std::int64_t batch, DataType type,
                               const DeviceClass& device) {
    Price input = of_input(op, pass, batch, type, device);
    if (has_chip_kernels(device, "recurrent", type)) {
        const auto answer = device.model->answer({op, pass, batch, type});
        require(answer.has_value(), "steps of a recurrent layer can be priced");
        return {std::move(input), {answer->time + device.launch.value, answer->error, answer->source}};
    }
    const std::int64_t rows = gates_of(op) * op.hidden;
    const auto directions = static_cast<double>(op.directions);
    const auto product = [&](std::int64_t m) {
        return price({MatMul{.m = m, .n = rows, .k = op.hidden, .bias = false}, pass, batch, type}, device);
    };
    if (pass == Pass::backward_weights) {
        Price states = times(product(op.steps), directions);
        states.source = fmt::format("products with the states: {}", states.source);
        return {std::move(input), std::move(states)};
    }
    const Price each = product(1);
    // Sums of both products in, gates out; backward, gates and gradients in, gradients of the sums out.
    const Price gates = price({Add{.shape = {rows}, .inputs = 2}, Pass::forward, batch, type}, device);
    Price steps = times(both(each, gates, ""), static_cast<double>(op.steps) * directions);
    steps.error = std::hypot(steps.error, of_steps);
    steps.source = fmt::format("{} steps one after the other, each a product with the state ({}) and a kernel of gates",
                               op.steps * op.directions, each.source);
    return {std::move(input), std::move(steps)};
}

}  // namespace rehearse
