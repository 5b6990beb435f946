// SPDX-License-Identifier: Apache-2.0
// Networks of which every feature of plans finds one that it can split.
#pragma once

#include <string>
#include <vector>

#include "tests/run/networks.hpp"

namespace rehearse::test {

/// 8 dense layers of 16: there is something for each stage and each rank.
inline Network tower() {
    Network n{.name = "tower", .layers = {}};
    int at = add(n, "input", Input{{16}}, {});
    for (int i = 0; i < 8; ++i) {
        at = add(n, "dense" + std::to_string(i), MatMul{.m = 1, .n = 16, .k = 16}, {at});
    }
    add(n, "loss", SoftmaxLoss{16}, {at});
    return n;
}

inline const std::vector<Network>& networks_of_every_kind() {
    static const std::vector<Network> all{tower(),
                                          images(),
                                          tiny_transformer(models::TransformerKind::decoder),
                                          tiny_dlrm(4),
                                          mixture(),
                                          tiny_decoder(),
                                          tiny_mixture(),
                                          untied(tiny_decoder()),
                                          untied(tiny_mixture()),
                                          mixed(),
                                          with_share(images()),
                                          with_share(tiny_decoder()),
                                          with_share(mixture()),
                                          mixture_of_images(),
                                          mixture_of_tables()};
    return all;
}

}  // namespace rehearse::test
