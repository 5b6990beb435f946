// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/packed_launches.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace rehearse::kernels::cuda {
namespace {

// Rows side by side, and pixels as far from each other as there are rows of all groups.
void put_channels_last(ImplicitGemm& s, std::int32_t each) {
    const std::int32_t rows = s.rows / each, pixel = s.groups * rows;
    s.target_row = 1;
    s.target_group = rows;
    s.target_image /= each;
    s.target_first *= pixel;
    s.target_step = {s.target_step.d * pixel, s.target_step.h * pixel, s.target_step.w * pixel};
}

}  // namespace

PackedChannels packed_channels(const Conv& op, Pass pass) {
    PackedChannels made;
    made.groups = op.groups;
    const bool from_input = pass != Pass::backward_data;
    const Shape out = output_shape(Op{op});
    made.channels = (from_input ? op.channels : op.filters) / op.groups;
    made.pixels = from_input ? op.depth * op.height * op.width : out[1] * out[2] * out[3];
    made.vectors = divide_up(made.channels, 8);
    return made;
}

std::vector<Launch> packed_launches(const Problem& problem, bool channels_last) {
    const Conv op = volume(problem.op);
    const PackedChannels to = packed_channels(op, problem.pass);
    const std::int64_t tap_step = channels_last ? op.channels / op.groups : 1;  // in the weights
    std::vector<Launch> all = launches(op, problem.pass, images(problem));
    for (Launch& launch : all) {
        // The same launches with terms of eight channels: those of the first channel are the taps.
        const auto first = launch.terms.begin();
        const std::vector<Term> taps(first, first + static_cast<std::ptrdiff_t>(launch.terms.size()) / to.channels);
        launch.terms.clear();
        for (const Term& tap : taps) {
            const auto weight = static_cast<std::int32_t>(tap.weight * tap_step);
            for (std::int64_t v = 0; v < to.vectors; ++v) {
                launch.terms.push_back({static_cast<std::int32_t>(v), weight, tap.d, tap.h, tap.w, 0});
            }
        }
        ImplicitGemm& s = launch.gemm;
        s.term_count = static_cast<std::int32_t>(launch.terms.size());
        s.source_image = to.pixels * to.groups * to.vectors;
        s.source_group = to.vectors;
        s.weight_row = s.term_count;
        s.weight_group = std::int64_t{s.rows} * s.term_count;
        if (channels_last) put_channels_last(s, problem.pass == Pass::backward_weights ? 8 : 1);
    }
    return all;
}

bool is_whole(const void* begin) { return reinterpret_cast<std::uintptr_t>(begin) % 16 == 0; }

void require_whole(std::initializer_list<const void*> begins) {
    if (!std::all_of(begins.begin(), begins.end(), is_whole))
        throw BackendError("tensors that are channels last must begin at whole 16 bytes");
}

}  // namespace rehearse::kernels::cuda
