// SPDX-License-Identifier: Apache-2.0
// What each problem of a schedule takes under a framework, and behind a host that issues ahead of the device.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "core/network.hpp"
#include "predict/framework.hpp"
#include "prices/prices.hpp"
#include "prices/tile_model.hpp"

namespace rehearse::predict {

namespace {

// Whether the gradients of the weights that this step updates have been summed over ranks.
bool summed_before(const Step& step, const Schedule& schedule, const RankClass& rank_class) {
    const auto* update = std::get_if<Update>(&step.action);
    if (update == nullptr) return false;
    const Bucket& bucket = rank_class.part.buckets[static_cast<std::size_t>(int{update->bucket})];
    return bucket.axis >= 0 && size_of(schedule.mesh, bucket.axis) > 1;
}

Seconds copied(const Problem& update, const DeviceClass& device, double times) {
    const double elements = static_cast<double>(updated(update.op).value_or(0));
    return times * 2 * elements * size_of(update.type) / device.memory_bandwidth.value;
}

// What the copies of a bucket's weights and gradients take in a step that gathers the former from shards and leaves the
// latter in shards; they are counted where the bucket is updated.
Seconds copied_beside_shards(const Update& update, const RankClass& rank_class, const DeviceClass& device,
                             const Copies& copies) {
    Bytes moved{};
    for (const Step& step : rank_class.steps) {
        const auto* message = std::get_if<Communicate>(&step.action);
        if (message == nullptr || !message->of_bucket() || message->bucket() != update.bucket) continue;
        if (message->content != Content::usual) continue;
        const double passes = message->kind == CollectiveKind::all_gather       ? copies.gathered
                              : message->kind == CollectiveKind::reduce_scatter ? copies.scattered
                                                                                : 0;
        moved += passes * static_cast<double>(message->elements) * size_of(message->type);
    }
    const double share = device.tiles ? device.tiles->memory.value : 1;
    return moved / (device.memory_bandwidth.value * share);
}

// What statistics of the gradients of a bucket take: each operator as long as its issue, or as its part of the
// gradients takes to cross memory.
Seconds counted(const Update& update, bool shared, const RankClass& rank_class, const DeviceClass& device,
                const Framework& framework) {
    const double operators = shared ? framework.statistics.shared : framework.statistics.alone;
    if (operators == 0) return Seconds{};
    double tensors = 0;
    const rehearse::Part& part = rank_class.part;
    for (const int layer : part.buckets[static_cast<std::size_t>(int{update.bucket})].layers)
        tensors += static_cast<double>(weights(part.network.layers[static_cast<std::size_t>(layer)].op).size());
    const double elements = static_cast<double>(updated(update.problem.op).value_or(0));
    const Seconds crossing = 1.4 * elements * size_of(update.problem.type) / device.memory_bandwidth.value;
    return operators * std::max(tensors * framework.issue.other.time, crossing);
}

// The host issues operators one after the other, without waiting for the device, which computes each when it has been
// issued and the one before is over.
class Queue {
public:
    /// How much longer the device is busy or waits because of an operator.
    Seconds add(Seconds issue, Seconds computed) {
        issued_ += issue;
        const Seconds before = over_;
        over_ = std::max(over_, issued_) + computed;
        return over_ - before;
    }

private:
    Seconds issued_{}, over_{};
};

bool issues_ahead(const DeviceClass& device) { return device.tiles != nullptr && device.tiles->issues_ahead; }

DeviceClass without_issue(DeviceClass device) {
    TileModel tiles = *device.tiles;
    tiles.issue.value = Seconds{};
    device.tiles = std::make_shared<const TileModel>(std::move(tiles));
    return device;
}

/// The prices of a schedule's problems on one device class.
class Prices {
public:
    Prices(const Schedule& schedule, const DeviceClass& device, const Framework& framework)
        : schedule_(schedule), device_(device), framework_(framework) {
        for (const RankClass& rank_class : schedule.classes) add(rank_class);
        if (!issues_ahead(device)) return;
        const DeviceClass alone = without_issue(device);
        Framework unhurried = framework;
        unhurried.issue = {};
        for (const RankClass& rank_class : schedule.classes) queue(rank_class, alone, unhurried);
        for (auto& [name, queued] : queued_) take(prices_.at(name), queued);
    }

    std::map<std::string, Measured> take() && { return std::move(prices_); }

private:
    // Of one problem in a step, behind the host.
    struct Queued {
        Seconds sum;  // of all times that it is computed
        double count = 0;
        Price alone;  // had the host issued all before
    };

    void add(const RankClass& rank_class) {
        for (const Step& step : rank_class.steps) {
            const Problem* problem = problem_of(step);
            if (problem == nullptr) continue;
            std::string name = to_string(*problem);
            if (prices_.contains(name)) continue;
            const Price known = price_of(*problem, step, rank_class, device_, framework_);
            prices_.emplace(std::move(name), Measured{known.time, known.error, 1, known.source, known.basis});
        }
    }

    Price price_of(const Problem& problem, const Step& step, const RankClass& rank_class, const DeviceClass& device,
                   const Framework& framework) const {
        const Price alone = with_overheads(price(problem, device), problem, device, framework);
        Price known = alone;
        const bool summed = summed_before(step, schedule_, rank_class);
        if (summed) known.time += copied(problem, device, framework.copies.buckets);
        if (const auto* update = std::get_if<Update>(&step.action)) {
            known.time += counted(*update, summed, rank_class, device, framework_) +
                          copied_beside_shards(*update, rank_class, device, framework.copies);
        }
        return with_basis(std::move(known), alone);
    }

    void queue(const RankClass& rank_class, const DeviceClass& alone, const Framework& unhurried) {
        Queue queue;
        for (const Step& step : rank_class.steps) {
            const Problem* problem = problem_of(step);
            if (problem == nullptr || step.stream != Stream::compute) continue;
            const auto [known, added] = queued_.try_emplace(to_string(*problem));
            if (added) known->second.alone = price_of(*problem, step, rank_class, alone, unhurried);
            const Seconds issue = std::max(issue_time(*problem, device_), framework_.issue.of(problem->op).time);
            known->second.sum += queue.add(issue, known->second.alone.time);
            known->second.count += 1;
        }
    }

    // The mean of all times that it is computed; where the device does not wait, as it is alone.
    static void take(Measured& measured, const Queued& queued) {
        measured.median = queued.sum * (1 / queued.count);
        if (measured.median > 1.01 * queued.alone.time) return;
        measured.error = queued.alone.error;
        measured.source = queued.alone.source;
        measured.basis = queued.alone.basis;
    }

    const Schedule& schedule_;
    const DeviceClass& device_;
    const Framework& framework_;
    std::map<std::string, Measured> prices_;
    std::map<std::string, Queued> queued_;
};

}  // namespace

bool issues_ahead(const Machine& machine) {
    return std::ranges::any_of(machine.classes, [](const DeviceClass& each) { return issues_ahead(each); });
}

Machine priced(Machine machine, const Schedule& schedule, const Framework& framework) {
    for (DeviceClass& device : machine.classes) device.measured = Prices{schedule, device, framework}.take();
    return machine;
}

}  // namespace rehearse::predict
