// SPDX-License-Identifier: Apache-2.0
#include "validate/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse::validate {

namespace {

struct Word {
    std::string_view word;
    Measure measure;
};
constexpr std::array words{
    Word{"train_throughput", Measure::throughput},
    Word{"throughput", Measure::throughput},
    Word{"iteration_time", Measure::step},
    Word{"step_time", Measure::step},
    Word{"step", Measure::step},
    Word{"epoch_time", Measure::epoch},
    Word{"train_epoch_time", Measure::epoch},
    Word{"epoch", Measure::epoch},
    Word{"time_to_train", Measure::training},
    Word{"training", Measure::training},
    Word{"sustained_TFs", Measure::flop_rate},
    Word{"sustained_PFs", Measure::flop_rate},
    Word{"sustained_EFs", Measure::flop_rate},
    Word{"flop_rate", Measure::flop_rate},
    Word{"achieved_TFs_per_gpu", Measure::flop_rate_per_device},
    Word{"flop_rate_per_device", Measure::flop_rate_per_device},
    Word{"scaling_efficiency", Measure::efficiency},
    Word{"weak_scaling_efficiency", Measure::efficiency},
    Word{"efficiency", Measure::efficiency},
    Word{"flop_efficiency", Measure::flop_efficiency},
    Word{"speedup", Measure::speedup},
    Word{"speedup_vs_1_node", Measure::speedup},
    Word{"staging_time", Measure::staging},
    Word{"time", Measure::time},
    Word{"latency", Measure::time},
    Word{"busbw", Measure::bus_bandwidth},
    Word{"bus_bandwidth", Measure::bus_bandwidth},
    Word{"bandwidth", Measure::bandwidth},
    Word{"bidir_bandwidth", Measure::both_directions},
    Word{"both_directions", Measure::both_directions},
};

// What a unit counts.
enum class Counts { time, samples, share, operations, operations_each, bytes };

std::string_view word_of(Counts counts) {
    switch (counts) {
        case Counts::time:
            return "a time (s, ms, min, h)";
        case Counts::samples:
            return "samples a second (samples/s, images/s)";
        case Counts::share:
            return "a share (%, x)";
        case Counts::operations:
            return "operations a second (TF/s, PF/s)";
        case Counts::operations_each:
            return "operations a second and device (TF/s/GPU)";
        case Counts::bytes:
            return "bytes a second (GB/s, MB/s)";
    }
    return "";
}

struct Unit {
    std::string_view text;
    double value;
    Counts counts;
};
constexpr std::array units{Unit{"s", 1, Counts::time},
                           Unit{"ms", 1e-3, Counts::time},
                           Unit{"us", 1e-6, Counts::time},
                           Unit{"min", 60, Counts::time},
                           Unit{"h", 3600, Counts::time},
                           Unit{"hours", 3600, Counts::time},
                           Unit{"days", 86400, Counts::time},
                           Unit{"%", 0.01, Counts::share},
                           Unit{"x", 1, Counts::share},
                           Unit{"samples/s", 1, Counts::samples},
                           Unit{"images/s", 1, Counts::samples},
                           Unit{"sequences/s", 1, Counts::samples},
                           Unit{"tokens/s", 1, Counts::samples},
                           Unit{"GF/s", 1e9, Counts::operations},
                           Unit{"TF/s", 1e12, Counts::operations},
                           Unit{"TFLOPS", 1e12, Counts::operations},
                           Unit{"PF/s", 1e15, Counts::operations},
                           Unit{"EF/s", 1e18, Counts::operations},
                           Unit{"TF/s/GPU", 1e12, Counts::operations_each},
                           Unit{"PF/s/GPU", 1e15, Counts::operations_each},
                           Unit{"GB/s", 1e9, Counts::bytes},
                           Unit{"MB/s", 1e6, Counts::bytes}};

// "min" of "min (of 16)"; nothing where it is not known.
const Unit* unit_of(const PublishedRow& row) {
    const std::string& written = row.text("unit");
    const auto unit = std::ranges::find(units, std::string_view{written}.substr(0, written.find(' ')), &Unit::text);
    return unit == units.end() ? nullptr : &*unit;
}

Counts counted_by(Measure measure) {
    switch (measure) {
        case Measure::throughput:
            return Counts::samples;
        case Measure::flop_rate:
            return Counts::operations;
        case Measure::flop_rate_per_device:
            return Counts::operations_each;
        case Measure::efficiency:
        case Measure::flop_efficiency:
        case Measure::speedup:
            return Counts::share;
        case Measure::bus_bandwidth:
        case Measure::bandwidth:
        case Measure::both_directions:
            return Counts::bytes;
        default:
            return Counts::time;
    }
}

// A metric that is one device's says so itself.
bool is_in(Measure measure, const Unit& unit) {
    return unit.counts == counted_by(measure) ||
           (measure == Measure::flop_rate_per_device && unit.counts == Counts::operations);
}

double number_of(const ReplaySettings& settings, std::string_view name) {
    const auto found = settings.find(name);
    if (found == settings.end() || found->second.empty()) return 0;
    std::string digits = found->second;
    std::erase(digits, ',');
    const std::size_t over = digits.find('/');
    if (over == std::string::npos) return parse_number(digits, name);
    return parse_number(digits.substr(0, over), name) / parse_number(digits.substr(over + 1), name);
}

}  // namespace

