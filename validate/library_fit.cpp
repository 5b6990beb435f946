// SPDX-License-Identifier: Apache-2.0
#include "validate/library_fit.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>

#include "core/collectives/library.hpp"
#include "core/error.hpp"
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

std::vector<double> beginning_with(double known) {
    std::vector<double> values = shares;
    values.insert(values.begin(), known);
    return values;
}

/// `elsewhere`: of a transport whose `through_cpu` and `exchange_share` are from sources that are none of the rows.
void transport_knobs(LibraryTransport& t, const LibraryTransport& elsewhere, std::vector<Knob>& knobs) {
    knobs.push_back({&t.through_cpu, beginning_with(elsewhere.through_cpu)});
    knobs.push_back({&t.share, shares});
    knobs.push_back({&t.exchange_share, beginning_with(elsewhere.exchange_share)});
    knobs.push_back({&t.rendezvous, gaps});
    knobs.push_back({&t.gap, gaps});
    knobs.push_back({&t.gap_tree_16kb, gaps});
    knobs.push_back({&t.inject, {t.inject, 0, 3, 6, 9, 12, 15}});
    knobs.push_back({&t.unhidden, steps_of(1, 0, -0.1)});
    knobs.push_back({&t.late_ll, steps_of(1, 0.5, -0.05)});
    knobs.push_back({&t.step, {1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 8, 10}});
}

/// Whose figures stand in for it: its own name where it is like no other.
std::string family(const LibraryTransport& transport) {
    return transport.like.empty() ? transport.name : transport.like;
}

using Libraries = std::vector<std::shared_ptr<CollectiveLibrary>>;

/// Copies of the libraries of these rows' machines, with one copy of their transports.
Libraries copies_of_libraries(const std::vector<LibraryRow>& rows,
                              const std::shared_ptr<std::vector<LibraryTransport>>& transports) {
    std::map<std::string, std::shared_ptr<CollectiveLibrary>> by_name;
    std::set<std::string> seen;
    for (const LibraryRow& row : rows) {
        if (!seen.insert(row.machine).second) continue;
        const auto library = models::load_machine(row.machine).collectives.library;
        if (transports->empty()) *transports = *library->transports;
        const auto copy = std::make_shared<CollectiveLibrary>(*library);
        copy->transports = transports;
        by_name.emplace(library->name, copy);
    }
    Libraries all;
    for (const auto& [name, library] : by_name) all.push_back(library);
    return all;
}

/// All rows, priced by libraries whose figures can be changed.
class Trial {
public:
    explicit Trial(const std::vector<LibraryRow>& rows)
        : transports_(std::make_shared<std::vector<LibraryTransport>>()),
          libraries_(copies_of_libraries(rows, transports_)),
          rows_(rows),
          prices_(rows, {libraries_.begin(), libraries_.end()}) {}

    Libraries& libraries() { return libraries_; }
    std::vector<LibraryTransport>& transports() { return *transports_; }
    LibraryAnswer answer(std::size_t row) const { return prices_.answer(rows_[row]); }

    const LibraryArchitecture& architecture(std::size_t row) const {
        return *prices_.times(rows_[row]).communicator().view.architecture;
    }
    /// One standard deviation of the logarithms.
    double deviation(const std::vector<std::size_t>& over) const {
        double sum = 0;
        for (const std::size_t row : over) {
            const double off = std::log(answer(row).predicted.time / rows_[row].time);
            sum += off * off;
        }
        return std::sqrt(sum / static_cast<double>(over.size()));
    }
    double error(const std::vector<std::size_t>& over) const {
        double sum = 0;
        for (const std::size_t row : over) sum += std::abs(std::log(answer(row).predicted.time / rows_[row].time));
        return sum;
    }

    void fit(const std::vector<Knob>& knobs, const std::vector<std::size_t>& over) {
        for (const Knob& knob : knobs) *knob.figure = knob.tried.front();
        if (!over.empty()) improve(knobs, over, 1e-6);
    }

