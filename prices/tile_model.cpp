// SPDX-License-Identifier: Apache-2.0
#include "prices/tile_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "prices/by_likeness.hpp"
#include "prices/chip_kernels.hpp"
#include "prices/fused_attention.hpp"
#include "prices/stack_price.hpp"

namespace rehearse {

namespace {

struct Tile {
    double rows, columns;
    int smaller;  // halvings of 256 x 128: each costs speed, as fewer values are used twice
};
constexpr std::array tiles{Tile{256, 128, 0}, Tile{128, 256, 0}, Tile{128, 128, 1}, Tile{64, 128, 2}, Tile{128, 64, 2}};
constexpr std::array cuts_of_k{1.0, 2.0, 4.0};

// Of attention that keeps its probabilities, where the framework's own is fused: the product writes them, softmax reads
// and writes, dropout reads and writes and keeps a mask of a byte, the second product reads.
constexpr double counted_score_passes = 6.5;

// Keys of a row that Megatron-LM's kernel of causal softmax has registers for (scaled_upper_triang_masked_softmax.h);
// longer rows go through the framework's own, which reads them whole, and so does all that is in f32.
constexpr double longest_masked_row = 2048;

// Most of what values cross memory more than once for in 16 bits are casts and normalizations in f32, which a framework
// does not need whose numbers are f32. PyTorch's own operators, one kernel each, move 1.46 times the least of a layer
// of BERT-Large on a V100 (8 sequences of 512, forward and backward: NeuSight, layer_ops; 1.5 to 1.7 on an H100):
// GELU 1.0, addition 1.2, dropout 1.8 and 2.4, layer normalization 1.9 and 2.4. In 16 bits such operators move 2.32
// times the least (docs/transformer_prices.md); software whose operators are many kernels each moves more in f32, too.
constexpr double passes_without_casts = 1.46, passes_with_casts = 2.32;

// RMS normalization operator by operator without its casts, in f32: 28 bytes a value forward and 92 backward, where one
// kernel moves 8 and 12, for 36 and 92 of 4 and 6 in 16 bits (models/software.toml).
constexpr double rms_without_casts = 3.5 / 9, rms_backward_without_casts = 0.5;

// Tiles were fitted on Tensor Cores' products: a stack's in f32 are other kernels.
constexpr double stacks_in_f32_error = 0.3;

// Tensor Cores' loads of 16 bytes need rows that begin at multiples of them. In 8 bits libraries have kernels for
// operands alone of which k values lie side by side, and others are turned first.
bool aligned(const ProductSizes& sizes, DataType type) {
    const std::array<double, 3> distances =
        type == DataType::fp8 ? std::array{sizes.k, sizes.k, sizes.m} : row_distances(sizes);
    return std::ranges::all_of(distances,
                               [&](double distance) { return std::fmod(distance, 16 / size_of(type).value) == 0; });
}

template <typename Operator>
constexpr bool is_elementwise(const Operator& /*op*/) {
    return std::is_same_v<Operator, LayerNorm> || std::is_same_v<Operator, Activation> ||
           std::is_same_v<Operator, Add> || std::is_same_v<Operator, Dropout> || std::is_same_v<Operator, Bias>;
}

// Of rows of tokens {tokens, width}: what convolutional networks do to images is no transformer's.
bool on_rows(const Op& op) {
    return std::visit(
        [](const auto& each) {
            if constexpr (requires { each.shape; }) {
                return is_elementwise(each) && each.shape.size() == 2;
            } else {
                return is_elementwise(each);
            }
        },
        op);
}

// How often software that has no fused kernel for a module moves the bytes of one; nothing where it has.
std::optional<double> module_passes(const Op& op, Pass pass, DataType type, const ModulePasses& modules) {
    const bool forward = pass == Pass::forward;
    const auto known = [](const Sourced<double>& figure, double without_casts) {
        return figure.source.empty() ? std::nullopt : std::optional{figure.value * without_casts};
    };
    const auto* normalization = std::get_if<Normalization>(&op);
    if (normalization != nullptr && !normalization->centred) {
        const bool casts = size_of(type) < size_of(DataType::f32);
        return forward ? known(modules.rms, casts ? 1 : rms_without_casts)
                       : known(modules.rms_backward, casts ? 1 : rms_backward_without_casts);
    }
    const auto* elementwise = std::get_if<Elementwise>(&op);
    if (elementwise != nullptr && elementwise->function == "rotary")
        return known(forward ? modules.rotary : modules.rotary_backward, 1);
    return std::nullopt;
}

class Transformers {
public:
    Transformers(const TileModel& model, const DeviceClass& device, DataType type, std::int64_t batch)
        : model_(model), device_(device), type_(type), batch_(batch) {
        passes_ = model.elementwise_passes.value;
        if (size_of(type) == size_of(DataType::f32)) {
            const double more = std::max(1.0, passes_ / passes_with_casts);
            passes_ = std::min(passes_, passes_without_casts * more);
        }
    }

