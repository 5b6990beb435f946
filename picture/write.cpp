// SPDX-License-Identifier: Apache-2.0
#include "picture/write.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace rehearse::picture {

std::string encoded(const Picture& picture, std::string_view path) {
    check_suffix(path);
    if (path.ends_with(".svg")) return to_svg(picture);
    return path.ends_with(".png") ? to_png(picture) : to_pdf(picture);
}

void check_suffix(std::string_view path) {
    if (path.ends_with(".svg")) return;
    if (!path.ends_with(".png") && !path.ends_with(".pdf")) {
        throw InputError(fmt::format("{}: a picture's name ends in .svg, .png or .pdf", path));
    }
#if !REHEARSE_HAS_CAIRO
    throw BackendError(
        fmt::format("{}: this build writes pictures as .svg only: built without cairo (install "
                    "libcairo2-dev, configure with -DREHEARSE_CAIRO=ON)",
                    path));
#endif
}

#if !REHEARSE_HAS_CAIRO
std::string to_png(const Picture&, double) { return check_suffix(".png"), ""; }
std::string to_pdf(const Picture&) { return check_suffix(".pdf"), ""; }
std::string to_pdf(const std::vector<Picture>&) { return check_suffix(".pdf"), ""; }
#endif

}  // namespace rehearse::picture