    /// From what the figures are; a change must spare `worth` of the error.
    void improve(const std::vector<Knob>& knobs, const std::vector<std::size_t>& over, double worth) {
        double least = error(over);
        for (bool better = true; better;) {
            better = false;
            for (const Knob& knob : knobs) {
                double best = *knob.figure;
                for (const double value : knob.tried) {
                    *knob.figure = value;
                    const double now = error(over);
                    if (now < least * (1 - worth)) {
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
    std::shared_ptr<std::vector<LibraryTransport>> transports_;
    Libraries libraries_;
    const std::vector<LibraryRow>& rows_;
    LibraryPrices prices_;
};

}  // namespace

std::vector<std::optional<LibraryAnswer>> answer_left_out(const std::vector<LibraryRow>& asked,
                                                          const std::vector<LibraryRow>& beside,
                                                          const Progress& progress) {
    std::vector<std::optional<LibraryAnswer>> answers(asked.size());
    std::vector<LibraryRow> rows = asked;
    std::ranges::copy(beside, std::back_inserter(rows));
    std::set<std::string> machines;
    for (const LibraryRow& row : asked) machines.insert(row.machine);
    for (std::int64_t done = 0; const std::string& machine : machines) {
        if (!goes_on(progress, done++, std::ssize(machines))) break;
        Trial trial{rows};
        const auto others = [&](auto&& belongs) {
            std::vector<std::size_t> chosen;
            for (std::size_t i = 0; i < rows.size(); ++i) {
                if (rows[i].machine != machine && belongs(rows[i])) chosen.push_back(i);
            }
            return chosen;
        };
        // Inside a node first, where no transport has a part.
        std::vector<Knob> inside;
        for (const auto& library : trial.libraries()) {
            inside.push_back({&library->synchronous, {0, 10, 15, 20, 25, 30}});
            inside.push_back({&library->switch_step, {0, 0.2, 0.4, 0.6, 0.8}});
            for (LibraryArchitecture& each : library->architectures) {
                inside.push_back({&each.ring_reached, reached});
                inside.push_back({&each.nvls_reached, reached});
            }
        }
        trial.fit(inside, others([](const LibraryRow& row) { return row.nodes == 1; }));
        const LibraryTransport elsewhere = trial.transports().front();  // InfiniBand's
        std::vector<LibraryTransport*> measured;
        for (LibraryTransport& each : trial.transports()) {
            const auto over =
                others([&](const LibraryRow& row) { return row.nodes > 1 && row.transport == each.name; });
            std::vector<Knob> knobs;
            transport_knobs(each, elsewhere, knobs);
            trial.fit(knobs, over);
            if (!over.empty()) measured.push_back(&each);
        }
        for (LibraryTransport& each : trial.transports()) {
            if (std::ranges::find(measured, &each) != measured.end()) continue;
            auto kin = std::ranges::find(measured, each.like, &LibraryTransport::name);
            if (kin == measured.end())
                kin = std::ranges::find_if(
                    measured, [&](const LibraryTransport* other) { return family(*other) == family(each); });
            if (kin == measured.end()) continue;
            for (const TransportFigure& figure : transport_figures) each.*figure.figure = (**kin).*figure.figure;
            each.late_ll = (*kin)->late_ll;
        }
        for (std::size_t i = 0; i < asked.size(); ++i) {
            if (rows[i].machine == machine) answers[i] = trial.answer(i);
        }
    }
    return answers;
}

namespace {

/// Those in which they differ, and the error that the rows leave, where rows are between nodes or inside one.
std::vector<std::pair<std::string, double>> changed(const LibraryTransport& transport, const LibraryTransport& before,
                                                    const LibraryArchitecture& architecture,
                                                    const LibraryArchitecture& inside) {
    std::vector<std::pair<std::string, double>> figures;
    for (const TransportFigure& each : transport_figures) {
        if (transport.*each.figure != before.*each.figure) figures.emplace_back(each.key, transport.*each.figure);
    }
    for (const ArchitectureFigure& each : architecture_figures) {
        if (architecture.*each.figure != inside.*each.figure) figures.emplace_back(each.key, architecture.*each.figure);
    }
    return figures;
}

void check_one_table(const std::vector<LibraryRow>& rows) {
    if (rows.empty()) throw InputError("no measured rows to take figures from");
    for (const LibraryRow& row : rows) {
        if (row.machine != rows.front().machine || row.transport != rows.front().transport)
            throw InputError("figures are of one machine and one transport");
    }
}

}  // namespace

FittedFigures fit_figures(const std::vector<LibraryRow>& rows) {
    check_one_table(rows);
    Trial trial{rows};
    CollectiveLibrary& library = *trial.libraries().front();
    const auto named = std::ranges::find(trial.transports(), rows.front().transport, &LibraryTransport::name);
    LibraryTransport& transport = named == trial.transports().end() ? trial.transports().front() : *named;
    LibraryArchitecture& architecture =
        *std::ranges::find(library.architectures, trial.architecture(0).name, &LibraryArchitecture::name);
    const LibraryTransport before = transport;
    const LibraryArchitecture inside = architecture;
    std::vector<Knob> knobs;
    const bool several = std::ranges::any_of(rows, [](const LibraryRow& row) { return row.nodes > 1; });
    if (several) transport_knobs(transport, before, knobs);
    // Links inside after wires: what wires carry could be taken for what a ring reaches inside, not the other way
    // round.
    knobs.insert(knobs.end(), {{&architecture.ring_reached, reached},
                               {&architecture.nvls_reached, reached},
                               {&architecture.direct_reached, reached}});
    std::erase_if(knobs, [&](const Knob& knob) { return knob.figure == &transport.late_ll; });  // a version's
    for (Knob& knob : knobs) knob.tried.push_back(*knob.figure);  // so that another's turn can bring it back
    std::vector<std::size_t> all(rows.size());
    std::iota(all.begin(), all.end(), 0);
    FittedFigures fitted{.figures = {}, .error_before = trial.deviation(all)};
    trial.improve(knobs, all, 0.02);
    fitted.error_after = std::clamp(trial.deviation(all), 0.01, 1.0);  // a band is never a point
    (several ? transport.error : architecture.error) = fitted.error_after;
    fitted.figures = changed(transport, before, architecture, inside);
    return fitted;
}

}  // namespace rehearse::validate
