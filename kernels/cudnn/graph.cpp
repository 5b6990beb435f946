// SPDX-License-Identifier: Apache-2.0
#include "kernels/cudnn/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace rehearse::kernels::cudnn {

Api::Api()
    : library(fmt::format("libcudnn.so.{}", CUDNN_MAJOR), REHEARSE_CUDNN_LIBRARY),
      version(library.function<decltype(cudnnGetVersion)>("cudnnGetVersion")),
      error_string(library.function<decltype(cudnnGetErrorString)>("cudnnGetErrorString")),
      last_error_string(library.function<decltype(cudnnGetLastErrorString)>("cudnnGetLastErrorString")),
      create(library.function<decltype(cudnnCreate)>("cudnnCreate")),
      set_stream(library.function<decltype(cudnnSetStream)>("cudnnSetStream")),
      create_descriptor(library.function<decltype(cudnnBackendCreateDescriptor)>("cudnnBackendCreateDescriptor")),
      destroy_descriptor(library.function<decltype(cudnnBackendDestroyDescriptor)>("cudnnBackendDestroyDescriptor")),
      set_attribute(library.function<decltype(cudnnBackendSetAttribute)>("cudnnBackendSetAttribute")),
      get_attribute(library.function<decltype(cudnnBackendGetAttribute)>("cudnnBackendGetAttribute")),
      finalize(library.function<decltype(cudnnBackendFinalize)>("cudnnBackendFinalize")),
      execute(library.function<decltype(cudnnBackendExecute)>("cudnnBackendExecute")) {}

const Api& api() {
    static const Api& only = *new Api;
    return only;
}

std::string Api::words(cudnnStatus_t status) const {
    std::array<char, 512> more{};
    last_error_string(more.data(), more.size());
    const std::string text = more.data();
    return text.empty() ? std::string{error_string(status)} : fmt::format("{}: {}", error_string(status), text);
}

void Api::check(cudnnStatus_t status, const char* what) const {
    if (status != CUDNN_STATUS_SUCCESS) throw BackendError(fmt::format("cuDNN failed in {}: {}", what, words(status)));
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
    if (!api().library.refusal().empty()) throw BackendError(api().library.refusal());
    cudnnBackendDescriptor_t made = nullptr;
    api().check(api().create_descriptor(type, &made), "cudnnBackendCreateDescriptor");
    owned_ = {made, [](void* p) { api().destroy_descriptor(p); }};
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                     const void* values) {
    api().check(api().set_attribute(get(), name, type, count, values), "cudnnBackendSetAttribute");
}

void Descriptor::set(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values) {
    set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
}

void Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    const cudnnBackendDescriptor_t one = other.get();
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one);
}

cudnnStatus_t Descriptor::try_finalize() { return api().finalize(get()); }
void Descriptor::finalize(const char* what) { api().check(try_finalize(), what); }

Graph::Graph(const std::vector<Descriptor>& operations, std::vector<Descriptor> parts, DataType type)
    : type_(type), operations_(operations), parts_(std::move(parts)) {}

void Graph::attach(cudnnHandle_t handle) {
    handle_ = handle;
    finish();
}

void Graph::attach(const std::string& gpu) {
    gpu_ = std::make_unique<Descriptor>(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    gpu_->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(gpu.size()) + 1,
              gpu.c_str());
    gpu_->finalize("a GPU's description");
    finish();
}

void Graph::finish() {
    graph_ = std::make_unique<Descriptor>(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (handle_ != nullptr) graph_->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle_);
    std::vector<cudnnBackendDescriptor_t> all;
    for (const Descriptor& operation : operations_) all.push_back(operation.get());
    graph_->set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(all.size()),
                all.data());
    graph_->finalize("a graph of operations");
}

std::int64_t Graph::engine_count() const {
    std::int64_t engines = 0, found = 0;
    api().check(api().get_attribute(graph_->get(), CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64, 1,
                                    &found, &engines),
                "counting engines");
    return engines;
}

// By the engine's own notes: of f32 tensors, tensor cores multiply what was rounded to TF32.
std::string Graph::rounds_too_much(const Descriptor& engine, Rounding rounding) const {
    std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
    std::int64_t count = 0;
    api().check(api().get_attribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                    static_cast<std::int64_t>(notes.size()), &count, notes.data()),
                "an engine's notes");
    const auto has = [&](cudnnBackendNumericalNote_t note) {
        return std::find(notes.begin(), notes.begin() + count, note) != notes.begin() + count;
    };
    if (has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return "sums in less than f32";
    if (type_ != DataType::f32 || rounding == Rounding::tf32) return {};
    if (has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return "rounds its inputs to fewer bits";
    return has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) ? "rounds f32 to TF32" : "";
}

