// SPDX-License-Identifier: Apache-2.0
#include "validate/library_fit.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <set>
#include <string>

#include "core/collectives/library.hpp"
#include "models/models.hpp"

namespace rehearse::validate {

namespace {

/// A figure and the values that are tried for it; the first one stands for knowing nothing.
struct Knob {
    double* figure;
    std::vector<double> tried;
};

std::vector<double> steps_of(double first, double last, double step) {
    std::vector<double> values;
    for (int i = 0; i <= static_cast<int>(std::round((last - first) / step)); ++i) values.push_back(first + i * step);
    return values;
}

const std::vector<double> shares = steps_of(1, 0.4, -0.02);
const std::vector<double> reached = {1,    0.75, 0.78, 0.81, 0.84, 0.87, 0.9, 0.92,
                                     0.94, 0.96, 0.98, 1.02, 1.04, 1.08, 1.12};
const std::vector<double> gaps = {0, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8};

/// `through_cpu`: what a way through the CPU leaves of a rate by a source that is none of the rows.
void transport_knobs(LibraryTransport& t, double through_cpu, std::vector<Knob>& knobs) {
    std::vector<double> through = shares;
    through.insert(through.begin(), through_cpu);
    knobs.push_back({&t.through_cpu, through});
    knobs.push_back({&t.share, shares});
    knobs.push_back({&t.exchange_share, shares});
    knobs.push_back({&t.rendezvous, gaps});
    knobs.push_back({&t.gap_ll, gaps});
    knobs.push_back({&t.gap_16kb, gaps});
    knobs.push_back({&t.gap_tree_16kb, gaps});
    knobs.push_back({&t.inject, {0, 3, 6, 9, 12, 15}});
    knobs.push_back({&t.unhidden, steps_of(1, 0, -0.1)});
    knobs.push_back({&t.late_ll, steps_of(1, 0.5, -0.05)});
}

/// Whose figures stand in for it: its own name where it is like no other.
std::string family(const LibraryTransport& transport) {
    return transport.like.empty() ? transport.name : transport.like;
}

/// All rows, priced by one library whose figures can be changed.
class Trial {
public:
    Trial(const std::vector<LibraryRow>& rows, std::shared_ptr<const CollectiveLibrary> base)
        : library_(std::make_shared<CollectiveLibrary>(*base)), rows_(rows), prices_(rows, library_) {}

    CollectiveLibrary& library() { return *library_; }
    LibraryAnswer answer(std::size_t row) const { return prices_.answer(rows_[row]); }

    double error(const std::vector<std::size_t>& over) const {
        double sum = 0;
        for (const std::size_t row : over) sum += std::abs(std::log(answer(row).predicted.time / rows_[row].time));
        return sum;
    }

    void fit(const std::vector<Knob>& knobs, const std::vector<std::size_t>& over) {
        for (const Knob& knob : knobs) *knob.figure = knob.tried.front();
        if (over.empty()) return;
        double least = error(over);
        for (bool better = true; better;) {
            better = false;
            for (const Knob& knob : knobs) {
                double best = *knob.figure;
                for (const double value : knob.tried) {
                    *knob.figure = value;
                    const double now = error(over);
                    if (now < least * (1 - 1e-6)) {
                        least = now;
                        best = value;
                        better = true;
                    }
                }
                *knob.figure = best;
            }
        }
    }

private:
    std::shared_ptr<CollectiveLibrary> library_;
    const std::vector<LibraryRow>& rows_;
    LibraryPrices prices_;
};

}  // namespace

std::vector<LibraryAnswer> answer_left_out(const std::vector<LibraryRow>& asked,
                                           const std::vector<LibraryRow>& beside) {
    std::vector<LibraryAnswer> answers(asked.size());
    std::vector<LibraryRow> rows = asked;
    std::ranges::copy(beside, std::back_inserter(rows));
    std::set<std::string> machines;
    for (const LibraryRow& row : asked) machines.insert(row.machine);
    for (const std::string& machine : machines) {
        Trial trial{rows, models::load_machine(machine).collectives.library};
        CollectiveLibrary& library = trial.library();
        const auto others = [&](auto&& belongs) {
            std::vector<std::size_t> chosen;
            for (std::size_t i = 0; i < rows.size(); ++i) {
                if (rows[i].machine != machine && belongs(rows[i])) chosen.push_back(i);
            }
            return chosen;
        };
        // Inside a node first, where no transport has a part.
        std::vector<Knob> inside{{&library.call, {0, 1, 2, 3, 5, 8}},
                                 {&library.synchronous, {0, 10, 15, 20, 25, 30}},
                                 {&library.switch_step, {0, 0.2, 0.4, 0.6, 0.8}}};
        for (LibraryArchitecture& each : library.architectures) {
            inside.push_back({&each.ring_reached, reached});
            inside.push_back({&each.nvls_reached, reached});
        }
        trial.fit(inside, others([](const LibraryRow& row) { return row.nodes == 1; }));
        const double through_cpu = library.transports.front().through_cpu;  // InfiniBand's is from elsewhere
        std::vector<LibraryTransport*> measured;
        for (LibraryTransport& each : library.transports) {
            const auto over =
                others([&](const LibraryRow& row) { return row.nodes > 1 && row.transport == each.name; });
            std::vector<Knob> knobs;
            transport_knobs(each, through_cpu, knobs);
            trial.fit(knobs, over);
            if (!over.empty()) measured.push_back(&each);
        }
        for (LibraryTransport& each : library.transports) {
            if (std::ranges::find(measured, &each) != measured.end()) continue;
            const auto kin = std::ranges::find_if(
                measured, [&](const LibraryTransport* other) { return family(*other) == family(each); });
            if (kin == measured.end()) continue;
            const std::string name = each.name;
            each = **kin;
            each.name = name;
        }
        for (std::size_t i = 0; i < asked.size(); ++i) {
            if (rows[i].machine == machine) answers[i] = trial.answer(i);
        }
    }
    return answers;
}

}  // namespace rehearse::validate
