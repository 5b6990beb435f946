// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cufft.hpp"

#if __has_include(<cufft.h>)

#include <cufft.h>
#include <fmt/format.h>

#include <array>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "kernels/cuda/library.hpp"

namespace rehearse::kernels::cuda {
namespace {

struct Cufft {
    Library library{fmt::format("libcufft.so.{}", CUFFT_VER_MAJOR), "libcufft.so"};
    decltype(&cufftPlanMany) plan_many = library.function<decltype(cufftPlanMany)>("cufftPlanMany");
    decltype(&cufftSetStream) set_stream = library.function<decltype(cufftSetStream)>("cufftSetStream");
    decltype(&cufftExecR2C) forward = library.function<decltype(cufftExecR2C)>("cufftExecR2C");
    decltype(&cufftExecC2R) back = library.function<decltype(cufftExecC2R)>("cufftExecC2R");
};

const Cufft& cufft() {
    static const Cufft& only = *new Cufft;
    return only;
}

void check(cufftResult status, const char* what) {
    if (status != CUFFT_SUCCESS)
        throw BackendError(fmt::format("cuFFT failed in {}: status {}", what, static_cast<int>(status)));
}

// Making one takes long: each is kept. From one thread at a time, as kernels run.
cufftHandle plan(const Engine::PlaneBatch& batch, cufftType type, cudaStream_t stream) {
    // One a stream: a plan has a work area, which transforms of two streams must not share.
    using Key = std::pair<std::array<std::int64_t, 4>, cudaStream_t>;
    static std::map<Key, cufftHandle> plans;
    const Key key{{batch.height, batch.width, batch.count, type}, stream};
    const auto [found, fresh] = plans.try_emplace(key);
    if (fresh) {
        const auto number = [](std::int64_t value) { return static_cast<int>(value); };
        std::array<int, 2> sizes{number(batch.height), number(batch.width)};
        check(
            cufft().plan_many(&found->second, 2, sizes.data(), nullptr, 1, 0, nullptr, 1, 0, type, number(batch.count)),
            "a plan");
        check(cufft().set_stream(found->second, stream), "cufftSetStream");
    }
    return found->second;
}

}  // namespace

std::string cufft_refusal() { return cufft().library.refusal(); }

void cufft_forward(const Engine::PlaneBatch& batch, const float* planes, float* spectra, cudaStream_t stream) {
    check(cufft().forward(plan(batch, CUFFT_R2C, stream), const_cast<float*>(planes),
                          reinterpret_cast<cufftComplex*>(spectra)),
          "a transform");
}

void cufft_back(const Engine::PlaneBatch& batch, float* spectra, float* planes, cudaStream_t stream) {
    check(cufft().back(plan(batch, CUFFT_C2R, stream), reinterpret_cast<cufftComplex*>(spectra), planes),
          "a transform back");
}

}  // namespace rehearse::kernels::cuda

#else

namespace rehearse::kernels::cuda {
std::string cufft_refusal() { return "built without cuFFT"; }
void cufft_forward(const Engine::PlaneBatch&, const float*, float*, cudaStream_t) {}
void cufft_back(const Engine::PlaneBatch&, float*, float*, cudaStream_t) {}
}  // namespace rehearse::kernels::cuda

#endif
