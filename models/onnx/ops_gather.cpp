// SPDX-License-Identifier: Apache-2.0
// Elements picked from a table, or put into one, by indices: constant ones, those fed in, or those that data make.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "models/onnx/infer.hpp"
#include "models/onnx/rows_by_ids.hpp"

namespace rehearse::models {

namespace {

constexpr double most_places = 1 << 28;  // that are kept, 4 bytes each

// How many elements `picked` picks.
double count_of_picked(const Shape& table, std::size_t axis, std::size_t indices) {
    return static_cast<double>(elements(table)) / static_cast<double>(table[axis]) * static_cast<double>(indices);
}

// Which element of a sample of the table each of the result is, where whole slices along an axis are picked.
std::vector<std::int32_t> picked(const Shape& table, std::size_t axis, const std::vector<std::int64_t>& indices) {
    const auto along = static_cast<std::ptrdiff_t>(axis);
    const std::int64_t outer = elements(Shape(table.begin(), table.begin() + along));
    const std::int64_t inner = elements(Shape(table.begin() + along + 1, table.end()));
    std::vector<std::int32_t> places;
    for (std::int64_t i = 0; i < outer; ++i) {
        for (const std::int64_t index : indices) {
            const std::int64_t at = index < 0 ? index + table[axis] : index;
            for (std::int64_t j = 0; j < inner; ++j)
                places.push_back(static_cast<std::int32_t>((i * table[axis] + at) * inner + j));
        }
    }
    return places;
}

// Where each index of a GatherElements, GatherND, ScatterElements or ScatterND leads in the table's sample; nothing
// where indices are not known, differ from sample to sample, or lead from one to another.
std::optional<std::vector<std::int32_t>> places_in_sample(const Import& import, const onnx::NodeProto& node,
                                                          const Shape& table, const Shape& moved) {
    const Value& from = import.graph.value(node.input(0));
    const Value& where = import.graph.value(node.input(1));
    if (where.kind != Value::Kind::constant || !where.data || !where.dims || !from.dims || from.batch < 0 ||
        from.lead != 1 || elements(*from.dims) < 1 || elements(moved) < 1 || table.size() + 1 != from.dims->size())
        return std::nullopt;
    const Shape& dims = *from.dims;
    const auto samples = static_cast<std::size_t>(from.batch);
    std::vector<std::int64_t> strides(dims.size(), 1);
    for (std::size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
    const auto count = static_cast<std::size_t>(elements(moved));
    const auto batch = static_cast<std::size_t>(import.graph.batch());
    const bool rows = node.op_type().ends_with("ND");
    const std::size_t deep = rows && !where.dims->empty() ? static_cast<std::size_t>(where.dims->back()) : 1;
    const auto paired = static_cast<std::size_t>(std::max<std::int64_t>(0, integer(node, "batch_dims", 0)));
    if (deep < 1 || paired + deep > dims.size() || paired >= where.dims->size() || (paired > 0 && !rows) ||
        (rows && where.data->size() % deep != 0))
        return std::nullopt;
    const std::int64_t slice =
        rows ? elements(Shape(dims.begin() + static_cast<std::ptrdiff_t>(paired + deep), dims.end())) : 1;
    // All samples together have what is taken, each the same number of places.
    const double taken = static_cast<double>(where.data->size() / deep) * static_cast<double>(slice);
    if (taken != static_cast<double>(count) * static_cast<double>(batch) || taken > most_places) return std::nullopt;
    // Of the first `paired` axes each index leads to where it stands itself.
    const auto stands = [&](std::int64_t index) {
        std::int64_t place = 0;
        for (std::size_t d = where.dims->size() - 1; d-- > 0; index /= (*where.dims)[d])
            if (d < paired) place += index % (*where.dims)[d] * strides[d];
        return place;
    };
    const auto axis = static_cast<std::size_t>(
        integer(node, "axis", 0) + (integer(node, "axis", 0) < 0 ? static_cast<std::int64_t>(dims.size()) : 0));
    if (!rows && (where.dims->size() != dims.size() || axis >= dims.size() || axis == samples)) return std::nullopt;
    // Of every sample the same places, in the order of the moved elements: those of sample 0 are told.
    std::vector<std::vector<std::int32_t>> of_sample(batch);
    const auto take = [&](std::int64_t place) {
        const std::int64_t sample = place / strides[samples] % dims[samples];
        const std::int64_t inner = place % strides[samples];
        const std::int64_t outer = place / (strides[samples] * dims[samples]);
        of_sample[static_cast<std::size_t>(sample)].push_back(
            static_cast<std::int32_t>(outer * strides[samples] + inner));
    };
    for (std::size_t i = 0; i < where.data->size() / deep; ++i) {
        auto rest = static_cast<std::int64_t>(i);
        std::int64_t place = rows ? stands(rest) : 0;
        for (std::size_t d = rows ? deep : dims.size(); d-- > 0;) {
            const bool given = rows || d == axis;
            const std::size_t to = rows ? paired + d : d;  // the axis of the table
            std::int64_t index = given ? to_integer((*where.data)[rows ? i * deep + d : i]) : 0;
            if (!rows) {
                if (!given) index = rest % (*where.dims)[d];
                rest /= (*where.dims)[d];
            }
            if (index < 0) index += dims[to];
            if (index < 0 || index >= dims[to]) return std::nullopt;
            place += index * strides[to];
        }
        for (std::int64_t j = 0; j < slice; ++j) take(place + j);
    }
    for (const auto& each : of_sample)
        if (each.size() != count || each != of_sample.front()) return std::nullopt;
    return of_sample.front();
}

}  // namespace

std::string gather(Import& import, const onnx::NodeProto& node) {
    if (node.input_size() < 2) import.graph.fail(node, "it has no input 1");
    const Value& table = import.graph.value(node.input(0));
    const Value& where = import.graph.value(node.input(1));
    const Shape to = import.sample(node, node.output(0));
    const auto dims = import.graph.sample(node.input(1));
    const std::int64_t count = where.kind == Value::Kind::constant ? where.dims ? elements(*where.dims) : 1
                               : dims                              ? elements(*dims)
                                                                   : 1;
    const bool computed = import.is_computed(node.input(0));  // of weights: a layer like others
    if (table.kind == Value::Kind::constant && !computed) {
        const bool rows =
            node.op_type() == "Gather" && integer(node, "axis", 0) == 0 && table.dims && table.dims->size() == 2;
        if (rows && where.kind == Value::Kind::side) {
            const std::int64_t vocabulary = (*table.dims)[0], width = (*table.dims)[1];
            const int ids = import.indices(node.input(1), count, vocabulary);
            import.put(node, Embedding{count, vocabulary, width}, {ids}, import.tensors(node, 0, 0));
            return "";
        }
        Shape whole = table.dims.value_or(Shape{1});
        if (whole.empty()) whole = {1};
        if (!table.weights.empty()) {
            const int layer = import.put(node, Gather{whole, to, count, true}, {}, import.tensors(node, 0, 0));
            import.not_run(layer, "which elements it takes depends on integers that are fed in");
            return "";
        }  // what nobody trains, as a detector's anchors, is a layer like others
    }
    if (picks_samples(import, node)) import.mixed(node, "integers pick rows of several samples");
    const int from = import.source(node, 0);
    const Shape shape = import.builder.shape(from);
    // Ids of a table that is computed are fed in as ids, which rows are taken by as numbers.
    if (table.kind == Value::Kind::constant && where.kind == Value::Kind::side && node.op_type() == "Gather" &&
        integer(node, "axis", 0) == 0 && import.picked_of(node.input(1)))
        import.indices(node.input(1), count, shape.front());
    if (takes_rows(import, node, from)) return "";
    if (elements(shape) == elements(to) && count == 1) {
        import.alias(node, node.output(0), node.input(0));
        return "";
    }
    const auto indices = import.graph.numbers(node.input(1));
    const auto axis = axis_of_sample(table, shape, integer(node, "axis", 0));
    const bool known = where.kind == Value::Kind::constant && node.op_type() == "Gather" && indices &&
                       !indices->empty() && axis && count_of_picked(shape, *axis, indices->size()) <= most_places &&
                       std::ranges::all_of(*indices, [size = shape[*axis]](std::int64_t index) {
                           return index >= -size && index < size;
                       });
    const bool made =
        import.graph.activation(node.input(1)) || (where.kind == Value::Kind::side && import.can_be_fed(node.input(1)));
    if (made && node.op_type() == "GatherElements" && axis && dims == to && to.size() == shape.size()) {
        import.put(node,
                   Rearrangement{"takeeach",
                                 {shape, to},
                                 to,
                                 { static_cast<std::int64_t>(*axis) }},
                   {from, import.source(node, 1)});
        return "";
    }
    if (where.kind == Value::Kind::constant && node.op_type() == "Gather" && count == 1) {
        Rearrangement op{"slice", {shape}, to};
        if (known) {  // the axis stays, of size 1
            Shape one = shape;
            one[*axis] = 1;
            op.output = one;
            op.numbers.assign(shape.size(), 0);
            op.numbers[*axis] = indices->front() + (indices->front() < 0 ? shape[*axis] : 0);
            op.numbers.resize(2 * shape.size(), 1);
        }
        const int layer = import.put(node, std::move(op), {from});
        if (!known) import.not_run(layer, "which of its elements it takes is not known");
        return "";
    }
    const int layer = import.put(node, Gather{shape, to, std::max<std::int64_t>(1, count)}, {from});
    if (known) import.given[layer].places = {picked(shape, *axis, *indices)};
    if (const auto places = known ? std::nullopt : places_in_sample(import, node, shape, to)) {
        import.given[layer].places = {*places};
    } else if (!known)
        import.not_run(layer, "which elements it takes depends on data, or is not known");
    return "";
}

std::string scatter(Import& import, const onnx::NodeProto& node) {
    const int updates = node.op_type() == "ScatterND" || node.op_type().starts_with("Scatter") ? 2 : 1;
    if (node.input_size() <= updates) import.graph.fail(node, fmt::format("it has no input {}", updates));
    if (picks_samples(import, node)) import.mixed(node, "integers say which of several samples rows are added to");
    if (adds_rows(import, node)) return "";
    const bool data = import.places.contains(node.input(0)), put = import.places.contains(node.input(updates));
    const Shape to = import.sample(node, node.output(0));
    const auto layer = [&](int i, bool made) {
        if (made) return import.source(node, i);
        return import.graph.keeps_values() ? beside(import, node, i) : -1;
    };
    if (!data && !put) return "it moves constants";
    const int from = layer(0, data), values = layer(updates, put);
    if (from < 0 || values < 0) {  // one of them is fixed: the other's values move
        const int i = data ? 0 : updates;
        const int moved = import.source(node, i);
        import.not_run(import.put(node, Rearrangement{"pack", {import.builder.shape(moved)}, to}, {moved}),
                       "where its values go is not known");
        return "";
    }
    const Shape shape = import.builder.shape(from), moved = import.builder.shape(values);
    const bool whole = text(node, "reduction", "none") == "none";
    const auto axis = axis_of_sample(import.graph.value(node.input(0)), shape, integer(node, "axis", 0));
    if (whole && axis && node.op_type() == "ScatterElements" && import.graph.activation(node.input(1)) &&
        import.graph.sample(node.input(1)) == moved && moved.size() == shape.size()) {
        import.put(node,
                   Rearrangement{"puteach",
                                 {shape, moved, moved},
                                 shape,
                                 { static_cast<std::int64_t>(*axis) }},
                   {from, import.source(node, 1), values});
        return "";
    }
    const int put_there = import.put(node, Gather{shape, moved, elements(moved), false, true}, {from, values});
    const auto places = whole ? places_in_sample(import, node, shape, moved) : std::nullopt;
    if (places) import.given[put_there].places = {*places};
    if (!places) import.not_run(put_there, "where its values go depends on data, or is not known");
    return "";
}

}  // namespace rehearse::models
