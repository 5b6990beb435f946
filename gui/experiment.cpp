// SPDX-License-Identifier: Apache-2.0
#include "gui/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/precision.hpp"
#include "core/text.hpp"
#include "models/experiment_file.hpp"
#include "models/models.hpp"
#include "picture/topology.hpp"
#include "predict/job.hpp"
#include "schedule/memory.hpp"
#include "schedule/plan.hpp"

namespace rehearse::gui {

namespace {

template <typename Kind>
Kind named(const std::string& word, std::initializer_list<Kind> kinds) {
    for (const Kind kind : kinds) {
        if (to_string(kind) == word) return kind;
    }
    throw InputError(fmt::format("'{}' is not one of the choices", word));
}

std::string quoted(const std::string& word) {
    const bool plain = !word.empty() && std::ranges::all_of(word, [](char c) {
        return (std::isalnum(static_cast<unsigned char>(c)) != 0) ||
               std::string_view{"-_=,.:/@%+"}.find(c) != std::string_view::npos;
    });
    if (plain) return word;
    std::string result = "'";
    for (const char c : word) result += c == '\'' ? std::string{"'\\''"} : std::string(1, c);
    return result + "'";
}

}  // namespace

std::vector<std::string> arguments(const Experiment& experiment, const std::string& devices) {
    return {"predict",
            "--model",
            experiment.model,
            "--machine",
            experiment.machine,
            "--devices",
            devices.empty() ? experiment.devices : devices,
            "--plan",
            experiment.plan,
            "--batch",
            fmt::format("{}", experiment.batch),
            "--precision",
            experiment.precision,
            "--optimizer",
            experiment.optimizer};
}

std::string command_line(const Experiment& experiment) {
    std::string line = "rehearse";
    for (const std::string& word : arguments(experiment)) line += ' ' + quoted(word);
    return line;
}

Experiment experiment_in(const std::string& path, const Experiment& before) {
    Experiment result = before;
    if (path.ends_with(".onnx") || path.ends_with("config.json")) {
        result.model = path;
        return result;
    }
    constexpr std::uintmax_t most = 50'000'000;
    std::error_code error;
    if (const auto size = std::filesystem::file_size(path, error); !error && size > most)
        throw InputError(path + ": too large for a machine or an experiment (at most 50 MB)");
    const std::string text = read_file(path);
    if (models::is_request(text)) {
        throw InputError(fmt::format(
            "{}: neither a machine nor an experiment, but a request: `rehearse report {}` makes its document", path,
            quoted(path)));
    }
    if (!models::is_experiment(text)) {
        models::load_machine(path);  // says what is wrong with it
        result.machine = path;
        return result;
    }
    const models::ExperimentFile file = models::load_experiment(path);
    const predict::Job defaults;  // with Experiment's model and machine what the command line has
    result = {.plan = "data",
              .precision = std::string{to_string(defaults.precision)},
              .optimizer = std::string{to_string(defaults.optimizer)},
              .devices = fmt::format("{}", fmt::join(defaults.devices, ",")),
              .batch = static_cast<int>(defaults.batch)};
    const auto take = [](std::string& word, const std::string& given) {
        if (!given.empty()) word = given;
    };
    take(result.model, file.model), take(result.machine, file.machine), take(result.plan, file.plan);
    take(result.precision, file.precision), take(result.optimizer, file.optimizer);
    if (!file.devices.empty()) result.devices = fmt::format("{}", fmt::join(file.devices, ","));
    if (file.batch > 0) result.batch = static_cast<int>(file.batch);
    return result;
}

std::string to_toml(const Experiment& experiment) {
    return models::to_toml(models::ExperimentFile{experiment.model, experiment.machine, experiment.plan,
                                                  experiment.precision, experiment.optimizer, devices_of(experiment),
                                                  experiment.batch});
}

std::vector<std::int64_t> devices_of(const Experiment& experiment) {
    std::vector<std::int64_t> numbers;
    for (const std::string_view word : split(experiment.devices, ',')) {
        numbers.push_back(parse_int(word, "devices"));
        if (numbers.back() < 1) throw InputError(fmt::format("devices: {} is not a number of devices", word));
    }
    std::ranges::sort(numbers);
    return numbers;
}

namespace {

schedule::Job job_of(const Experiment& experiment, std::int64_t devices) {
    schedule::Job job;
    job.devices = devices;
    job.batch_per_device = experiment.batch;
    job.precision = parse_precision(experiment.precision);
    job.optimizer = named(experiment.optimizer, {Optimizer::sgd, Optimizer::adam, Optimizer::lamb});
    return job;
}

// What its devices hold, and "" or why it does not fit.
std::string take(Check& result, const Schedule& schedule, const Machine& machine, std::int64_t devices) {
    const DeviceClass& device = class_of(machine, 0);
    result.capacity_bytes = device.memory.value.value;
    result.memory.clear();
    for (const schedule::NamedUse& each : schedule::memory_uses(schedule)) {
        for (const schedule::MemoryRow& row : schedule::rows(each.use)) {
            if (row.kind == "total") continue;
            result.memory.push_back({each.name, std::string{row.kind}, row.bytes});
        }
    }
    result.summary =
        fmt::format("{}: {} nodes, global batch {}, {} micro-batch{} of {}, {} of {} memory", schedule.plan,
                    locate(machine, devices - 1).node + 1, global_batch(schedule), schedule.micro_batches,
                    schedule.micro_batches == 1 ? "" : "es", micro_batch_size(schedule),
                    to_string(schedule.memory_peak), to_string(device.memory.value));
    if (schedule.memory_peak <= device.memory.value) return {};
    return fmt::format("does not fit: {} of a device's {}", to_string(schedule.memory_peak),
                       to_string(device.memory.value));
}

}  // namespace

Check check(const Experiment& experiment) {
    Check result;
    try {
        const Machine machine = models::load_machine(experiment.machine);
        const Network network = models::load_network(experiment.model);
        const schedule::Plan plan = schedule::parse_plan(experiment.plan);
        const std::vector<std::int64_t> numbers = devices_of(experiment);
        for (const std::int64_t devices : numbers) {
            std::string problem;
            try {
                problem =
                    take(result, make_schedule(network, machine, plan, job_of(experiment, devices)), machine, devices);
            } catch (const std::exception& error) {
                problem = error.what();
            }
            if (problem.empty() || !result.problem.empty()) continue;
            result.problem = numbers.size() == 1 ? problem : fmt::format("{} devices: {}", devices, problem);
        }
    } catch (const std::exception& error) {
        result.problem = error.what();
    }
    return result;
}

picture::Picture traffic_picture(const Experiment& experiment, picture::Size size, picture::Theme theme) {
    std::int64_t devices = 0;
    for (const std::int64_t n : devices_of(experiment)) devices = n <= 96 ? n : devices;
    if (devices == 0) throw InputError("the experiment has no point of at most 96 devices");
    const Machine machine = models::load_machine(experiment.machine);
    const Schedule schedule = make_schedule(models::load_network(experiment.model), machine,
                                            schedule::parse_plan(experiment.plan), job_of(experiment, devices));
    return picture::traffic_picture(picture::traffic_of(schedule, machine), machine, size, theme);
}

}  // namespace rehearse::gui
