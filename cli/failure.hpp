// SPDX-License-Identifier: Apache-2.0
// What the program says, and the code with which it ends, when a command throws.
#pragma once

#include <exception>
#include <string>

namespace rehearse::cli {

struct Failure {
    int code = 0;  // of Exit
    std::string text;
};

/// The errors of core/error.hpp have codes of their own, as has what the operating system refuses; everything else is a
/// bug of ours, which the text says and asks to report.
Failure failure_of(const std::exception_ptr& error);

}  // namespace rehearse::cli
