// SPDX-License-Identifier: Apache-2.0
// Values that move: to places that the operator says, or that the file does.
#include <vector>

#include "core/error.hpp"
#include "core/index.hpp"
#include "kernels/general/by_data.hpp"
#include "kernels/general/places.hpp"
#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {
namespace {

// Which tensor, and which of its elements, is the i-th of all inputs' samples.
struct Source {
    std::size_t tensor;
    std::int64_t element;
};
std::vector<Source> sources(const std::vector<Shape>& inputs) {
    std::vector<Source> all;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
        for (std::int64_t i = 0; i < elements(inputs[k]); ++i) all.push_back({k, i});
    }
    return all;
}

const std::vector<std::int32_t>& chosen_of(const Gather& op, const Buffers& b) {
    require(!b.chosen.empty() && b.chosen.front().size() == at(elements(op.output)),
            "a gather is told what it gathers");
    return b.chosen.front();
}

void scatter(const Gather& op, Pass pass, std::int64_t batch, const Buffers& b) {
    const std::vector<std::int32_t>& chosen = chosen_of(op, b);
    const std::int64_t table = elements(op.table), count = elements(op.output);
    for (std::int64_t n = 0; n < batch; ++n) {
        for (std::int64_t i = 0; pass == Pass::forward && i < table; ++i)
            b.dst[n * table + i] = b.src[0][n * table + i];
        for (std::int64_t i = 0; pass == Pass::forward && i < count; ++i)
            b.dst[n * table + chosen[at(i)]] = b.src[1][n * count + i];
        if (pass != Pass::backward_data) continue;
        for (std::int64_t i = 0; !b.diff_src[0].empty() && i < table; ++i)
            b.diff_src[0][n * table + i] = b.diff_dst[n * table + i];
        for (std::int64_t i = 0; i < count; ++i) {
            if (!b.diff_src[0].empty()) b.diff_src[0][n * table + chosen[at(i)]] = 0;
            if (!b.diff_src[1].empty()) b.diff_src[1][n * count + i] = b.diff_dst[n * table + chosen[at(i)]];
        }
    }
}

}  // namespace

void run(const Rearrangement& op, Pass pass, std::int64_t batch, const Buffers& b) {
    if (general::by_data(op)) return run_by_data(op, pass, batch, b);
    const std::vector<std::int64_t> places = general::moved_places(op, b.chosen);
    const std::vector<Source> all = sources(op.inputs);
    const auto count = static_cast<std::int64_t>(places.size());
    for (std::int64_t n = 0; n < batch; ++n) {
        std::vector<double> sums(all.size());
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t place = places[at(i)];
            if (pass == Pass::backward_data) {
                if (place >= 0) sums[at(place)] += b.diff_dst[n * count + i];
                continue;
            }
            const Source from = place < 0 ? Source{} : all[at(place)];
            b.dst[n * count + i] = place < 0 ? static_cast<float>(op.fill)
                                             : b.src[from.tensor][n * elements(op.inputs[from.tensor]) + from.element];
        }
        for (std::size_t i = 0; pass == Pass::backward_data && i < all.size(); ++i) {
            const auto [tensor, element] = all[i];
            if (b.diff_src[tensor].empty()) continue;
            b.diff_src[tensor][n * elements(op.inputs[tensor]) + element] = static_cast<float>(sums[i]);
        }
    }
}

void run(const Gather& op, Pass pass, std::int64_t batch, const Buffers& b) {
    if (op.scatter) return scatter(op, pass, batch, b);
    const std::vector<std::int32_t>& chosen = chosen_of(op, b);
    const std::int64_t table = elements(op.table), count = elements(op.output);
    std::vector<double> sums(at(table));
    for (std::int64_t n = 0; n < batch; ++n) {
        if (pass == Pass::backward_data) sums.assign(sums.size(), 0);
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int32_t from = chosen[at(i)];
            if (pass == Pass::forward) b.dst[n * count + i] = op.trained ? b.weights[from] : b.src[0][n * table + from];
            if (pass != Pass::forward) sums[at(from)] += b.diff_dst[n * count + i];
        }
        for (std::int64_t i = 0; pass == Pass::backward_data && i < table; ++i)
            b.diff_src[0][n * table + i] = static_cast<float>(sums[at(i)]);
    }
    for (std::int64_t i = 0; pass == Pass::backward_weights && i < table; ++i)
        b.diff_weights[i] = static_cast<float>(sums[at(i)]);
}

void run(const Parameter& op, Pass pass, std::int64_t batch, const Buffers& b) {
    const std::int64_t count = elements(op.shape);
    for (std::int64_t i = 0; i < count; ++i) {
        double sum = 0;
        for (std::int64_t n = 0; n < batch; ++n) {
            if (pass == Pass::forward) b.dst[n * count + i] = b.weights[i];
            if (pass == Pass::backward_weights) sum += b.diff_dst[n * count + i];
        }
        if (pass == Pass::backward_weights) b.diff_weights[i] = static_cast<float>(sum);
    }
}

}  // namespace rehearse::kernels::reference
