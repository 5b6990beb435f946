// SPDX-License-Identifier: Apache-2.0
// The sizes and types that a problem's buffers must have, computed once at prepare and checked at every run.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/backend.hpp"

namespace rehearse::kernels {

/// Each buffer that the pass reads or writes has exactly its size and the problem's type; the rest may be empty. What a
/// caller may leave out: diff_src[i] that nobody needs, BatchNorm's state, an update's weights_copy and, of a backward
/// pass, src or dst_in that the operator does not look at. Ids must be rows of the table: they come from the user's
/// data, so that is an InputError.
class BufferSizes {
public:
    BufferSizes(const Problem& problem, std::int64_t workspace);
    /// Bug check: throws logic_error that names the buffer.
    void check(const Buffers& buffers) const;

private:
    void check_forward(const Buffers& buffers) const;
    void check_backward_data(const Buffers& buffers) const;
    void check_backward_weights(const Buffers& buffers) const;
    void check_labels(const Buffers& buffers) const;
    void check_given(const Buffers& buffers) const;
    void check_inputs(const Buffers& buffers, bool needed) const;
    void check_ids(std::span<const std::int32_t> ids) const;
    void check_update(const Buffers& buffers) const;

    Problem problem_;
    std::vector<std::int64_t> src_;
    std::int64_t dst_, weights_, workspace_, labels_ = 0, ids_ = 0, vocabulary_ = 0;
};

/// Whether backward_weights takes the weights themselves: of a product of several, through the steps of a recurrence.
bool weights_gradient_reads_weights(const Op& op);

/// Whether any of the inputs' gradients is asked for.
bool wants_input_gradient(const Buffers& buffers);

}  // namespace rehearse::kernels
