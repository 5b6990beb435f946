// SPDX-License-Identifier: Apache-2.0
#include "search/job_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse::search {

namespace {

// Shortest texts of numbers that read back as the same ones.
class Fields {
public:
    explicit Fields(std::string_view line) : fields_(split(line, '\t')) {}
    std::string_view text() {
        require(next_ < fields_.size(), "a field of a rank's line");
        return fields_[next_++];
    }
    double number() { return parse_number(text(), "a rank's line"); }
    std::int64_t whole() { return parse_int(text(), "a rank's line"); }

private:
    std::vector<std::string_view> fields_;
    std::size_t next_ = 0;
};

std::string line_of(const Candidate& each) {
    const Choices& c = each.choices;
    return fmt::format("{}\t{}\t{}\t{:d}\t{}\t{}\t{:d}\t{}\t{}\t{}\t{}\t{:d}\t{:d}\t{}\t{}\t{}\t{}\n", c.shape.data,
                       c.shape.tensor, c.shape.pipe, c.shape.data_outside, c.shape.expert, c.shape.context, c.ring,
                       c.micro_batch, c.micro_batches, c.chunks, c.zero, c.sequence, c.overlap,
                       static_cast<int>(c.recompute), c.all_reduce, each.estimate.step_s, each.estimate.memory_bytes);
}

Candidate candidate_of(std::string_view line) {
    Fields fields(line);
    Candidate each;
    Choices& c = each.choices;
    c.shape = {fields.whole(), fields.whole(), fields.whole(), fields.whole() != 0, fields.whole(), fields.whole()};
    c.ring = fields.whole() != 0;
    c.micro_batch = fields.whole();
    c.micro_batches = fields.whole();
    c.chunks = static_cast<int>(fields.whole());
    c.zero = static_cast<int>(fields.whole());
    c.sequence = fields.whole() != 0;
    c.overlap = fields.whole() != 0;
    c.recompute = static_cast<schedule::Recompute>(fields.whole());
    c.all_reduce = fields.text();
    each.estimate.step_s = fields.number();
    each.estimate.memory_bytes = fields.number();
    return each;
}

/// Lines of all ranks.
template <typename Read>
void read_all(const std::vector<std::string>& all, const Read& read) {
    for (const std::string& text : all) {
        for (const std::string_view line : split(text, '\n')) {
            if (!line.empty()) read(line);
        }
    }
}

}  // namespace

void join_candidates(std::vector<Candidate>& candidates, const Exchange& exchange) {
    std::string own;
    for (const Candidate& each : candidates) own += line_of(each);
    candidates.clear();
    read_all(exchange(own), [&](std::string_view line) { candidates.push_back(candidate_of(line)); });
}

void join_counts(Result& result, const Exchange& exchange) {
    Counts& counts = result.counts;
    const std::array summed{&counts.screened,     &counts.too_large, &counts.beyond,
                            &counts.shapes_bound, &counts.simulated, &counts.known};
    std::string own = fmt::format("{}\t{}", std::exchange(result.least_memory, {}).value,
                                  std::exchange(result.least_beyond, {}).value);
    for (std::int64_t* count : summed) own += fmt::format("\t{}", std::exchange(*count, 0));
    const auto lower = [](auto& least, auto other) {  // 0: there is none
        const bool first = least.value <= 0;
        if (other.value > 0 && (first || other < least)) least = other;
    };
    read_all(exchange(own), [&](std::string_view line) {
        Fields fields(line);
        lower(result.least_memory, Bytes{fields.number()});
        lower(result.least_beyond, Seconds{fields.number()});
        for (std::int64_t* count : summed) *count += fields.whole();
    });
}

std::vector<std::pair<std::size_t, Simulated>> join_results(const std::vector<std::pair<std::size_t, Simulated>>& own,
                                                            const Exchange& exchange) {
    std::string text;
    for (const auto& [i, each] : own) {
        std::string refusal = each.refusal;
        std::ranges::replace_if(
            refusal, [](char c) { return c == '\n' || c == '\t'; }, ' ');
        text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", i, each.step.value, each.low.value, each.high.value,
                            each.memory.value, refusal);
    }
    std::vector<std::pair<std::size_t, Simulated>> all;
    read_all(exchange(text), [&](std::string_view line) {
        Fields fields(line);
        const auto i = static_cast<std::size_t>(fields.whole());
        Simulated each;
        each.step = Seconds{fields.number()};
        each.low = Seconds{fields.number()};
        each.high = Seconds{fields.number()};
        each.memory = Bytes{fields.number()};
        each.refusal = fields.text();
        all.emplace_back(i, std::move(each));
    });
    std::ranges::sort(all, {}, [](const auto& each) { return each.first; });
    return all;
}

}  // namespace rehearse::search
