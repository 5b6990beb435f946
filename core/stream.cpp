// SPDX-License-Identifier: Apache-2.0
#include "core/stream.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "core/schedule.hpp"

namespace rehearse {

namespace {

constexpr std::array<std::string_view, named_streams> named{
    "compute", "communication", "io", "send_activations", "receive_activations", "send_gradients", "receive_gradients"};
constexpr std::array<std::string_view, axis_names> axes{"groups",   "pipe",     "data",   "expert", "spatial",
                                                        "spatial2", "spatial3", "tensor", "context"};

std::array<std::string, stream_count> all_names() {
    std::array<std::string, stream_count> names;
    for (std::size_t i = 0; i < named.size(); ++i) names[i] = named[i];
    for (std::size_t i = named.size(); i < names.size(); ++i) {
        const std::size_t set = i - named.size() + 1;  // of axes, a bit each
        std::string joined;
        for (std::size_t axis = 0; axis < axes.size(); ++axis) {
            if ((set >> axis & 1U) != 0) joined.append(joined.empty() ? "" : "+").append(axes[axis]);
        }
        names[i] = "communication(" + joined + ")";
    }
    return names;
}

const std::array<std::string, stream_count>& names() {
    static const std::array<std::string, stream_count> made = all_names();
    return made;
}

constexpr unsigned bit(std::string_view axis) {
    return 1U << static_cast<unsigned>(std::ranges::find(axes, axis) - axes.begin());
}

// A bit each; nothing where an axis has another name.
std::optional<unsigned> axes_along(const Mesh& mesh, int axis) {
    unsigned set = 0;
    for (std::size_t single = 0; single < mesh.axes.size(); ++single) {
        if (!runs_along(mesh, axis, static_cast<int>(single))) continue;
        if (std::ranges::find(axes, mesh.axes[single].name) == axes.end()) return std::nullopt;
        set |= bit(mesh.axes[single].name);
    }
    return set;
}

Stream stream_of(unsigned axes_set) { return static_cast<Stream>(named_streams + static_cast<int>(axes_set) - 1); }

}  // namespace

std::string_view to_string(Stream stream) { return names().at(static_cast<std::size_t>(stream)); }

std::optional<Stream> stream_named(std::string_view name) {
    static const std::map<std::string_view, Stream> by_name = [] {
        std::map<std::string_view, Stream> made;
        for (int i = 0; i < stream_count; ++i) made.emplace(to_string(static_cast<Stream>(i)), static_cast<Stream>(i));
        return made;
    }();
    const auto found = by_name.find(name);
    if (found == by_name.end()) return std::nullopt;
    return found->second;
}

Stream communicator_stream(const Mesh& mesh, int axis) {
    const std::optional<unsigned> set = axes_along(mesh, axis);
    return set ? stream_of(*set) : Stream::communication;
}

Stream gradient_stream(const Mesh& mesh, int axis) {
    const std::optional<unsigned> set = axes_along(mesh, axis);
    if (!set) return Stream::communication;
    const unsigned cut = bit("tensor") | bit("pipe");
    return stream_of((*set & ~cut) == 0 ? *set : *set | bit("data"));
}

bool is_communicator(Stream stream) {
    return stream == Stream::communication || static_cast<int>(stream) >= named_streams;
}

std::vector<Stream> streams_of(const std::vector<Step>& steps) {
    std::array<bool, stream_count> used{};
    for (const Step& step : steps) used.at(static_cast<std::size_t>(step.stream)) = true;
    std::vector<Stream> streams;
    for (std::size_t i = 0; i < used.size(); ++i) {
        if (used[i]) streams.push_back(static_cast<Stream>(i));
    }
    return streams;
}

}  // namespace rehearse
