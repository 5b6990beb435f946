// SPDX-License-Identifier: Apache-2.0
// cuDNN's operation graphs, their engines, and plans that run. Only this folder includes it.
#pragma once

#include <cudnn.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/library.hpp"
#include "kernels/cudnn/describe.hpp"
#include "kernels/cudnn/describe_attention.hpp"

namespace rehearse::kernels::cudnn {

/// The functions that we call.
struct Api {
    cuda::Library library;
    decltype(&cudnnGetVersion) version;
    decltype(&cudnnGetErrorString) error_string;
    decltype(&cudnnGetLastErrorString) last_error_string;
    decltype(&cudnnCreate) create;
    decltype(&cudnnSetStream) set_stream;
    decltype(&cudnnBackendCreateDescriptor) create_descriptor;
    decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor;
    decltype(&cudnnBackendSetAttribute) set_attribute;
    decltype(&cudnnBackendGetAttribute) get_attribute;
    decltype(&cudnnBackendFinalize) finalize;
    decltype(&cudnnBackendExecute) execute;
    Api();
    /// BackendError "cuDNN failed in WHAT: ..." unless all is well.
    void check(cudnnStatus_t status, const char* what) const;
    /// The status in cuDNN's words.
    std::string words(cudnnStatus_t status) const;
};
/// Opened at the first call.
const Api& api();

/// A descriptor of cuDNN's; throws BackendError when it cannot be made.
class Descriptor {
public:
    explicit Descriptor(cudnnBackendDescriptorType_t type);
    void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
             const void* values);
    void set(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values);
    void set(cudnnBackendAttributeName_t name, const Descriptor& other);
    cudnnStatus_t try_finalize();
    void finalize(const char* what);
    cudnnBackendDescriptor_t get() const { return owned_.get(); }

private:
    std::shared_ptr<void> owned_;
};

/// How the sums of a plan may be rounded.
enum class Rounding { f32, tf32 };

/// Something that runs: its plan, the bytes that it needs, and by which engine.
struct Plan {
    Descriptor plan;
    std::int64_t workspace = 0, engine = 0;
    std::vector<Descriptor> kept{};  // whatever it was made of: nobody says that it may go first
};

/// Operations that are computed together.
class Graph {
public:
    /// Of operations, and of what they were made of. Needs no GPU.
    Graph(const std::vector<Descriptor>& operations, std::vector<Descriptor> parts, DataType type);
    /// With a handle, engines may be asked for, and plans run.
    void attach(cudnnHandle_t handle);
    /// Or for a GPU that need not be there, in cuDNN's JSON: engines are proposed for it.
    void attach(const std::string& gpu);
    std::int64_t engine_count() const;
    /// By one engine; empty, and why, where it does not run this, rounds more than it may or needs more than `limit`.
    std::unique_ptr<Plan> plan(std::int64_t engine, Rounding rounding, double limit, std::string& why) const;
    /// By the first of cuDNN's heuristics that may and fits.
    std::unique_ptr<Plan> best(Rounding rounding, double limit, std::string& why) const;
    /// How many engines the heuristics propose that may; why the others may not.
    std::int64_t proposals(Rounding rounding, std::string& why) const;

private:
    struct Proposal {
        Descriptor configuration, engine;
    };
    std::vector<Proposal> proposed(cudnnBackendHeurMode_t mode, std::string& why) const;
    std::unique_ptr<Plan> planned(const Proposal& proposal, Rounding rounding, double limit, std::string& why) const;
    std::string rounds_too_much(const Descriptor& engine, Rounding rounding) const;
    void finish();

    DataType type_;
    std::vector<Descriptor> operations_, parts_;
    cudnnHandle_t handle_ = nullptr;
    std::unique_ptr<Descriptor> gpu_, graph_;
};

/// A pass of a Conv without its bias; its tensors are `convolution_ids`: x, w and y.
Graph convolution_graph(const Problem& problem, bool channels_last);
inline constexpr std::array<std::int64_t, 3> convolution_ids{'x', 'w', 'y'};

/// The tensors of a normalization by their ids. Statistics, gamma, beta and their gradients are f32.
enum class NormTensor : std::int64_t {
    x = 1,
    mean,
    inverse,  // 1 / sqrt(variance + epsilon)
    gamma,
    beta,
    epsilon,
    y,
    momentum,
    running_mean,
    running_variance,
    next_mean,
    next_variance,
    diff_y,
    diff_gamma,
    diff_beta,
    diff_x
};
/// A BatchNorm, with running statistics, or a LayerNorm: forward, or the gradients of all three.
Graph norm_graph(const Problem& problem, bool channels_last);

/// As describe_attention.hpp says; a tensor's id is its index there and 1.
Graph graph_of(const AttentionGraph& described, DataType type);
inline constexpr std::int64_t attention_id(std::size_t tensor) { return static_cast<std::int64_t>(tensor) + 1; }

cudnnDataType_t type_of(DataType type);

}  // namespace rehearse::kernels::cudnn
