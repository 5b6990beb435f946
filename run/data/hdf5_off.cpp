// SPDX-License-Identifier: Apache-2.0
// Without HDF5: nothing is saved or read, and it is said why.
#include "core/error.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/checkpoint/files.hpp"
#include "run/data/sample_volumes.hpp"
#include "run/train.hpp"

namespace rehearse::run {

namespace {

constexpr const char* why = "this build has no HDF5 (install libhdf5-dev, configure with REHEARSE_HDF5=ON)";

}  // namespace

std::optional<std::string> why_no_checkpoints() { return why; }
void save(const std::filesystem::path&, const Checkpoint&) { throw BackendError(why); }
void save(const std::filesystem::path&, const RankStates&) { throw BackendError(why); }
RankStates load(const std::filesystem::path&, const RankStates&) { throw BackendError(why); }
std::optional<std::filesystem::path> newest(const std::filesystem::path&) { return {}; }
Checkpoint load(const std::filesystem::path&, const Schedule&) { throw BackendError(why); }
LabelledFile open_h5(const std::filesystem::path&, const Shape&, const SoftmaxLoss&, std::int64_t) {
    throw BackendError(why);
}
TokenFile open_tokens(const std::filesystem::path&, const Input&, const SoftmaxLoss&, std::int64_t) {
    throw BackendError(why);
}
InputFile open_inputs(const std::filesystem::path&, const Network&, std::int64_t) { throw BackendError(why); }
void write_volumes(const std::filesystem::path&, const Shape&, std::int64_t) { throw BackendError(why); }
void save_weights(const std::filesystem::path&, const Network&, const Checkpoint&) { throw BackendError(why); }
void save_gradients(const std::filesystem::path&, const Network&, const Checkpoint&) { throw BackendError(why); }
void give_weights(Network&, const std::filesystem::path&) { throw BackendError(why); }
Grown grow_weights(Network&, const std::filesystem::path&, bool) { throw BackendError(why); }

}  // namespace rehearse::run
