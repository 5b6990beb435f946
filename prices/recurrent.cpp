// SPDX-License-Identifier: Apache-2.0
#include "prices/recurrent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

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

namespace {

// What measured cells of this device took over their price by products and gates.
struct Ratio {
    double factor = 1, error = 0;
    std::string source;
};

double squared_octaves(std::int64_t a, std::int64_t b) {
    const double octaves = std::log2(static_cast<double>(a) / static_cast<double>(b));
    return octaves * octaves;
}

RecurrentPrice by_parts(const Recurrent& op, Pass pass, std::int64_t batch, DataType type, const DeviceClass& device);

// Those of the same cell, else of another; the nearer in size, the more one counts. Beside them one kernel's worth of
// trust in how far cells of other libraries are from such prices.
std::optional<Ratio> of_measured_cells(const Recurrent& op, Pass pass, std::int64_t batch, DataType type,
                                       const DeviceClass& device) {
    struct Seen {
        double log_ratio, weight;
        bool same;
    };
    std::vector<Seen> all;
    std::string source;
    for (auto it = device.measured.lower_bound("recurrent:");
         it != device.measured.end() && it->first.starts_with("recurrent:"); ++it) {
        const Problem problem = parse_problem(it->first);
        const auto& cells = std::get<Recurrent>(problem.op);
        if (problem.pass != pass || problem.type != type || it->second.median <= Seconds{0}) continue;
        const Seconds parts = by_parts(cells, pass, problem.batch, type, device).whole().time;
        if (parts <= Seconds{0}) continue;
        const double apart = squared_octaves(batch, problem.batch) + squared_octaves(op.steps, cells.steps) +
                             squared_octaves(op.hidden, cells.hidden) + squared_octaves(op.inputs, cells.inputs);
        all.push_back({std::log(it->second.median / parts), 1 / (1 + apart), cells.cell == op.cell});
        source = it->second.source;
    }
    if (std::ranges::any_of(all, &Seen::same)) std::erase_if(all, [](const Seen& seen) { return !seen.same; });
    if (all.empty()) return std::nullopt;
    double weights = 0, mean = 0, squares = 0;
    for (const Seen& seen : all) {
        weights += seen.weight;
        mean += seen.weight * seen.log_ratio;
    }
    mean /= weights;
    for (const Seen& seen : all) squares += (seen.log_ratio - mean) * (seen.log_ratio - mean);
    const auto count = static_cast<double>(all.size());
    return Ratio{std::exp(mean), std::sqrt((of_steps * of_steps + squares) / (1 + count)),
                 fmt::format("times {:.3g}, as {} measured cells take ({})", std::exp(mean), all.size(), source)};
}

Price scaled(Price price, const Ratio& ratio) {
    return {price.time * ratio.factor, ratio.error, fmt::format("{} {}", price.source, ratio.source)};
}

}  // namespace

Price RecurrentPrice::whole() const { return both(input, steps, fmt::format("{}; {}", steps.source, input.source)); }

namespace {

RecurrentPrice by_parts(const Recurrent& op, Pass pass, std::int64_t batch, DataType type, const DeviceClass& device) {
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
    // Gates are no product: beside products in TF32 they are f32.
    const DataType of_gates = type == DataType::tf32 ? DataType::f32 : type;
    const Price gates = price({Add{.shape = {rows}, .inputs = 2}, Pass::forward, batch, of_gates}, device);
    Price steps = times(both(each, gates, ""), static_cast<double>(op.steps) * directions);
    steps.error = std::hypot(steps.error, of_steps);
    steps.source = fmt::format("{} steps one after the other, each a product with the state ({}) and a kernel of gates",
                               op.steps * op.directions, each.source);
    return {std::move(input), std::move(steps)};
}

}  // namespace

RecurrentPrice recurrent_price(const Recurrent& op, Pass pass, std::int64_t batch, DataType type,
                               const DeviceClass& device) {
    RecurrentPrice price = by_parts(op, pass, batch, type, device);
    if (has_chip_kernels(device, "recurrent", type)) return price;
    if (const auto ratio = of_measured_cells(op, pass, batch, type, device)) {
        price.input = scaled(std::move(price.input), *ratio);
        price.steps = scaled(std::move(price.steps), *ratio);
    }
    return price;
}

}  // namespace rehearse
