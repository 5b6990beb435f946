// SPDX-License-Identifier: Apache-2.0
// [[device]], its efficiencies and measured prices.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/text.hpp"
#include "models/price_models.hpp"
#include "models/reader/machine_files.hpp"
#include "models/reader/machine_parse.hpp"
#include "prices/host_model.hpp"
#include "prices/tile_model.hpp"

namespace rehearse::models {
namespace {

std::string kind(Reader& reader) {
    std::vector<std::string_view> known{op_kinds().begin(), op_kinds().end()};
    known.push_back("*");
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

// Above zero, and below what can only be a percentage. `of`: what it is a share of.
double share_of(Reader& reader, std::string_view key, std::string_view of) {
    const double share = reader.number(key);
    if (share <= 0) reader.fail(key, fmt::format("{} must be above zero: it is a share of {}", key, of));
    if (share >= share_limit)
        reader.fail(key, fmt::format("{0} is {1}: it is a share of {2}, {3:g} for {1} %", key, share, of, share / 100));
    return share;
}

Efficiency parse_efficiency(Reader reader) {
    Efficiency row;
    row.kind = kind(reader);
    row.pass = named(reader, "pass", passes);
    row.type = named(reader, "type", data_types);
    row.fraction = share_of(reader, "fraction", "the roofline");
    row.error = relative_error(reader);
    row.source = reader.source();
    reader.done();
    return row;
}

// Those of the device first, then those of each that it extends, which they come before.
std::vector<Efficiency> parse_efficiencies(Reader& reader, const std::string& where) {
    std::vector<Efficiency> all;
    for (const std::vector<Reader>& rows : reader.all_tables("efficiency", where)) {
        const auto own = static_cast<std::ptrdiff_t>(all.size());
        for (const Reader& row : rows) {
            const Efficiency read = parse_efficiency(row);
            const auto same = [&](const Efficiency& other) {
                return other.kind == read.kind && other.pass == read.pass && other.type == read.type;
            };
            if (std::any_of(all.begin() + own, all.end(), same)) {
                row.fail("kind", fmt::format("'{}' has two efficiencies of {} in {}", read.kind,
                                             read.pass ? to_string(*read.pass) : "any pass",
                                             read.type ? to_string(*read.type) : "any type"));
            }
            all.push_back(read);
        }
    }
    return all;
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

double above_zero(Reader& reader, std::string_view key) {
    const double value = reader.number(key);
    if (value <= 0) reader.fail(key, fmt::format("{} is {}: it must be above zero", key, value));
    return value;
}

KernelFactor parse_factor(Reader reader) {
    KernelFactor factor;
    factor.kind = kind(reader);
    if (factor.kind == "*") reader.fail("kind", "kind is '*': kernels of one kind say nothing of another");
    factor.type = named(reader, "type", data_types).value_or(DataType::f32);
    factor.factor = above_zero(reader, "factor");
    factor.error = relative_error(reader);
    if (reader.has("scale")) factor.scale = above_zero(reader, "scale");
    factor.kernels = reader.count("kernels");
    factor.source = reader.source();
    reader.done();
    return factor;
}

// Those that are given here are the device's.
void parse_factors(Reader& reader, DeviceClass& device) {
    std::vector<KernelFactor> factors;
    for (const Reader& row : reader.tables("factor", fmt::format("device '{}': factor", device.name))) {
        factors.push_back(parse_factor(row));
        if (factor_of({factors.data(), factors.size() - 1}, factors.back().kind, factors.back().type) != nullptr)
            row.fail("kind",
                     fmt::format("'{}' in {} has two factors", factors.back().kind, to_string(factors.back().type)));
    }
    if (factors.empty()) return;
    const PriceModel none{"", {}};
    device.model = (device.model == nullptr ? none : *device.model).with_factors(std::move(factors));
}

void parse_price_model(Reader& reader, DeviceClass& device) {
    auto table = reader.table("likeness", fmt::format("device '{}': likeness", device.name));
    Reader& asked = table ? *table : reader;
    const std::string_view key = table ? "like" : "price_model";
    try {
        const std::string model = table ? table->text("like") : reader.text("price_model", "");
        if (!table && !model.empty()) device.model = load_price_model(model);
        if (!table) return;
        Likeness likeness{model, 0, 1, 1, relative_error(*table), table->source()};
        if (table->has("processors")) likeness.processors = table->count("processors");
        constexpr std::string_view of = "what the other device reaches";
        if (table->has("fraction")) likeness.fraction = share_of(asked, "fraction", of);
        likeness.product_fraction =
            table->has("product_fraction") ? share_of(asked, "product_fraction", of) : likeness.fraction;
        table->done();
        device.model = transferred_price_model(likeness, device);
    } catch (const InputError& error) {
        if (std::string_view{error.what()}.find(".toml:") != std::string_view::npos) throw;
        asked.fail(key, error.what());
    }
}

// Kept by a device that is like another one and has a model of its own.
void parse_volumes(Reader& reader, DeviceClass& device, bool by_sample) {
    const std::string volumes = reader.text("volumes", by_sample ? "by-sample" : "cut");
    if (volumes != "by-sample" && volumes != "cut")
        reader.fail("volumes", fmt::format("'{}' is neither by-sample nor cut", volumes));
    by_sample = volumes == "by-sample";
    if (by_sample && device.model == nullptr) reader.fail("volumes", "it is for devices with price_model or likeness");
    if (device.model != nullptr && device.model->volumes_by_sample() != by_sample)
        device.model = device.model->with_volumes_by_sample(by_sample);
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
    model.before_model = reader.yes("before_model", false);
    model.error = relative_error(reader);
    for (const std::string_view key : software_figures)
        if (reader.has(key))
            reader.fail(key,
                        fmt::format("'{}' is a figure of the software: write it in the machine's [software]", key));
    reader.done();
    return model;
}

// What is given comes before what `device` has.
template <typename Q>
void take(Reader& reader, std::string_view key, Sourced<Q>& figure) {
    const Sourced<Q> given = reader.figure_if_given<Q>(key);
    if (!given.source.empty()) figure = given;
}

void parse_device(Reader& reader, DeviceClass& device) {
    take(reader, "memory", device.memory);
    take(reader, "memory_bandwidth", device.memory_bandwidth);
    take(reader, "launch", device.launch);
    device.host = reader.yes("host", device.host);
    take(reader, "step_spread", device.step_spread);
    if (device.step_spread.value < 0 || device.step_spread.value > 1)
        reader.fail("step_spread", "it is one relative standard deviation, 0 to 1");
    if (auto peak = reader.table("peak", fmt::format("device '{}': peak", device.name))) {
        for (const DataType type : data_types) {
            const auto rate = peak->figure_if_given<FlopRate>(to_string(type));
            if (!rate.source.empty()) device.peak[type] = rate;
        }
        peak->done();
    }
    const bool by_sample = device.model != nullptr && device.model->volumes_by_sample();
    parse_price_model(reader, device);
    if (const std::string board = reader.text("kernels", ""); !board.empty()) {
        try {
            device.model = with_board(device.model, board, device);
        } catch (const InputError& error) {
            reader.fail("kernels", error.what());
        }
    }
    parse_volumes(reader, device, by_sample);
    parse_factors(reader, device);
    if (auto tiles = reader.table("tiles", fmt::format("device '{}': tiles", device.name))) {
        device.tiles = std::make_shared<const TileModel>(parse_tiles(*tiles));
    }
    const std::vector<Efficiency> efficiencies =
        parse_efficiencies(reader, fmt::format("device '{}': efficiency", device.name));
    device.efficiencies.insert(device.efficiencies.begin(), efficiencies.begin(), efficiencies.end());
    for (const Reader& row : reader.tables("price", fmt::format("device '{}': price", device.name))) {
        const auto [place, fresh] = device.measured.insert(parse_price(row));
        if (!fresh) row.fail("problem", fmt::format("'{}' has two prices", place->first));
    }
    device.model = host_model(device);
    reader.done();
}

// Of models/devices.toml; nothing when it has no such device, with the names that it has.
std::optional<DeviceClass> catalogued(std::string_view name, std::vector<std::string>& names) {
    static const toml::table catalog = toml::parse(device_catalog(), std::string_view{"models/devices.toml"});
    Reader top(catalog, "models/devices.toml", "");
    for (Reader reader : top.tables("device", "device")) {
        DeviceClass device;
        device.name = reader.text("name");
        names.push_back(device.name);
        if (device.name != name) continue;
        reader.set_where(fmt::format("device '{}'", device.name));
        parse_device(reader, device);
        return device;
    }
    return std::nullopt;
}

}  // namespace

std::optional<DeviceClass> catalogued_device(std::string_view name) {
    std::vector<std::string> names;
    return catalogued(name, names);
}

DeviceClass parse_device(Reader reader) {
    DeviceClass device;
    const std::string name = reader.text("name"), like = reader.text("like", "");
    const std::string known_as = reader.text("known_as", "");
    reader.set_where(fmt::format("device '{}'", name));
    if (const std::string& asked = like.empty() ? known_as : like; !asked.empty()) {
        std::vector<std::string> names;
        auto known = catalogued(asked, names);
        const std::vector<std::string_view> views(names.begin(), names.end());
        if (!known)
            reader.fail(
                like.empty() ? "known_as" : "like",
                fmt::format("no device '{}' is known{}; there are {}", asked, did_you_mean(asked, views), join(views)));
        if (!like.empty()) device = *std::move(known);
        device.like = asked;
    }
    if (like.empty() && !reader.has("memory")) reader.text("memory");  // says that it is missing
    device.name = name;
    parse_device(reader, device);
    return device;
}

}  // namespace rehearse::models
