// SPDX-License-Identifier: Apache-2.0
#include "schedule/remedies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/methods/memory_habits.hpp"
#include "core/precision.hpp"
#include "schedule/memory.hpp"
#include "schedule/mesh.hpp"

namespace rehearse::schedule {

namespace {

/// The text of a plan, taken apart: its axes with their sizes and options.
struct AxisText {
    std::string name;
    std::int64_t size = 1;
    std::string ranks;  // the size as written: "2x2" of spatial
    std::vector<std::pair<std::string, std::string>> options{};

    void resize(std::int64_t to) {
        size = to;
        ranks = fmt::format("{}", to);
    }
};
using PlanText = std::vector<AxisText>;

PlanText taken_apart(const Plan& plan, const Mesh& mesh) {
    PlanText axes;
    std::size_t begin = 0;
    const std::string text = with_sizes(plan, mesh) + ",";
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
        if (depth > 0 || (text[i] != ',' && text[i] != ':')) continue;
        const std::string part = text.substr(begin, i - begin);
        const std::size_t equals = part.find('=');
        const std::string name = part.substr(0, equals);
        if (begin == 0 || text[begin - 1] == ',') {
            axes.push_back({name, axis_size(mesh, name), part.substr(equals + 1)});
        } else {
            axes.back().options.push_back({name, part.substr(equals + 1)});
        }
        begin = i + 1;
    }
    return axes;
}

std::string put_together(const PlanText& axes) {
    std::string text;
    for (const AxisText& axis : axes) {
        text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.ranks);
        for (const auto& [name, value] : axis.options) text += fmt::format(":{}={}", name, value);
    }
    return text;
}

AxisText* find(PlanText& axes, std::string_view name) {
    const auto found = std::ranges::find(axes, name, &AxisText::name);
    return found == axes.end() ? nullptr : &*found;
}

void set(AxisText& axis, std::string_view option, std::string value) {
    const auto known = std::ranges::find(axis.options, option, [](const auto& pair) { return pair.first; });
    if (known != axis.options.end()) {
        known->second = std::move(value);
    } else {
        axis.options.emplace_back(option, std::move(value));
    }
}

AxisText* with_option(PlanText& axes, std::string_view option) {
    const auto found = std::ranges::find_if(axes, [&](const AxisText& axis) {
        return std::ranges::any_of(axis.options, [&](const auto& pair) { return pair.first == option; });
    });
    return found == axes.end() ? nullptr : &*found;
}

std::string_view value_of(const AxisText& axis, std::string_view option) {
    const auto known = std::ranges::find(axis.options, option, [](const auto& pair) { return pair.first; });
    return known == axis.options.end() ? std::string_view{} : known->second;
}

/// Where an option of all these axes stands: where it is, or on the first that there is.
AxisText* place_of(PlanText& axes, std::string_view option, std::initializer_list<std::string_view> names) {
    if (AxisText* known = with_option(axes, option)) return known;
    for (const std::string_view name : names) {
        if (AxisText* axis = find(axes, name)) return axis;
    }
    return nullptr;
}

/// The smallest divisor of `number` that is `least` or more; nothing beyond it.
std::optional<std::int64_t> divisor_from(std::int64_t least, std::int64_t number) {
    for (std::int64_t divisor = least; divisor <= number; ++divisor) {
        if (number % divisor == 0) return divisor;
    }
    return std::nullopt;
}

struct Trial {
    PlanText plan;
    Job job;
    std::string_view kind;  // of the last change: "zero", "batch"
};

struct Found {
    Trial trial;
    Bytes memory;
};

class Search {
public:
    Search(const Network& network, const Machine& machine, const Plan& plan, const Job& job, Bytes capacity,
           const MemoryOf& memory_of)
        : network_(network),
          machine_(machine),
          capacity_(capacity),
          memory_of_(memory_of),
          habits_(plan.methods.get<MemoryHabits>()) {
        has_experts_ = std::ranges::any_of(
            network.layers, [](const Layer& layer) { return std::holds_alternative<GroupedMatMul>(layer.op); });
        given_ = {taken_apart(plan, make_mesh(plan, job.devices)), job, {}};
    }

