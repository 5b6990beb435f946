// SPDX-License-Identifier: Apache-2.0
// What a rank does at the same time: computation, input, messages to neighbours, and one stream a communicator.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/mesh.hpp"

namespace rehearse {

struct Step;

/// A rank works on its streams at the same time, and on the steps of one stream in their order. Each direction in which
/// a pipeline's neighbours send to each other is a stream of its own, as they are independent of each other. So are
/// collectives of different groups of ranks, as NCCL's communicators are: their streams (communicator_stream) are
/// values of this type beyond those that are named here.
enum class Stream {
    compute,
    communication,  // of a group that is not known: traces of other programs, meshes with axes of other names
    io,
    send_activations,
    receive_activations,
    send_gradients,
    receive_gradients
};
/// Axes that a plan can have. The streams of communicators are those of sets of them.
inline constexpr int axis_names = 9;
inline constexpr int named_streams = 7;
/// All values of Stream are below it.
inline constexpr int stream_count = named_streams + (1 << axis_names) - 1;

/// "compute", "communication(data)", "communication(data+tensor)".
std::string_view to_string(Stream stream);
std::optional<Stream> stream_named(std::string_view name);

/// The stream of the collectives along an axis, which may be a joined one.
Stream communicator_stream(const Mesh& mesh, int axis);
/// The stream of what is done along an axis with gradients and weights. Frameworks have a process group of its own for
/// it, even where its ranks are those of another one: data's, unless the axis cuts layers (tensor, pipe).
Stream gradient_stream(const Mesh& mesh, int axis);
bool is_communicator(Stream stream);

/// The streams on which there are steps, in ascending order.
std::vector<Stream> streams_of(const std::vector<Step>& steps);

}  // namespace rehearse
