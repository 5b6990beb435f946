// SPDX-License-Identifier: Apache-2.0
#include "schedule/box_times.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"

namespace rehearse::schedule {

namespace {

Stream sending(Stream receiving) {
    return receiving == Stream::receive_gradients ? Stream::send_gradients : Stream::send_activations;
}

class Clockwork {
public:
    Clockwork(const Schedule& schedule, std::vector<Boxed>& classes) : schedule_(schedule), classes_(classes) {
        for (std::size_t c = 0; c < classes.size(); ++c) {
            find_sends(static_cast<int>(c));
            std::vector<std::vector<int>> steps(classes[c].boxes.size());
            for (std::size_t i = 0; i < classes[c].box_of.size(); ++i) {
                if (classes[c].box_of[i] != no_box) steps[at(classes[c].box_of[i])].push_back(static_cast<int>(i));
            }
            steps_of_.push_back(std::move(steps));
        }
        find_messages();
    }

    void run() {
        std::vector<std::size_t> next(classes_.size());
        std::vector<std::int64_t> free(classes_.size());
        ended_.resize(classes_.size());
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t c = 0; c < classes_.size(); ++c) {
                while (next[c] < classes_[c].boxes.size()) {
                    const std::optional<std::int64_t> ready = ready_at(static_cast<int>(c), next[c]);
                    if (!ready) break;
                    ComputeBox& box = classes_[c].boxes[next[c]];
                    box.start = std::max(free[c], *ready);
                    ended_[c] = ++next[c];
                    free[c] = box.start + box.length;
                    moved = true;
                }
            }
        }
        for (std::size_t c = 0; c < classes_.size(); ++c) {
            require(next[c] == classes_[c].boxes.size(), "a schedule whose steps do not wait for each other in a ring");
        }
    }

private:
    using Channel = std::tuple<int, int, std::int64_t, Stream>;  // class, axis, offset, stream

    void find_sends(int c) {
        const auto& steps = schedule_.classes[at(c)].steps;
        for (std::size_t i = 0; i < steps.size(); ++i) {
            if (const auto* send = std::get_if<Send>(&steps[i].action)) {
                sends_[{c, send->axis, send->offset, steps[i].stream}].push_back(static_cast<int>(i));
            }
        }
    }

    /// The n-th Recv from a class is its n-th Send to here.
    void find_messages() {
        for (int c = 0; c < static_cast<int>(classes_.size()); ++c) {
            std::map<Channel, std::size_t> received;
            const auto& steps = schedule_.classes[at(c)].steps;
            std::vector<std::pair<int, int>> from(steps.size(), {no_box, no_box});
            for (std::size_t i = 0; i < steps.size(); ++i) {
                const auto* recv = std::get_if<Recv>(&steps[i].action);
                if (recv == nullptr) continue;
                const int peer = class_beside(c, recv->axis, recv->offset);
                const Channel channel{peer, recv->axis, -recv->offset, sending(steps[i].stream)};
                const std::size_t n = received[channel]++;
                const std::vector<int>& sent = sends_[channel];
                require(n < sent.size(), "a Recv has a Send");
                from[i] = {peer, sent[n]};
            }
            message_.push_back(std::move(from));
        }
    }

    int class_beside(int c, int axis, std::int64_t offset) {
        const auto [known, is_new] = beside_.emplace(std::tuple{c, axis, offset}, no_box);
        if (is_new) known->second = find_beside(c, axis, offset);
        return known->second;
    }

    int find_beside(int c, int axis, std::int64_t offset) const {
        for (RankIndex rank{0}; rank < ranks(schedule_.mesh); ++rank) {
            if (class_of(schedule_, rank) != c) continue;
            std::vector<std::int64_t> place = coordinates(schedule_.mesh, rank);
            const std::int64_t there = place[at(axis)] + offset, size = schedule_.mesh.axes[at(axis)].size;
            if (there < 0 || there >= size) continue;
            place[at(axis)] = there;
            return class_of(schedule_, rank_at(schedule_.mesh, place));
        }
        require(false, "a message has somebody at its other end");
        return no_box;
    }

    /// When all that a box waits for has ended; nothing if that is not known yet.
    std::optional<std::int64_t> ready_at(int c, std::size_t box) const {
        std::int64_t latest = 0;
        for (const int step : steps_of_[at(c)][box]) {
            for (const int before : schedule_.classes[at(c)].steps[at(step)].after) {
                const std::optional<std::int64_t> end = end_of(c, before, static_cast<int>(box));
                if (!end) return {};
                latest = std::max(latest, *end);
            }
        }
        return latest;
    }

    /// Of a step that `asking`, a box of the same class or no_box, waits for. A message takes no time.
    std::optional<std::int64_t> end_of(int c, int step, int asking) const {
        const int box = classes_[at(c)].box_of[at(step)];
        if (box != no_box) {
            if (box == asking) return 0;
            if (at(box) >= ended_[at(c)]) return {};
            return classes_[at(c)].boxes[at(box)].start + classes_[at(c)].boxes[at(box)].length;
        }
        std::int64_t latest = 0;
        for (const int before : schedule_.classes[at(c)].steps[at(step)].after) {
            const std::optional<std::int64_t> end = end_of(c, before, asking);
            if (!end) return {};
            latest = std::max(latest, *end);
        }
        const auto [peer, sent] = message_[at(c)][at(step)];
        if (peer == no_box) return latest;
        const std::optional<std::int64_t> end = end_of(peer, sent, no_box);
        if (!end) return {};
        return std::max(latest, *end);
    }

    const Schedule& schedule_;
    std::vector<Boxed>& classes_;
    std::vector<std::vector<std::vector<int>>> steps_of_;       // by class and box
    std::map<Channel, std::vector<int>> sends_;                 // steps
    std::vector<std::vector<std::pair<int, int>>> message_;     // by class and step: class and step of its Send
    std::map<std::tuple<int, int, std::int64_t>, int> beside_;  // by class, axis and offset
    std::vector<std::size_t> ended_;                            // boxes of each class, so far
};

}  // namespace

void place(const Schedule& schedule, std::vector<Boxed>& classes) { Clockwork{schedule, classes}.run(); }

}  // namespace rehearse::schedule
