// SPDX-License-Identifier: Apache-2.0
#include "run/methods/server_shard.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include "core/error.hpp"
#include "core/index.hpp"
#include "kernels/comm/idle.hpp"
#include "kernels/comm/operation.hpp"
#include "run/checkpoint/saver.hpp"
#include "run/random.hpp"
#include "run/trainer.hpp"

namespace rehearse::run {

namespace {

std::vector<const Trade*> trades_with(const Schedule& schedule, int server) {
    std::vector<const Trade*> trades;
    for (const Step& step : schedule.classes.front().steps) {
        const auto* trade = std::get_if<Trade>(&step.action);
        if (trade != nullptr && trade->server == server) trades.push_back(trade);
    }
    return trades;
}

/// A trading rank as a server sees it: the gradients that come next, then the weights that go back.
class Client {
public:
    /// Of steps [first, end).
    Client(std::int64_t rank, kernels::Communicator& link, const std::vector<const Trade*>& trades, int first, int end)
        : rank_(rank),
          link_(link),
          trades_(trades),
          first_(first),
          left_((end - first) * static_cast<std::int64_t>(trades.size())) {
        for (const Trade* trade : trades) {
            memory_.resize(std::max(memory_.size(), at(std::max(trade->sent, trade->received))));
        }
        expect();
    }

    bool is_through() const { return left_ == 0; }
    const Trade& trade() const { return *trades_[taken_ % trades_.size()]; }
    Served served() const { return {rank_, first_ + static_cast<int>(taken_ / trades_.size()), trade().bucket}; }
    std::span<float> memory() { return std::span{memory_}.first(at(trade().sent)); }
    std::span<float> answer() { return std::span{memory_}.first(at(trade().received)); }
    /// Whether gradients have come that nobody has looked at.
    bool has_come() {
        if (is_through() || !under_way_ || !under_way_->test()) return false;
        under_way_.reset();
        if (!replying_) return true;
        --left_;
        ++taken_;
        expect();
        return false;
    }
    /// With what is in answer() by now.
    void reply() {
        replying_ = true;
        rounds_ = kernels::RankProgram::message(0, true, trade().received);
        under_way_ = std::make_unique<kernels::Operation>(link_, rounds_, kernels::floats(answer()));
    }

private:
    void expect() {
        replying_ = false;
        if (is_through()) return;
        rounds_ = kernels::RankProgram::message(0, false, trade().sent);
        under_way_ = std::make_unique<kernels::Operation>(link_, rounds_, kernels::floats(memory()));
    }

    std::int64_t rank_;
    kernels::Communicator& link_;
    const std::vector<const Trade*>& trades_;
    int first_;
    std::int64_t left_;
    std::size_t taken_ = 0;
    bool replying_ = false;
    std::vector<float> memory_;
    kernels::RankProgram rounds_;
    std::unique_ptr<kernels::Operation> under_way_;
};

/// Gradients of dense layers from what ranks send instead.
class Products {
public:
    explicit Products(const Wish& wish) : wish_(wish) {}

    void multiply(const Trade& trade, std::span<const float> vectors, kernels::View gradient) {
        const Problem& problem = trade.work.front();
        const std::size_t inputs = at(problem.batch * elements(input_shapes(problem.op).front()));
        kernels::Buffers buffers;
        buffers.src.emplace_back(vectors.first(inputs));
        buffers.diff_dst = vectors.subspan(inputs);
        buffers.diff_weights = gradient;
        auto& kernel = kernels_[trade.bucket];
        if (kernel == nullptr) {
            const auto choices = kernels::choose_passes(problem.op, problem.batch, problem.type, wish_);
            kernel = kernels::prepare(of(choices, problem.pass), problem, wish_.scratch_limit);
        }
        kernel->run(buffers);
    }

private:
    const Wish& wish_;
    std::map<int, std::unique_ptr<kernels::Kernel>> kernels_;  // by bucket
};

/// A server with its weights: what it does for whoever comes.
class Keeper {
public:
    Keeper(const Schedule& schedule, Program& program, const Wish& wish, std::vector<const Trade*> trades,
           TradeLinks& links)
        : schedule_(schedule), program_(program), products_(wish), trades_(std::move(trades)), links_(links) {
        for (ReadyStep& ready : program.steps()) update_of_[std::get<Update>(ready.step->action).bucket] = &ready;
    }

    /// All that trading ranks send in steps [first, end).
    void serve(int first, int end) {
        if (trades_.empty()) return;
        std::vector<std::unique_ptr<Client>> clients;
        for (auto& [pair, link] : links_) {
            clients.push_back(std::make_unique<Client>(pair.first, link, trades_, first, end));
        }
        kernels::Idle idle = kernels::attentive();
        while (!std::ranges::all_of(clients, &Client::is_through)) {
            bool moved = false;
            for (const std::unique_ptr<Client>& client : clients) {
                if (!client->has_come()) continue;
                moved = true;
                take(*client);
            }
            if (moved) {
                idle = kernels::attentive();
            } else {
                idle();
            }
        }
    }
    const std::vector<Served>& log() const { return log_; }

private:
    void take(Client& client) {
        log_.push_back(client.served());
        const BucketTensors& bucket = program_.tensors().bucket(client.trade().bucket);
        if (schedule_.averaging.period > 0) {
            pull_average(schedule_.averaging.elastic, client.memory(), bucket.weights);
        } else {
            if (sends_vectors(client.trade())) {
                products_.multiply(client.trade(), client.memory(), bucket.applied);
            } else {
                assign(bucket.applied, client.memory());
            }
            program_.compute(*update_of_.at(client.trade().bucket), 0, 0);
            std::ranges::copy(std::span<const float>{bucket.weights}, client.answer().begin());
        }
        client.reply();
    }

