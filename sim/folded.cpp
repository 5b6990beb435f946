// SPDX-License-Identifier: Apache-2.0
#include "sim/folded.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "core/error.hpp"
#include "sim/bundles.hpp"
#include "sim/collectives.hpp"

namespace rehearse::sim {

namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Bytes that every flow of a bundle carries, and how long the ranks are busy after the last of them has left.
struct Leg {
    int bundle = 0;
    double bytes = 0;
    Seconds afterwards;
};

/// A step of all ranks of a class that takes links: a message to the neighbour, which a Recv of another class awaits,
/// or the phases of a collective, one after the other.
struct Transit {
    int rank_class = 0, step = 0;
    int to_class = -1, recv = -1;  // of a message
    std::vector<Leg> legs;
    std::size_t leg = 0;
    double begun = 0;  // the whole
    double start = 0;  // this leg
    double left = 0;   // of its bytes

    int bundle() const { return legs[leg].bundle; }
};

// One class's streams.
struct ClassState {
    std::vector<Event> events;  // by step
    std::vector<bool> done;     // by step
    std::array<std::vector<int>, stream_count> queue;
    std::array<std::size_t, stream_count> next{};
    std::array<bool, stream_count> on_the_way{};  // the head of the queue has been sent and has not arrived
    std::array<Seconds, stream_count> free{};
    std::array<Collectives::Progress, stream_count> progress{};
    std::array<double, stream_count> over{};  // when the stream's last collective had ended on every rank
};

double seconds(Seconds time) { return time.value; }

/// Works through all classes' streams. A step's times follow from what it waits for, so it does not matter in which
/// order steps are taken, as long as each stream's are in order.
class Fold {
public:
    Fold(const Steps& steps, const Wiring& wiring, Collectives& collectives)
        : steps_(steps), wiring_(wiring), collectives_(collectives), bundles_(wiring) {
        for (std::size_t c = 0; c < steps.schedule().classes.size(); ++c) {
            const std::vector<Step>& of_class = steps.schedule().classes[c].steps;
            ClassState& state = classes_.emplace_back();
            state.done.resize(of_class.size());
            for (std::size_t i = 0; i < of_class.size(); ++i) {
                state.events.push_back(steps.event(static_cast<int>(c), static_cast<int>(i)));
                state.events.back().rank = steps.first_rank(static_cast<int>(c));
                state.queue[at(static_cast<int>(of_class[i].stream))].push_back(static_cast<int>(i));
                if (const auto* send = std::get_if<Send>(&of_class[i].action)) add_bundle(static_cast<int>(c), *send);
                const auto* communicate = std::get_if<Communicate>(&of_class[i].action);
                if (communicate != nullptr && several_classes()) add_legs(static_cast<int>(c), *communicate);
            }
        }
    }

    /// Events of one iteration that starts at 0, class by class.
    std::vector<std::vector<Event>> run() {
        do {
            take_what_can_be();
        } while (next_message());
        std::vector<std::vector<Event>> events;
        for (ClassState& state : classes_) {
            require(std::ranges::count(state.done, false) == 0, "no step waits for ever");
            events.push_back(std::move(state.events));
        }
        return events;
    }

    std::int64_t flows() const { return flows_; }

private:
    using Key = std::tuple<CollectiveKind, int, std::int64_t, DataType, std::string>;
    static Key key_of(const Communicate& communicate) {
        return {communicate.kind, communicate.axis, communicate.elements, communicate.type,
                to_string(communicate.algorithm)};
    }

    void add_bundle(int c, const Send& send) {
        const auto [entry, fresh] = bundle_of_.try_emplace({c, send.axis, send.offset});
        if (!fresh) return;
        std::vector<Flow> flows;
        const std::int64_t apart = send.offset * stride(steps_.schedule().mesh, send.axis);
        for (const std::int64_t rank : steps_.ranks_of(c)) flows.push_back({rank, rank + apart});
        entry->second = bundles_.add(flows);
    }

    bool several_classes() const { return steps_.schedule().classes.size() > 1; }

