// SPDX-License-Identifier: Apache-2.0
#include "models/request_file.hpp"

#include <algorithm>
#include <filesystem>

#include "core/file.hpp"
#include "models/reader/machine_reader.hpp"

namespace rehearse::models {

namespace {

toml::table parsed(const std::string& path) {
    try {
        return toml::parse(read_file(path), path);
    } catch (const toml::parse_error& error) {
        throw InputError(fmt::format("{}:{}: not TOML: {}", path, error.source().begin.line, error.description()));
    }
}

std::string beside(const std::string& path, const std::string& name) {
    const auto file = std::filesystem::path(path).parent_path() / name;
    std::error_code error;
    return !name.empty() && std::filesystem::is_regular_file(file, error) ? file.string() : name;
}

// nodes = [1, 8, 64]: at least one, in any order, none twice.
ScalingRequest scaling(Reader reader, std::string_view batch) {
    ScalingRequest request{reader.counts("nodes"), reader.count(batch)};
    if (reader.has("pilots")) request.pilots = reader.texts("pilots");
    std::ranges::sort(request.nodes);
    if (request.nodes.empty()) reader.fail("nodes", "a scaling study needs at least one number of nodes");
    if (std::ranges::adjacent_find(request.nodes) != request.nodes.end())
        reader.fail("nodes", "a number of nodes stands there twice");
    reader.done();
    return request;
}

PhaseRequest phase_of(Reader reader, const RequestFile& file) {
    PhaseRequest phase;
    phase.name = reader.text("name");
    reader.set_where(fmt::format("phase '{}'", phase.name));
    phase.period = reader.text("period");
    phase.runs = reader.count("runs", 1);
    phase.nodes = reader.count("nodes");
    if (reader.has("epochs")) phase.epochs = reader.number("epochs");
    if (reader.has("steps")) phase.steps = reader.count("steps");
    if (reader.has("wall")) {
        try {
            phase.wall = parse_quantity<Seconds>(reader.text("wall"));
        } catch (const InputError& error) {
            reader.fail("wall", fmt::format("wall: {}", error.what()));
        }
    }
    if (phase.epochs.has_value() + phase.steps.has_value() + phase.wall.has_value() != 1)
        reader.fail("give exactly one of epochs, steps and wall (\"6h\"): how long a run is");
    if (phase.epochs && !(*phase.epochs > 0)) reader.fail("epochs", "epochs must be above 0");
    if (phase.wall && phase.wall->value <= 0) reader.fail("wall", "wall must be above 0");
    if (phase.epochs && !file.dataset)
        reader.fail("epochs", "epochs need [training] dataset: the number of samples of one");
    const std::string study = reader.text("scaling", file.weak ? "weak" : "strong");
    if (study != "weak" && study != "strong") reader.fail("scaling", "scaling is \"weak\" or \"strong\"");
    phase.strong = study == "strong";
    if (!(phase.strong ? file.strong : file.weak))
        reader.fail("scaling", fmt::format("there is no [{}] to take the batch from", study));
    reader.done();
    return phase;
}

void read_training(Reader reader, RequestFile& file) {
    if (reader.has("dataset")) file.dataset = reader.count("dataset");
    file.epochs = static_cast<int>(reader.count("epochs", 1));
    file.sample = reader.text("sample", "");
    file.input = reader.text("input", "");
    file.checkpoint = reader.text("checkpoint", "");
    if (reader.has("checkpoint_every")) file.checkpoint_every = reader.count("checkpoint_every");
    if (reader.has("checkpoints_kept")) file.checkpoints_kept = reader.count("checkpoints_kept");
    if (file.checkpoint.empty() != !file.checkpoint_every)
        reader.fail("checkpoint and checkpoint_every go together: a storage tier, and steps from one to the next");
    reader.done();
}

}  // namespace

RequestFile load_request(const std::string& path) {
    const toml::table table = parsed(path);
    Reader top(table, path, "");
    RequestFile file;
    auto request = top.table("request", "request");
    if (!request) top.fail("'request' is missing: right would be a table [request] with title and machine");
    file.title = request->text("title");
    file.machine = beside(path, request->text("machine"));
    file.applicant = request->text("applicant", "");
    file.project = request->text("project", "");
    if (request->has("floor")) file.floor = request->number("floor");
    if (!(file.floor > 0 && file.floor <= 1)) request->fail("floor", "floor is an efficiency, above 0 to 1");
    request->done();
    auto job = top.table("job", "job");
    if (!job) top.fail("'job' is missing: right would be a table [job] with model, plan, precision, ...");
    file.model = beside(path, job->text("model"));
    file.plan = job->text("plan", "data");
    file.precision = job->text("precision", "fp32");
    file.optimizer = job->text("optimizer", "sgd");
    file.framework = job->text("framework", "");
    job->done();
    if (auto weak = top.table("weak", "weak")) file.weak = scaling(*weak, "batch");
    if (auto strong = top.table("strong", "strong")) file.strong = scaling(*strong, "global_batch");
    if (!file.weak && !file.strong)
        top.fail("it has no scaling study: add [weak] with batch and nodes, or [strong] with global_batch and nodes");
    if (auto training = top.table("training", "training")) read_training(*training, file);
    for (const Reader& reader : top.tables("phase", "phase")) file.phases.push_back(phase_of(reader, file));
    top.done();
    return file;
}

}  // namespace rehearse::models
