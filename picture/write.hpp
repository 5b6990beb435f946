// SPDX-License-Identifier: Apache-2.0
// A picture in the formats of others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "picture/picture.hpp"

namespace rehearse::picture {

/// The same text for the same picture, on every machine; titles become tooltips. Lengths keep two decimals.
std::string to_svg(const Picture& picture);

/// `scale` pixels a point. BackendError where the build has no cairo, or cairo refuses.
std::string to_png(const Picture& picture, double scale = 2);

/// One page of the picture's size. BackendError as above.
std::string to_pdf(const Picture& picture);

/// A page for each picture, with the title of the first. BackendError as above.
std::string to_pdf(const std::vector<Picture>& pages);

/// By the suffix of `path`: .svg, .png or .pdf.
std::string encoded(const Picture& picture, std::string_view path);

/// To be asked before the work: InputError where the suffix is none of these, BackendError where this build cannot
/// write it.
void check_suffix(std::string_view path);

}  // namespace rehearse::picture
