// SPDX-License-Identifier: Apache-2.0
// Operators that look along an axis: reductions, softmax, normalization, recurrent layers.
#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "models/onnx/infer.hpp"
#include "models/onnx/windows.hpp"

namespace rehearse::models {
namespace {

struct Name {
    std::string_view onnx, ours;
};
constexpr std::array reductions{
    Name{"ReduceSum", "sum"},       Name{"ReduceMean", "mean"},
    Name{"ReduceMax", "max"},       Name{"ReduceMin", "min"},
    Name{"ReduceProd", "prod"},     Name{"ReduceL1", "l1"},
    Name{"ReduceL2", "l2"},         Name{"ReduceLogSumExp", "logsumexp"},
    Name{"ReduceLogSum", "logsum"}, Name{"ReduceSumSquare", "sumsquare"},
    Name{"ArgMax", "argmax"},       Name{"ArgMin", "argmin"},
    Name{"TopK", "topk"},           Name{"CumSum", "cumsum"},
};

// The axis of a sample in which the file has the samples, too; -1 where they have one of their own.
std::int64_t merged_samples(const Value& value, const Shape& sample) {
    return sample.size() == value.dims->size() ? value.batch : -1;
}

double stored(double value) { return std::stod(fmt::format("{}", static_cast<float>(value))); }

bool holds_zeros(const Import& import, const onnx::NodeProto& node, int input) {
    if (input >= node.input_size() || node.input(input).empty()) return true;
    const auto& data = import.graph.value(node.input(input)).data;
    return data && std::ranges::all_of(*data, [](double each) { return each == 0; });
}

// States that a kernel of the whole layer neither takes nor gives.
std::string states_unlike_ours(const Import& import, const onnx::NodeProto& node) {
    if (!holds_zeros(import, node, 5) || !holds_zeros(import, node, 6)) return "it does not begin with zeros";
    const bool cells = node.output_size() > 2 && !node.output(2).empty() && import.graph.readers(node.output(2)) > 0;
    return cells ? "its last cells are read" : "";
}

// What ONNX's cells may do and ours do not; sets what they do. Empty where nothing is left.
std::string unlike_ours(const Import& import, const onnx::NodeProto& node, Recurrent& op) {
    if (has(node, "clip") || integer(node, "input_forget", 0) != 0) return "it clips, or couples its gates";
    for (const auto& attribute : node.attribute()) {
        if (attribute.name() != "activations") continue;
        const std::vector<std::string> given(attribute.strings().begin(), attribute.strings().end());
        std::vector<std::string> usual;
        for (std::int64_t d = 0; d < op.directions; ++d) {
            if (op.cell != "rnn") usual.push_back("Sigmoid");
            usual.push_back("Tanh");
            if (op.cell == "lstm") usual.push_back("Tanh");
        }
        op.relu = op.cell == "rnn" && std::ranges::all_of(given, [](const auto& each) { return each == "Relu"; });
        if (!op.relu && given != usual) return "its gates have other functions than sigmoid and tanh";
    }
    if (node.input_size() > 4 && !node.input(4).empty()) return "its samples have lengths of their own";
    return holds_zeros(import, node, 7) ? "" : "it has peepholes";
}

}  // namespace

std::string reduce(Import& import, const onnx::NodeProto& node) {
    const int from = import.source(node, 0);
    const Shape shape = import.builder.shape(from);
    const Value& value = import.graph.value(node.input(0));
    const auto* const named = std::ranges::find(reductions, node.op_type(), &Name::onnx);
    if (named == reductions.end()) return "the operator is unknown";
    Reduction op{std::string{named->ours}, shape, {}};
    std::vector<std::int64_t> axes = list(node, "axes").value_or(std::vector<std::int64_t>{});
    if (axes.empty() && node.input_size() > 1 && node.op_type() != "TopK")
        axes = import.graph.numbers(node.input(1)).value_or(std::vector<std::int64_t>{});
    if (node.op_type().starts_with("Arg")) axes = {integer(node, "axis", 0)};
    if (node.op_type() == "TopK") axes = {integer(node, "axis", -1)};
    if (axes.empty()) {
        axes.resize(value.dims->size());
        std::iota(axes.begin(), axes.end(), 0);
    }
    bool samples = false;
    for (const std::int64_t axis : axes) {
        const std::int64_t at = in_sample(value, shape, axis);
        if (at >= 0) op.axes.push_back(at);
        samples = samples || at < 0 || at == merged_samples(value, shape);
    }
    const bool all = std::ranges::any_of(axes, [&](std::int64_t axis) {
        return value.batch >= 0 && positive_modulo(axis, static_cast<std::int64_t>(value.dims->size())) == value.batch;
    });
    std::ranges::sort(op.axes);
    if (node.op_type() == "TopK") {
        for (int i = 0; i < node.output_size(); ++i) {
            if (import.graph.readers(node.output(i)) == 0) continue;
            const std::string kind = integer(node, "largest", 1) != 0 ? "largest" : "smallest";
            Rearrangement sorted{i == 0 ? kind : kind + "at", {shape}, import.sample(node, node.output(i)), op.axes};
            const int layer = import.put(node, std::move(sorted), {from}, {}, i);
            if (samples) import.not_run(layer, "it sorts samples");
        }
        return "";
    }
    op.keep = integer(node, "keepdims", 1) != 0;
    const int images = value.dims->size() == 4 && value.batch == 0 ? 3 : 0;
    // The mean of each channel of an image is its global average pool.
    if (op.function == "mean" && images == 3 && shape.size() == 3 && op.axes == std::vector<std::int64_t>{1, 2}) {
        import.put(node,
                   Pool{PoolKind::average,
                        shape[0],
                        shape[1],
                        shape[2],
                        {.kernel_h = shape[1],
                         .kernel_w = shape[2] }},
                   {from});
        return "";
    }
    // A mean over the samples, too, of which nothing is left but a number, is a loss, or a part of one.
    const auto made = import.graph.dims(node.output(0));
    const bool number = made && elements(*made) == 1;
    const bool is_loss =
        op.function == "mean" && number && (all || samples) && only_added(import.graph, node.output(0));
    const bool turned = integer(node, "exclusive", 0) != 0 || integer(node, "reverse", 0) != 0;
    const int layer = import.put(node, std::move(op), {from});
    if (is_loss) {
        import.losses[node.output(0)] = {{ layer, 1 }};
    } else if (samples && import.graph.batch() != 1) {
        import.not_run(layer, "it brings samples together");
    }
    if (turned) import.not_run(layer, "it sums from the end, or without the element itself");
    return "";
}

std::string softmax(Import& import, const onnx::NodeProto& node) {
    const int from = import.source(node, 0);
    const Shape shape = import.builder.shape(from);
    const Value& value = import.graph.value(node.input(0));
    const bool modern = import.graph.opset() >= 13;  // before, everything behind the axis was one vector
    const auto rank = static_cast<std::int64_t>(value.dims->size());
    std::int64_t axis = integer(node, "axis", modern ? -1 : 1);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) import.graph.fail(node, fmt::format("it has no axis {} of {}", axis, rank));
    const std::string& output = node.output(0);
    const bool last = output == import.graph.outputs().front() && import.graph.readers(output) == 1;
    const auto& readers = import.graph.readers_of(output);
    if (node.op_type() == "LogSoftmax" && import.graph.readers(output) == 1 && readers.size() == 1 &&
        readers.front()->op_type() == "NegativeLogLikelihoodLoss" && (axis == 1 || rank == 2)) {
        import.alias(node, output, node.input(0));  // the loss takes scores
        return "";
    }
    const bool classes = value.batch == 0 && axis == 1;  // of each sample, or of each of its pixels
    const bool whole = classes && (!modern || elements(shape) == shape[0]);
    if (last && (whole || (classes && rank >= 4))) {
        import.alias(node, output, node.input(0));
        if (whole) import.places[output].layer = import.layer_of(node, node.input(0), {elements(shape)});
        import.ends_in_softmax = true;
        return "";
    }
    if (whole && shape.size() == 1 && node.op_type() == "Softmax") {
        import.put(node, Softmax{shape[0]}, {from});
        return "";
    }
    const std::int64_t at = std::max<std::int64_t>(0, in_sample(value, shape, axis));
    SoftmaxAlong op{shape, at, node.op_type() == "LogSoftmax"};
    if (!modern) {  // all behind the axis together
        const std::int64_t rows =
            std::accumulate(shape.begin(), shape.begin() + at, std::int64_t{1}, std::multiplies<>{});
        // PyTorch's exporter puts the axis last, so that both readings agree.
        if (at + 1 != static_cast<std::int64_t>(shape.size())) op.shape = {rows, elements(shape) / rows}, op.axis = 1;
    }
    const bool samples = in_sample(value, shape, axis) < 0 && import.graph.batch() != 1;
    const int layer = import.put(node, op, {import.source(node, 0, op.shape)});
    if (samples) import.not_run(layer, "it brings samples together");
    return "";
}

