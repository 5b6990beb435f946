// SPDX-License-Identifier: Apache-2.0
// Reads "data=64:allreduce=hierarchical(ring,halving):bucket=25MB": axes between commas, an axis's options after
// colons.
#include "schedule/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "schedule/orders.hpp"

namespace rehearse::schedule {

namespace {

Bytes read_positive_size(std::string_view value) {
    const auto bytes = parse_quantity<Bytes>(value);
    if (bytes <= Bytes{0}) throw InputError(fmt::format("{} must be more than 0; 1B makes one bucket a layer", value));
    return bytes;
}

void add_axis(Plan& plan, const char* name, std::string_view size) {
    const std::int64_t ranks = size.empty() ? 0 : parse_int(size, name);
    if (!size.empty() && ranks < 1) throw InputError(fmt::format("{}={}: an axis has at least one rank", name, size));
    plan.mesh.axes.push_back({name, ranks});
}
void read_data(Plan& plan, std::string_view size) { add_axis(plan, "data", size); }
void read_tensor(Plan& plan, std::string_view size) { add_axis(plan, "tensor", size); }
void read_pipe(Plan& plan, std::string_view size) { add_axis(plan, "pipe", size); }

/// "2x2": an axis of the mesh for each dimension of an image.
void read_spatial(Plan& plan, std::string_view sizes) {
    std::size_t count = 0;
    for (std::size_t begin = 0; begin <= sizes.size(); ++count) {
        const std::size_t end = std::min(sizes.find('x', begin), sizes.size());
        if (end == begin || count == spatial_axes.size()) {
            throw InputError(
                fmt::format("spatial={}: write the ranks along each dimension, like spatial=2, 2x2 or "
                            "2x2x2",
                            sizes));
        }
        add_axis(plan, spatial_axes[count], sizes.substr(begin, end - begin));
        begin = end + 1;
    }
}

// Who executes or predicts the schedule settles `auto`, bucket by bucket; here it is as if nothing had been said.
void read_all_reduce(Plan& plan, std::string_view value) {
    plan.all_reduce = value == "auto" ? Algorithm{.name = "auto"} : parse_algorithm(value);
}
void read_tensor_sum(Plan& plan, std::string_view value) {
    plan.tensor_sum = parse_algorithm(value);
    if (!is_sum(*plan.tensor_sum))
        throw InputError("adasum combines gradients: of data, not of tensor, whose layers sum");
}
void read_bucket(Plan& plan, std::string_view value) { plan.bucket = read_positive_size(value); }
void read_first_bucket(Plan& plan, std::string_view value) { plan.first_bucket = read_positive_size(value); }

bool read_switch(std::string_view name, std::string_view value) {
    if (value != "on" && value != "off") throw InputError(fmt::format("{}={}: write {}=on or off", name, value, name));
    return value == "on";
}
void read_overlap(Plan& plan, std::string_view value) { plan.overlap = read_switch("overlap", value); }
void read_sequence(Plan& plan, std::string_view value) { plan.sequence = read_switch("sequence", value); }
void read_recompute(Plan& plan, std::string_view value) {
    constexpr std::array<std::string_view, 4> names{"off", "on", "blocks", "attention"};  // as in Recompute
    const auto found = std::ranges::find(names, value);
    if (found == names.end()) {
        throw InputError(fmt::format("recompute={}{}: write {}", value, did_you_mean(value, names), join(names)));
    }
    plan.recompute = static_cast<Recompute>(found - names.begin());
}
void read_cut(Plan& plan, std::string_view value) {
    if (value != "prices" && value != "blocks") throw InputError(fmt::format("cut={}: write prices or blocks", value));
    plan.cut_by_blocks = value == "blocks";
}

int read_count(std::string_view name, std::string_view value, int most) {
    const std::int64_t count = parse_int(value, name);
    if (count < 1 || count > most) {
        throw InputError(fmt::format("{}={}: a whole number from 1 to {}", name, value, most));
    }
    return static_cast<int>(count);
}
constexpr int most_micro_batches = 1'000'000;
void read_micro_batches(Plan& plan, std::string_view value) {
    plan.micro_batches = read_count("microbatches", value, most_micro_batches);
}
void read_micro_batch(Plan& plan, std::string_view value) {
    plan.micro_batch = read_count("microbatch", value, most_micro_batches);
}
void read_chunks(Plan& plan, std::string_view value) { plan.chunks = read_count("chunks", value, 1000); }

void read_zero(Plan& plan, std::string_view value) {
    if (value.size() != 1 || value < "0" || value > "3") {
        throw InputError(fmt::format("zero={}: write 0, 1, 2 or 3", value));
    }
    plan.zero = value.front() - '0';
}

void read_lag(Plan& plan, std::string_view value) {
    if (value != "0" && value != "1") throw InputError(fmt::format("lag={}: write 0 or 1", value));
    plan.lag = value.front() - '0';
}

void read_compress(Plan& plan, std::string_view value) {
    if (value != "fp16" && value != "bf16") {
        throw InputError(fmt::format("compress={}: write fp16 or bf16, what gradients are rounded to", value));
    }
    plan.compress = value == "fp16" ? DataType::f16 : DataType::bf16;
}

void read_dense(Plan& plan, std::string_view value) {
    if (value != "shared" && value != "copied") {
        throw InputError(fmt::format("dense={}: write dense=shared or copied", value));
    }
    plan.share_dense = value == "shared";
}

void read_pipeline(Plan& plan, std::string_view value) {
    std::vector<std::string_view> names;
    for (const PipelineStrategy& strategy : pipeline_strategies()) {
        names.push_back(strategy.name);
        if (strategy.name == value) plan.pipeline = strategy.name;
    }
    if (plan.pipeline == value) return;
    throw InputError(
        fmt::format("unknown schedule '{}'{}; there are {}", value, did_you_mean(value, names), join(names)));
}

struct Word {
    PlanWord word;
    void (*read)(Plan& plan, std::string_view value);
};

constexpr std::string_view recompute_text =
    "forward again before backward, to hold fewer activations: all of a stage at once, block after block, or attention "
    "alone; default off";

constexpr std::array table{
    Word{{"data", "N", "N copies of the network, each on its share of the batch; without =N: as many as devices", {}},
         read_data},
    Word{{"allreduce", "ring|doubling|halving|tree|hierarchical(INSIDE,ACROSS)|doubletree|torus[(RxC)]|adasum|auto",
          "how gradients are summed (adasum: combined, a bucket a vector); default hierarchical(ring,halving) across "
          "full nodes, else ring; auto: what the "
          "machine's prices say is fastest",
          "data"},
         read_all_reduce},
    Word{{"bucket", "SIZE", "gradients are sent in buckets of at least SIZE; default 25MB", "data"}, read_bucket},
    Word{{"first", "SIZE", "the first bucket is sent at SIZE already, when that is less; default 1MB", "data"},
         read_first_bucket},
    Word{{"overlap", "on|off", "off: nothing is sent before the whole backward pass has ended; default on", "data"},
         read_overlap},
    Word{{"zero", "0|1|2|3",
          "ZeRO: 1, each rank updates its share of the weights; 2, gets only its share of the gradients; "
          "3, keeps only its share of the weights and gathers them for each use",
          "data"},
         read_zero},
    Word{{"lag", "0|1", "1: gradients are summed during the next step, and applied at its end; default 0", "data"},
         read_lag},
    Word{{"compress", "fp16|bf16", "gradients are rounded for the wire, and summed in 16 bits; default: as they are",
          "data"},
         read_compress},
    Word{{"dense", "copied|shared",
          "shared: the ranks share each dense layer at the end, for the samples of all (one weird trick); default "
          "copied",
          "data"},
         read_dense},
    Word{{"microbatches", "N", "the batch in N parts, gradients added up; default 1", "data"}, read_micro_batches},
    Word{{"microbatch", "N", "the batch in parts of N samples, instead of microbatches", "data"}, read_micro_batch},
    Word{{"tensor", "N", "N ranks share each large layer (Megatron-LM)", {}}, read_tensor},
    Word{{"allreduce", "ring|doubling|halving|tree|hierarchical(INSIDE,ACROSS)",
          "of the sums inside layers; default ring", "tensor"},
         read_tensor_sum},
    Word{{"sequence", "on|off", "between the layers that are cut, each rank has its rows of the sequence; default off",
          "tensor"},
         read_sequence},
    Word{{"spatial",
          "N|NxN|NxNxN",
          "ranks share each image: N along the first dimension (height, of volumes depth), or a grid of them",
          {}},
         read_spatial},
    Word{{"pipe", "N", "N stages of consecutive layers, balanced by their prices", {}}, read_pipe},
    Word{{"schedule", "1f1b|gpipe|interleaved|pipedream",
          "in which order a stage takes the micro-batches; default 1f1b", "pipe"},
         read_pipeline},
    Word{{"microbatches", "N", "the batch in N parts; default as many as stages", "pipe"}, read_micro_batches},
    Word{{"microbatch", "N", "the batch in parts of N samples, instead of microbatches", "pipe"}, read_micro_batch},
    Word{{"chunks", "N", "parts of the network a stage holds, of schedule=interleaved; default 2", "pipe"},
         read_chunks},
    Word{{"recompute", "on|off|blocks|attention", recompute_text, "data"}, read_recompute},
    Word{{"recompute", "on|off|blocks|attention", recompute_text, "tensor"}, read_recompute},
    Word{{"recompute", "on|off|blocks|attention", recompute_text, "pipe"}, read_recompute},
    Word{{"cut", "prices|blocks",
          "where stages end: the costliest costs least; equally many blocks each; default prices", "pipe"},
         read_cut},
};

constexpr std::array words = [] {
    std::array<PlanWord, table.size()> result{};
    for (std::size_t i = 0; i < table.size(); ++i) result[i] = table[i].word;
    return result;
}();

// Promised by the plan language, not yet written.
constexpr std::array<std::string_view, 4> later_axes{"server", "groups", "replica", "expert"};

bool contains(std::span<const std::string_view> names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

/// "data[=N], tensor[=N]", or "allreduce=ring|..., bucket=SIZE, ..." for the options of an axis.
std::string what_works(std::string_view axis) {
    std::string text;
    for (const PlanWord& word : words) {
        if (word.axis != axis) continue;
        if (!text.empty()) text += ", ";
        text += axis.empty() ? fmt::format("{}[={}]", word.name, word.values)
                             : fmt::format("{}={}", word.name, word.values);
    }
    return text;
}

/// The row of an axis (`axis` empty) or of an option of `axis`; InputError says what there is instead.
const Word& find_word(std::string_view name, std::string_view axis) {
    std::vector<std::string_view> names;
    for (const Word& row : table) {
        if (row.word.axis != axis) continue;
        if (row.word.name == name) return row;
        names.push_back(row.word.name);
    }
    const std::string kind = axis.empty() ? "axis" : fmt::format("option of {}", axis);
    if (name.empty()) throw InputError(fmt::format("an {} is missing; what works: {}", kind, what_works(axis)));
    if (axis.empty() && contains(later_axes, name)) {
        throw InputError(
            fmt::format("{} '{}' is not yet in this version; what works: {}", kind, name, what_works(axis)));
    }
    if (axis.empty()) names.insert(names.end(), later_axes.begin(), later_axes.end());
    throw InputError(
        fmt::format("unknown {} '{}'{}; what works: {}", kind, name, did_you_mean(name, names), what_works(axis)));
}

/// Parts between separators that are not inside parentheses: hierarchical(ring,halving) stays whole.
std::vector<std::string_view> split_outside(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    std::size_t begin = 0;
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '(') ++depth;
        if (text[i] == ')' && --depth < 0) throw InputError("')' without '('");
        if (text[i] != separator || depth > 0) continue;
        parts.push_back(text.substr(begin, i - begin));
        begin = i + 1;
    }
    if (depth > 0) throw InputError("'(' without ')'");
    parts.push_back(text.substr(begin));
    return parts;
}

struct Assignment {
    std::string_view name, value;
    bool has_value = false;
};

Assignment read_assignment(std::string_view text) {
    const std::size_t at = text.find('=');
    if (at == std::string_view::npos) return {text, {}, false};
    return {text.substr(0, at), text.substr(at + 1), true};
}

void read_axis(std::string_view text, Plan& plan) {
    const int micro_batches = plan.micro_batches;
    const std::vector<std::string_view> parts = split_outside(text, ':');
    const Assignment axis = read_assignment(parts.front());
    const Word& row = find_word(axis.name, {});
    if (axis_index(plan.mesh, axis.name) >= 0) throw InputError(fmt::format("axis '{}' is given twice", axis.name));
    if (axis.has_value && axis.value.empty()) {
        throw InputError(fmt::format("'{}=' has no size; write {}={} or {} alone", axis.name, axis.name,
                                     row.word.values, axis.name));
    }
    row.read(plan, axis.value);
    std::set<std::string_view> seen;
    for (const std::string_view part : std::span{parts}.subspan(1)) {
        const Assignment option = read_assignment(part);
        const Word& option_row = find_word(option.name, axis.name);
        if (!seen.insert(option.name).second) throw InputError(fmt::format("'{}' is given twice", option.name));
        if (option.value.empty()) {
            throw InputError(
                fmt::format("'{}' has no value; write {}={}", option.name, option.name, option_row.word.values));
        }
        option_row.read(plan, option.value);
        if (option.name == "microbatches" && micro_batches != 0) {
            throw InputError("'microbatches' is given twice, with data and with pipe");
        }
    }
}

/// What no option can see alone; fills in what was left open.
void complete(Plan& plan) {
    const bool pipeline = axis_index(plan.mesh, "pipe") >= 0;
    const bool interleaved = plan.pipeline == "interleaved";
    if (plan.chunks > 1 && !interleaved) {
        throw InputError(fmt::format("chunks={} needs schedule=interleaved", plan.chunks));
    }
    if (interleaved && plan.chunks == 1) throw InputError("schedule=interleaved needs at least 2 chunks");
    if (plan.chunks == 0) plan.chunks = interleaved ? 2 : 1;
    if (plan.lag > 0 && !plan.overlap) {
        throw InputError("lag=1 sums gradients beside the whole next step: it has no overlap=off");
    }
    if (plan.lag > 0 && plan.zero == 3) {
        throw InputError(
            "lag=1 with zero=3 is not supported: zero=3 sums gradients after each micro-batch; write zero=2");
    }
    if (plan.pipeline == "pipedream" && plan.lag > 0) {
        throw InputError("schedule=pipedream updates after every micro-batch, so lag=1 cannot be; leave it out");
    }
    if (plan.share_dense && axis_index(plan.mesh, "tensor") >= 0) {
        throw InputError(
            "dense=shared cuts the dense layers along data, so tensor cannot cut them, too; leave out one");
    }
    if (axis_index(plan.mesh, spatial_axes[0]) >= 0 && (plan.share_dense || axis_index(plan.mesh, "tensor") >= 0)) {
        throw InputError(
            "spatial cuts images and leaves the weights whole: it does not go with tensor or dense=shared "
            "in this version; leave out one");
    }
    if (plan.pipeline == "pipedream" && plan.zero > 0) {
        throw InputError(
            fmt::format("schedule=pipedream keeps several versions of the weights whole, so zero={} cannot "
                        "be; leave it out or choose schedule=1f1b",
                        plan.zero));
    }
    if (plan.all_reduce && !is_sum(*plan.all_reduce) &&
        (plan.mesh.axes.size() > 1 || plan.zero > 0 || plan.lag > 0 || plan.compress || plan.share_dense)) {
        throw InputError(
            "allreduce=adasum combines whole gradients in f32: it goes with the data axis alone, without zero, lag, "
            "compress or dense=shared");
    }
    if (plan.zero == 3 && !plan.overlap) {
        throw InputError("zero=3 sums gradients as soon as they are made, so overlap=off cannot be; leave it out");
    }
    if (plan.micro_batches > 0 && plan.micro_batch > 0) {
        throw InputError("microbatches says how many parts the batch is in, microbatch how large they are: give one");
    }
    if (plan.micro_batches == 0 && plan.micro_batch == 0 && !pipeline) plan.micro_batches = 1;
}

}  // namespace

std::span<const PlanWord> plan_words() { return words; }

Plan parse_plan(std::string_view text) {
    Plan plan;
    plan.text = text;
    try {
        if (text.empty()) throw InputError(fmt::format("the plan is empty; what works: {}", what_works({})));
        if (text.ends_with(".toml")) throw InputError("a plan in a file is not yet in this version; write it as text");
        if (std::ranges::any_of(text, [](unsigned char c) { return std::isspace(c) != 0; })) {
            throw InputError("a plan has no spaces; write it like data=8:bucket=25MB");
        }
        for (const std::string_view axis : split_outside(text, ',')) read_axis(axis, plan);
        complete(plan);
    } catch (const InputError& error) {
        throw InputError(fmt::format("--plan '{}': {}", text, error.what()));
    }
    return plan;
}

}  // namespace rehearse::schedule
