// SPDX-License-Identifier: Apache-2.0
// DLRM (Naumov et al. 2019): dense features through a bottom MLP, categories through tables, their dot products through
// a top MLP. The sizes are those of its section 5: 8 tables of a million rows of 64, 512 dense features, MLPs
// 512-512-64 and 1024-1024-1024, 100 lookups a table as in the benchmark that came with it. The last layer has two
// scores, for a softmax in place of the sigmoid.
#include <fmt/format.h>

#include "models/builder.hpp"
#include "models/zoo.hpp"

namespace rehearse::models {

Network dlrm_small() {
    constexpr std::int64_t tables = 8, lookups = 100, rows = 1'000'000, width = 64;
    NetworkBuilder b("dlrm-small", {512});
    const auto mlp = [&](const std::string& name, int x, std::initializer_list<std::int64_t> sizes) {
        int i = 0;
        for (const std::int64_t size : sizes) {
            x = b.relu(fmt::format("{}.relu{}", name, i), b.dense(fmt::format("{}.fc{}", name, i), x, size));
            ++i;
        }
        return x;
    };
    const int dense = mlp("bottom", NetworkBuilder::input, {512, width});
    const int ids = b.layer("ids", Input{{tables * lookups}, rows}, {});
    const int sparse = b.layer("tables", EmbeddingBag{tables, lookups, rows, width}, {ids});
    const int both = b.layer("interaction", Interaction{tables + 1, width}, {dense, sparse});
    b.loss(b.dense("top.scores", mlp("top", both, {1024, 1024, 1024}), 2));
    return b.build();
}

}  // namespace rehearse::models