    /// The rounds of a collective of this class's groups alone: other classes do theirs at other times.
    void add_legs(int c, const Communicate& communicate) {
        const auto [entry, fresh] = legs_of_.try_emplace({c, key_of(communicate)});
        if (!fresh) return;
        if (std::ranges::count(steps_.schedule().class_axes, communicate.axis) > 0) {
            throw InputError(
                fmt::format("{}: folded mode cannot yet price a collective between rank classes; "
                            "use --mode exact",
                            steps_.schedule().plan));
        }
        const Groups groups = groups_along(steps_.schedule().mesh, communicate.axis, communicate.algorithm, wiring_);
        const Collective rounds = rounds_of(call_of(communicate), groups);
        for (const Phase& phase : rounds.phases()) {
            const std::vector<Parcel> parcels = rounds.parcels(phase.first_round);
            if (parcels.empty()) continue;
            std::vector<Flow> flows;
            Bytes bytes;
            PerByte combine;
            for (const Parcel& parcel : parcels) bytes = std::max(bytes, bytes_of(parcel, communicate.type));
            for (std::int64_t group = 0; group < groups.count; ++group) {
                if (steps_.class_of(groups.rank(group, 0)) != c) continue;
                for (const Parcel& parcel : parcels) {
                    const Flow flow{groups.rank(group, parcel.from), groups.rank(group, parcel.to)};
                    flows.push_back(flow);
                    const bool adds = parcel.combine == Combine::reduce;
                    if (adds) combine = std::max(combine, wiring_.combine(flow.from, flow.to));
                }
            }
            const int bundle = bundles_.add(flows);
            const auto times = static_cast<double>(phase.repeats);
            entry->second.push_back(
                {bundle, times * bytes.value, times * (bundles_.latency(bundle, bytes) + combine * bytes)});
            messages_of_[entry->first] += phase.repeats * static_cast<std::int64_t>(flows.size());
        }
    }

    void take_what_can_be() {
        for (bool moved = true; moved;) {
            moved = false;
            for (int c = 0; c < static_cast<int>(classes_.size()); ++c) {
                for (int stream = 0; stream < stream_count; ++stream) {
                    while (take_next(c, stream)) moved = true;
                }
            }
        }
    }

    /// Goes on to where the next message begins or leaves; false when there is none. What a message's arrival sets
    /// going begins no earlier, so that time only goes forward.
    bool next_message() {
        if (moving_.empty() && waiting_.empty()) return false;
        std::vector<int> key;
        for (const Transit& transit : moving_) key.push_back(transit.bundle());
        const std::vector<double> rates = key.empty() ? std::vector<double>{} : bundles_.rates(key);
        double next = std::numeric_limits<double>::infinity();
        std::size_t leaves = moving_.size();
        for (std::size_t i = 0; i < moving_.size(); ++i) {
            const double end = now_ + moving_[i].left / rates[i];
            if (end < next) {
                next = end;
                leaves = i;
            }
        }
        const auto begins = std::ranges::min_element(waiting_, {}, &Transit::start);
        const bool begin = begins != waiting_.end() && begins->start < next;
        if (begin) next = begins->start;
        for (std::size_t i = 0; i < moving_.size(); ++i) moving_[i].left -= rates[i] * (next - now_);
        now_ = next;
        if (begin) {
            // Kept in the order of their bundles: the same company has the same rates.
            const auto place = std::ranges::upper_bound(moving_, begins->bundle(), {}, &Transit::bundle);
            moving_.insert(place, std::move(*begins));
            waiting_.erase(begins);
        } else {
            Transit gone = std::move(moving_[leaves]);
            moving_.erase(moving_.begin() + static_cast<std::ptrdiff_t>(leaves));
            leave(std::move(gone));
        }
        return true;
    }

