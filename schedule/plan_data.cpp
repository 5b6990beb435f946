// SPDX-License-Identifier: Apache-2.0
// The data axis: how gradients travel, and what ranks do instead of summing them.
#include <fmt/format.h>

#include <array>

#include "core/error.hpp"
#include "core/text.hpp"
#include "schedule/plan_words.hpp"

namespace rehearse::schedule {

namespace {

Bytes read_positive_size(std::string_view value) {
    const auto bytes = parse_quantity<Bytes>(value);
    if (bytes <= Bytes{0}) throw InputError(fmt::format("{} must be more than 0; 1B makes one bucket a layer", value));
    return bytes;
}

void read_data(Plan& plan, std::string_view size) { add_axis(plan, "data", size); }

// Who executes or predicts the schedule settles `auto`, bucket by bucket; here it is as if nothing had been said.
void read_all_reduce(Plan& plan, std::string_view value) {
    plan.all_reduce = value == "auto" ? Algorithm{.name = "auto"} : parse_algorithm(value);
}
// algo and proto say what NCCL must take: allreduce=nccl:algo=tree:proto=simple is allreduce=nccl(tree,simple).
void read_nccl(Plan& plan, std::string_view word, std::string_view value, bool algorithm) {
    if (!plan.all_reduce || plan.all_reduce->name != "nccl")
        throw InputError(fmt::format("{}={}: it is of allreduce=nccl, which stands before it", word, value));
    const auto or_any = [](const std::string& said) { return said.empty() ? std::string{"any"} : said; };
    const std::string other = or_any(algorithm ? plan.all_reduce->across : plan.all_reduce->inside);
    plan.all_reduce = parse_algorithm(algorithm ? fmt::format("nccl({},{})", value, other)
                                                : fmt::format("nccl({},{})", other, value));
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

void read_lag(Plan& plan, std::string_view value) {
    if (value != "0" && value != "1") throw InputError(fmt::format("lag={}: write 0 or 1", value));
    plan.lag = value.front() - '0';
}

void read_control(Plan& plan, std::string_view value) {
    if (value == "none" || value == "star") {
        plan.control = value == "star" ? 1 : 0;
        return;
    }
    if (!value.starts_with("tree(") || !value.ends_with(')')) {
        throw InputError(
            fmt::format("control={}: write none, star, or tree(R) with the children of a rank, as tree(4)", value));
    }
    value.remove_prefix(std::string_view{"tree("}.size());
    value.remove_suffix(1);
    plan.control = read_count("control: tree", value, 1000);
    if (plan.control < 2) throw InputError("control=tree(1): a rank of a tree has 2 children or more");
}

void read_variables(Plan& plan, std::string_view value) {
    if (value != "cut" && value != "whole") {
        throw InputError(fmt::format("variables={}: write variables=cut or whole", value));
    }
    plan.whole_variables = value == "whole";
}

void read_compress(Plan& plan, std::string_view value) {
    if (value == "1bit") {
        plan.compression = {Compression::Kind::one_bit, 0};
    } else if (value.starts_with("top(") && value.ends_with(")")) {
        plan.compression = {Compression::Kind::top, read_share("top", value.substr(4, value.size() - 5), 1)};
    } else if (value == "fp16" || value == "bf16") {
        plan.compress = value == "fp16" ? DataType::f16 : DataType::bf16;
    } else {
        throw InputError(
            fmt::format("compress={}: write fp16 or bf16, what gradients are rounded to, 1bit, or the share of them "
                        "that is sent, like top(0.01)",
                        value));
    }
}

void read_local(Plan& plan, std::string_view value) {
    plan.averaging.period = read_count("local", value, most_micro_batches);
}
void read_elastic(Plan& plan, std::string_view value) { plan.averaging.elastic = read_share("elastic", value, 1); }
void read_learners(Plan& plan, std::string_view value) {
    plan.averaging.learners = read_count("learners", value, 1000);
    if (plan.averaging.elastic == 0) plan.averaging.elastic = one_of_all_models;
}
void read_average_momentum(Plan& plan, std::string_view value) {
    plan.averaging.momentum = read_share("average_momentum", value, 0.9999);
}

void read_dense(Plan& plan, std::string_view value) {
    if (value != "shared" && value != "copied") {
        throw InputError(fmt::format("dense={}: write dense=shared or copied", value));
    }
    plan.share_dense = value == "shared";
}

void read_tables(Plan& plan, std::string_view value) {
    if (value != "shared" && value != "copied") {
        throw InputError(fmt::format("tables={}: write tables=shared or copied", value));
    }
    plan.share_tables = value == "shared";
}

void read_bottom(Plan& plan, std::string_view value) {
    if (value != "one" && value != "copied") {
        throw InputError(fmt::format("bottom={}: write bottom=one or copied", value));
    }
    plan.bottom_on_one = value == "one";
}

void read_kfac(Plan& plan, std::string_view value) {
    plan.curvature.period = read_count("kfac", value, most_micro_batches);
}
void read_damping(Plan& plan, std::string_view value) { plan.curvature.damping = read_share("damping", value, 1e6); }

/// "3+1", "8x2+8x1": copies with 2 parts of the batch, and with 1.
void read_shares(Plan& plan, std::string_view value) {
    plan.shares = {.balanced = value == "balanced"};
    if (value == "balanced" || value == "even") return;
    for (const std::string_view term : split(value, '+')) {
        const std::size_t times = term.find('x');
        const bool several = times != std::string_view::npos;
        const int copies = several ? read_count("shares", term.substr(0, times), most_micro_batches) : 1;
        const int part = read_count("shares", several ? term.substr(times + 1) : term, most_micro_batches);
        plan.shares.parts.insert(plan.shares.parts.end(), static_cast<std::size_t>(copies), part);
    }
}

constexpr std::array table{
    Word{{"data", "N", "N copies of the network, each on its share of the batch; without =N: as many as devices", {}},
         read_data},
    Word{
        {"allreduce",
         "ring|doubling|halving|tree|hierarchical(INSIDE,ACROSS)|doubletree|rings|direct|torus[(RxC)]|adasum|nccl|auto",
         "how gradients are summed (adasum: combined, a bucket a vector); default direct in switches that sum, "
         "hierarchical(ring,halving) across full nodes, else ring; auto: what the machine's prices say is fastest; "
         "nccl: what NCCL chooses, priced as NCCL",
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
    Word{{"lag", "0|1", "1: gradients are summed during the next step, and applied at its end; default 0", "data"},
         read_lag},
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
    Word{{"compress", "fp16|bf16|1bit|top(SHARE)",
          "gradients are rounded for the wire, and summed in 16 bits; or sent as signs, or only the largest of them, "
          "and "
          "what is left out is kept for the next step; default: as they are",
          "data"},
         read_compress},
    Word{{"local", "N", "each rank updates a model of its own N times, then they are averaged (local SGD)", "data"},
         read_local},
    Word{
        {"elastic", "X",
         "of local: models and their average give up X of their differences instead, while they train (EASGD)", "data"},
        read_elastic},
    Word{{"learners", "N",
          "each device trains N models at the same time, each on its part of the batch, and all are averaged after "
          "local updates (1 unless said) of each; elastic is 1 / all models unless said (Crossbow)",
          "data"},
         read_learners},
    Word{{"average_momentum", "X", "of elastic: the average goes on by X of its last step (Crossbow)", "data"},
         read_average_momentum},
    Word{{"shares", "even|balanced|A+B+...",
          "how the copies share the batch; balanced: so that all take as long, by the prices and the memory of the "
          "devices that each is on; A+B+...: in these proportions, NxA for N copies; default even",
          "data"},
         read_shares},
    Word{{"dense", "copied|shared",
          "shared: the ranks share each dense layer at the end, for the samples of all (one weird trick); default "
          "copied",
          "data"},
         read_dense},
    Word{{"tables", "copied|shared",
          "shared: each rank keeps some tables of embeddings, looks up for the samples of all (an all-to-all there and "
          "back), and updates the rows that were picked by plain SGD (DLRM); default copied",
          "data"},
         read_tables},
    Word{{"bottom", "copied|one",
          "with tables=shared, one: a single rank has the layers that do not read tables, for the samples of all, and "
          "sends their results with its tables' sums; predicted only; default copied",
          "data"},
         read_bottom},
    Word{{"kfac", "N",
          "gradients of dense layers are multiplied with the inverses of their two K-FAC factors, shared out among the "
          "ranks, and new after N updates (a step has N, each on its part of the batch)",
          "data"},
         read_kfac},
    Word{{"damping", "X", "of kfac: X is added to the diagonals of both factors; default 0.03", "data"}, read_damping},
    Word{{"microbatches", "N", "the batch in N parts, gradients added up; default 1", "data"}, read_micro_batches},
    Word{{"microbatch", "N", "the batch in parts of N samples, instead of microbatches", "data"}, read_micro_batch},
    Word{{"recompute", "on|off|blocks|attention", recompute_text, "data"}, read_recompute},
    Word{{"attention", "fused|kept", attention_text, "data"}, read_attention},
};

}  // namespace

std::span<const Word> data_words() { return table; }

}  // namespace rehearse::schedule
