// SPDX-License-Identifier: Apache-2.0
// cuDNN's operation graphs of one convolution, their engines, and plans that run. Nobody else includes it.
#pragma once

#include <cudnn.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/library.hpp"
#include "kernels/cudnn/describe.hpp"

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

class ConvolutionGraph {
public:
    /// Operation descriptors only: needs no GPU.
    ConvolutionGraph(const Op& op, Pass pass, std::int64_t batch, DataType type);
    /// With a handle, engines may be asked for.
    void attach(cudnnHandle_t handle);
    std::int64_t engine_count() const;
    /// By one engine; empty, and why, where it does not run this, rounds more than it may or needs more than `limit`.
    std::unique_ptr<Plan> plan(std::int64_t engine, Rounding rounding, double limit, std::string& why) const;
    /// By the first of cuDNN's heuristics that may and fits.
    std::unique_ptr<Plan> best(Rounding rounding, double limit, std::string& why) const;

    static constexpr std::array<std::int64_t, 3> ids{'x', 'w', 'y'};

private:
    std::unique_ptr<Plan> planned(const Descriptor& configuration, const Descriptor& engine, Rounding rounding,
                                  double limit, std::string& why) const;
    std::string rounds_too_much(const Descriptor& engine, Rounding rounding) const;

    DataType type_;
    std::vector<Descriptor> parts_;  // the tensors, the convolution, the operation
    cudnnHandle_t handle_ = nullptr;
    std::unique_ptr<Descriptor> graph_;
};

}  // namespace rehearse::kernels::cudnn