namespace {

// A batch normalization without scale and shift, for which PyTorch writes constants of 1 and 0.
bool is_plain(const Import& import, const onnx::NodeProto& node) {
    const auto holds = [&](int input, double number) {
        const Value& value = import.graph.value(node.input(input));
        return value.weights.empty() && value.data &&
               std::ranges::all_of(*value.data, [&](double each) { return each == number; });
    };
    return holds(1, 1) && holds(2, 0);
}

}  // namespace

std::string batch_norm(Import& import, const onnx::NodeProto& node) {
    Shape shape = import.sample(node, node.input(0));
    const bool planes = several(import, node);
    if (planes) std::swap(shape[0], shape[1]);
    while (shape.size() < 3) shape.push_back(1);
    if (shape.size() > 4) return "it does not normalize images or volumes";
    for (int i = 1; i <= 4; ++i)
        if (import.weights(node, i, 1)[0] != shape[0])
            import.graph.fail(node, fmt::format("'{}' has not one value a channel", node.input(i)));
    const std::size_t rank = shape.size();
    // Stored as f32: what was meant is the shortest number that gives it.
    const double epsilon = stored(number(node, "epsilon", 1e-5));
    const double momentum = std::round((1 - stored(number(node, "momentum", 0.9))) * 1e9) / 1e9;
    int from = planes ? import.volume_of(node, 0) : import.source(node, 0, shape);
    if (planes && import.builder.shape(from) != shape) {  // vectors of features
        onnx::NodeProto named;
        named.set_name(import.builder.at(from).name + ".view");
        from = import.builder.layer(import.name_for(named), Flatten{import.builder.shape(from), shape}, {from});
    }
    const bool affine = !is_plain(import, node);
    const int layer = import.put(node,
                                 BatchNorm{.channels = shape[0],
                                           .height = shape[rank - 2],
                                           .width = shape.back(),
                                           .depth = rank == 4 ? shape[1] : 0,
                                           .epsilon = epsilon,
                                           .momentum = momentum,
                                           .affine = affine},
                                 {from}, affine ? import.tensors(node, 1, 2) : std::vector<std::string>{});
    import.places[node.output(0)].turned = planes;
    import.builder.add_state(2 * shape[0]);
    for (const int i : {3, 4}) {
        const auto& data = import.graph.value(node.input(i)).data;
        if (data) import.given[layer].state.insert(import.given[layer].state.end(), data->begin(), data->end());
    }
    if (affine) import.starts[layer] = {{node.input(1)}, { node.input(2) }};
    return "";
}

