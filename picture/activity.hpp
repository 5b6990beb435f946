// SPDX-License-Identifier: Apache-2.0
// What a rank is busy with, in as few kinds as an eye can tell apart: every timeline and pipeline is coloured by it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/timeline.hpp"
#include "picture/palette.hpp"

namespace rehearse::picture {

enum class Activity : std::uint8_t {
    forward,
    backward_data,
    backward_weights,
    update,
    collective,
    point_to_point,
    io,
    other
};
inline constexpr std::size_t activity_count = 8;
std::string_view to_string(Activity activity);

Activity activity_of(const Event& event);

/// Computing is cold (blue, green), waiting for others is warm (red, orange): where a picture is red, devices wait.
Color color_of(Activity activity, Theme theme);
/// Where nothing happens.
Color idle_color(Theme theme);

inline bool computes(Activity activity) { return activity <= Activity::update; }
inline bool communicates(Activity activity) {
    return activity == Activity::collective || activity == Activity::point_to_point;
}

}  // namespace rehearse::picture
