// SPDX-License-Identifier: Apache-2.0
// [[device]], its efficiencies and measured prices.
#include <algorithm>
#include <array>
#include <utility>

#include "core/text.hpp"
#include "core/tile_model.hpp"
#include "models/machine_parse.hpp"
#include "models/price_models.hpp"

namespace rehearse::models {
namespace {

template <std::size_t... I>
std::vector<std::string_view> kinds_of(std::index_sequence<I...>) {
    return {kind_of(Op{std::variant_alternative_t<I, Op>{}})..., "*"};
}

std::string kind(Reader& reader) {
    const auto known = kinds_of(std::make_index_sequence<std::variant_size_v<Op>>{});
    std::string kind = reader.text("kind");
    if (std::ranges::find(known, kind) == known.end())
        reader.fail("kind", fmt::format("no operator is of kind '{}'{}; the kinds are {}", kind,
                                        did_you_mean(kind, known), join(known)));
    return kind;
}

// The value of an enumeration that `key` names, if it is given.
template <typename Values>
std::optional<typename Values::value_type> named(Reader& reader, std::string_view key, const Values& values) {
    const std::string name = reader.text(key, "");
    if (name.empty()) return std::nullopt;
    std::vector<std::string_view> known;
    for (const auto value : values) {
        if (name == to_string(value)) return value;
        known.push_back(to_string(value));
    }
    reader.fail(key,
                fmt::format("unknown {} '{}'{}; choose one of {}", key, name, did_you_mean(name, known), join(known)));
}

double relative_error(Reader& reader) {
    const double error = reader.number("error");
    if (error < 0 || error > 10)
        reader.fail(
            "error",
            fmt::format("error is {}: it is one standard deviation relative to the price, 0.1 for 10 %", error));
    return error;
}

Efficiency parse_efficiency(Reader reader) {
    Efficiency row;
    row.kind = kind(reader);
    row.pass = named(reader, "pass", passes);
    row.type = named(reader, "type", data_types);
    row.fraction = reader.number("fraction");
    if (row.fraction <= 0) reader.fail("fraction", "fraction must be above zero: time = roofline time / fraction");
    row.error = relative_error(reader);
    row.source = reader.source();
    reader.done();
    return row;
}

std::pair<std::string, Measured> parse_price(Reader reader) {
    std::string problem = reader.text("problem");
    try {
        problem = to_string(parse_problem(problem));
    } catch (const InputError& error) {
        reader.fail("problem", error.what());
    }
    const auto median = reader.figure<Seconds>("median");
    Measured measured{median.value, relative_error(reader), reader.count("samples"), median.source};
    if (median.value.value <= 0) reader.fail("median", "a measured time must be above zero");
    reader.done();
    return {std::move(problem), std::move(measured)};
}

Sourced<double> share(Reader& reader, std::string_view key) {
    const auto figure = reader.figure<double>(key);
    if (figure.value > 1) reader.fail(key, fmt::format("{} is {}: it is a share, at most 1", key, figure.value));
    return figure;
}

TileModel parse_tiles(Reader reader) {
    TileModel model;
    model.processors = reader.figure<double>("processors");
    model.large_tile = share(reader, "large_tile");
    model.small_tile = share(reader, "small_tile");
    model.depth = reader.figure<double>("depth");
    model.unaligned = reader.figure<double>("unaligned");
    model.memory = share(reader, "memory");
    model.elementwise_passes = reader.figure<double>("elementwise_passes");
    model.score_passes = reader.figure_if_given<double>("score_passes");
    model.loss_passes = reader.figure<double>("loss_passes");
    model.issue = reader.figure<Seconds>("issue");
    model.dense_kernels = reader.figure<double>("dense_kernels");
    model.attention_kernels = reader.figure<double>("attention_kernels");
    model.loss_kernels = reader.figure<double>("loss_kernels");
    model.error = relative_error(reader);
    reader.done();
    return model;
}

}  // namespace

DeviceClass parse_device(Reader reader) {
    DeviceClass device;
    device.name = reader.text("name");
    reader.set_where(fmt::format("device '{}'", device.name));
    device.memory = reader.figure<Bytes>("memory");
    device.memory_bandwidth = reader.figure_if_given<Bandwidth>("memory_bandwidth");
    device.launch = reader.figure_if_given<Seconds>("launch");
    if (auto peak = reader.table("peak", fmt::format("device '{}': peak", device.name))) {
        for (const DataType type : data_types) {
            const auto rate = peak->figure_if_given<FlopRate>(to_string(type));
            if (!rate.source.empty()) device.peak[type] = rate;
        }
        peak->done();
    }
    if (const std::string model = reader.text("price_model", ""); !model.empty()) {
        try {
            device.model = load_price_model(model);
        } catch (const InputError& error) {
            reader.fail("price_model", error.what());
        }
    }
    if (auto tiles = reader.table("tiles", fmt::format("device '{}': tiles", device.name))) {
        device.tiles = std::make_shared<const TileModel>(parse_tiles(*tiles));
    }
    for (const Reader& row : reader.tables("efficiency", fmt::format("device '{}': efficiency", device.name)))
        device.efficiencies.push_back(parse_efficiency(row));
    for (const Reader& row : reader.tables("price", fmt::format("device '{}': price", device.name))) {
        const auto [place, fresh] = device.measured.insert(parse_price(row));
        if (!fresh) row.fail("problem", fmt::format("'{}' has two prices", place->first));
    }
    reader.done();
    return device;
}

}  // namespace rehearse::models
