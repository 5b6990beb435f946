// SPDX-License-Identifier: Apache-2.0
#include "models/price_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/text.hpp"
#include "models/kernel_files.hpp"
#include "models/kernel_samples.hpp"
#include "models/measured_boards.hpp"

namespace rehearse::models {

namespace {

Csv table(std::string_view name) { return {kernel_file(name), fmt::format("calibrate/deepbench/{}.csv", name)}; }

using Experts = std::map<std::pair<std::string, std::string>, LearnedExperts>;  // by family and kind

constexpr std::pair<std::string_view, LowerBound> bounds[] = {
    {"overlapped", LowerBound::overlapped}, {"in-turn", LowerBound::in_turn}, {"library", LowerBound::library}};

LowerBound bound_of(std::string_view word) {
    const auto* found = std::ranges::find(bounds, word, &std::pair<std::string_view, LowerBound>::first);
    require(found != std::end(bounds), "covariance.csv says which bound an expert starts from");
    return found->second;
}

std::string_view word_of(LowerBound bound) {
    return std::ranges::find(bounds, bound, &std::pair<std::string_view, LowerBound>::second)->first;
}

Experts read_experts(const Csv& csv) {
    Experts experts;
    for (std::size_t row = 0; row < csv.size(); ++row) {
        LearnedExperts& learned = experts[{csv.text(row, "family"), csv.text(row, "kind")}];
        const auto expert = static_cast<std::size_t>(csv.whole(row, "expert", 0));
        const auto term = static_cast<std::size_t>(csv.whole(row, "term", 0));
        learned.band = csv.positive(row, "band");
        if (learned.experts.size() <= expert) learned.experts.resize(expert + 1);
        Expert& e = learned.experts[expert];
        e.bound = bound_of(csv.text(row, "bound"));
        e.covariance.smoothness =
            csv.text(row, "smoothness") == "gaussian" ? Smoothness::gaussian : Smoothness::matern32;
        e.covariance.noise = csv.positive(row, "noise");
        CovarianceTerm& t = e.covariance.terms.at(term);
        t.amplitude = csv.positive(row, "amplitude");
        t.task_correlation = csv.positive(row, "task_correlation");
        for (const std::string_view length : split(csv.text(row, "lengths"), ' '))
            t.lengths.push_back(parse_number(length, "lengths"));
    }
    return experts;
}

std::vector<KernelSample> read_column(const Csv& csv, const std::string& column, DataType type) {
    std::vector<KernelSample> samples;
    for (std::size_t row = 0; row < csv.size(); ++row) {
        if (csv.text(row, column).empty()) continue;
        samples.push_back({problem_of(csv, row, type), Seconds{csv.positive(row, column) * 1e-6}});
    }
    return samples;
}

// Of the shortest product of a sheet most is its start: a launch, the first loads, the last stores. The share was
// chosen on products left out, among 0.5, 0.7, 0.95 and 1.5 (docs/device_prices.md).
Seconds start_of_products(const std::vector<KernelSample>& samples) {
    constexpr double of_shortest = 0.7;
    const auto shortest = std::ranges::min_element(samples, {}, &KernelSample::time);
    return shortest == samples.end() ? Seconds{0} : of_shortest * shortest->time;
}

ImageBlocks image_blocks_of(const Csv& devices, std::size_t row) {
    const std::string& word = devices.text(row, "image_blocks");
    if (word == "one") return ImageBlocks::one;
    if (word == "several") return ImageBlocks::several;
    require(word == "unknown", "devices.csv says which blocks a library's Winograd kernels have");
    return ImageBlocks::unknown;
}

std::string source_of(const Csv& devices, std::size_t row) {
    return fmt::format("Baidu DeepBench (Apache-2.0) {}, {}, {}", devices.text(row, "snapshot"),
                       devices.text(row, "device"), devices.text(row, "library"));
}

std::string lengths_text(const std::vector<double>& lengths) {
    std::string text;
    for (const double length : lengths) text += fmt::format("{}{:.4g}", text.empty() ? "" : " ", length);
    return text;
}

}  // namespace

std::string_view kernel_file(std::string_view name) {
    const auto files = kernel_files();
    const auto file = std::ranges::find(files, name, &KernelFile::name);
    require(file != files.end(), "the tables are built in");
    return file->text;
}

LearnedExperts learned_experts(std::string_view name, std::string origin, const std::string& family,
                               const std::string& kind) {
    return read_experts(Csv{kernel_file(name), std::move(origin)}).at({family, kind});
}

std::vector<ShippedKernels> shipped_kernels(std::string_view model) {
    static const Csv devices = table("devices"), conv = table("conv"), gemm = table("gemm"), rnn = table("rnn");
    static const Experts experts = read_experts(table("covariance"));
    std::vector<ShippedKernels> all;
    for (std::size_t row = 0; row < devices.size(); ++row) {
        const std::string& name = devices.text(row, "model");
        if (!model.empty() && model != name) continue;
        const std::string type_name = devices.text(row, "type");
        const DataType type = type_name == "f16" ? DataType::f16 : DataType::f32;
        DeviceSheet sheet{parse_quantity<FlopRate>(devices.text(row, "peak")),
                          parse_quantity<Bandwidth>(devices.text(row, "bandwidth")),
                          devices.whole(row, "processors", 1), devices.whole(row, "channel_multiple", 1),
                          parse_quantity<Bytes>(devices.text(row, "element"))};
        sheet.image_blocks = image_blocks_of(devices, row);
        for (const auto& [kind, csv] :
             {std::pair{"conv2d", &conv}, std::pair{"matmul", &gemm}, std::pair{"recurrent", &rnn}}) {
            const std::string column = fmt::format("{}:{}", name, type_name);
            if (!csv->has(column)) continue;  // not every device was measured on recurrent layers
            ShippedKernels kernels{name,
                                   devices.text(row, "device"),
                                   devices.text(row, "precision"),
                                   devices.text(row, "snapshot"),
                                   devices.text(row, "family"),
                                   devices.text(row, "teaches") == "yes",
                                   parse_quantity<Seconds>(devices.text(row, "launch")),
                                   {}};
            const auto learned = experts.find({kernels.family, kind});
            kernels.kernels = {kind, type, sheet, read_column(*csv, column, type), {}, 1, source_of(devices, row)};
            if (kernels.kernels.kind == "matmul" && devices.text(row, "narrow") == "yes")
                kernels.kernels.sheet.start = start_of_products(kernels.kernels.samples);
            kernels.kernels.sheet.paged = kernels.kernels.kind == "matmul" && devices.text(row, "paged") == "yes";
            if (learned != experts.end()) {
                kernels.kernels.experts = learned->second.experts;
                kernels.kernels.band = learned->second.band;
            }
            all.push_back(std::move(kernels));
        }
    }
    return all;
}

std::vector<std::string> price_models() {
    const Csv devices = table("devices");
    std::vector<std::string> names;
    for (std::size_t row = 0; row < devices.size(); ++row) {
        const std::string& name = devices.text(row, "model");
        if (names.empty() || names.back() != name) names.push_back(name);
    }
    return names;
}

DeviceClass device_of(const ShippedKernels& kernels) {
    const DeviceSheet& sheet = kernels.kernels.sheet;
    DeviceClass device;
    device.name = kernels.model;
    device.peak[kernels.kernels.type] = {sheet.peak, kernels.kernels.source};
    device.memory_bandwidth = {sheet.bandwidth, kernels.kernels.source};
    device.launch = {kernels.launch, kernels.kernels.source};
    device.model = load_price_model(kernels.model);
    return device;
}

std::shared_ptr<const PriceModel> load_price_model(std::string_view name) {
    std::vector<MeasuredKernels> kernels;
    for (ShippedKernels& shipped : shipped_kernels(name)) kernels.push_back(std::move(shipped.kernels));
    if (kernels.empty() || name.empty()) {
        const std::vector<std::string> names = price_models();
        const std::vector<std::string_view> known(names.begin(), names.end());
        throw InputError(
            fmt::format("unknown price model '{}'{}; choose one of {}", name, did_you_mean(name, known), join(known)));
    }
    return std::make_shared<const PriceModel>(std::string{name}, std::move(kernels));
}

namespace {

// Tensor cores take both 16-bit types at one rate, and TF32 in the same tiles at a lower one.
std::vector<DataType> types_like(DataType measured) {
    if (measured == DataType::f16) return {DataType::f16, DataType::bf16, DataType::tf32};
    return {measured};
}

// Four bytes a value in memory, channels padded to 16 bytes; one standard deviation of what nobody measured.
void as_tf32(MeasuredKernels& kernels) {
    constexpr double unmeasured = 0.25;
    kernels.sheet.element = Bytes{4};
    kernels.sheet.channel_multiple = 4;
    for (Expert& expert : kernels.experts) expert.covariance.noise = std::hypot(expert.covariance.noise, unmeasured);
}

constexpr double rounding = 0.95;  // data sheets round their figures

// Shared memory is as wide for the 128 lanes of later processors as it is for the 64 of those before.
FlopRate feeding_of(FlopRate lanes, std::int64_t processors) {
    constexpr FlopRate wide_processor{350e9};
    const bool wide = lanes / static_cast<double>(processors) > wide_processor;
    return wide ? 0.5 * lanes : lanes;
}

// How many times as long the device takes to bring a matrix unit its operands; nothing where its units are as fast for
// what feeds them as those that were measured, or faster: then all of a kernel's time is in shares of the peak.
std::optional<double> slower_feeding(const DeviceSheet& measured, const DeviceSheet& lanes, const DeviceSheet& sheet,
                                     const DeviceClass& device) {
    const auto here = device.peak.find(DataType::f32);
    if (here == device.peak.end()) return std::nullopt;
    const double times = feeding_of(lanes.peak, lanes.processors) / feeding_of(here->second.value, sheet.processors) *
                         (sheet.element / measured.element);
    return times < rounding * (measured.peak / sheet.peak) ? std::optional{times} : std::nullopt;
}

// TF32 has the bytes of f32, whose kernels a library may run in its place; in 16 bits it may where matrix units are
// less far ahead of lanes than those that were measured: there first layers of few channels take longer in f16 than in
// f32.
bool at_most_as_in_f32(const DeviceSheet& measured, DataType type, const DeviceSheet& lanes,
                       const DeviceClass& device) {
    const auto here = device.peak.find(DataType::f32);
    if (here == device.peak.end()) return false;
    const double ahead = device.peak.at(type).value / here->second.value;
    return type == DataType::tf32 || ahead < rounding * (measured.peak / lanes.peak);
}

// What a sample would take there: the same multiple of the bound. But what a kernel takes beyond its bound it waits for
// operands, from memory and from shared memory, each for its part of the bound; matrix units that are slower let it
// wait no longer.
Seconds carried_over(const KernelSample& sample, const Bounds& here, const Bounds& there,
                     std::optional<double> feeding) {
    const double same = here.overlapped() / there.overlapped();
    const Seconds beyond = sample.time - there.overlapped();
    if (!feeding || beyond <= Seconds{0}) return sample.time * same;
    const double waits = (there.compute * *feeding + here.memory) / (there.compute + there.memory);
    return here.overlapped() + beyond * std::min(same, waits);
}

// `lanes`: the sheet in f32 of the device that was measured.
MeasuredKernels transferred(MeasuredKernels known, DataType type, const DeviceSheet& lanes, const Likeness& likeness,
                            const DeviceClass& device) {
    const DeviceSheet measured = known.sheet;
    if (type == DataType::tf32) as_tf32(known);
    DeviceSheet sheet = known.sheet;
    sheet.peak = device.peak.at(type).value * likeness.fraction;
    sheet.bandwidth = device.memory_bandwidth.value;
    if (likeness.processors > 0) sheet.processors = likeness.processors;
    const bool on_matrix_units = known.type == DataType::f16;
    const auto feeding = on_matrix_units ? slower_feeding(measured, lanes, sheet, device) : std::nullopt;
    const double as_product = known.kind == "conv2d" ? likeness.fraction / likeness.product_fraction : 1;
    for (KernelSample& sample : known.samples) {
        const auto here = kernel_point(sample.problem, sheet), there = kernel_point(sample.problem, measured);
        require(here && there, "a measured kernel can be priced");
        sample.time = carried_over(sample, here->bounds, there->bounds, feeding);
        if (!may_transform(sample.problem)) sample.time = sample.time * as_product;
        sample.problem.type = type;
    }
    // Steps of recurrent layers went by other kernels in each generation of a library (`validate --leave device`).
    constexpr double of_steps = 0.45;
    for (Expert& expert : known.experts) {
        expert.covariance.noise = std::hypot(expert.covariance.noise, likeness.error);
        if (known.kind == "recurrent") expert.covariance.noise = std::hypot(expert.covariance.noise, of_steps);
    }
    known.source = fmt::format("{}{}, for {} ({})", known.source, type == known.type ? "" : " in f16", device.name,
                               likeness.source);
    known.at_most_as_in_f32 = on_matrix_units && at_most_as_in_f32(measured, type, lanes, device);
    known.sheet = sheet;
    known.type = type;
    known.transferred = true;
    return known;
}

}  // namespace

std::shared_ptr<const PriceModel> transferred_price_model(const Likeness& likeness, const DeviceClass& device) {
    std::vector<MeasuredKernels> kernels;
    const std::shared_ptr<const PriceModel> model = load_price_model(likeness.like);
    const auto lanes = std::ranges::find(model->kernels(), DataType::f32, &MeasuredKernels::type);
    require(lanes != model->kernels().end(), "every device was measured in f32");
    for (const MeasuredKernels& known : model->kernels())
        for (const DataType type : types_like(known.type))
            if (device.peak.contains(type)) kernels.push_back(transferred(known, type, lanes->sheet, likeness, device));
    const std::string processors =
        likeness.processors > 0 ? fmt::format("processors = {}, ", likeness.processors) : std::string{};
    // As a machine file says it.
    const std::string products = likeness.product_fraction == likeness.fraction
                                     ? std::string{}
                                     : fmt::format("product_fraction = {}, ", likeness.product_fraction);
    std::string name = fmt::format("{{ like = \"{}\", {}fraction = {}, {}error = {}, source = \"{}\" }}", likeness.like,
                                   processors, likeness.fraction, products, likeness.error, likeness.source);
    return std::make_shared<const PriceModel>(std::move(name), std::move(kernels));
}

std::shared_ptr<const PriceModel> with_board(const std::shared_ptr<const PriceModel>& model, std::string_view board,
                                             const DeviceClass& device) {
    if (const auto sheet = board_sheet(board)) {
        std::vector<MeasuredKernels> kernels{convolutions_by_sheet(*sheet, device)};
        if (model != nullptr) kernels.insert(kernels.end(), model->kernels().begin(), model->kernels().end());
        return std::make_shared<const PriceModel>(model == nullptr ? std::string{} : model->name(), std::move(kernels),
                                                  std::string{board});
    }
    const std::vector<MeasuredBoard>& boards = measured_boards();
    const auto found = std::ranges::find(boards, board, &MeasuredBoard::name);
    if (found == boards.end()) {
        std::vector<std::string_view> names;
        for (const MeasuredBoard& each : boards) {
            if (std::ranges::find(names, each.name) == names.end()) names.emplace_back(each.name);
        }
        throw InputError(fmt::format(
            "no kernels of board '{}'{}; choose one of {}, or give the data sheet's \"108 processors, 400 W, 7 nm\"",
            board, did_you_mean(board, names), join(names)));
    }
    std::vector<MeasuredKernels> kernels;
    for (const MeasuredBoard& each : boards) {
        if (each.name == board) kernels.push_back(shipped_kernels(each));
    }
    if (model != nullptr) kernels.insert(kernels.end(), model->kernels().begin(), model->kernels().end());
    return std::make_shared<const PriceModel>(model == nullptr ? std::string{} : model->name(), std::move(kernels),
                                              std::string{board});
}

std::string covariance_table(const std::vector<ShippedKernels>& learned) {
    std::string text = "family,kind,expert,bound,smoothness,noise,band,term,amplitude,task_correlation,lengths\n";
    std::set<std::pair<std::string, std::string>> done;
    for (const ShippedKernels& shipped : learned) {
        const MeasuredKernels& k = shipped.kernels;
        if (!done.emplace(shipped.family, k.kind).second) continue;
        for (std::size_t e = 0; e < k.experts.size(); ++e) {
            const auto& [bound, c] = k.experts[e];
            for (std::size_t t = 0; t < c.terms.size(); ++t) {
                text += fmt::format("{},{},{},{},{},{:.4g},{:.3g},{},{:.4g},{:.4g},{}\n", shipped.family, k.kind, e,
                                    word_of(bound), c.smoothness == Smoothness::gaussian ? "gaussian" : "matern32",
                                    c.noise, k.band, t, c.terms[t].amplitude, c.terms[t].task_correlation,
                                    lengths_text(c.terms[t].lengths));
            }
        }
    }
    return text;
}

}  // namespace rehearse::models