    /// Seconds on the device, and kernels that the host issues.
    struct Work {
        Seconds time;
        double kernels = 1;
        double error = 0;  // beside the chip's
    };

    Work of(const MatMul& op, Pass pass) const {
        const double rows = static_cast<double>(batch_ * op.m);
        Seconds time = product_time(product_sizes(op, pass, batch_), 1, model_, device_, type_);
        if (op.activation || (op.bias && pass == Pass::backward_weights))
            time += memory(rows * static_cast<double>(op.n));
        return {time + moved(conversion_bytes(op, pass, type_, batch_)), model_.dense_kernels.value};
    }

    // One expert's product as often as there are experts, in one kernel.
    Work of(const GroupedMatMul& op, Pass pass) const {
        const std::int64_t rows = rows_of_expert(op, batch_);
        Seconds time =
            product_time(product_sizes(MatMul{rows, op.n, op.k}, pass, 1), op.experts, model_, device_, type_);
        if (op.bias && pass == Pass::backward_weights) time += memory(static_cast<double>(op.experts * rows * op.n));
        return {time + moved(conversion_bytes(op, pass, type_, batch_)), model_.dense_kernels.value};
    }

    // Each product of a pass in a kernel of its own.
    Work of(const BatchedMatMul& op, Pass pass) const {
        const StackedProducts stack = stacked_products(op, pass, batch_);
        Seconds time{0};
        for (const Pass each : stack.passes)
            time += product_time(product_sizes(stack.each, each, 1), stack.count, model_, device_, type_);
        const bool measured = size_of(type_) != size_of(DataType::f32);
        return {time, static_cast<double>(stack.passes.size()), measured ? 0 : stacks_in_f32_error};
    }

    Work of(const Attention& op, Pass pass) const {
        const double q = static_cast<double>(op.queries), k = static_cast<double>(op.keys);
        const double d = static_cast<double>(op.head_size), v = static_cast<double>(value_size(op));
        const double heads = static_cast<double>(batch_ * op.heads);
        const double samples = static_cast<double>(batch_);
        const double passes =
            op.kept && model_.score_passes.value == 0 ? counted_score_passes : model_.score_passes.value;
        const bool backward = pass != Pass::forward;
        const double rows_of_queries = static_cast<double>(query_width(op) + result_width(op));
        const double rows_of_keys = static_cast<double>(key_width(op) + value_width(op));
        const Seconds operands = memory((backward ? 2 : 1) * samples * (q * rows_of_queries + k * rows_of_keys));
        if (passes == 0) {
            const Seconds kernel = fused_attention_time(op, pass, batch_, model_, device_, type_);
            return {std::max(kernel, operands) + std::max(0.0, passes_ - 1) * operands,
                    (backward ? 1.5 : 1) * model_.attention_kernels.value, fused_attention_error};
        }
        // Forward softmax reads the scores, backward its result and that one's gradient.
        const bool short_rows = k <= longest_masked_row && size_of(type_) < size_of(DataType::f32);
        const double masked = op.causal && short_rows ? model_.masked_passes.value : 0;
        const double hidden = masked * 2 * (1 - shown_share(op)) * (backward ? 2 : 1);
        const auto product = [&](double m, double n, double depth) {
            return product_time({m, n, depth}, batch_ * op.heads, model_, device_, type_);
        };
        // Scores and sums of values; backward two products for each of these. Rows of scores are as long as keys are
        // many, and what a causal mask hides of them is computed.
        const Seconds pair = product(k, q, d) + product(v, q, k);
        Seconds time = (backward ? 2.0 * pair : pair) + passes_ * operands;
        time += memory(std::max(0.0, (backward ? 1.5 : 1) * passes - hidden) * heads * q * k);
        return {time, (backward ? 1.5 : 1) * model_.attention_kernels.value};
    }

