// SPDX-License-Identifier: Apache-2.0
#include "models/experiment_file.hpp"

#include <filesystem>
#include <sstream>

#include "core/file.hpp"
#include "models/reader/machine_reader.hpp"
#include "models/reader/toml.hpp"

namespace rehearse::models {

namespace {

std::string beside(const std::string& path, const std::string& name) {
    const auto file = std::filesystem::path(path).parent_path() / name;
    std::error_code error;
    const bool is_file = !name.empty() && std::filesystem::is_regular_file(file, error);
    return is_file ? file.string() : name;
}

bool has(std::string_view toml, std::string_view table) {
    try {
        return parse_toml(toml, "").contains(table);
    } catch (const InputError&) {
        return false;
    }
}

}  // namespace

bool is_experiment(std::string_view toml) { return has(toml, "experiment"); }
bool is_request(std::string_view toml) { return has(toml, "request"); }

ExperimentFile load_experiment(const std::string& path) {
    const toml::table table = parse_toml(read_file(path), path);
    Reader top(table, path, "");
    auto reader = top.table("experiment", "experiment");
    if (!reader)
        top.fail("'experiment' is missing: right would be a table [experiment] with model, machine, plan, ...");
    ExperimentFile file;
    file.model = beside(path, reader->text("model", ""));
    file.machine = beside(path, reader->text("machine", ""));
    file.plan = reader->text("plan", "");
    file.precision = reader->text("precision", "");
    file.optimizer = reader->text("optimizer", "");
    if (reader->has("devices")) file.devices = reader->counts("devices");
    if (reader->has("batch")) file.batch = reader->count("batch");
    reader->done();
    top.done();
    return file;
}

std::string to_toml(const ExperimentFile& experiment) {
    toml::table words;
    const auto put = [&](const char* key, const std::string& value) {
        if (!value.empty()) words.insert(key, value);
    };
    put("model", experiment.model), put("machine", experiment.machine), put("plan", experiment.plan);
    put("precision", experiment.precision), put("optimizer", experiment.optimizer);
    if (experiment.batch > 0) words.insert("batch", experiment.batch);
    toml::array devices;
    for (const std::int64_t n : experiment.devices) devices.push_back(n);
    if (!devices.empty()) words.insert("devices", std::move(devices));
    std::ostringstream out;
    out << toml::table{{"experiment", std::move(words)}} << '\n';
    return out.str();
}

}  // namespace rehearse::models
