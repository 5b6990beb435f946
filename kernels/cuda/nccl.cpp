// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/nccl.hpp"

#if __has_include(<nccl.h>)

#include <fmt/format.h>
#include <nccl.h>

#include <cstring>

#include "core/error.hpp"
#include "kernels/cuda/gpu.hpp"
#include "kernels/cuda/library.hpp"

namespace rehearse::kernels::cuda {
namespace {

struct Nccl {
    Library library{fmt::format("libnccl.so.{}", NCCL_MAJOR), "libnccl.so"};
    decltype(&ncclGetErrorString) words = library.function<decltype(ncclGetErrorString)>("ncclGetErrorString");
    decltype(&ncclGetUniqueId) unique_id = library.function<decltype(ncclGetUniqueId)>("ncclGetUniqueId");
    decltype(&ncclCommInitRank) join = library.function<decltype(ncclCommInitRank)>("ncclCommInitRank");
    decltype(&ncclCommAbort) abort = library.function<decltype(ncclCommAbort)>("ncclCommAbort");
    decltype(&ncclCommGetAsyncError) error = library.function<decltype(ncclCommGetAsyncError)>("ncclCommGetAsyncError");
    decltype(&ncclAllReduce) all_reduce = library.function<decltype(ncclAllReduce)>("ncclAllReduce");

    void check(ncclResult_t status, const char* what) const {
        if (status != ncclSuccess) throw BackendError(fmt::format("NCCL failed in {}: {}", what, words(status)));
    }
};

const Nccl& nccl() {
    static const Nccl& only = *new Nccl;
    return only;
}

ncclDataType_t type_of(DataType type) {
    if (type == DataType::f32) return ncclFloat32;
    return type == DataType::f16 ? ncclFloat16 : ncclBfloat16;
}

class Group final : public DeviceGroup {
public:
    Group(const ncclUniqueId& id, std::int64_t rank, std::int64_t size) {
        cuda::check(cudaGetDevice(&gpu_), "cudaGetDevice");
        nccl().check(nccl().join(&group_, static_cast<int>(size), id, static_cast<int>(rank)), "ncclCommInitRank");
        cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
        cuda::check(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming), "cudaEventCreate");
    }
    ~Group() override {
        nccl().abort(group_);  // also of one whose peers are gone
        cudaEventDestroy(done_);
        cudaStreamDestroy(stream_);
    }
    void all_reduce(View data) override {
        cuda::check(cudaSetDevice(gpu_), "cudaSetDevice");  // of this thread
        nccl().check(
            nccl().all_reduce(data.bytes(), data.bytes(), data.size(), type_of(data.type()), ncclSum, group_, stream_),
            "ncclAllReduce");
        cuda::check(cudaEventRecord(done_, stream_), "cudaEventRecord");
    }
    bool test() override {
        ncclResult_t later = ncclSuccess;
        nccl().check(nccl().error(group_, &later), "ncclCommGetAsyncError");
        nccl().check(later, "an all-reduce");
        const cudaError_t status = cudaEventQuery(done_);
        if (status == cudaErrorNotReady) return false;
        cuda::check(status, "an all-reduce");
        return true;
    }

private:
    int gpu_ = 0;
    ncclComm_t group_ = nullptr;
    cudaStream_t stream_ = nullptr;
    cudaEvent_t done_ = nullptr;
};

}  // namespace

std::string nccl_refusal() { return nccl().library.refusal(); }

std::vector<std::byte> nccl_group_name() {
    ncclUniqueId id;
    nccl().check(nccl().unique_id(&id), "ncclGetUniqueId");
    const auto* const bytes = reinterpret_cast<const std::byte*>(&id);
    return {bytes, bytes + sizeof id};
}

std::unique_ptr<DeviceGroup> nccl_join(std::span<const std::byte> name, std::int64_t rank, std::int64_t size) {
    ncclUniqueId id;
    require(name.size() == sizeof id, "a group's name is one of NCCL's");
    std::memcpy(&id, name.data(), sizeof id);
    return std::make_unique<Group>(id, rank, size);
}

}  // namespace rehearse::kernels::cuda

#else

#include "core/error.hpp"

namespace rehearse::kernels::cuda {
std::string nccl_refusal() { return "built without NCCL"; }
std::vector<std::byte> nccl_group_name() { throw BackendError(nccl_refusal()); }
std::unique_ptr<DeviceGroup> nccl_join(std::span<const std::byte>, std::int64_t, std::int64_t) {
    throw BackendError(nccl_refusal());
}
}  // namespace rehearse::kernels::cuda

#endif
