// SPDX-License-Identifier: Apache-2.0
// The fusions that compilers of neural networks make: an operator and the cheap ones after it become one, whose result
// goes to memory once. A Network in, a Network out.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

#include "core/network.hpp"

namespace rehearse::models {

enum class Fusion { conv_relu, matmul_relu, matmul_gelu, bn_relu, bn_add_relu };
using Fusions = std::set<Fusion>;

struct FusionName {
    Fusion fusion;
    std::string_view name, summary;
};
std::span<const FusionName> fusion_names();

/// "on" (all), "off" (none) or names joined by commas, as `conv-relu,bn-relu`. InputError names the unknown word.
Fusions parse_fusions(std::string_view text);

/// The same function of the same weights in fewer layers. Layers are joined where the result between them has exactly
/// one reader. The joined layer stands where the last of them stood and bears their names, a prefix that ends in a dot
/// said once: "layer1.0.bn2+add+relu2". The first named is the one with weights.
Network fuse(const Network& network, const Fusions& fusions);

}  // namespace rehearse::models
