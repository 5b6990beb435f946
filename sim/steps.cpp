// SPDX-License-Identifier: Apache-2.0
#include "sim/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "core/gradient_sums.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/compression.hpp"
#include "core/methods/servers.hpp"
#include "core/methods/synchronous.hpp"
#include "core/quorum.hpp"
#include "core/ring_attention.hpp"
#include "core/text.hpp"
#include "prices/tile_model.hpp"
#include "sim/check/bounds.hpp"
#include "sim/collective/control.hpp"
#include "sim/modes/alike.hpp"
#include "sim/network/storage.hpp"

namespace rehearse::sim {

namespace {

// Layer, pass, bytes and flops of what is not computed; bytes of a collective are not known here.
struct Describe {
    const Network& network;
    Event& event;

    void of_bucket(int bucket) const { event.layer = fmt::format("bucket{}", bucket); }
    void of_layer(LayerIndex layer, int micro_batch) const {
        if (layer >= 0) event.layer = network.layers[static_cast<std::size_t>(layer)].name;
        event.micro_batch = micro_batch;
    }
    void operator()(const Compute& compute) const { of_layer(compute.layer, compute.micro_batch); }
    void operator()(const Update& update) const { of_bucket(update.bucket); }
    void operator()(const Communicate& communicate) const {
        event.micro_batch = communicate.micro_batch;
        if (communicate.of_bucket()) of_bucket(communicate.bucket());
        if (!communicate.of_bucket()) of_layer(communicate.layer(), communicate.micro_batch);
        event.pass = pass_of(communicate);
    }
    void operator()(const Send& send) const {
        of_layer(send.layer, send.micro_batch);
        peer("send", send.bytes);
    }
    void operator()(const Recv& recv) const {
        of_layer(recv.layer, recv.micro_batch);
        peer("recv", recv.bytes);
    }
    void operator()(const Precondition& precondition) const {
        if (precondition.bucket >= 0) of_bucket(precondition.bucket);
        event.micro_batch = precondition.micro_batch;
    }
    void operator()(const PushPull& push_pull) const {
        of_bucket(push_pull.bucket);
        peer("trade", size_of(push_pull.type) * static_cast<double>(push_pull.sent));
    }
    void operator()(const Load& load) const {
        event.layer = load.tier;
        peer("load", load.bytes);
    }
    void peer(std::string_view pass, Bytes bytes) const {
        event.pass = pass;
        event.bytes = bytes;
    }
};

}  // namespace

Steps::Steps(const Schedule& schedule, const Wiring& wiring, ZScore z_score, Pace pace)
    : schedule_(schedule),
      wiring_(wiring),
      z_score_(z_score),
      ranks_(rehearse::ranks(schedule.mesh)),
      cores_(wiring.machine(), all_devices(schedule)),
      ranks_of_(schedule.classes.size()),
      durations_(schedule.classes.size()),
      pace_(pace) {
    const Machine& machine = wiring.machine();
    const std::int64_t devices = all_devices(schedule);
    if (devices > device_count(machine)) {
        throw InputError(fmt::format("{}: {} ranks need as many devices, machine '{}' has {}", schedule.plan, devices,
                                     machine.name, device_count(machine)));
    }
    find_alike();
    if (schedule.classes.size() == 1) ranks_of_.front().reserve(static_cast<std::size_t>(ranks_));
    std::pair<int, const DeviceClass*> last{-1, nullptr};
    for (RankIndex rank{0}; rank < ranks_; ++rank) {
        const std::pair here{class_of(rank), &wiring.device_class(rank)};
        ranks_of_[static_cast<std::size_t>(here.first)].push_back(rank);
        if (here != last) price_class(here.first, *here.second);
        last = here;
    }
    if (!pace_.of_rank.empty()) find_paces();
    find_loading();
    if (schedule.methods.get<Synchronous>().control > 0) find_control();
}

Steps::Steps(const Steps& priced, const Wiring& wiring, Pace pace)
    : schedule_(priced.schedule_),
      wiring_(wiring),
      z_score_(priced.z_score_),
      ranks_(priced.ranks_),
      cores_(priced.cores_),
      ranks_of_(priced.ranks_of_),
      alike_(priced.alike_),
      figures_(priced.figures_),
      durations_(priced.durations_),
      pace_(pace),
      control_(priced.control_) {
    require(&wiring.machine() == &priced.wiring_.machine(), "steps are priced for this machine");
    if (!pace_.of_rank.empty()) find_paces();
    find_loading();
}

void Steps::find_alike() {
    for (const RankClass& rank_class : schedule_.classes) {
        const std::vector<int>& alike = alike_.emplace_back(first_alike(rank_class.steps));
        std::vector<Figures>& figures = figures_.emplace_back(alike.size());
        for (std::size_t i = 0; i < alike.size(); ++i) {
            if (alike[i] != static_cast<int>(i)) continue;
            const Problem& of = *problem_of(rank_class.steps[i]);
            figures[i] = {bytes_moved(of.op, of.pass, of.type, of.batch), flops(of.op, of.pass, of.batch)};
        }
    }
}

void Steps::find_control() {
    for (const RankClass& rank_class : schedule_.classes) {
        std::vector<Seconds>& of_class = control_.emplace_back(rank_class.steps.size());
        for (std::size_t i = 0; i < rank_class.steps.size(); ++i) {
            const auto* sum = std::get_if<Communicate>(&rank_class.steps[i].action);
            if (sum == nullptr || !sum->of_bucket() || sum->kind == CollectiveKind::all_gather) continue;
            const Bucket& bucket = rank_class.part.buckets[static_cast<std::size_t>(sum->bucket())];
            of_class[i] = control_time(schedule_.methods.get<Synchronous>().control, size_of(schedule_.mesh, sum->axis),
                                       tensors(rank_class.part.network, bucket), wiring_.machine());
        }
    }
}

void Steps::find_paces() {
    require(static_cast<std::int64_t>(pace_.of_rank.size()) == ranks_, "a pace for each rank");
    pace_.fastest = std::min(1.0, std::ranges::min(pace_.of_rank));
    for (const std::vector<RankIndex>& ranks : ranks_of_) {
        std::map<const DeviceClass*, std::vector<double>> by_device;
        for (const RankIndex rank : ranks) {
            by_device[&wiring_.device_class(rank)].push_back(pace_.of_rank[static_cast<std::size_t>(rank)]);
        }
        auto& of_class = class_pace_.emplace_back();
        for (auto& [device, paces] : by_device) {
            const std::int64_t waited = waited_for(pace_.quorum, static_cast<std::int64_t>(paces.size()));
            of_class[device] = pace_of(std::move(paces), waited);
        }
    }
}

int Steps::class_of(RankIndex rank) const {
    return schedule_.classes.size() == 1 ? 0 : rehearse::class_of(schedule_, rank);
}

void Steps::price_class(int rank_class, const DeviceClass& device) {
    OnDevice& on_device = durations_[static_cast<std::size_t>(rank_class)];
    const auto [entry, fresh] = on_device.try_emplace(&device);
    if (!fresh) return;
    const auto c = static_cast<std::size_t>(rank_class);
    const RankClass& of = schedule_.classes[c];
    const std::vector<std::vector<Problem>> sums = gradient_sums(schedule_, of);
    std::vector<Seconds> kernels(of.steps.size());
    std::vector<Seconds>& times = entry->second;
    times.reserve(of.steps.size());
    for (std::size_t i = 0; i < of.steps.size(); ++i) {
        const int first = alike_[c][i];
        if (first == static_cast<int>(i)) kernels[i] = price_step(of.steps[i], device);
        times.push_back(first < 0 ? Seconds{0} : kernels[static_cast<std::size_t>(first)]);
        if (first < 0) continue;
        for (const Problem& sum : sums_beside(*problem_of(of.steps[i]), sums[i], device))
            times.back() += at(price(sum, device), z_score_);
    }
}

Seconds Steps::price_step(const Step& step, const DeviceClass& device) const {
    const Problem& problem = *problem_of(step);
    const Seconds time = std::max(at(price(problem, device), z_score_), least_time(problem, device));
    const bool of_one_learner =
        std::holds_alternative<Compute>(step.action) || std::holds_alternative<Precondition>(step.action);
    return of_one_learner ? beside_learners(problem, time, device) : time;
}

// Models that train at the same time share the device: together they take as long as one of them, as long as they do
// not fill it. What a batch as large as all of them takes, and much larger ones, says how full one of them keeps it.
Seconds Steps::beside_learners(const Problem& problem, Seconds alone, const DeviceClass& device) const {
    const int learners = schedule_.methods.get<Averaging>().learners;
    if (learners == 1) return alone;
    constexpr std::int64_t filling =
        1024;  // samples: beyond it a batch gains nothing (Koliousis et al. 2019, figure 4)
    Problem full = problem;
    full.batch = std::max(filling, problem.batch);
    const Seconds busy =
        at(price(full, device), z_score_) * (static_cast<double>(problem.batch) / static_cast<double>(full.batch));
    return std::max({alone * (1.0 / learners), std::min(busy, alone), least_time(problem, device)});
}

const Step& Steps::step_of(int rank_class, int step) const {
    return schedule_.classes[static_cast<std::size_t>(rank_class)].steps[static_cast<std::size_t>(step)];
}

// The first stage of a pipeline reads samples, the others do not.
void Steps::find_loading() {
    std::map<std::string, TierUsers> users;
    for (std::size_t c = 0; c < schedule_.classes.size(); ++c) {
        std::set<std::string> tiers;
        for (const Step& step : schedule_.classes[c].steps) {
            if (const auto* load = std::get_if<Load>(&step.action)) tiers.insert(load->tier);
        }
        for (const std::string& tier : tiers) {
            for (const RankIndex rank : ranks_of_[c]) ++users[tier][wiring_.node_of(rank)];
        }
    }
    for (const auto& [name, of_tier] : users) {
        loading_[name] = tier_rates(wiring_, storage_tier(wiring_.machine(), name), TierUse::read, of_tier);
    }
}

Seconds Steps::load_time(const Load& load, RankIndex rank) const {
    return load.bytes / loading_.at(load.tier).at(wiring_.node_of(rank));
}

Seconds Steps::duration(int rank_class, int step, RankIndex rank) const {
    if (const auto* load = std::get_if<Load>(&step_of(rank_class, step).action)) return load_time(*load, rank);
    const Seconds price = durations_[static_cast<std::size_t>(rank_class)].at(
        &wiring_.device_class(rank))[static_cast<std::size_t>(step)];
    return price * pace_.of(rank) + extra(rank_class, step);
}

// On the class's first rank, as a collective is.
Seconds Steps::beside(const Communicate& communicate, RankIndex rank) const {
    Seconds sum;
    for (const auto& [problem, times] : communicate.beside) {
        sum += static_cast<double>(times) * at(price(problem, wiring_.device_class(rank)), z_score_);
    }
    return sum;
}

Seconds Steps::lengthened(int rank_class, int step) const {
    if (extra_.empty()) return Seconds{0};
    return extra_[static_cast<std::size_t>(rank_class)][static_cast<std::size_t>(step)];
}

Seconds Steps::extra(int rank_class, int step) const {
    Seconds beside;
    if (const auto* communicate = std::get_if<Communicate>(&step_of(rank_class, step).action)) {
        beside = this->beside(*communicate, first_rank(rank_class));
    }
    const Seconds control =
        control_.empty() ? Seconds{0} : control_[static_cast<std::size_t>(rank_class)][static_cast<std::size_t>(step)];
    return beside + lengthened(rank_class, step) + control;
}

Seconds Steps::slowest(int rank_class, int step) const {
    Seconds most;
    if (const auto* load = std::get_if<Load>(&step_of(rank_class, step).action)) {
        for (const RankIndex rank : ranks_of(rank_class)) most = std::max(most, load_time(*load, rank));
        return most;
    }
    for (const auto& [device, times] : durations_[static_cast<std::size_t>(rank_class)]) {
        const double pace = class_pace_.empty() ? 1 : class_pace_[static_cast<std::size_t>(rank_class)].at(device);
        most = std::max(most, times[static_cast<std::size_t>(step)] * pace);
    }
    return most + extra(rank_class, step);
}

Event Steps::event(int rank_class, int step) const {
    const Step& of = step_of(rank_class, step);
    Event event;
    event.stream = of.stream;
    event.step = of.name;
    if (const Problem* problem = problem_of(of)) {
        const int first = alike_[static_cast<std::size_t>(rank_class)][static_cast<std::size_t>(step)];
        const Figures& figures = figures_[static_cast<std::size_t>(rank_class)][static_cast<std::size_t>(first)];
        event.pass = to_string(problem->pass);
        event.bytes = figures.moved;
        event.flops = figures.flops;
    }
    std::visit(Describe{schedule_.classes[static_cast<std::size_t>(rank_class)].part.network, event}, of.action);
    return event;
}

}  // namespace rehearse::sim
