// SPDX-License-Identifier: Apache-2.0
// Weights and shares of mixed operators trained in turn: all steps are those of every training, of half a batch each.
#include "core/methods/bilevel.hpp"

#include "run/methods/method.hpp"

namespace rehearse::run {

namespace {

class BilevelMethod : public Method {
public:
    explicit BilevelMethod(RankContext& /*rank*/) {}

    bool prepare(ReadyStep& /*ready*/) override { return false; }
    std::int64_t loss_batch(std::int64_t batch) const override { return batch / 2; }
};

}  // namespace

Reference train_bilevel;         // run/reference/single_rank_bilevel.cpp
extern const MethodRow bilevel;  // a row of methods.cpp
constinit const MethodRow bilevel{.name = "bilevel",
                                  .used = [](const Schedule& s) { return s.methods.get<Bilevel>().on; },
                                  .make = make_method<BilevelMethod>,
                                  .sums_gradients = false,
                                  .reference = train_bilevel};

}  // namespace rehearse::run
