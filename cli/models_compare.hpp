// SPDX-License-Identifier: Apache-2.0
// Networks held against each other, and against what PyTorch counted.
#pragma once

#include <string>

#include "cli/report.hpp"
#include "core/once.hpp"

namespace rehearse::cli {

/// Multiply-adds of the forward pass of so many samples, of each: what is made of weights alone is made once for all.
double multiply_adds_of(const Network& network, std::int64_t samples = 1);

/// Totals of both, and every layer that only one has or that differs. good: that they differ is no error.
int compare_networks(const Network& a, const Network& b, const Common& common);

/// Parameters must be those that the file says PyTorch counted, multiply-adds within 0.1 %. good or check_failed;
/// InputError when the file says neither.
int check_counts(const Network& network, const std::string& path, const Common& common);

}  // namespace rehearse::cli
