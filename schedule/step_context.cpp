// SPDX-License-Identifier: Apache-2.0
#include "schedule/step_context.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace rehearse::schedule {

StepContext::StepContext(const Schedule& of, const Plan& by, const StepOptions& how, RankClass& made)
    : schedule(of),
      plan(by),
      options(how),
      rank_class(made),
      part(made.part),
      steps(made.steps),
      samples(micro_batch_size(of, made)),
      output_by(made.part.network.layers.size(), none),
      gradient_by(made.part.network.layers.size()),
      bucket_of(made.part.network.layers.size(), none),
      ready_by(made.part.buckets.size(), none) {
    for (std::size_t b = 0; b < part.buckets.size(); ++b) {
        for (const int layer : part.buckets[b].layers) bucket_of[at(layer)] = static_cast<int>(b);
    }
}

std::string StepContext::name_of(int layer, std::string_view what, std::string_view suffix) const {
    const std::string& of = layers()[at(layer)].name;
    std::string name;
    name.reserve(of.size() + what.size() + suffix.size() + 8);
    name.append(of).append(1, ':').append(what).append(suffix);
    if (schedule.micro_batches > 1) name.append(1, '#').append(std::to_string(item.micro_batch));
    return name;
}

bool StepContext::in_last() const { return is_last(schedule, rank_class, item.micro_batch); }

std::int64_t StepContext::places_to(int stages_on) const {
    const std::vector<int>& copies = schedule.stage_copies;
    if (copies.empty()) return stages_on;
    const int own = options.stage, other = own + stages_on;
    const auto place_of = [&](int stage) {
        return std::reduce(copies.begin(), copies.begin() + stage, std::int64_t{0}) +
               item.micro_batch % copies[at(stage)];
    };
    return place_of(other) - place_of(own);
}

int StepContext::append(std::string name, Stream stream, Action action, std::vector<int> after) {
    std::erase_if(after, [&](int step) { return step == none || steps[at(step)].stream == stream; });
    std::ranges::sort(after);
    after.erase(std::unique(after.begin(), after.end()), after.end());
    steps.push_back({std::move(name), stream, std::move(action), std::move(after)});
    return static_cast<int>(steps.size()) - 1;
}

}  // namespace rehearse::schedule
