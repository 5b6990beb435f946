// SPDX-License-Identifier: Apache-2.0
// What a vote on the signs of gradients means, written out for one rank.
#include "core/index.hpp"
#include "run/reference/single_rank.hpp"

namespace rehearse::run {

// Each rank's gradient is of its own samples; where more of them are below 0 than not, the weight goes up by the
// learning rate, where fewer, down, else it stays. A gradient of 0 counts as one above.
Trained train_by_vote(const SingleRank& single, std::int64_t /*rank*/, int perturbation) {
    const Schedule& schedule = single.schedule();
    const std::unique_ptr<Program> model = single.model(perturbation);
    const std::int64_t ranks = shards(schedule.mesh);
    Trained trained;
    for (int step = 0; step < single.options().steps; ++step) {
        std::vector<std::vector<int>> votes(single.layers().size());  // for going down, less those for going up
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
            const std::int64_t first = rank * schedule.batch_per_rank;
            single.sum_gradients(*model, step, first, first + schedule.batch_per_rank, micro_batch_size(schedule));
            for (std::size_t layer = 0; layer < votes.size(); ++layer) {
                const std::vector<float> gradients =
                    floats_of(model->tensors().layer(static_cast<int>(layer)).gradients);
                votes[layer].resize(gradients.size());
                for (std::size_t i = 0; i < gradients.size(); ++i) votes[layer][i] += gradients[i] < 0 ? -1 : 1;
            }
        }
        for (std::size_t layer = 0; layer < votes.size() && ranks > 1; ++layer) {
            std::vector<float> decided;
            for (const int vote : votes[layer]) decided.push_back(vote > 0 ? 1.0F : vote < 0 ? -1.0F : 0.0F);
            assign(model->tensors().layer(static_cast<int>(layer)).gradients, decided);
        }
        if (single.last(step)) trained.gradients = single.result(*model).gradients;
        SingleRank::update(*model);
    }
    trained.weights = single.result(*model).weights;
    return trained;
}

}  // namespace rehearse::run