    std::vector<Remedy> run() {
        constexpr int most_changes = 3;
        std::vector<Trial> from{given_};
        std::vector<Remedy> remedies;
        for (int changes = 1; changes <= most_changes && remedies.empty(); ++changes) {
            std::vector<Found> best;  // of each kind of change, the one that saves most
            for (const Trial& start : from) {
                std::set<std::string_view> fitting;  // of several changes the mildest of a kind is enough
                for (Trial& trial : changed(start)) {
                    const std::optional<Bytes> memory = taken(trial);
                    if (!memory) continue;
                    if (*memory <= capacity_ && (fitting.insert(trial.kind).second || changes == 1))
                        add_once({said(trial), *memory, changes}, remedies);
                    keep({std::move(trial), *memory}, best);
                }
            }
            from = next(std::move(best));
        }
        return remedies;
    }

private:
    static void add_once(Remedy remedy, std::vector<Remedy>& remedies) {
        if (std::ranges::find(remedies, remedy.text, &Remedy::text) == remedies.end())
            remedies.push_back(std::move(remedy));
    }

    static void keep(Found found, std::vector<Found>& best) {
        const auto same =
            std::ranges::find_if(best, [&](const Found& each) { return each.trial.kind == found.trial.kind; });
        if (same == best.end()) {
            best.push_back(std::move(found));
        } else if (found.memory < same->memory) {
            *same = std::move(found);
        }
    }

    /// What further changes are made to.
    static std::vector<Trial> next(std::vector<Found> best) {
        constexpr std::size_t kinds = 3;
        std::ranges::sort(best, {}, &Found::memory);
        std::vector<Trial> trials;
        for (std::size_t i = 0; i < std::min(kinds, best.size()); ++i) trials.push_back(std::move(best[i].trial));
        return trials;
    }

    std::vector<Trial> changed(const Trial& from) const {
        std::vector<Trial> trials;
        const auto try_plan = [&](std::string_view kind, auto&& change) {
            Trial trial = from;
            trial.kind = kind;
            if (change(trial.plan)) trials.push_back(std::move(trial));
        };
        for (const char* stage : {"1", "2", "3"}) {
            try_plan("zero", [&](PlanText& plan) {
                AxisText* data = find(plan, "data");
                if (data == nullptr || data->size == 1 || value_of(*data, "zero") == stage) return false;
                set(*data, "zero", stage);
                return true;
            });
        }
        for (const char* what : {"blocks", "on"})
            try_plan("recompute", [&](PlanText& plan) { return recompute(plan, what); });
        try_plan("sequence", [](PlanText& plan) {
            AxisText* tensor = find(plan, "tensor");
            if (tensor == nullptr || tensor->size == 1 || value_of(*tensor, "sequence") == "on") return false;
            set(*tensor, "sequence", "on");
            return true;
        });
        const std::optional<Schedule> now = made(from);
        std::int64_t before = 1;  // times as many micro-batches as now
        for (const int times : {2, 4, 8}) {
            const std::optional<std::int64_t> more =
                now ? divisor_from(std::max<std::int64_t>(times, before + 1), micro_batch_size(*now)) : std::nullopt;
            if (more) try_plan("microbatches", [&](PlanText& plan) { return more_micro_batches(plan, *more, *now); });
            before = more.value_or(before);
            try_plan("tensor", [&](PlanText& plan) { return give(plan, "tensor", times); });
            try_plan("pipe", [&](PlanText& plan) { return give_stages(plan, times, from.job); });
            if (has_experts_) try_plan("expert", [&](PlanText& plan) { return give(plan, "expert", times); });
        }
        if (now) add_smaller_batch(from, *now, trials);
        if (compute_type(from.job.precision) == DataType::f32) {
            trials.push_back(from);
            trials.back().kind = "precision";
            trials.back().job.precision = Precision::mixed;
        }
        return trials;
    }

    /// The largest batch that fits, halved by halves, or the smallest where none does. It stays in whole micro-batches.
    void add_smaller_batch(Trial trial, const Schedule& now, std::vector<Trial>& trials) const {
        trial.kind = "batch";
        const bool by_samples = with_option(trial.plan, "microbatch") != nullptr;
        const std::int64_t unit = by_samples ? micro_batch_size(now) : now.micro_batches;
        for (std::int64_t units = now.batch_per_rank / unit / 2; units >= 1; units /= 2) {
            if (trial.job.global_batch) {
                trial.job.global_batch = units * unit * shards(now.mesh);
            } else {
                trial.job.batch_per_device = units * unit;
            }
            const std::optional<Bytes> memory = taken(trial);
            const bool fits = memory && *memory <= capacity_;
            if (fits || units == 1) trials.push_back(trial);
            if (fits) break;
        }
    }

