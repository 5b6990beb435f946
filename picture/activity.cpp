// SPDX-License-Identifier: Apache-2.0
#include "picture/activity.hpp"

namespace rehearse::picture {

namespace {

struct Kind {
    std::string_view name;
    Color light, dark;
};
// Of Okabe and Ito (2008), as picture/palette.cpp's series; the two backward passes differ in hue and lightness.
constexpr std::array<Kind, activity_count> kinds{{{"forward", {86, 180, 233}, {86, 180, 233}},
                                                  {"backward data", {0, 114, 178}, {33, 131, 196}},
                                                  {"backward weights", {0, 158, 115}, {0, 158, 115}},
                                                  {"update", {204, 121, 167}, {204, 121, 167}},
                                                  {"collective", {213, 94, 0}, {221, 104, 12}},
                                                  {"point to point", {230, 159, 0}, {230, 159, 0}},
                                                  {"input and storage", {150, 120, 70}, {170, 140, 88}},
                                                  {"other", {140, 140, 140}, {140, 140, 140}}}};

const Kind& kind(Activity activity) { return kinds[static_cast<std::size_t>(activity) % activity_count]; }

}  // namespace

std::string_view to_string(Activity activity) { return kind(activity).name; }

Color color_of(Activity activity, Theme theme) {
    return theme == Theme::dark ? kind(activity).dark : kind(activity).light;
}

Color idle_color(Theme theme) { return theme == Theme::dark ? Color{45, 49, 57} : Color{238, 240, 243}; }

Activity activity_of(const Event& event) {
    if (is_communicator(event.stream)) {
        return event.pass == "send" || event.pass == "recv" ? Activity::point_to_point : Activity::collective;
    }
    switch (event.stream) {
        case Stream::io:
            return Activity::io;
        case Stream::compute:
            if (event.pass == "forward") return Activity::forward;
            if (event.pass == "backward_data") return Activity::backward_data;
            if (event.pass == "backward_weights") return Activity::backward_weights;
            return event.pass == "update" ? Activity::update : Activity::other;
        default:
            return Activity::point_to_point;  // the streams between a pipeline's neighbours
    }
}

}  // namespace rehearse::picture