    Work of(const SoftmaxLoss& op, Pass pass) const { return loss(op.rows * elements(op.image) * op.classes, pass); }
    Work of(const SoftmaxTerms& op, Pass pass) const { return loss(op.rows * op.classes, pass); }
    // Where elementwise operators are fused, a bias, a dropout and an addition are one kernel (Narayanan et al. 2021,
    // section 4.2): forward it reads two tensors and writes one and a mask of a byte, backward it reads the mask with
    // the gradient. The bias is added on the way, and its own gradient reads what has been written.
    Work of(const Bias& op, Pass pass) const {
        const Bytes bytes = passes_ * bytes_moved(op, pass, type_, batch_);
        if (!fuses()) return {moved(bytes), 1};
        if (pass == Pass::backward_weights) return {moved(0.5 * bytes), 1};
        return {moved(bytes / static_cast<double>(batch_ * elements(op.shape))), 0};
    }
    Work of(const Dropout& op, Pass pass) const {
        const Bytes bytes = passes_ * bytes_moved(op, pass, type_, batch_);
        if (!fuses()) return {moved(bytes), 1};
        if (pass == Pass::forward) return {moved(0.25 * bytes), 0};
        return {moved(2.5 / 3 * bytes), 1};
    }
    // Half of what a mixture issues beside its products.
    Work of(const DispatchTokens& op, Pass pass) const { return exchanged(op, pass); }
    Work of(const CombineTokens& op, Pass pass) const { return exchanged(op, pass); }
    Work of(const auto& op, Pass pass) const {
        const double one_kernel = is_elementwise(op) ? passes_ : 1;
        const double passes = module_passes(op, pass, type_, model_.modules).value_or(one_kernel);
        const Bytes bytes = passes * bytes_moved(op, pass, type_, batch_);
        return {moved(bytes), 1};
    }

private:
    bool fuses() const { return model_.elementwise_passes.value <= 1; }
    Seconds moved(Bytes bytes) const { return bytes / (device_.memory_bandwidth.value * model_.memory.value); }
    Seconds memory(double values) const {
        return values * size_of(type_) / (device_.memory_bandwidth.value * model_.memory.value);
    }
    Work exchanged(const auto& op, Pass pass) const {
        const double kernels = model_.mixture_kernels.source.empty() ? 1 : 0.5 * model_.mixture_kernels.value;
        return {moved(bytes_moved(op, pass, type_, batch_)), (pass == Pass::forward ? 1 : 2) * kernels};
    }
    Work loss(std::int64_t scores, Pass pass) const {
        // Casts are most of the passes, and scores have 16 bits where operands have 8.
        double passes = model_.loss_passes.value;
        if (size_of(type_) == size_of(DataType::f32)) passes = std::min(passes, loss_passes_without_casts(pass));
        if (type_ == DataType::fp8) passes *= size_of(DataType::bf16) / size_of(DataType::fp8);
        return {memory(passes * static_cast<double>(batch_ * scores)),
                model_.loss_kernels.value * (pass == Pass::forward ? 1 : 0.5)};
    }