// Instance, group, layer and RMS normalization, and normalization to a norm of 1.
std::string normalize(Import& import, const onnx::NodeProto& node) {
    const std::string& type = node.op_type();
    const int from = import.source(node, 0);
    const Shape shape = import.builder.shape(from);
    const Value& value = import.graph.value(node.input(0));
    if (!value.dims || value.dims->empty()) return "a number alone is not normalized";
    Normalization op{.shape = shape, .epsilon = stored(number(node, "epsilon", 1e-5))};
    const auto trained = [&](int i) {
        if (i >= node.input_size() || import.graph.value(node.input(i)).weights.empty()) return std::int64_t{0};
        const auto dims = import.graph.dims(node.input(i));
        if (!dims) import.graph.fail(node, fmt::format("the size of '{}' is not known", node.input(i)));
        return elements(*dims);
    };
    std::vector<std::string> tensors = import.tensors(node, 1, 2);
    op.gamma = trained(1), op.beta = trained(2);
    if (type == "InstanceNormalization" || type == "GroupNormalization") {
        const bool planes = several(import, node);
        const std::int64_t images = planes ? shape[0] : 1, channels = planes ? shape[0] * shape[1] : shape[0];
        op.sets = type == "GroupNormalization" ? images * integer(node, "num_groups", 1) : channels;
        op.inner = std::max<std::int64_t>(1, elements(shape) / std::max<std::int64_t>(1, channels));
        if (op.gamma > 0 && op.gamma != channels && !planes)
            op.inner = std::max<std::int64_t>(1, elements(shape) / op.gamma);
    } else if (type == "LpNormalization" || type == "MeanVarianceNormalization") {
        op.gamma = op.beta = 0;
        tensors.clear();
        op.sets = type == "LpNormalization" ? std::max<std::int64_t>(1, elements(shape) / value.dims->back()) : 1;
        op.centred = type != "LpNormalization";
    } else {
        std::int64_t axis = integer(node, "axis", -1);
        if (axis < 0) axis += static_cast<std::int64_t>(value.dims->size());
        if (axis < 0) return fmt::format("its axis is none of {}", to_string(*value.dims));
        const std::int64_t features = elements(
            {value.dims->begin() + std::min<std::ptrdiff_t>(axis, static_cast<std::ptrdiff_t>(value.dims->size())),
             value.dims->end()});
        if (features < 1 || elements(shape) % features != 0) return "it normalizes over the samples";
        op.sets = elements(shape) / features;
        op.centred = type == "LayerNormalization";
        if (op.centred && op.gamma == features && op.beta == features && op.epsilon == 1e-5) {
            const Shape rows = op.sets == 1 ? Shape{features} : Shape{op.sets, features};
            const int made = import.put(node, LayerNorm{op.sets, features}, {import.source(node, 0, rows)}, tensors);
            import.begin_as(made, {node.input(1), node.input(2)});
            return "";
        }
    }
    const bool other = type == "LpNormalization" || type == "MeanVarianceNormalization";
    const int layer = import.put(node, std::move(op), {from}, std::move(tensors));
    import.begin_as(layer, {node.input_size() > 1 ? node.input(1) : "", node.input_size() > 2 ? node.input(2) : ""});
    if (other) import.not_run(layer, fmt::format("no kernel does what {} does", type));
    return "";
}