    const Schedule& schedule_;
    Program& program_;
    Products products_;
    std::vector<const Trade*> trades_;
    TradeLinks& links_;
    std::map<int, ReadyStep*> update_of_;  // by bucket
    std::vector<Served> log_;
};

}  // namespace

std::vector<std::int64_t> trading_ranks(const Schedule& schedule) {
    std::vector<std::int64_t> result;
    for (std::int64_t rank = 0; rank < ranks(schedule.mesh); ++rank) {
        const bool first = std::ranges::any_of(schedule.classes.front().steps, [&](const Step& step) {
            const auto* trade = std::get_if<Trade>(&step.action);
            return trade != nullptr && (trade->group < 0 || place_on(schedule.mesh, trade->group, rank) == 0);
        });
        if (first) result.push_back(rank);
    }
    return result;
}

Schedule kept_by_server(const Schedule& schedule, int server) {
    require(schedule.classes.size() == 1, "ranks that trade have one program");
    Schedule kept = schedule;
    kept.mesh = {{{"data", 1}}};
    kept.servers = {};
    kept.micro_batches = 1;
    kept.batch_per_rank = 1;
    RankClass& all = kept.classes.front();
    all.steps.clear();
    all.slots = 1;
    for (Bucket& bucket : all.part.buckets) bucket.axis = -1;
    for (const Step& step : schedule.classes.front().steps) {
        const auto* trade = std::get_if<Trade>(&step.action);
        if (trade == nullptr || (server >= 0 && trade->server != server) || kept.averaging.period > 0) continue;
        all.steps.push_back({step.name, Stream::compute, Update{trade->bucket, trade->work.back(), -1}, {}});
    }
    return kept;
}

TradeLinks link_servers(const kernels::Communicator& job, const Schedule& schedule) {
    TradeLinks links;
    const std::int64_t first_server = ranks(schedule.mesh), own = job.rank();
    for (const std::int64_t rank : trading_ranks(schedule)) {
        for (std::int64_t server = 0; server < schedule.servers.count; ++server) {
            const bool serves = own == first_server + server, member = serves || own == rank;
            kernels::Communicator pair = job.split(member ? 1 : 0, serves ? 1 : 0);
            if (member) links.emplace(std::pair{rank, server}, std::move(pair));
        }
    }
    return links;
}

kernels::RankProgram trade_rounds(const Trade& trade) {
    kernels::RankProgram rounds = kernels::RankProgram::message(1, true, trade.sent);
    kernels::RankProgram back = kernels::RankProgram::message(1, false, trade.received);
    rounds.elements = std::max(trade.sent, trade.received);
    rounds.rounds.push_back(std::move(back.rounds.front()));
    return rounds;
}

void pull_average(double share, std::span<float> model, std::span<float> average) {
    for (std::size_t i = 0; i < model.size(); ++i) {
        model[i] = static_cast<float>(share) * (model[i] - average[i]);
        average[i] += model[i];
    }
}

std::vector<Served> serve(const kernels::Communicator& job, const Schedule& schedule, int server,
                          const Options& options, TradeLinks& links) {
    const Schedule kept = kept_by_server(schedule, server);
    const Wish wish = wish_of(options, nullptr);
    Program program{kept, 0, wish, key(options.seed, weights_of), hyperparameters_of(options)};
    RankSaver saver{job, schedule, options, [&](const auto& use) { program.visit_own_state(use); }};
    Keeper keeper{schedule, program, wish, trades_with(schedule, server), links};
    for (int step = saver.begin(); step < options.steps;) {
        const int steps = saver.steps_from(step);
        keeper.serve(step, step + steps);
        step += steps;
        saver.after(step - 1);
    }
    return keeper.log();
}

ServerLogs share_logs(const kernels::Communicator& job, const Schedule& schedule, const std::vector<Served>& own) {
    ServerLogs logs;
    for (std::int64_t server = 0; server < schedule.servers.count; ++server) {
        const std::int64_t root = ranks(schedule.mesh) + server;
        std::vector<Served>& log = logs.emplace_back();
        if (job.rank() == root) log = own;
        std::uint64_t count = log.size();
        job.broadcast(std::as_writable_bytes(std::span{&count, 1}), root, kernels::considerate());
        log.resize(count);
        if (count > 0) job.broadcast(std::as_writable_bytes(std::span{log}), root, kernels::considerate());
    }
    return logs;
}

std::vector<std::int64_t> staleness(const ServerLogs& logs) {
    std::vector<std::int64_t> counts;
    for (const std::vector<Served>& log : logs) {
        std::map<int, std::int64_t> updates;                        // by bucket
        std::map<std::pair<int, std::int64_t>, std::int64_t> last;  // by bucket and rank: the update that it got
        for (const Served& served : log) {
            const std::int64_t before = updates[served.bucket]++;
            const auto known = last.try_emplace({served.bucket, served.rank}, 0).first;
            const std::size_t stale = at(before - known->second);
            if (counts.size() <= stale) counts.resize(stale + 1);
            ++counts[stale];
            known->second = before + 1;
        }
    }
    return counts;
}

}  // namespace rehearse::run