std::unique_ptr<Plan> Graph::planned(const Proposal& proposal, Rounding rounding, double limit,
                                     std::string& why) const {
    const auto& [configuration, engine] = proposal;
    if (why = rounds_too_much(engine, rounding); !why.empty()) return nullptr;
    auto made = std::make_unique<Plan>(Plan{Descriptor{CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR}});
    made->kept = parts_;
    made->kept.insert(made->kept.end(), operations_.begin(), operations_.end());
    made->kept.insert(made->kept.end(), {*graph_, configuration, engine});
    if (gpu_ != nullptr) made->plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *gpu_);
    if (gpu_ == nullptr) made->plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle_);
    made->plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    if (const cudnnStatus_t status = made->plan.try_finalize(); status != CUDNN_STATUS_SUCCESS) {
        why = api().words(status);
        return nullptr;
    }
    std::int64_t count = 0;
    api().check(api().get_attribute(made->plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                    &count, &made->workspace),
                "a plan's workspace");
    api().check(
        api().get_attribute(engine.get(), CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &made->engine),
        "an engine's number");
    if (static_cast<double>(made->workspace) <= limit) return made;
    why = fmt::format("needs {} of scratch memory", to_string(Bytes{static_cast<double>(made->workspace)}));
    return nullptr;
}

std::unique_ptr<Plan> Graph::plan(std::int64_t engine, Rounding rounding, double limit, std::string& why) const {
    if (engine >= engine_count()) {
        why = fmt::format("cuDNN has {} engines for this pass", engine_count());
        return nullptr;
    }
    Proposal chosen{Descriptor{CUDNN_BACKEND_ENGINECFG_DESCRIPTOR}, Descriptor{CUDNN_BACKEND_ENGINE_DESCRIPTOR}};
    chosen.engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, *graph_);
    chosen.engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, {engine});
    if (gpu_ != nullptr) chosen.engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, *gpu_);
    if (const cudnnStatus_t status = chosen.engine.try_finalize(); status != CUDNN_STATUS_SUCCESS) {
        why = api().words(status);
        return nullptr;
    }
    chosen.configuration.set(CUDNN_ATTR_ENGINECFG_ENGINE, chosen.engine);
    if (const cudnnStatus_t status = chosen.configuration.try_finalize(); status != CUDNN_STATUS_SUCCESS) {
        why = api().words(status);
        return nullptr;
    }
    return planned(chosen, rounding, limit, why);
}

std::vector<Graph::Proposal> Graph::proposed(cudnnBackendHeurMode_t mode, std::string& why) const {
    Descriptor heuristics{CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR};
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *graph_);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (gpu_ != nullptr) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *gpu_);
    if (const cudnnStatus_t status = heuristics.try_finalize(); status != CUDNN_STATUS_SUCCESS) {
        why = api().words(status);
        return {};
    }
    constexpr std::size_t most = 32;
    std::vector<Proposal> made;
    std::vector<cudnnBackendDescriptor_t> handles;
    for (std::size_t i = 0; i < most; ++i) {
        made.push_back({Descriptor{CUDNN_BACKEND_ENGINECFG_DESCRIPTOR}, Descriptor{CUDNN_BACKEND_ENGINE_DESCRIPTOR}});
        handles.push_back(made.back().configuration.get());
    }
    std::int64_t count = 0;
    api().check(api().get_attribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                    most, &count, handles.data()),
                "the heuristics");
    made.erase(made.begin() + static_cast<std::ptrdiff_t>(std::min<std::int64_t>(count, most)), made.end());
    for (const Proposal& each : made) {
        cudnnBackendDescriptor_t its_own = each.engine.get();
        std::int64_t found = 0;
        api().check(api().get_attribute(each.configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &found, &its_own),
                    "a configuration's engine");
    }
    if (made.empty()) why = "cuDNN proposes no engine";
    return made;
}

std::unique_ptr<Plan> Graph::best(Rounding rounding, double limit, std::string& why) const {
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
        const std::vector<Proposal> all = proposed(mode, why);
        for (const Proposal& each : all) {
            if (auto made = planned(each, rounding, limit, why)) return made;
        }
    }
    return nullptr;
}

std::int64_t Graph::proposals(Rounding rounding, std::string& why) const {
    std::int64_t count = 0;
    const std::vector<Proposal> all = proposed(CUDNN_HEUR_MODE_A, why);
    for (const Proposal& each : all) {
        const std::string too_much = rounds_too_much(each.engine, rounding);
        if (too_much.empty()) ++count;
        if (!too_much.empty()) why = too_much;
    }
    return count;
}

}  // namespace rehearse::kernels::cudnn
