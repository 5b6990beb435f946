// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

namespace rehearse::kernels::cuda {

// Never closed: what it has started may outlive us.
Library::Library(const std::string& name, const std::string& built_with) : name_(name) {
    for (const std::string& path : std::array{name, built_with}) {
        handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle_ != nullptr) {
            refusal_.clear();
            return;
        }
        const char* const why = dlerror();
        if (refusal_.empty()) refusal_ = fmt::format("{} cannot be opened: {}", name, why == nullptr ? "" : why);
    }
}

void* Library::find(const char* name) {
    if (handle_ == nullptr) return nullptr;
    void* const found = dlsym(handle_, name);
    if (found == nullptr && refusal_.empty()) refusal_ = fmt::format("{} has no {}", name_, name);
    return found;
}

}  // namespace rehearse::kernels::cuda