    void leave(Transit gone) {
        double until = now_ + seconds(gone.legs[gone.leg].afterwards);
        if (gone.leg + 1 == gone.legs.size()) until += seconds(steps_.extra(gone.rank_class, gone.step));
        if (++gone.leg < gone.legs.size()) {
            gone.start = until;
            gone.left = gone.legs[gone.leg].bytes;
            waiting_.push_back(std::move(gone));
            return;
        }
        classes_[at(gone.rank_class)].on_the_way[stream_of(gone.rank_class, gone.step)] = false;
        end(gone.rank_class, gone.step, Seconds{gone.begun}, Seconds{until});
        if (gone.recv >= 0) end(gone.to_class, gone.recv, Seconds{gone.begun}, Seconds{until});
    }

    void set_out(Transit transit, Seconds start) {
        transit.begun = transit.start = seconds(start);
        transit.left = transit.legs.front().bytes;
        classes_[at(transit.rank_class)].on_the_way[stream_of(transit.rank_class, transit.step)] = true;
        waiting_.push_back(std::move(transit));
    }

    std::size_t stream_of(int c, int step) const { return at(static_cast<int>(step_of(c, step).stream)); }

    const Step& step_of(int c, int step) const { return steps_.schedule().classes[at(c)].steps[at(step)]; }

    std::optional<int> head(int c, int stream) const {
        const ClassState& state = classes_[at(c)];
        if (state.next[at(stream)] == state.queue[at(stream)].size()) return std::nullopt;
        return state.queue[at(stream)][state.next[at(stream)]];
    }

    /// When all that the step waits for has ended; nothing while that is not known.
    std::optional<Seconds> needed(int c, int step) const {
        Seconds latest;
        for (const int before : step_of(c, step).after) {
            if (!classes_[at(c)].done[at(before)]) return std::nullopt;
            latest = std::max(latest, classes_[at(c)].events[at(before)].end);
        }
        return latest;
    }

    void end(int c, int step, Seconds start, Seconds end) {
        ClassState& state = classes_[at(c)];
        const auto stream = at(static_cast<int>(step_of(c, step).stream));
        state.events[at(step)].start = start;
        state.events[at(step)].end = state.free[stream] = end;
        state.done[at(step)] = true;
        ++state.next[stream];
    }

    bool take_next(int c, int stream) {
        const std::optional<int> step = head(c, stream);
        if (!step) return false;
        const std::optional<Seconds> from = needed(c, *step);
        if (!from) return false;
        const Action& action = step_of(c, *step).action;
        if (std::holds_alternative<Recv>(action)) return false;  // its Send takes it along
        ClassState& state = classes_[at(c)];
        if (state.on_the_way[at(stream)]) return false;
        const Seconds start = std::max(*from, state.free[at(stream)]);
        if (const auto* send = std::get_if<Send>(&action)) return take_send(c, *step, *send, start);
        if (const auto* communicate = std::get_if<Communicate>(&action)) {
            state.events[at(*step)].bytes = collectives_.sent(call_of(*communicate), state.events[at(*step)].rank);
            if (several_classes()) return take_collective(c, *step, *communicate, start);
            const Seconds alone = collective(c, stream, *communicate, *from), extra = steps_.extra(c, *step);
            if (extra > Seconds{0}) Collectives::catch_up(state.progress[at(stream)], alone + extra);
            end(c, *step, start, alone + extra);
            return true;
        }
        const Seconds until = start + steps_.slowest(c, *step);
        Collectives::occupy(state.progress[at(stream)], until);
        end(c, *step, start, until);
        return true;
    }

    bool take_send(int c, int step, const Send& send, Seconds start) {
        const bool gradients = step_of(c, step).stream == Stream::send_gradients;
        const Stream stream = gradients ? Stream::receive_gradients : Stream::receive_activations;
        const std::int64_t peer_rank = steps_.first_rank(c) + send.offset * stride(steps_.schedule().mesh, send.axis);
        const int peer = steps_.class_of(peer_rank);
        const std::optional<int> other = head(peer, static_cast<int>(stream));
        if (!other) return false;
        const auto* recv = std::get_if<Recv>(&step_of(peer, *other).action);
        require(recv != nullptr && recv->axis == send.axis && recv->offset == -send.offset && recv->bytes == send.bytes,
                "a receive meets the send of its tensor");
        const std::optional<Seconds> from = needed(peer, *other);
        if (!from) return false;
        start = std::max({start, *from, classes_[at(peer)].free[at(static_cast<int>(stream))]});
        const int bundle = bundle_of_.at({c, send.axis, send.offset});
        set_out({c, step, peer, *other, {{bundle, send.bytes.value, bundles_.latency(bundle, send.bytes)}}}, start);
        flows_ += static_cast<std::int64_t>(steps_.ranks_of(c).size());
        return true;
    }

