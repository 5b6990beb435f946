// SPDX-License-Identifier: Apache-2.0
// Which words do not go together.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "schedule/plan_words.hpp"

namespace rehearse::schedule {

namespace {

[[noreturn]] void refuse_together(std::string_view what, std::string_view with, std::string_view why) {
    throw InputError(fmt::format("{} does not go with {}: {}", what, with, why));
}

/// Words that other plans have and that mean nothing, or have not been done, where ranks go their own ways.
void check_alone(const Plan& plan, std::string_view what) {
    if (plan.zero > 0) refuse_together(what, "zero", "each rank has the whole weights");
    if (plan.lag > 0) refuse_together(what, "lag=1", "its gradients are applied at once");
    if (plan.share_dense) refuse_together(what, "dense=shared", "ranks share no layer");
    if (axis_index(plan.mesh, "pipe") >= 0) refuse_together(what, "pipe", "not in this version");
}

void check_averaging(const Plan& plan) {
    const Averaging& of = plan.averaging;
    if (of.elastic != 0 && of.period == 0) throw InputError("elastic needs local=N: how many updates lie between");
    if (of.momentum > 0 && of.elastic == 0) throw InputError("average_momentum needs elastic");
    if (of.period == 0) return;
    check_alone(plan, "local");
    if (plan.micro_batches > 0 || plan.micro_batch > 0) {
        refuse_together("local", "microbatches", "it says itself in how many parts the batch is");
    }
    if (plan.compress || plan.compression != Compression{})
        refuse_together("local", "compress", "no gradients are sent");
    if (plan.sequence || axis_index(plan.mesh, spatial_axes[0]) >= 0) {
        refuse_together("local", "sequence=on or spatial", "their gradients are sums");
    }
}

/// Servers that keep the average of the ranks' own models.
void check_elastic_servers(const Plan& plan, bool groups) {
    if (plan.averaging.period == 0) return;
    if (!(plan.averaging.elastic > 0)) {
        throw InputError("server beside local keeps the average model: say by how much it pulls, like elastic=0.1");
    }
    if (plan.averaging.learners > 1) refuse_together("server", "learners", "not in this version");
    if (plan.averaging.momentum > 0) refuse_together("server", "average_momentum", "not in this version");
    if (groups) refuse_together("local", "groups", "each rank has a model of its own");
    if (plan.send_vectors) refuse_together("local", "dense=vectors", "no gradients are sent");
    if (axis_index(plan.mesh, "tensor") >= 0) refuse_together("server beside local", "tensor", "not in this version");
}

void check_servers(const Plan& plan) {
    const bool groups = axis_index(plan.mesh, "groups") >= 0;
    if (plan.servers.count == unknown_servers) throw InputError("server needs a number, like server=2");
    if (plan.servers.count == 0) {
        if (groups) throw InputError("groups needs server=N: what the groups have in common");
        return;
    }
    check_alone(plan, "server");
    check_elastic_servers(plan, groups);
    if (plan.compress || plan.compression != Compression{})
        refuse_together("server", "compress", "not in this version");
    if (plan.servers.copies > plan.servers.count) {
        throw InputError(fmt::format("copies={} of the weights need as many servers, there are {}", plan.servers.copies,
                                     plan.servers.count));
    }
    if (groups && axis_index(plan.mesh, "data") < 0) throw InputError("groups needs data=N: the ranks of a group");
    if (plan.send_vectors && groups) refuse_together("dense=vectors", "groups", "a group sums its gradients");
    if (plan.send_vectors && axis_index(plan.mesh, spatial_axes[0]) >= 0) {
        refuse_together("dense=vectors", "spatial", "its gradients are sums");
    }
}

void check_compression(const Plan& plan) {
    if (plan.compression == Compression{}) return;
    const std::string_view what = plan.compression.kind == Compression::Kind::top ? "compress=top" : "compress=1bit";
    check_alone(plan, what);
    for (const char* axis : {"tensor", spatial_axes[0]}) {
        if (axis_index(plan.mesh, axis) >= 0) refuse_together(what, axis, "not in this version");
    }
}

void check_tables(const Plan& plan) {
    if (plan.bottom_on_one && !plan.share_tables) throw InputError("bottom=one needs tables=shared");
    if (!plan.share_tables) return;
    const std::string_view what = "tables=shared";
    check_alone(plan, what);
    if (plan.averaging.period > 0) refuse_together(what, "local", "there is one model");
    if (plan.servers.count > 0) refuse_together(what, "server", "not in this version");
    if (plan.compression != Compression{}) refuse_together(what, "compress=top or 1bit", "not in this version");
    if (plan.all_reduce && !is_sum(*plan.all_reduce)) refuse_together(what, "allreduce=adasum", "not in this version");
    if (plan.micro_batches > 1 || plan.micro_batch > 0) {
        refuse_together(what, "microbatches", "rows are updated as soon as their gradients have come");
    }
    for (const char* axis : {"tensor", spatial_axes[0]}) {
        if (axis_index(plan.mesh, axis) >= 0) refuse_together(what, axis, "not in this version");
    }
}

void check_experts(const Plan& plan) {
    if (axis_index(plan.mesh, "expert") < 0) return;
    const std::string_view what = "expert", later = "not in this version";
    if (plan.averaging.period > 0) refuse_together(what, "local or learners", "there is one model");
    if (plan.servers.count != 0) refuse_together(what, "server", later);
    if (plan.compression != Compression{}) refuse_together(what, "compress=top or 1bit", later);
    if (plan.curvature.period > 0) refuse_together(what, "kfac", later);
    if (plan.share_dense) refuse_together(what, "dense=shared", "ranks share no dense layer");
    if (plan.share_tables) refuse_together(what, "tables=shared", later);
    if (plan.shares != BatchShares{}) refuse_together(what, "shares", "ranks exchange as many slots with each other");
    if (plan.pipeline == "pipedream") refuse_together(what, "schedule=pipedream", later);
    for (const char* axis : {"tensor", spatial_axes[0]}) {
        if (axis_index(plan.mesh, axis) >= 0) refuse_together(what, axis, later);
    }
}

void check_curvature(Plan& plan) {
    if (plan.curvature.period == 0) {
        if (plan.curvature != Curvature{}) throw InputError("damping needs kfac=N");
        return;
    }
    const std::string_view what = "kfac";
    check_alone(plan, what);
    if (plan.averaging.period > 0) refuse_together(what, "local", "not in this version");
    if (plan.servers.count > 0) refuse_together(what, "server", "not in this version");
    if (plan.compress || plan.compression != Compression{}) refuse_together(what, "compress", "not in this version");
    if (plan.share_tables) refuse_together(what, "tables=shared", "not in this version");
    if (plan.all_reduce && !is_sum(*plan.all_reduce)) refuse_together(what, "allreduce=adasum", "not in this version");
    if (plan.micro_batches > 0 || plan.micro_batch > 0) {
        refuse_together(what, "microbatches", "it says itself in how many updates' parts the batch is");
    }
    for (const char* axis : {"tensor", spatial_axes[0]}) {
        if (axis_index(plan.mesh, axis) >= 0) refuse_together(what, axis, "not in this version");
    }
    plan.micro_batches = plan.curvature.period;
}

void check_shares(const Plan& plan) {
    const BatchShares& shares = plan.shares;
    if (shares == BatchShares{}) return;
    if (plan.servers.count != 0 || plan.averaging.period > 0 || plan.compression != Compression{}) {
        refuse_together("shares", "server, local, learners, compress=1bit or top", "not in this version");
    }
    if (plan.micro_batch > 0)
        refuse_together("shares", "microbatch", "each copy's are of another size; say how many: microbatches");
    if (plan.share_dense) refuse_together("shares", "dense=shared", "ranks gather as many samples from each other");
    if (plan.share_tables) refuse_together("shares", "tables=shared", "ranks look up as many samples of each other");
    if (plan.curvature.period > 0)
        refuse_together("shares", "kfac", "factors are means over as many rows of each rank");
    if (plan.pipeline == "pipedream") refuse_together("shares", "schedule=pipedream", "not in this version");
    if (plan.all_reduce && !is_sum(*plan.all_reduce))
        refuse_together("shares", "allreduce=adasum", "it combines means of as many samples");
    const std::int64_t copies = plan.mesh.axes[static_cast<std::size_t>(axis_index(plan.mesh, "data"))].size;
    const auto parts = static_cast<std::int64_t>(shares.parts.size());
    if (parts > 0 && copies > 0 && parts != copies) {
        throw InputError(fmt::format("shares are of {} copies, but data={}; NxA stands for N copies with A parts each",
                                     parts, copies));
    }
}

}  // namespace

void complete(Plan& plan) {
    if (plan.recompute == Recompute::attention && plan.keep_attention.value_or(true) == false) {
        throw InputError("recompute=attention makes again what attention=fused never keeps; leave out one of them");
    }
    if (!plan.keep_attention) plan.keep_attention = plan.recompute == Recompute::attention;
    check_curvature(plan);
    check_tables(plan);
    check_experts(plan);
    check_shares(plan);
    if (plan.averaging.elastic == one_of_all_models || plan.averaging.learners > 1) {
        plan.averaging.period = std::max(plan.averaging.period, 1);
    }
    check_averaging(plan);
    check_servers(plan);
    check_compression(plan);
    if (plan.averaging.period > 0) plan.micro_batches = plan.averaging.period * plan.averaging.learners;
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
    if (plan.sequence && plan.tensor_split != TensorSplit::turns) {
        throw InputError("sequence=on goes between layers that are cut by turns; leave out split=");
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
    if (plan.whole_variables && plan.zero != 2) {
        throw InputError("variables=whole says where gradients are brought together, and needs zero=2");
    }
    if (plan.micro_batches > 0 && plan.micro_batch > 0) {
        throw InputError("microbatches says how many parts the batch is in, microbatch how large they are: give one");
    }
    if (plan.micro_batches == 0 && plan.micro_batch == 0 && !pipeline) plan.micro_batches = 1;
}

}  // namespace rehearse::schedule