namespace {

// What an LSTM's gates read of its cells, a weight a number and gate, as a function of what the cell makes: weights and
// operations beside those of Recurrent, which has none of it.
void put_peepholes(Import& import, const onnx::NodeProto& node, const Recurrent& op, int cell) {
    if (op.cell != "lstm" || holds_zeros(import, node, 7) || !import.graph.constant(node.input(7))) return;
    constexpr double gates = 3;  // input, output and forget
    const Shape shape = import.builder.shape(cell);
    const Shape weights = import.weights(node, 7, 2);
    import.put(node,
               Elementwise{.function = "compound",
                           .shape = shape,
                           .inputs = {shape},
                           .weights = {weights},
                           .numbers =
                           { 2 * gates }},
               {cell}, import.tensors(node, 7, 7));
}

}  // namespace

std::string recurrent(Import& import, const onnx::NodeProto& node) {
    const Value& x = import.graph.value(node.input(0));
    if (!x.dims || x.dims->size() != 3) return "what it reads is not {steps, samples, features}";
    const Shape r = import.weights(node, 2, 3);
    const bool batch_first = integer(node, "layout", 0) == 1;
    const std::int64_t steps = (*x.dims)[batch_first ? 1 : 0], inputs = (*x.dims)[2];
    const bool bias = node.input_size() > 3 && !node.input(3).empty() && import.graph.constant(node.input(3));
    std::string cell = node.op_type();
    std::ranges::transform(cell, cell.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    Recurrent op{cell, steps, inputs, r[2], r[0], bias};
    op.reverse = text(node, "direction", "forward") == "reverse";
    op.reset_after = integer(node, "linear_before_reset", 0) != 0;
    const std::string other = unlike_ours(import, node, op);
    const Shape shape{steps, inputs};
    if (import.graph.sample(node.input(0)) && elements(*import.graph.sample(node.input(0))) != elements(shape))
        return "its samples are not its batch";
    constexpr std::int64_t most_steps = 512;
    const std::string states = states_unlike_ours(import, node);
    if (import.graph.keeps_values() && !states.empty() && other.empty() && !batch_first && steps <= most_steps) {
        put_unrolled(import, node, op);
        return "";
    }
    std::vector<std::string> tensors = import.tensors(node, 1, bias ? 3 : 2);
    // Tensors of a cell are cut into gates and joined again: each counts once.
    std::ranges::sort(tensors);
    tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
    const int from = import.source(node, 0, shape);
    const int layer = import.put(node, op, {from}, std::move(tensors));
    import.starts[layer] = {{node.input(1)}, { node.input(2) }};
    if (bias) import.starts[layer].push_back({node.input(3)});
    if (!other.empty() || !states.empty()) import.not_run(layer, other.empty() ? states : other);
    put_peepholes(import, node, op, layer);
    for (int i = 1; i < node.output_size(); ++i) {  // the last states
        if (node.output(i).empty() || import.graph.readers(node.output(i)) == 0) continue;
        const int last =
            import.put(node, Rearrangement{"pack", {import.builder.shape(layer)}, import.sample(node, node.output(i))},
                       {layer}, {}, i);
        if (i > 1) {
            import.not_run(last, "the last cells of an LSTM are read: no kernel gives them out");
            continue;
        }
        constexpr std::int64_t most_places = 1 << 26;
        if (elements(import.builder.shape(layer)) > most_places) {
            import.not_run(last, "the last states are picked from too many numbers");
            continue;
        }
        std::vector<std::int32_t> places;  // in {steps, directions, hidden}
        for (std::int64_t d = 0; d < op.directions; ++d) {
            const std::int64_t step = op.reverse || d == 1 ? 0 : steps - 1;
            for (std::int64_t j = 0; j < op.hidden; ++j)
                places.push_back(static_cast<std::int32_t>((step * op.directions + d) * op.hidden + j));
        }
        import.given[last].places = {std::move(places)};
    }
    return "";
}

}  // namespace rehearse::models
