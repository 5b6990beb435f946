// SPDX-License-Identifier: Apache-2.0
// Single steps: their names, what they do, what they wait for.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/precision.hpp"
#include "schedule/step_maker.hpp"
#include "schedule/tables.hpp"

namespace rehearse::schedule {

std::string StepMaker::name_of(int i, std::string_view what, std::string_view suffix) const {
    const std::string& layer = layers_[at(i)].name;
    std::string name;
    name.reserve(layer.size() + what.size() + suffix.size() + 8);
    name.append(layer).append(1, ':').append(what).append(suffix);
    if (schedule_.micro_batches > 1) name.append(1, '#').append(std::to_string(item_.micro_batch));
    return name;
}

int StepMaker::append(std::string name, Stream stream, Action action, std::vector<int> after) {
    std::erase_if(after, [&](int step) { return step == none || steps_[at(step)].stream == stream; });
    std::ranges::sort(after);
    after.erase(std::unique(after.begin(), after.end()), after.end());
    steps_.push_back({std::move(name), stream, std::move(action), std::move(after)});
    return static_cast<int>(steps_.size()) - 1;
}

void StepMaker::compute(int i, Pass pass, std::string_view suffix) {
    std::vector<int> after;
    if (pass == Pass::forward) {
        for (const int input : layers_[at(i)].inputs) after.push_back(output_by_[at(input)]);
        // What is made again overwrites what is sent.
        if (!item_.forward) after.push_back(last_output_sent());
    } else {
        after = gradient_by_[at(i)];
        if (pass == Pass::backward_data) after_gradients_of_inputs(i, after);
        after.insert(after.end(), made_again_.begin(), made_again_.end());
        made_again_.clear();
    }
    const bool gives =
        pass == Pass::backward_weights || (pass != Pass::forward && gradients_together(layers_[at(i)].op));
    if (gives && options_.sum.zero == 3) after.push_back(last_sum_of_gradients(i));
    if (pass == Pass::backward_weights) after.push_back(std::exchange(gathered_again_, none));
    // What this item overwrites must have left.
    if (!started_ && !item_.forward) after.push_back(last_gradient_sent());
    started_ = true;
    const Op& op = computed(layers_[at(i)].op);
    Problem problem{op, pass, samples_, compute_type(schedule_.precision, op)};
    last_compute_ = append(name_of(i, to_string(pass), suffix), Stream::compute,
                           Compute{i, std::move(problem), item_.micro_batch}, std::move(after));
}

// The step that last summed the bucket that layer i's gradients go into: of a tied layer, its owner's bucket.
int StepMaker::last_sum_of_gradients(int i) const {
    const int owner = layers_[at(i)].weights_of;
    const int bucket = bucket_of_[at(owner >= 0 ? owner : i)];
    return bucket == none ? none : ready_by_[at(bucket)];
}

int StepMaker::last_output_sent() const {
    const auto sent = outputs_sent_.find({item_.chunk, item_.micro_batch});
    return sent == outputs_sent_.end() ? none : sent->second;
}

// A layer adds its part to what came to its inputs from elsewhere.
void StepMaker::after_gradients_of_inputs(int i, std::vector<int>& after) const {
    for (const int input : layers_[at(i)].inputs) {
        after.insert(after.end(), gradient_by_[at(input)].begin(), gradient_by_[at(input)].end());
    }
}

int StepMaker::last_gradient_sent() const {
    int step = none;
    for (const auto& [item, sent] : sent_gradients_) {
        if (item.chunk == item_.chunk && item.micro_batch <= item_.micro_batch - slots_) step = sent;
    }
    return step;
}

std::int64_t StepMaker::elements_of(int i, Pass pass) const {
    const auto& op = std::get<Communication>(layers_[at(i)].op);
    const bool joins = op.movement == Movement::gather || op.movement == Movement::spread;
    if (op.movement != Movement::halo) return elements(joins ? layers_[at(i)].output : op.shape);
    const std::int64_t row = elements(op.shape) / op.halo.own;
    return row * (pass == Pass::forward ? op.halo.own + op.halo.size : op.halo.size + 2 * op.halo.own);
}

Algorithm StepMaker::algorithm_of(int i, CollectiveKind kind, Pass pass) const {
    const auto& op = std::get<Communication>(layers_[at(i)].op);
    if (kind == CollectiveKind::halo) {
        return {.name = pass == Pass::forward ? "lend" : "return", .halo = op.halo};
    }
    if (kind == CollectiveKind::all_to_all) return {.name = "pairwise"};
    return kind == CollectiveKind::all_reduce ? options_.tensor : Algorithm{};
}

int StepMaker::collective(int i, CollectiveKind kind, Pass pass, int needs, std::string_view suffix) {
    const auto& op = std::get<Communication>(layers_[at(i)].op);
    Communicate action{.kind = kind,
                       .axis = axis_index(schedule_.mesh, op.axis),
                       .elements = samples_ * elements_of(i, pass),
                       .type = compute_type(schedule_.precision),
                       .algorithm = algorithm_of(i, kind, pass),
                       .layer = i,
                       .pass = pass,
                       .micro_batch = item_.micro_batch};
    std::vector<int> after{last_compute_, needs};
    if (pass != Pass::forward) {
        after.insert(after.end(), gradient_by_[at(i)].begin(), gradient_by_[at(i)].end());
        after_gradients_of_inputs(i, after);
    }
    const std::string what =
        pass == Pass::forward ? std::string{pass_of(kind)} : "gradient_" + std::string{pass_of(kind)};
    return append(name_of(i, what, suffix), communicator_stream(schedule_.mesh, action.axis), action, std::move(after));
}

Bytes StepMaker::bytes_of(const Communication& op) const {
    const auto count = static_cast<double>(samples_ * elements(op.shape));
    return count * size_of(compute_type(schedule_.precision));
}

int StepMaker::send(int i, const Communication& op, Stream stream, std::string_view what, int needs) {
    std::vector<int> after{needs, last_compute_};
    const std::vector<int>& gradients = gradient_by_[at(i)];
    if (!item_.forward) after.insert(after.end(), gradients.begin(), gradients.end());
    const int axis = axis_index(schedule_.mesh, op.axis);
    const int step = append(name_of(i, what, ""), stream, Send{axis, op.offset, bytes_of(op), i, item_.micro_batch},
                            std::move(after));
    if (item_.forward) outputs_sent_[{item_.chunk, item_.micro_batch}] = step;
    return step;
}

int StepMaker::receive(int i, const Communication& op, Stream stream, std::string_view what) {
    std::vector<int> after;
    if (ends_.size() >= 2) after.push_back(ends_[ends_.size() - 2]);
    const int axis = axis_index(schedule_.mesh, op.axis);
    return append(name_of(i, what, ""), stream, Recv{axis, op.offset, bytes_of(op), i, item_.micro_batch},
                  std::move(after));
}

void StepMaker::sum_gradients(int b) {
    const GradientSum& sum = options_.sum;
    if (averages()) return;
    if (schedule_.compression != Compression{}) return bring_together(b, Content::compressed, {last_compute_});
    const CollectiveKind kind = sum.zero >= 2 ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
    // A rank's piece would be of its own stage's part only: so both parts come together first.
    if (kind == CollectiveKind::reduce_scatter) sum_ties(b);
    if (sharing(b) > 1) ready_by_[at(b)] = bucket_collective(b, kind, {last_compute_, ready_by_[at(b)]});
    if (!options_.server_of.empty()) trade(b);
}

/// With the other stage that has a bucket's weights (a tied table), all of whose gradients are there at the end of the
/// backward pass: earlier, it would hold up what this stage has to send before the other one can go on.
void StepMaker::sum_ties(int b) {
    if (buckets_[at(b)].tie == none) return;
    const Communicate action{.kind = CollectiveKind::all_reduce,
                             .axis = buckets_[at(b)].tie,
                             .elements = buckets_[at(b)].tied,
                             .type = options_.sum.wire,
                             .algorithm = {},
                             .bucket = b,
                             .micro_batch = micro_batch_of_sum()};
    ready_by_[at(b)] =
        append(fmt::format("bucket{}:tied_{}", b, pass_of(CollectiveKind::all_reduce)),
               communicator_stream(schedule_.mesh, action.axis), action, {last_compute_, ready_by_[at(b)]});
}

void StepMaker::bring_together(int b, Content content, std::vector<int> after) {
    if (sharing(b) == 1) return;
    const bool compressed = content == Content::compressed;
    ready_by_[at(b)] =
        bucket_collective(b, compressed ? CollectiveKind::all_gather : CollectiveKind::all_reduce, std::move(after));
    auto& action = std::get<Communicate>(steps_.back().action);
    action.content = content;
    action.type = DataType::f32;
    if (!compressed) return;
    action.elements = sharing(b) * compressed_words(schedule_.compression, buckets_[at(b)].elements);
}

std::vector<Problem> StepMaker::served(int b) const {
    const Bucket& bucket = buckets_[at(b)];
    std::vector<Problem> work;
    // A model and the average go into the average; what the model gives up stays in cache until it leaves.
    if (averages()) return {{Add{{bucket.elements}, 2}, Pass::forward, 1, DataType::f32}};
    if (sends_vectors(b)) {
        work.push_back(
            {layers_[at(bucket.layers.front())].op, Pass::backward_weights, schedule_.batch_per_rank, DataType::f32});
    }
    work.push_back({update_op(schedule_.optimizer, bucket.elements, tensors(network_, bucket)), Pass::update, 1,
                    update_type(schedule_.precision)});
    return work;
}

void StepMaker::trade(int b) {
    const Bucket& bucket = buckets_[at(b)];
    std::int64_t sent = bucket.elements;
    std::vector<int> after{last_compute_, ready_by_[at(b)]};
    if (sends_vectors(b)) {
        const int layer = bucket.layers.front();
        const auto& dense = std::get<MatMul>(layers_[at(layer)].op);
        sent = schedule_.batch_per_rank * dense.m * (dense.n + dense.k);
        after.insert(after.end(), gradient_by_[at(layer)].begin(), gradient_by_[at(layer)].end());
    }
    traded_by_[at(b)] = append(fmt::format("bucket{}:trade", b), Stream::send_gradients,
                               Trade{.bucket = b,
                                     .server = options_.server_of[at(b)],
                                     .group = sharing(b) > 1 ? bucket.axis : none,
                                     .sent = sent,
                                     .received = bucket.elements,
                                     .type = wire_type(schedule_.precision),
                                     .work = served(b)},
                               std::move(after));
}

/// What the first of a group has got, to the others.
void StepMaker::hand_on(int b) {
    if (sharing(b) == 1) return;
    bucket_collective(b, CollectiveKind::broadcast, {traded_by_[at(b)]});
    auto& action = std::get<Communicate>(steps_.back().action);
    action.content = Content::weights;
    action.type = wire_type(schedule_.precision);
    action.algorithm = {.name = "tree"};
}

std::string StepMaker::which_time() const {
    const bool several = (options_.sum.zero == 3 || options_.asynchronous) && schedule_.micro_batches > 1;
    return several ? fmt::format("#{}", item_.micro_batch) : "";
}

std::int64_t StepMaker::sharing(int b) const {
    return buckets_[at(b)].axis == none ? 1 : size_of(schedule_.mesh, buckets_[at(b)].axis);
}

// Where whole variables lie on one rank each, the busiest of n ranks has the largest, or a share of all when that is
// more: as if each had as much.
std::int64_t StepMaker::elements_on_wire(int b) const {
    const std::int64_t own = buckets_[at(b)].elements;
    if (!schedule_.whole_variables) return own;
    std::int64_t all = 0, largest = 0;
    for (const Bucket& bucket : buckets_) all += bucket.axis == buckets_[at(b)].axis ? bucket.elements : 0;
    for (const Layer& layer : layers_) {
        for (const WeightTensor& tensor : weights(layer.op)) largest = std::max(largest, elements(tensor.shape));
    }
    const double most = std::max(1.0, static_cast<double>(sharing(b) * largest) / static_cast<double>(all));
    return static_cast<std::int64_t>(std::llround(static_cast<double>(own) * most));
}

int StepMaker::micro_batch_of_sum() const {
    return options_.sum.lag > 0 ? schedule_.micro_batches - 1 : item_.micro_batch;
}

int StepMaker::bucket_collective(int b, CollectiveKind kind, std::vector<int> after) {
    const auto chosen = options_.sum.algorithms.find(buckets_[at(b)].axis);
    const bool choice = kind == CollectiveKind::all_reduce && chosen != options_.sum.algorithms.end();
    const bool weights = kind == CollectiveKind::all_gather;
    const Communicate action{.kind = kind,
                             .axis = buckets_[at(b)].axis,
                             .elements = elements_on_wire(b),
                             .type = weights ? compute_type(schedule_.precision) : options_.sum.wire,
                             .algorithm = choice ? chosen->second : Algorithm{},
                             .bucket = b,
                             .micro_batch = micro_batch_of_sum()};
    return append(fmt::format("bucket{}:{}{}", b, pass_of(kind), which_time()),
                  communicator_stream(schedule_.mesh, action.axis), action, std::move(after));
}

void StepMaker::update() {
    const bool served = !options_.server_of.empty() && !averages();
    for (std::size_t b = 0; b < buckets_.size() && served; ++b) hand_on(static_cast<int>(b));
    if (served) return;
    precondition();
    // Whether any gradient has overflowed decides about all updates.
    std::vector<int> all_sums;
    if (scales_loss(schedule_.precision)) all_sums = ready_by_;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
        if (updates_directly(network_, buckets_[b])) continue;
        const std::int64_t ranks = options_.sum.zero > 0 ? sharing(static_cast<int>(b)) : 1;
        const std::int64_t count = (buckets_[b].elements + ranks - 1) / ranks;
        const Op op = update_op(schedule_.optimizer, count, tensors(network_, buckets_[b]));
        const Problem problem{op, Pass::update, 1, update_type(schedule_.precision)};
        std::vector<int> after = b == 0 ? all_sums : std::vector<int>{};
        after.push_back(ready_by_[b]);
        const int step =
            append(fmt::format("bucket{}:update{}", b, options_.asynchronous ? which_time() : ""), Stream::compute,
                   Update{static_cast<int>(b), problem, ranks > 1 ? buckets_[b].axis : none}, after);
        if (averages()) last_compute_ = step;
        if (ranks > 1 && options_.sum.zero < 3)
            bucket_collective(static_cast<int>(b), CollectiveKind::all_gather, {step});
    }
}

}  // namespace rehearse::schedule
