// SPDX-License-Identifier: Apache-2.0
// A shared library that is opened when it is first needed.
#pragma once

#include <string>

namespace rehearse::kernels::cuda {

class Library {
public:
    /// By the name that the loader looks for, "libcudnn.so.9", and where the build has found it,
    /// "/usr/lib/libcudnn.so".
    Library(const std::string& name, const std::string& built_with);
    /// Empty, or why it cannot be used.
    const std::string& refusal() const { return refusal_; }
    /// Null where the library is not there or has no such function: then refusal() says so.
    template <typename Function>
    Function* function(const char* name) {
        return reinterpret_cast<Function*>(find(name));
    }

private:
    void* find(const char* name);
    void* handle_ = nullptr;
    std::string name_, refusal_;
};

}  // namespace rehearse::kernels::cuda
