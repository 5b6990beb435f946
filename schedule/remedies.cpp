// SPDX-License-Identifier: Apache-2.0
#include "schedule/remedies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "schedule/memory.hpp"
#include "schedule/mesh.hpp"

namespace rehearse::schedule {

namespace {

/// The text of a plan, taken apart: its axes with their sizes and options.
struct AxisText {
    std::string name;
    std::int64_t size = 1;
    std::vector<std::pair<std::string, std::string>> options{};
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
            axes.push_back({name, axis_size(mesh, name)});
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
        text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
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

struct Trial {
    PlanText plan;
    Job job;
    int changes = 0;
};

struct Found {
    Trial trial;
    Bytes memory;
};

class Search {
public:
    Search(const Network& network, const Machine& machine, const Plan& plan, const Job& job, Bytes capacity)
        : network_(network), machine_(machine), capacity_(capacity) {
        has_experts_ = std::ranges::any_of(
            network.layers, [](const Layer& layer) { return std::holds_alternative<GroupedMatMul>(layer.op); });
        const Mesh mesh = make_mesh(plan, job.devices);
        given_ = {taken_apart(plan, mesh), job, 0};
        given_.job.global_batch.reset();
        if (job.global_batch) given_.job.batch_per_device = *job.global_batch / shards(mesh);
    }

    std::vector<Remedy> run() {
        constexpr int most_changes = 3;
        Trial from = given_;
        std::vector<Remedy> remedies;
        for (int changes = 1; changes <= most_changes && remedies.empty(); ++changes) {
            std::optional<Found> best;
            for (Trial& trial : changed(from)) {
                trial.changes = changes;
                const std::optional<Bytes> memory = taken(trial);
                if (!memory) continue;
                if (*memory <= capacity_) remedies.push_back({said(trial), *memory, changes});
                if (!best || *memory < best->memory) best = Found{std::move(trial), *memory};
            }
            if (!best) break;
            from = std::move(best->trial);
        }
        return remedies;
    }

private:
    std::vector<Trial> changed(const Trial& from) const {
        std::vector<Trial> trials;
        const auto try_plan = [&](auto&& change) {
            Trial trial = from;
            if (change(trial.plan)) trials.push_back(std::move(trial));
        };
        for (const char* stage : {"1", "2", "3"}) {
            try_plan([&](PlanText& plan) {
                AxisText* data = find(plan, "data");
                if (data == nullptr || data->size == 1 || has(*data, "zero", stage)) return false;
                set(*data, "zero", stage);
                return true;
            });
        }
        try_plan([](PlanText& plan) {
            const auto given = [](const AxisText& axis) {
                return std::ranges::any_of(axis.options, [](const auto& o) { return o.first == "recompute"; });
            };
            if (std::ranges::any_of(plan, given)) return false;
            set(plan.front(), "recompute", "on");
            return true;
        });
        for (const int times : {2, 4, 8}) {
            try_plan([&](PlanText& plan) { return more_micro_batches(plan, times); });
            try_plan([&](PlanText& plan) { return give(plan, "tensor", times); });
            try_plan([&](PlanText& plan) { return give(plan, "pipe", times); });
            if (has_experts_) try_plan([&](PlanText& plan) { return give(plan, "expert", times); });
        }
        for (std::int64_t batch = from.job.batch_per_device / 2; batch >= 1; batch /= 2) {
            trials.push_back(from);
            trials.back().job.batch_per_device = batch;
            const std::optional<Bytes> memory = taken(trials.back());
            if (memory && *memory <= capacity_) break;  // the largest that fits, or all of them do not
            if (batch > 1) trials.pop_back();
        }
        if (compute_type(from.job.precision) == DataType::f32) {
            trials.push_back(from);
            trials.back().job.precision = Precision::mixed;
        }
        return trials;
    }

    static bool has(const AxisText& axis, std::string_view option, std::string_view value) {
        return std::ranges::any_of(axis.options, [&](const auto& o) { return o.first == option && o.second == value; });
    }

    static bool more_micro_batches(PlanText& plan, int times) {
        AxisText* axis = find(plan, "pipe") != nullptr ? find(plan, "pipe") : find(plan, "data");
        if (axis == nullptr) return false;
        std::int64_t now = axis->name == "pipe" ? axis->size : 1;
        for (AxisText& any : plan) {
            for (auto& [name, value] : any.options) {
                if (name != "microbatches") continue;
                now = std::stoll(value);
                axis = &any;
            }
        }
        set(*axis, "microbatches", fmt::format("{}", times * now));
        return true;
    }

    /// Ranks of the data axis become ranks of another, which is put inside of it when it is new.
    static bool give(PlanText& plan, const char* name, int times) {
        AxisText* data = find(plan, "data");
        if (data == nullptr || data->size % times != 0) return false;
        data->size /= times;
        if (AxisText* other = find(plan, name)) {
            other->size *= times;
        } else {
            plan.push_back({name, times});
        }
        return true;
    }

    /// Nothing where the plan cannot be.
    std::optional<Bytes> taken(const Trial& trial) const {
        try {
            const Schedule made = make_schedule(network_, machine_, parse_plan(put_together(trial.plan)), trial.job);
            if (machine_.classes.size() < 2) return made.memory_peak;
            // Of unlike devices: as if the tightest were as large as `capacity`.
            const Tightest most = tightest(made, machine_);
            return total(most.use) * (capacity_ / most.device->memory.value);
        } catch (const InputError&) {
            return std::nullopt;
        }
    }

    std::string said(const Trial& trial) const {
        std::string text;
        const std::string plan = put_together(trial.plan);
        const auto add = [&](std::string option) { text += (text.empty() ? "" : " ") + std::move(option); };
        if (plan != put_together(given_.plan)) add("--plan " + plan);
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
    Trial given_;
};

}  // namespace

std::vector<Remedy> remedies(const Network& network, const Machine& machine, const Plan& plan, const Job& job,
                             Bytes capacity) {
    return Search{network, machine, plan, job, capacity}.run();
}

}  // namespace rehearse::schedule
