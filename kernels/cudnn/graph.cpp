// SPDX-License-Identifier: Apache-2.0
#include "kernels/cudnn/graph.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace rehearse::kernels::cudnn {
namespace {

constexpr std::int64_t alignment = 16;  // of every tensor: ours begin at 64 bytes, a batch's rows need not

struct Names {
    cudnnBackendDescriptorType_t operation;
    cudnnBackendAttributeName_t alpha, beta, convolution, w, x, y;
};

Names names(Pass pass) {
    if (pass == Pass::forward) {
        return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
    }
    if (pass == Pass::backward_data) {
        return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
    }
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
}

cudnnDataType_t type_of(DataType type) {
    if (type == DataType::f32) return CUDNN_DATA_FLOAT;
    return type == DataType::f16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
}

Descriptor tensor(const Described& shape, DataType type, std::int64_t id) {
    Descriptor made{CUDNN_BACKEND_TENSOR_DESCRIPTOR};
    const cudnnDataType_t element = type_of(type);
    made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &element);
    made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, shape.sizes);
    made.set(CUDNN_ATTR_TENSOR_STRIDES, shape.strides);
    made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, {id});
    made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {alignment});
    made.finalize("a tensor's description");
    return made;
}

Descriptor convolution(const Correlation& c) {
    Descriptor made{CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR};
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    made.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, {static_cast<std::int64_t>(c.stride.size())});
    made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    made.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    made.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, c.before);
    made.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, c.after);
    made.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, c.stride);
    made.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, c.dilation);
    made.finalize("a convolution's description");
    return made;
}

}  // namespace

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

ConvolutionGraph::ConvolutionGraph(const Op& op, Pass pass, std::int64_t batch, DataType type) : type_(type) {
    const Correlation c = correlation(op, batch);
    parts_ = {tensor(c.x, type, ids[0]), tensor(c.w, type, ids[1]), tensor(c.y, type, ids[2]), convolution(c)};
    const Names n = names(pass);
    Descriptor operation{n.operation};
    operation.set(n.x, parts_[0]);
    operation.set(n.w, parts_[1]);
    operation.set(n.y, parts_[2]);
    operation.set(n.convolution, parts_[3]);
    const float alpha = 1, beta = 0;
    operation.set(n.alpha, CUDNN_TYPE_FLOAT, 1, &alpha);
    operation.set(n.beta, CUDNN_TYPE_FLOAT, 1, &beta);
    operation.finalize("a convolution's operation");
    parts_.push_back(operation);
}

void ConvolutionGraph::attach(cudnnHandle_t handle) {
    handle_ = handle;
    graph_ = std::make_unique<Descriptor>(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph_->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle_);
    graph_->set(CUDNN_ATTR_OPERATIONGRAPH_OPS, parts_.back());
    graph_->finalize("a convolution's graph");
}

std::int64_t ConvolutionGraph::engine_count() const {
    std::int64_t engines = 0, found = 0;
    api().check(api().get_attribute(graph_->get(), CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64, 1,
                                    &found, &engines),
                "counting engines");
    return engines;
}

// By the engine's own notes: of f32 tensors, tensor cores multiply what was rounded to TF32.
std::string ConvolutionGraph::rounds_too_much(const Descriptor& engine, Rounding rounding) const {
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

std::unique_ptr<Plan> ConvolutionGraph::planned(const Descriptor& configuration, const Descriptor& engine,
                                                Rounding rounding, double limit, std::string& why) const {
    if (why = rounds_too_much(engine, rounding); !why.empty()) return nullptr;
    auto made = std::make_unique<Plan>(Plan{Descriptor{CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR}});
    made->kept = parts_;
    made->kept.insert(made->kept.end(), {*graph_, configuration, engine});
    made->plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle_);
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

std::unique_ptr<Plan> ConvolutionGraph::plan(std::int64_t engine, Rounding rounding, double limit,
                                             std::string& why) const {
    if (engine >= engine_count()) {
        why = fmt::format("cuDNN has {} engines for this pass", engine_count());
        return nullptr;
    }
    Descriptor chosen{CUDNN_BACKEND_ENGINE_DESCRIPTOR};
    chosen.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, *graph_);
    chosen.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, {engine});
    if (const cudnnStatus_t status = chosen.try_finalize(); status != CUDNN_STATUS_SUCCESS) {
        why = api().words(status);
        return nullptr;
    }
    Descriptor configuration{CUDNN_BACKEND_ENGINECFG_DESCRIPTOR};
    configuration.set(CUDNN_ATTR_ENGINECFG_ENGINE, chosen);
    if (const cudnnStatus_t status = configuration.try_finalize(); status != CUDNN_STATUS_SUCCESS) {
        why = api().words(status);
        return nullptr;
    }
    return planned(configuration, chosen, rounding, limit, why);
}

std::unique_ptr<Plan> ConvolutionGraph::best(Rounding rounding, double limit, std::string& why) const {
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
        Descriptor heuristics{CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR};
        heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *graph_);
        heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
        if (const cudnnStatus_t status = heuristics.try_finalize(); status != CUDNN_STATUS_SUCCESS) {
            why = api().words(status);
            continue;
        }
        constexpr std::size_t most = 32;
        std::vector<Descriptor> proposed;
        std::vector<cudnnBackendDescriptor_t> handles;
        for (std::size_t i = 0; i < most; ++i) {
            proposed.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
            handles.push_back(proposed.back().get());
        }
        std::int64_t count = 0;
        api().check(api().get_attribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                        most, &count, handles.data()),
                    "the heuristics");
        for (std::int64_t i = 0; i < std::min<std::int64_t>(count, most); ++i) {
            const Descriptor& configuration = proposed[static_cast<std::size_t>(i)];
            const Descriptor engine{CUDNN_BACKEND_ENGINE_DESCRIPTOR};
            cudnnBackendDescriptor_t its_own = engine.get();
            std::int64_t found = 0;
            api().check(api().get_attribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &found, &its_own),
                        "a configuration's engine");
            if (auto made = planned(configuration, engine, rounding, limit, why)) return made;
        }
    }
    if (why.empty()) why = "cuDNN proposes no engine";
    return nullptr;
}

}  // namespace rehearse::kernels::cudnn
