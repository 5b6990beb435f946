// SPDX-License-Identifier: Apache-2.0
// Functions of each element of operands that broadcast.
#include <vector>

#include "core/index.hpp"
#include "kernels/general/functions.hpp"
#include "kernels/general/places.hpp"
#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {
namespace {

// An operand's number at each element of one sample of the result.
struct Read {
    general::Operand operand;
    std::vector<std::int64_t> places;  // of an operand that is no number
    std::span<const float> values;

    double at(std::int64_t sample, std::int64_t i, double number) const {
        if (operand.kind == 'n') return number;
        const std::int64_t first = operand.kind == 'x' ? sample * operand.size : operand.offset;
        return values[rehearse::at(first + places[rehearse::at(i)])];
    }
};

std::vector<Read> reads_of(const Elementwise& op, const Buffers& b) {
    std::vector<Read> all;
    for (const general::Operand& operand : general::operands_of(op)) {
        Read read{operand, {}, {}};
        if (operand.kind == 'x') {
            read.places = general::places_in(op.inputs[operand.number], op.shape);
            if (operand.number < b.src.size() && !b.src[operand.number].empty())
                read.values = b.src[operand.number].as<float>();
        } else if (operand.kind == 'w') {
            const bool chosen = operand.number < b.chosen.size() && !b.chosen[operand.number].empty();
            if (chosen) read.places = {b.chosen[operand.number].begin(), b.chosen[operand.number].end()};
            if (!chosen) read.places = general::places_in(op.weights[operand.number], op.shape);
            read.values = b.weights.as<float>();
        } else if (operand.kind == 'c') {
            read.places = general::places_in(op.constants[operand.number], op.shape);
            read.values = b.fixed[operand.number];
        }
        all.push_back(std::move(read));
    }
    return all;
}

}  // namespace

void run(const Elementwise& op, Pass pass, std::int64_t batch, const Buffers& b) {
    if (op.function == "rotary") return run_rotary(op, pass, batch, b);
    const general::Function function = *general::function_of(op.function);
    const std::vector<Read> reads = reads_of(op, b);
    const std::int64_t count = elements(op.shape);
    std::vector<double> args(reads.size());
    std::vector<std::vector<double>> sums(reads.size());  // gradients of operands, of a sample or of the weights
    const char wanted = pass == Pass::backward_data ? 'x' : 'w';
    const bool reads_none = pass != Pass::forward && !rehearse::reads(op, pass).src;
    for (std::int64_t n = 0; n < batch; ++n) {
        for (std::size_t k = 0; k < reads.size(); ++k) {
            if (reads[k].operand.kind == wanted && (wanted == 'x' || n == 0))
                sums[k].assign(at(reads[k].operand.size), 0);
        }
        for (std::int64_t i = 0; i < count; ++i) {
            for (std::size_t k = 0; k < reads.size(); ++k) {
                const general::Operand& operand = reads[k].operand;
                const double number = operand.kind == 'n' ? op.numbers[operand.number] : 0;
                const bool absent = reads_none && operand.kind != 'c' && operand.kind != 'n';
                args[k] = absent ? 0 : reads[k].at(n, i, number);
            }
            const general::Arguments<double> arguments{args.data(), args.size()};
            if (pass == Pass::forward) {
                b.dst[n * count + i] = static_cast<float>(general::with_function(
                    function, [&]<general::Function f>() { return general::value<f>(arguments); }));
                continue;
            }
            for (std::size_t k = 0; k < reads.size(); ++k) {
                if (reads[k].operand.kind != wanted) continue;
                const double slope = general::with_function(
                    function, [&]<general::Function f>() { return general::slope<f>(arguments, k); });
                sums[k][at(reads[k].places[at(i)])] += slope == 0 ? 0 : slope * b.diff_dst[n * count + i];
            }
        }
        for (std::size_t k = 0; pass == Pass::backward_data && k < reads.size(); ++k) {
            const general::Operand& operand = reads[k].operand;
            if (operand.kind != 'x' || b.diff_src[operand.number].empty()) continue;
            for (std::int64_t i = 0; i < operand.size; ++i)
                b.diff_src[operand.number][n * operand.size + i] = static_cast<float>(sums[k][at(i)]);
        }
    }
    for (std::size_t k = 0; pass == Pass::backward_weights && k < reads.size(); ++k) {
        if (reads[k].operand.kind != 'w') continue;
        for (std::int64_t i = 0; i < reads[k].operand.size; ++i)
            b.diff_weights[reads[k].operand.offset + i] = static_cast<float>(sums[k][at(i)]);
    }
}

}  // namespace rehearse::kernels::reference
