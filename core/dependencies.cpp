// SPDX-License-Identifier: Apache-2.0
#include "core/dependencies.hpp"

#include <map>
#include <tuple>

namespace rehearse {

namespace {

struct MicroBatchOf {
    int operator()(const Compute& compute) const { return compute.micro_batch; }
    int operator()(const Communicate& communicate) const { return communicate.micro_batch; }
    int operator()(const Send& send) const { return send.micro_batch; }
    int operator()(const Recv& recv) const { return recv.micro_batch; }
    int operator()(const Load&) const { return 0; }
    int operator()(const Precondition& precondition) const { return precondition.micro_batch; }
    int operator()(const Update&) const { return 0; }
    int operator()(const PushPull&) const { return 0; }
};

std::vector<Dependencies::Step> steps_of(const std::vector<Step>& program) {
    const auto stream = [&](int i) { return program[static_cast<std::size_t>(i)].stream; };
    std::vector<bool> takes_part(program.size());
    for (const Step& step : program) {
        for (const int before : step.after) {
            if (stream(before) == step.stream) continue;
            takes_part[static_cast<std::size_t>(before)] = true;
            takes_part[static_cast<std::size_t>(&step - program.data())] = true;
        }
    }
    // Steps of one name are told apart by their order, so all of a name are kept.
    std::map<std::tuple<Stream, std::string, int>, bool> named;
    const auto key = [](const Step& step) {
        return std::tuple{step.stream, step.name, std::visit(MicroBatchOf{}, step.action)};
    };
    for (std::size_t i = 0; i < program.size(); ++i) {
        if (takes_part[i]) named[key(program[i])] = true;
    }
    std::vector<Dependencies::Step> steps;
    std::vector<int> number(program.size(), -1);
    for (std::size_t i = 0; i < program.size(); ++i) {
        const Step& step = program[i];
        if (!named[key(step)]) continue;
        number[i] = static_cast<int>(steps.size());
        Dependencies::Step& added = steps.emplace_back();
        added.step = step.name;
        added.stream = step.stream;
        added.micro_batch = std::visit(MicroBatchOf{}, step.action);
        for (const int before : step.after) {
            if (stream(before) != step.stream) added.after.push_back(number[static_cast<std::size_t>(before)]);
        }
    }
    return steps;
}

}  // namespace

std::vector<Dependencies> dependencies_of(const Schedule& schedule, std::span<const RankIndex> ranks) {
    std::map<int, Dependencies> of_class;
    for (const RankIndex rank : ranks) {
        const int c = class_of(schedule, rank);
        Dependencies& found = of_class[c];
        if (found.ranks.empty()) found.steps = steps_of(schedule.classes[static_cast<std::size_t>(c)].steps);
        found.ranks.push_back(rank);
    }
    std::vector<Dependencies> all;
    for (auto& [c, found] : of_class) all.push_back(std::move(found));
    return all;
}

}  // namespace rehearse
