// SPDX-License-Identifier: Apache-2.0
// DLRM (Naumov et al. 2019): dense features through a bottom MLP, categories through tables, their dot products through
// a top MLP. The last layer has two scores, for a softmax in place of the sigmoid. Sizes of the large one and of
// MLPerf's are known from memory of Kalamkar et al. 2020, table I; their MLPs have 1047 and 9.0 MiB, and what tables
// give for 16,384 samples 1024 and 208 MiB, as published there (calibrate/published/dlrm.csv).
#include <fmt/format.h>

#include <vector>

#include "models/builder.hpp"
#include "models/zoo/zoo.hpp"

namespace rehearse::models {

namespace {

struct Sizes {
    std::int64_t dense = 0;            // features
    EmbeddingBag tables;               // of one size
    std::vector<std::int64_t> bottom;  // and then the tables' width
    std::vector<std::int64_t> top;     // and then the scores
};

Network dlrm(const std::string& name, const Sizes& sizes) {
    NetworkBuilder b(name, {sizes.dense});
    const auto mlp = [&](const std::string& part, int x, const std::vector<std::int64_t>& widths) {
        int i = 0;
        for (const std::int64_t width : widths) {
            x = b.relu(fmt::format("{}.relu{}", part, i), b.dense(fmt::format("{}.fc{}", part, i), x, width));
            ++i;
        }
        return x;
    };
    const EmbeddingBag& tables = sizes.tables;
    std::vector<std::int64_t> bottom = sizes.bottom;
    bottom.push_back(tables.width);
    const int dense = mlp("bottom", NetworkBuilder::input, bottom);
    const int ids = b.layer("ids", Input{{tables.tables * tables.lookups}, tables.vocabulary}, {});
    const int sparse = b.layer("tables", tables, {ids});
    const int both = b.layer("interaction", Interaction{tables.tables + 1, tables.width}, {dense, sparse});
    b.loss(b.dense("top.scores", mlp("top", both, sizes.top), 2));
    return b.build();
}

}  // namespace

// Section 5: 8 tables of a million rows of 64, 512 dense features, MLPs 512-512-64 and 1024-1024-1024, 100 lookups a
// table as in the benchmark that came with it.
Network dlrm_small() {
    return dlrm("dlrm-small", {.dense = 512,
                               .tables = {.tables = 8, .lookups = 100, .vocabulary = 1'000'000, .width = 64},
                               .bottom = {512},
                               .top = {1024, 1024, 1024}});
}

Network dlrm_large() {
    return dlrm("dlrm-large", {.dense = 2048,
                               .tables = {.tables = 64, .lookups = 100, .vocabulary = 6'000'000, .width = 256},
                               .bottom = std::vector<std::int64_t>(7, 2048),
                               .top = std::vector<std::int64_t>(15, 4096)});
}

// The Criteo terabyte data: 13 numbers, 26 categories of 3 to 40 million values, here of their mean, 7.2 million.
Network dlrm_mlperf() {
    return dlrm("dlrm-mlperf", {.dense = 13,
                                .tables = {.tables = 26, .lookups = 1, .vocabulary = 7'222'000, .width = 128},
                                .bottom = {512, 256},
                                .top = {1024, 1024, 512, 256}});
}

}  // namespace rehearse::models
