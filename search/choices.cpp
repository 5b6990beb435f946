// SPDX-License-Identifier: Apache-2.0
#include "search/choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

namespace rehearse::search {
namespace {

using schedule::Recompute;

constexpr std::array recomputations{Recompute::none, Recompute::attention, Recompute::blocks, Recompute::all};

constexpr int most_chunks = 1 << 20;  // no network has as many layers

std::string_view word(Recompute recompute) {
    switch (recompute) {
        case Recompute::all:
            return "on";
        case Recompute::blocks:
            return "blocks";
        case Recompute::attention:
            return "attention";
        case Recompute::none:
            break;
    }
    return "off";
}

std::string data_text(const Choices& choices) {
    std::string text = fmt::format("data={}", choices.shape.data);
    if (choices.shape.holders() > 1 && !choices.all_reduce.empty()) text += ":allreduce=" + choices.all_reduce;
    if (choices.zero > 0) text += fmt::format(":zero={}", choices.zero);
    if (!choices.overlap) text += ":overlap=off";
    if (choices.shape.pipe == 1 && choices.micro_batches > 1) {
        text += fmt::format(":microbatches={}", choices.micro_batches);
    }
    if (choices.shape.pipe == 1 && choices.recompute != Recompute::none) {
        text += fmt::format(":recompute={}", word(choices.recompute));
    }
    return text;
}

std::string pipe_text(const Choices& choices) {
    std::string text = fmt::format("pipe={}", choices.shape.pipe);
    if (choices.chunks > 1) text += fmt::format(":schedule=interleaved:chunks={}", choices.chunks);
    text += fmt::format(":microbatches={}", choices.micro_batches);
    if (choices.recompute != Recompute::none) text += fmt::format(":recompute={}", word(choices.recompute));
    return text;
}

/// Each choice that `set` makes of the ones there are, for all values up to `most`.
template <typename Set>
void vary(std::vector<Choices>& all, int most, const Set& set) {
    std::vector<Choices> varied;
    for (const Choices& each : all) {
        for (int value = 0; value <= most; ++value) set(varied.emplace_back(each), value);
    }
    all = std::move(varied);
}

void add_chunks(const Choices& base, const Variety& variety, std::vector<Choices>& found) {
    const bool several = base.shape.holders() > 1;
    std::vector<Choices> all;
    for (int chunks = 1; chunks <= std::min(variety.chunks, most_chunks); chunks *= 2) {
        const bool interleaves = base.shape.pipe > 1 && base.micro_batches % base.shape.pipe == 0;
        if (chunks > 1 && !interleaves) break;
        all.push_back(base);
        all.back().chunks = chunks;
    }
    vary(all, several ? 3 : 0, [](Choices& each, int zero) { each.zero = zero; });
    if (several && variety.zero) std::erase_if(all, [&](const Choices& each) { return each.zero != *variety.zero; });
    vary(all, std::ssize(recomputations) - 1, [](Choices& each, int which) { each.recompute = recomputations[which]; });
    vary(all, base.shape.tensor > 1 && variety.sequence ? 1 : 0,
         [](Choices& each, int on) { each.sequence = on == 1; });
    vary(all, base.shape.context > 1 ? 1 : 0, [](Choices& each, int on) { each.ring = on == 1; });
    std::erase_if(all, [](const Choices& each) { return each.ring && each.recompute == Recompute::attention; });
    vary(all, several && (variety.overlap || variety.overlapping) ? 1 : 0,
         [](Choices& each, int off) { each.overlap = off == 0; });
    if (several && variety.overlapping)
        std::erase_if(all, [&](const Choices& each) { return each.overlap != *variety.overlapping; });
    std::erase_if(all, [](const Choices& each) { return each.zero == 3 && !each.overlap; });
    found.insert(found.end(), all.begin(), all.end());
}

}  // namespace

std::int64_t devices(const Shape& shape) { return shape.holders() * shape.tensor * shape.pipe; }

std::string plan_text(const Choices& choices) {
    const Shape& shape = choices.shape;
    const std::string data = data_text(choices), pipe = shape.pipe > 1 ? pipe_text(choices) : "";
    std::string text = pipe.empty() ? data : shape.data_outside ? data + "," + pipe : pipe + "," + data;
    if (shape.context > 1) text += fmt::format(",context={}{}", shape.context, choices.ring ? ":ring=on" : "");
    if (shape.expert > 1) text += fmt::format(",expert={}", shape.expert);
    if (shape.tensor > 1) text += fmt::format(",tensor={}{}", shape.tensor, choices.sequence ? ":sequence=on" : "");
    return text;
}

std::int64_t experts_of(const Network& network) {
    std::int64_t all = 0;
    for (const Layer& layer : network.layers) {
        const auto* experts = std::get_if<GroupedMatMul>(&layer.op);
        if (experts != nullptr) all = std::gcd(all, experts->experts);
    }
    return std::max<std::int64_t>(all, 1);
}

std::int64_t tokens_of(const Network& network) {
    std::int64_t all = 0;
    for (const Layer& layer : network.layers) {
        const auto* attention = std::get_if<Attention>(&layer.op);
        if (attention != nullptr) all = std::gcd(all, std::gcd(attention->queries, attention->keys));
    }
    return std::max<std::int64_t>(all, 1);
}

std::vector<Shape> shapes(std::int64_t devices, Extent most, Divisible of) {
    std::vector<Shape> found;
    const auto add = [&](std::int64_t Shape::*axis, std::int64_t longest, std::int64_t divisible) {
        for (std::int64_t size = 2; size <= std::min(longest, divisible); ++size) {
            if (devices % size != 0 || divisible % size != 0) continue;
            for (std::int64_t pipe = 1; pipe <= most.pipe && pipe <= devices / size; ++pipe) {
                if (devices / size % pipe != 0) continue;
                Shape shape{.data = devices / size / pipe, .pipe = pipe};
                shape.*axis = size;
                found.push_back(shape);
            }
        }
    };
    add(&Shape::expert, most.expert, of.experts);
    add(&Shape::context, most.tensor, of.tokens);
    for (std::int64_t tensor = 1; tensor <= most.tensor && tensor <= devices; ++tensor) {
        if (devices % tensor != 0) continue;
        for (std::int64_t pipe = 1; pipe <= most.pipe && pipe <= devices / tensor; ++pipe) {
            if (devices / tensor % pipe != 0) continue;
            const Shape shape{devices / tensor / pipe, tensor, pipe};
            found.push_back(shape);
            // Gradients of layers that are not cut are summed along data and tensor together: nothing between these.
            if (shape.pipe > 1 && shape.data > 1 && tensor == 1) found.push_back({shape.data, tensor, pipe, true});
        }
    }
    return found;
}

std::vector<Choices> choices_of(const Shape& shape, std::int64_t global_batch, const Variety& variety) {
    std::vector<Choices> found;
    if (global_batch % shape.copies() != 0) return found;
    const std::int64_t batch = global_batch / shape.copies();
    for (std::int64_t micro_batch = 1; micro_batch <= batch; ++micro_batch) {
        // Powers of two, and the whole batch at once.
        const bool power = (micro_batch & (micro_batch - 1)) == 0;
        if (batch % micro_batch != 0 || (!power && micro_batch != batch)) continue;
        Choices base{.shape = shape, .micro_batch = micro_batch, .micro_batches = batch / micro_batch};
        add_chunks(base, variety, found);
    }
    return found;
}

}  // namespace rehearse::search
