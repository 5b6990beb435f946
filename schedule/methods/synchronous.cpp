// SPDX-License-Identifier: Apache-2.0
// What ranks along data do unless another method says otherwise: they sum their gradients, all in step; ZeRO
// (Rajbhandari et al. 2020) shares out the weights, the gradients and the optimizer's numbers. The steps are those of
// BucketSteps, and of gathers.hpp.
#include <fmt/format.h>

#include <array>

#include "core/collectives/library.hpp"
#include "core/error.hpp"
#include "core/methods/synchronous.hpp"
#include "core/precision.hpp"
#include "core/text.hpp"
#include "models/mpi_libraries.hpp"
#include "schedule/axes/stages.hpp"
#include "schedule/methods/method.hpp"
#include "schedule/own_library.hpp"

namespace rehearse::schedule {

namespace {

Bytes read_positive_size(std::string_view value) {
    const auto bytes = parse_quantity<Bytes>(value);
    if (bytes <= Bytes{0}) throw InputError(fmt::format("{} must be more than 0; 1B makes one bucket a layer", value));
    return bytes;
}

// Who executes or predicts the schedule settles `auto`, bucket by bucket, and make_schedule `own` and an MPI library's
// choice; here it is as if nothing had been said.
void read_all_reduce(Plan& plan, std::string_view value) {
    if (value == "auto" || value == own_library || models::is_mpi_library(value)) {
        if (models::is_mpi_library(value)) models::mpi_library(value);  // a version that is known
        plan.all_reduce = Algorithm{.name = std::string{value}};
        return;
    }
    plan.all_reduce = parse_algorithm(value);
}
// algo and proto say what NCCL must take: allreduce=nccl:algo=tree:proto=simple is allreduce=nccl(tree,simple).
void read_nccl(Plan& plan, std::string_view word, std::string_view value, bool algorithm) {
    if (!plan.all_reduce || !of_library(*plan.all_reduce))
        throw InputError(fmt::format("{}={}: it is of allreduce=nccl or rccl, which stands before it", word, value));
    const auto or_any = [](const std::string& said) { return said.empty() ? std::string{"any"} : said; };
    const std::string other = or_any(algorithm ? plan.all_reduce->across : plan.all_reduce->inside);
    const std::string& name = plan.all_reduce->name;
    plan.all_reduce = parse_algorithm(algorithm ? fmt::format("{}({},{})", name, value, other)
                                                : fmt::format("{}({},{})", name, other, value));
}
void read_nccl_algorithm(Plan& plan, std::string_view value) { read_nccl(plan, "algo", value, true); }
void read_nccl_protocol(Plan& plan, std::string_view value) { read_nccl(plan, "proto", value, false); }
void read_bucket(Plan& plan, std::string_view value) { plan.bucket = read_positive_size(value); }
void read_first_bucket(Plan& plan, std::string_view value) { plan.first_bucket = read_positive_size(value); }

void read_overlap(Plan& plan, std::string_view value) { plan.overlap = read_switch("overlap", value); }

void read_zero(Plan& plan, std::string_view value) {
    if (value.size() != 1 || value < "0" || value > "3") {
        throw InputError(fmt::format("zero={}: write 0, 1, 2 or 3", value));
    }
    plan.zero = value.front() - '0';
}

void read_control(Plan& plan, std::string_view value) {
    if (value == "none" || value == "star") {
        plan.methods.edit<Synchronous>().control = value == "star" ? 1 : 0;
        return;
    }
    if (!value.starts_with("tree(") || !value.ends_with(')')) {
        throw InputError(
            fmt::format("control={}: write none, star, or tree(R) with the children of a rank, as tree(4)", value));
    }
    value.remove_prefix(std::string_view{"tree("}.size());
    value.remove_suffix(1);
    plan.methods.edit<Synchronous>().control = read_count("control: tree", value, 1000);
    if (plan.methods.get<Synchronous>().control < 2)
        throw InputError("control=tree(1): a rank of a tree has 2 children or more");
}

void read_variables(Plan& plan, std::string_view value) {
    plan.methods.edit<Synchronous>().whole_variables = read_choice("variables", value, "cut", "whole");
}

constexpr std::array words{
    Word{
        {"allreduce",
         "ring|doubling|halving|tree|hierarchical(INSIDE,ACROSS)|doubletree|rings|direct|torus[(RxC)]|adasum|nccl|"
         "rccl|own|LIBRARY|auto",
         "how gradients are summed (adasum: combined, a bucket a vector); default direct among three or more "
         "in switches that sum, hierarchical(ring,halving) across full nodes, with ring for halving where their number "
         "is no power of two and that takes less, else ring; auto: what the machine's prices say is fastest; "
         "nccl, rccl: what NCCL or RCCL chooses, priced as it; own: the one that the machine's file names, ring where "
         "it names none of this network or nodes have unlike numbers of ranks; LIBRARY: what openmpi, mpich or "
         "cray-mpich, or such a version as openmpi(4.0), chooses for each bucket",
         "data"},
        read_all_reduce},
    Word{{"algo", "ring|tree|nvls|nvlstree|collnet", "what allreduce=nccl must take; default its own choice", "data"},
         read_nccl_algorithm},
    Word{{"proto", "ll|ll128|simple", "likewise", "data"}, read_nccl_protocol},
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
    Word{{"control", "none|star|tree(R)",
          "how ranks agree that all have a gradient: star, each tells rank 0 (Horovod); tree(R), along a tree; default "
          "none. Predicted only",
          "data"},
         read_control},
    Word{
        {"variables", "cut|whole",
         "with zero=2, whole: each variable on one rank, as on parameter servers, so that the largest decides; default "
         "cut. Predicted only",
         "data"},
        read_variables},
};

constexpr std::array conflicts_of_zero3{
    Conflict{"overlap=off", When::never, "it sums gradients as soon as they are made"},
};
constexpr std::string_view whole_gradients = "it combines whole gradients of one network, in f32";
constexpr std::string_view gathered_instead = "gradients are gathered in few bits and added, nothing is combined";
constexpr std::array conflicts_of_adasum{
    Conflict{"compress=fp16", When::never, whole_gradients},
    Conflict{"16-bit gradients", When::never, whole_gradients, {}, "choose --precision fp32"},
    Conflict{"compress=1bit", When::never, gathered_instead},
    Conflict{"compress=top", When::never, gathered_instead},
    Conflict{"local", When::never, "no gradients are brought together: models are, to their mean"},
    Conflict{"server", When::never, "ranks bring no gradients together: each gives its own to the servers", "groups",
             "let groups of ranks combine theirs: groups=N"},
};
constexpr std::array needs_zero2{Need{"zero=2", "zero=2", "it says where gradients are brought together"}};

constexpr std::array features{
    Feature{"overlap=off", "data:overlap=off", [](const Asked& a) { return !a.plan.overlap; }},
    Feature{"zero", "data:zero=1", [](const Asked& a) { return a.plan.zero > 0; }},
    Feature{"zero=2", "data:zero=2", [](const Asked& a) { return a.plan.zero == 2; }},
    Feature{"zero=3", "data:zero=3", [](const Asked& a) { return a.plan.zero == 3; }, conflicts_of_zero3},
    Feature{"allreduce=adasum", "data:allreduce=adasum",
            [](const Asked& a) { return a.plan.all_reduce && !is_sum(*a.plan.all_reduce); }, conflicts_of_adasum},
    Feature{"control", "data:control=star",
            [](const Asked& a) { return a.plan.methods.get<Synchronous>().control > 0; }},
    Feature{"variables=whole",
            "data:zero=2:variables=whole",
            [](const Asked& a) { return a.plan.methods.get<Synchronous>().whole_variables; },
            {},
            needs_zero2},
    Feature{"--optimizer lamb",
            "data",
            [](const Asked& a) { return a.job.optimizer == Optimizer::lamb; },
            {},
            {},
            [](Job& job) { job.optimizer = Optimizer::lamb; }},
    Feature{"--optimizer adam",
            "data",
            [](const Asked& a) { return a.job.optimizer == Optimizer::adam; },
            {},
            {},
            [](Job& job) { job.optimizer = Optimizer::adam; }},
    Feature{"16-bit gradients",
            "data",
            [](const Asked& a) { return wire_type(a.job.precision) != DataType::f32; },
            {},
            {},
            [](Job& job) { job.precision = Precision::mixed; }},
};

// The chunks of an interleaved stage take other micro-batches in between, so what is summed after each of these
// (zero=3) is of one chunk.
std::vector<int> bucket_begins(const Plan& plan, const Stage& stage, const Schedule& /*schedule*/) {
    std::vector<int> begins;
    for (const Chunk& chunk : stage.chunks) {
        if (plan.zero == 3) begins.push_back(chunk.begin);
    }
    return begins;
}

}  // namespace

extern const Method synchronous;  // a row of table.cpp
constinit const Method synchronous{
    .name = "synchronous",
    .summary = "ranks sum their gradients, in step",
    .vocabulary = {words, features},
    .as_vectors = [](const Plan& plan) { return plan.all_reduce && !is_sum(*plan.all_reduce); },
    .bucket_begins = bucket_begins};

}  // namespace rehearse::schedule
