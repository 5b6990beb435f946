// SPDX-License-Identifier: Apache-2.0
#include "run/methods/server_weights.hpp"

#include "core/index.hpp"
#include "core/methods/averaging.hpp"
#include "run/methods/averaging.hpp"
#include "run/methods/servers.hpp"
#include "run/methods/workers.hpp"
#include "run/random.hpp"
#include "run/trainer.hpp"

namespace rehearse::run {

void Products::multiply(const PushPull& push_pull, std::span<const float> factors, kernels::View gradient) {
    const Problem& problem = push_pull.work.front();
    const std::size_t inputs = at(problem.batch * elements(input_shapes(problem.op).front()));
    kernels::Buffers buffers;
    buffers.src.emplace_back(factors.first(inputs));
    buffers.diff_dst = factors.subspan(inputs);
    buffers.diff_weights = gradient;
    auto& kernel = kernels_[push_pull.bucket];
    if (kernel == nullptr) {
        const auto choices = kernels::choose_passes(problem.op, problem.batch, problem.type, selection_);
        kernel = kernels::prepare(of(choices, problem.pass), problem, selection_.scratch_limit);
    }
    kernel->run(buffers);
}

KeptPlace::KeptPlace(const Schedule& schedule, int server, RankIndex rank, const Options& options)
    : schedule_(schedule),
      selection_(selection_of(options, nullptr)),
      kept_(kept_by_server(schedule, server, rank)),
      program_(kept_, rank, selection_, key(options.seed, weights_of), hyperparameters_of(options)),
      products_(selection_),
      pushes_(pushes_of(schedule, rank)) {
    std::erase_if(pushes_, [&](const PushPull* push) { return push->server != server; });
    for (ReadyStep& ready : program_.steps()) update_of_[std::get<Update>(ready.step->action).bucket] = &ready;
    for (const PushPull* push : pushes_) {
        if (schedule.methods.get<Averaging>().momentum > 0)
            last_[push->bucket] = floats_of(program_.tensors().bucket(push->bucket).weights);
    }
}

void KeptPlace::visit_state(const UseNumbers& use) {
    program_.visit_own_state(use);
    for (auto& [bucket, last] : last_) use(last);
}

void KeptPlace::take(const PushPull& push, std::span<float> memory) {
    const BucketTensors& bucket = program_.tensors().bucket(push.bucket);
    const std::span<float> sent = memory.first(at(push.sent));
    if (schedule_.methods.get<Averaging>().period > 0) return pull(sent, push.bucket);
    if (sends_factors(push)) {
        products_.multiply(push, sent, bucket.applied);
    } else {
        unpack_gradients(schedule_, sent, bucket.applied);
    }
    program_.compute(*update_of_.at(push.bucket), 0, 0);
    std::ranges::copy(std::span<const float>{bucket.weights}, memory.begin());
}

void KeptPlace::pull(std::span<float> model, int bucket) {
    const Averaging& by = schedule_.methods.get<Averaging>();
    const std::span<float> average = program_.tensors().bucket(bucket).weights;
    const auto last = last_.find(bucket);
    if (last == last_.end()) return pull_average(by.elastic, model, average);
    pull_average(by, model, average, last->second);
}

}  // namespace rehearse::run