    const TileModel& model_;
    const DeviceClass& device_;
    DataType type_;
    std::int64_t batch_;
    double passes_;  // of elementwise operators and normalizations
};

bool of_transformers(const Op& op) {
    return std::holds_alternative<MatMul>(op) || std::holds_alternative<Attention>(op) ||
           std::holds_alternative<SoftmaxLoss>(op) || std::holds_alternative<SoftmaxTerms>(op) ||
           std::holds_alternative<TermsLoss>(op) || std::holds_alternative<Embedding>(op) || on_rows(op) ||
           std::holds_alternative<GroupedMatMul>(op) || std::holds_alternative<BatchedMatMul>(op) ||
           std::holds_alternative<DispatchTokens>(op) || std::holds_alternative<CombineTokens>(op) ||
           std::holds_alternative<Communication>(op) || updated(op).has_value();
}

// The loss of each row of tokens; of an image's label or its pixels it is no transformer's.
bool loses_by_rows(const Op& op) {
    const auto* loss = std::get_if<SoftmaxLoss>(&op);
    return (loss != nullptr && loss->rows > 1) || std::holds_alternative<SoftmaxTerms>(op);
}

// How often values cross memory does not depend on their type, but for casts; what an f32 product takes does. Of stacks
// of them nothing else is known.
bool known_in(DataType type, const Op& op) {
    return type != DataType::f32 || std::holds_alternative<Attention>(op) ||
           std::holds_alternative<BatchedMatMul>(op) || loses_by_rows(op) || on_rows(op) || updated(op).has_value();
}

}  // namespace

Seconds tiles_time(const ProductSizes& sizes, std::int64_t count, const TileModel& model, const DeviceClass& device,
                   DataType type) {
    const double m = sizes.m, n = sizes.n, k = sizes.k, products = static_cast<double>(count);
    const FlopRate processor = device.peak.at(type).value * (model.large_tile.value / model.processors.value);
    const Bandwidth memory = device.memory_bandwidth.value * model.memory.value;
    // To begin and store a tile takes a time, which was told in steps of 16-bit Tensor Cores.
    const auto tensor = device.peak.find(DataType::f16);
    const bool other = size_of(type) != size_of(DataType::f16) && tensor != device.peak.end();
    const double depth = model.depth.value * (other ? device.peak.at(type).value / tensor->second.value : 1);
    Seconds best{std::numeric_limits<double>::infinity()};
    for (const Tile& tile : tiles) {
        const double speed = std::pow(model.small_tile.value, tile.smaller);
        const double count_of_tiles = std::ceil(m / tile.rows) * std::ceil(n / tile.columns) * products;
        for (const double cuts : cuts_of_k) {
            if (cuts > 1 && count > 1) break;
            const double waves = std::ceil(count_of_tiles * cuts / model.processors.value);
            const Flops work{2 * tile.rows * tile.columns * (k / cuts + depth)};
            Seconds time = waves * (work / (processor * speed));
            if (cuts > 1) time += Bytes{4 * 2 * m * n * cuts} / memory;  // parts in f32, written and read
            best = std::min(best, time);
        }
    }
    return type != DataType::f32 && !aligned(sizes, type) ? model.unaligned.value * best : best;
}

Seconds product_time(const ProductSizes& sizes, std::int64_t count, const TileModel& model, const DeviceClass& device,
                     DataType type) {
    const double m = sizes.m, n = sizes.n, k = sizes.k, products = static_cast<double>(count);
    const Bytes made = size_of(type == DataType::fp8 ? DataType::bf16 : type);
    const Bytes moved = products * ((m * k + k * n) * size_of(type) + m * n * made);
    return std::max(tiles_time(sizes, count, model, device, type),
                    moved / (device.memory_bandwidth.value * model.memory.value));
}

TileModel with_software(TileModel chip, const Software& software, Sourced<Seconds> launch) {
    chip.elementwise_passes = software.elementwise_passes;
    chip.score_passes = software.score_passes;
    chip.masked_passes = software.masked_passes;
    chip.loss_passes = software.loss_passes;
    chip.attention_kernel = software.attention_kernel;
    chip.modules = software.modules;
    chip.issues_ahead = software.issues_ahead;
    chip.issue = software.issue.source.empty() ? std::move(launch) : software.issue;
    chip.dense_kernels = software.dense_kernels;
    chip.attention_kernels = software.attention_kernels;
    chip.loss_kernels = software.loss_kernels;
    chip.mixture_kernels = software.mixture_kernels;
    return chip;
}

bool fitted_on_steps(const DeviceClass& device) {
    return device.tiles != nullptr &&
           (device.tiles->before_model || !has_chip_kernels(device, "matmul", DataType::f16));
}

bool has_tiles(const Machine& machine) {
    return std::ranges::any_of(machine.classes, [](const DeviceClass& each) { return each.tiles != nullptr; });
}

std::optional<Price> tile_price(const Problem& problem, const DeviceClass& device) {
    if (device.tiles == nullptr) return std::nullopt;
    if (!module_passes(problem.op, problem.pass, problem.type, device.tiles->modules)) {
        if (!of_transformers(problem.op) || !known_in(problem.type, problem.op)) return std::nullopt;
    }
    if (!updated(problem.op) && !device.peak.contains(problem.type)) return std::nullopt;
    if (!(device.memory_bandwidth.value.value > 0)) return std::nullopt;
    const TileModel& model = *device.tiles;
    const Transformers transformers{model, device, problem.type, problem.batch};
    const auto work = std::visit([&](const auto& op) { return transformers.of(op, problem.pass); }, problem.op);
    const Seconds issued = work.kernels * model.issue.value;
    const bool host = issued > work.time;
    return Price{host ? issued : work.time, std::hypot(model.error, work.error),
                 fmt::format("{} of {}, {}", host ? "the host's calls" : "tiles and bytes", device.name,
                             host ? model.issue.source : model.large_tile.source)};
}

Seconds issue_time(const Problem& problem, const DeviceClass& device) {
    if (device.tiles == nullptr) return Seconds{};
    const bool known = of_transformers(problem.op) && (updated(problem.op) || device.peak.contains(problem.type));
    if (!known) return device.tiles->issue.value;
    const Transformers transformers{*device.tiles, device, problem.type, problem.batch};
    return std::visit([&](const auto& op) { return transformers.of(op, problem.pass).kernels; }, problem.op) *
           device.tiles->issue.value;
}

std::vector<Problem> sums_beside(const Problem& kernel, std::vector<Problem> sums, const DeviceClass& device) {
    if (fitted_on_steps(device) && tile_price(kernel, device)) return {};
    std::erase_if(sums, [&](const Problem& sum) { return tile_price(sum, device).has_value(); });
    return sums;
}

}  // namespace rehearse
