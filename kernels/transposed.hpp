// SPDX-License-Identifier: Apache-2.0
// A transposed convolution by whatever runs the mirrored convolution: its forward is that one's backward_data, and the
// other way round; its gradient of the weights that one's, with src and diff_dst in each other's place.
#pragma once

#include <memory>

#include "kernels/backend.hpp"

namespace rehearse::kernels {

/// Whether a backend that runs convolutions should run `mirrored_problem(problem)` instead: a forward or backward pass
/// of a ConvTranspose.
bool is_mirrored(const Problem& problem);
Problem mirrored_problem(const Problem& problem);

/// `mirrored` is the kernel of mirrored_problem(problem), with no workspace; the bias is added here.
std::unique_ptr<Kernel> transposed(const Problem& problem, std::unique_ptr<Kernel> mirrored);

}  // namespace rehearse::kernels
