// SPDX-License-Identifier: Apache-2.0
#include "run/methods/servers.hpp"

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/compression.hpp"
#include "core/methods/servers.hpp"
#include "kernels/convert.hpp"
#include "run/methods/compression.hpp"
#include "run/methods/workers.hpp"

namespace rehearse::run {

bool ServersMethod::prepare(ReadyStep& ready) {
    if (const auto* push_pull = std::get_if<PushPull>(&ready.step->action)) {
        sends_factors(*push_pull) ? prepare_factors(ready, *push_pull) : prepare_push_pull(ready, *push_pull);
        return true;
    }
    const auto* const communicate = std::get_if<Communicate>(&ready.step->action);
    const bool in_group = communicate != nullptr && communicate->content == Content::weights &&
                          communicate->kind == CollectiveKind::broadcast;
    if (in_group) ready.data = pulled(communicate->bucket());
    return in_group;
}

void ServersMethod::prepare_push_pull(ReadyStep& ready, const PushPull& push_pull) {
    const BucketTensors& bucket = rank_.tensors.bucket(push_pull.bucket);
    const kernels::ConstView pushed =
        rank_.schedule.methods.get<Averaging>().period > 0 ? bucket.weights : bucket.applied;
    ready.data = pulled(push_pull.bucket, push_pull.sent);
    const std::span<float> data = ready.data;
    if (rank_.schedule.methods.get<Averaging>().period > 0) {
        ready.before = [pushed, data] { std::ranges::copy(std::span<const float>{pushed}, data.begin()); };
        return;
    }
    std::vector<float>& left = left_[push_pull.bucket];
    if (rank_.schedule.methods.get<Compression>() != Compression{}) left.resize(pushed.size());
    ready.before = [&schedule = rank_.schedule, pushed, data = data.first(at(push_pull.sent)), &left] {
        pack_gradients(schedule, pushed, left, data);
    };
}

void ServersMethod::prepare_factors(ReadyStep& ready, const PushPull& push_pull) {
    const int index = rank_.part().buckets[at(push_pull.bucket)].layers.front();
    const kernels::ConstView inputs = rank_.tensors.layer(rank_.part().network.layers[at(index)].inputs.front()).output;
    const kernels::ConstView errors = rank_.tensors.layer(index).diff;
    require(static_cast<std::int64_t>(inputs.size() + errors.size()) == push_pull.sent, "factors of all rows are sent");
    ready.data = pulled(push_pull.bucket);  // of the weights that come: more
    ready.before = [inputs, errors, data = ready.data] {
        std::ranges::copy(std::span<const float>{inputs}, data.begin());
        std::ranges::copy(std::span<const float>{errors}, data.begin() + static_cast<std::ptrdiff_t>(inputs.size()));
    };
}

// Few weights in fewer bits may take more than they do.
kernels::View ServersMethod::pulled(int bucket, std::int64_t sent) {
    std::vector<float>& memory = pulled_[bucket];
    memory.resize(std::max({memory.size(), rank_.tensors.bucket(bucket).weights.size(), at(sent)}));
    return std::span<float>{memory};
}

// The samples of a worker are an update of its own.
std::int64_t ServersMethod::loss_batch(std::int64_t batch) const {
    if (rank_.schedule.methods.get<Averaging>().period > 0) return batch;
    if (std::ranges::any_of(rank_.schedule.classes, combines_gradients)) return batch;  // of a rank's own mean
    return batch / workers(rank_.schedule.mesh);
}

void ServersMethod::end_step() {
    for (const auto& [bucket, memory] : pulled_) {
        const std::span<float> weights = rank_.tensors.bucket(bucket).weights;
        if (rank_.schedule.methods.get<Averaging>().period == 0) {
            std::copy_n(memory.begin(), weights.size(), weights.begin());
            continue;
        }
        for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= memory[i];
    }
}

void ServersMethod::visit_state(const UseNumbers& use) {
    for (auto& [bucket, left] : left_) use(left);
}

void pack_gradients(const Schedule& schedule, std::span<const float> gradients, std::vector<float>& left,
                    std::span<float> pushed) {
    const auto& by = schedule.methods.get<Compression>();
    const std::optional<DataType> rounded = schedule.methods.get<Rounding>().type;
    if (by != Compression{}) {
        left.resize(gradients.size());
        for (std::size_t i = 0; i < left.size(); ++i) left[i] += gradients[i];
        compress(by, left, pushed);
    } else if (rounded) {
        kernels::convert(gradients, kernels::View{pushed.data(), gradients.size(), *rounded});
    } else {
        std::ranges::copy(gradients, pushed.begin());
    }
}

void unpack_gradients(const Schedule& schedule, std::span<const float> pushed, std::span<float> gradients) {
    const auto& by = schedule.methods.get<Compression>();
    const std::optional<DataType> rounded = schedule.methods.get<Rounding>().type;
    if (by != Compression{}) {
        std::ranges::fill(gradients, 0.0F);
        add_compressed(by, pushed, gradients);
    } else if (rounded) {
        kernels::convert(kernels::ConstView{pushed.data(), gradients.size(), *rounded}, gradients);
    } else {
        std::copy_n(pushed.begin(), gradients.size(), gradients.begin());
    }
}

Reference train_by_servers;      // run/reference/single_rank_servers.cpp
extern const MethodRow servers;  // a row of methods.cpp
constinit const MethodRow servers{.name = "servers",
                                  .used = [](const Schedule& s) { return s.methods.get<Servers>().count > 0; },
                                  .make = make_method<ServersMethod>,
                                  .sums_gradients = false,
                                  .own_state = true,
                                  .reference = train_by_servers};

}  // namespace rehearse::run