    bool take_collective(int c, int step, const Communicate& communicate, Seconds start) {
        const auto& key = std::pair{c, key_of(communicate)};
        const std::vector<Leg>& legs = legs_of_.at(key);
        flows_ += messages_of_[key];
        if (legs.empty()) {
            end(c, step, start, start);
        } else {
            set_out({c, step, -1, -1, legs}, start);
        }
        return true;
    }

    // Ranks that ended the stream's last collective early enter this one early.
    Seconds collective(int c, int stream, const Communicate& communicate, Seconds needed) {
        ClassState& state = classes_[at(c)];
        flows_ += collectives_.messages(call_of(communicate)) * static_cast<std::int64_t>(steps_.ranks_of(c).size()) /
                  steps_.ranks();
        double& over = state.over[at(stream)];
        const bool fresh = seconds(needed) >= over && needed >= state.free[at(stream)];
        std::optional<double>& known = lasting_[key_of(communicate)];
        if (fresh && known) {
            over = seconds(needed) + *known;
            return Seconds{over};
        }
        Collectives::Progress& progress = state.progress[at(stream)];
        progress.ready.resize(static_cast<std::size_t>(steps_.ranks()), seconds(state.free[at(stream)]));
        if (over > 0) Collectives::catch_up(progress, Seconds{over});
        collectives_.run(call_of(communicate), needed, progress);
        const auto [first, last] = std::ranges::minmax(progress.ready);
        over = last;
        if (fresh && last - first <= 1e-9 * (last - seconds(needed))) known = last - seconds(needed);
        double latest = 0;
        for (const std::int64_t rank : steps_.ranks_of(c)) {
            latest = std::max(latest, progress.ready[static_cast<std::size_t>(rank)]);
        }
        return Seconds{latest};
    }

    const Steps& steps_;
    const Wiring& wiring_;
    Collectives& collectives_;
    Bundles bundles_;
    std::map<std::pair<int, Key>, std::vector<Leg>> legs_of_;  // by class
    std::map<std::pair<int, Key>, std::int64_t> messages_of_;
    std::map<std::tuple<int, int, std::int64_t>, int> bundle_of_;  // by class, axis and offset
    std::vector<ClassState> classes_;
    double now_ = 0;
    std::vector<Transit> waiting_, moving_;
    std::int64_t flows_ = 0;
    /// How long a collective lasts that all ranks begin and end together.
    std::map<Key, std::optional<double>> lasting_;
};

}  // namespace

Prediction simulate_folded(const Steps& steps, const Wiring& wiring, int iterations, std::int64_t followed_messages) {
    Collectives collectives{steps.schedule().mesh, wiring, followed_messages};
    Prediction prediction{.timeline = {}, .mode = Mode::folded, .flows = 0};
    Fold fold{steps, wiring, collectives};
    std::vector<std::vector<Event>> by_class = fold.run();
    Seconds length;
    for (std::vector<Event>& events : by_class) {
        std::ranges::stable_sort(events, {}, &Event::start);
        for (const Event& event : events) length = std::max(length, event.end);
    }
    for (int iteration = 0; iteration < iterations; ++iteration) {
        const Seconds origin = static_cast<double>(iteration) * length;
        for (const std::vector<Event>& events : by_class) {
            for (Event event : events) {
                event.iteration = iteration;
                event.start += origin;
                event.end += origin;
                prediction.timeline.events.push_back(std::move(event));
            }
        }
    }
    prediction.flows = fold.flows() * iterations;
    return prediction;
}

}  // namespace rehearse::sim
