// SPDX-License-Identifier: Apache-2.0
// The three errors. "No" is not one of them: a Support with a reason, or an empty optional, says no.
#pragma once

#include <stdexcept>
#include <string>

namespace rehearse {

/// The user's file or option is wrong. The message says where (file:line or option), what, and what would be right.
/// main ends with exit code 2.
struct InputError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A library or device refused (oneDNN, MPI, SimGrid, the operating system). main ends with exit code 3.
struct BackendError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The plan is well formed but cannot be executed (it does not fit in memory). main ends with exit code 4.
struct InfeasibleError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Throws logic_error with file and line unless `condition` holds: a failure is a bug of ours, never of the user.
void require(bool condition, const char* what, const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace rehearse