    static bool recompute(PlanText& plan, const char* what) {
        AxisText* axis = place_of(plan, "recompute", {"pipe", "data", "tensor", "context", "expert"});
        if (axis == nullptr || value_of(*axis, "recompute") == what) return false;
        set(*axis, "recompute", what);
        return true;
    }

    static bool more_micro_batches(PlanText& plan, std::int64_t times, const Schedule& now) {
        if (AxisText* axis = with_option(plan, "microbatch")) {
            set(*axis, "microbatch", fmt::format("{}", micro_batch_size(now) / times));
            return true;
        }
        AxisText* axis = place_of(plan, "microbatches", {"pipe", "data"});
        if (axis == nullptr) return false;
        set(*axis, "microbatches", fmt::format("{}", times * now.micro_batches));
        return true;
    }

    /// Ranks of the data axis become ranks of another, which is put inside of it when it is new.
    static bool give(PlanText& plan, const char* name, int times) {
        AxisText* data = find(plan, "data");
        if (data == nullptr || data->size % times != 0) return false;
        data->resize(data->size / times);
        if (AxisText* other = find(plan, name)) {
            other->resize(other->size * times);
        } else {
            plan.push_back({name, times, fmt::format("{}", times)});
        }
        return true;
    }

    /// The same of a pipeline. It cuts the batch into as many parts as it has stages, or more where these are uneven.
    static bool give_stages(PlanText& plan, int times, const Job& job) {
        const bool is_new = find(plan, "pipe") == nullptr;
        if (!give(plan, "pipe", times)) return false;
        const bool is_cut = with_option(plan, "microbatches") != nullptr || with_option(plan, "microbatch") != nullptr;
        if (!is_new || is_cut || job.global_batch) return true;  // of a global batch each copy now has `times` as much
        const std::optional<std::int64_t> parts = divisor_from(times, job.batch_per_device);
        if (parts && *parts > times) set(*find(plan, "pipe"), "microbatches", fmt::format("{}", *parts));
        return true;
    }

    /// Nothing where the plan cannot be.
    std::optional<Schedule> made(const Trial& trial) const {
        try {
            Plan plan = parse_plan(put_together(trial.plan));
            plan.methods.edit<MemoryHabits>() = habits_;
            return make_schedule(network_, machine_, plan, trial.job);
        } catch (const InputError&) {
            return std::nullopt;
        }
    }

    std::optional<Bytes> taken(const Trial& trial) const {
        const std::optional<Schedule> schedule = made(trial);
        if (!schedule) return std::nullopt;
        if (memory_of_) return memory_of_(parse_plan(put_together(trial.plan)), *schedule);
        if (machine_.classes.size() < 2) return schedule->memory_peak;
        // Of unlike devices: as if the tightest were as large as `capacity`.
        const Tightest most = tightest(*schedule, machine_);
        return total(most.use) * (capacity_ / most.device->memory.value);
    }

    std::string said(const Trial& trial) const {
        std::string text;
        const std::string plan = put_together(trial.plan);
        const auto add = [&](std::string option) { text += (text.empty() ? "" : " ") + std::move(option); };
        if (plan != put_together(given_.plan)) add("--plan " + plan);
        if (trial.job.global_batch != given_.job.global_batch) {
            add(fmt::format("--global-batch {}", *trial.job.global_batch));
        }
        if (trial.job.batch_per_device != given_.job.batch_per_device) {
            add(fmt::format("--batch {}", trial.job.batch_per_device));
        }
        if (trial.job.precision != given_.job.precision) add("--precision mixed");
        return text;
    }

    const Network& network_;
    bool has_experts_ = false;
    const Machine& machine_;
    Bytes capacity_;
    const MemoryOf& memory_of_;
    MemoryHabits habits_;
    Trial given_;
};

}  // namespace

std::vector<Remedy> remedies(const Network& network, const Machine& machine, const Plan& plan, const Job& job,
                             Bytes capacity, const MemoryOf& memory_of) {
    return Search{network, machine, plan, job, capacity, memory_of}.run();
}

}  // namespace rehearse::schedule