bool is_relative(Measure measure) { return measure >= Measure::efficiency && measure <= Measure::speedup; }
bool is_collective(Measure measure) { return measure >= Measure::time; }

std::optional<Measure> measure_of(const PublishedRow& row, const ReplaySettings& settings) {
    const auto set = settings.find("measure");
    const std::string& name = set == settings.end() ? row.text("metric") : set->second;
    const auto found = std::ranges::find(words, name, &Word::word);
    if (found != words.end()) return found->measure;
    if (set != settings.end()) throw InputError(fmt::format("'{}' is no measure", name));
    return std::nullopt;
}

std::string wrong_unit(const PublishedRow& row, Measure measure) {
    const Unit* const unit = unit_of(row);
    if (unit == nullptr || is_in(measure, *unit)) return {};
    return fmt::format("a '{}' is {}, not '{}'", row.text("metric"), word_of(counted_by(measure)), row.text("unit"));
}

Metric metric_of(const PublishedRow& row, const ReplaySettings& settings, Measure measure) {
    const Unit* const unit = unit_of(row);
    if (unit == nullptr) throw InputError(fmt::format("unit '{}' is not known", row.text("unit")));
    if (!is_in(measure, *unit)) throw InputError(wrong_unit(row, measure));
    Metric y{.measure = measure, .unit = unit->value};
    y.dataset = number_of(settings, "dataset");
    if (const double epochs = number_of(settings, "epochs"); epochs > 0) y.epochs = epochs;
    const double operations = number_of(settings, "sample_flops");
    y.sample_flops = 1e9 * (operations > 0 ? operations : row.number("gflops_per_sample").value_or(0));
    if (const double counted = number_of(settings, "counted"); counted > 0) y.counted = counted;
    const bool of_flops = measure == Measure::flop_rate || measure == Measure::flop_rate_per_device;
    if (of_flops && y.sample_flops <= 0) throw InputError("how many operations a sample has is not said");
    const bool of_epochs = measure == Measure::epoch || measure == Measure::training;
    if (of_epochs && y.dataset <= 0) throw InputError("how many samples an epoch has is not said");
    if (measure == Measure::training && number_of(settings, "epochs") <= 0) {
        throw InputError("how many epochs the training has is not said");
    }
    return y;
}

double figure_of(const StepResult& result, const Metric& y) {
    const double rate = result.samples / result.step.value;
    const auto relative = [&] { return rate / (y.baseline->samples / y.baseline->step.value); };
    switch (y.measure) {
        case Measure::throughput:
            return y.counted * rate / y.unit;
        case Measure::step:
        case Measure::staging:
        case Measure::time:
            return result.step.value / y.unit;
        case Measure::epoch:
        case Measure::training:
            return y.epochs * y.dataset / rate / y.unit;
        case Measure::flop_rate:
            return rate * y.sample_flops / y.unit;
        case Measure::flop_rate_per_device:
            return rate * y.sample_flops / result.devices / y.unit;
        case Measure::efficiency:
            return relative() * y.baseline->devices / result.devices / y.unit;
        case Measure::flop_efficiency:
            return relative() * y.baseline->devices / result.devices * result.operations / y.baseline->operations /
                   y.unit;
        case Measure::speedup:
            return relative() / y.unit;
        case Measure::bus_bandwidth:  // samples: bytes
            return rate * 2 * (result.devices - 1) / result.devices / y.unit;
        case Measure::bandwidth:
            return rate / y.unit;
        case Measure::both_directions:
            return 2 * rate / y.unit;
    }
    return 0;
}

Seconds step_of(double figure, double samples, double devices, const Metric& y) {
    const double value = figure * y.unit;
    switch (y.measure) {
        case Measure::throughput:
            return Seconds{y.counted * samples / value};
        case Measure::step:
            return Seconds{value};
        case Measure::epoch:
        case Measure::training:
            return Seconds{value * samples / (y.epochs * y.dataset)};
        case Measure::flop_rate:
            return Seconds{samples * y.sample_flops / value};
        case Measure::flop_rate_per_device:
            return Seconds{samples * y.sample_flops / (value * devices)};
        default:
            break;
    }
    require(false, "a figure that tells of a step");
    return {};
}

}  // namespace rehearse::validate
