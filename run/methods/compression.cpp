// SPDX-License-Identifier: Apache-2.0
#include "run/methods/compression.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/error.hpp"
#include "core/methods/compression.hpp"

namespace rehearse::run {

namespace {

void compress_top(std::span<float> values, std::span<float> words) {
    const std::size_t kept = words.size() / 2;
    std::vector<std::uint32_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    const auto before = [&](std::uint32_t a, std::uint32_t b) {
        const float left = std::abs(values[a]), right = std::abs(values[b]);
        return left != right ? left > right : a < b;
    };
    std::ranges::nth_element(order, order.begin() + static_cast<std::ptrdiff_t>(kept) - 1, before);
    std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept));
    for (std::size_t i = 0; i < kept; ++i) {
        words[i] = std::bit_cast<float>(order[i]);
        words[kept + i] = values[order[i]];
        values[order[i]] = 0;
    }
}

struct Means {
    double sum = 0;
    std::int64_t count = 0;
    float mean() const { return count == 0 ? 0 : static_cast<float>(sum / static_cast<double>(count)); }
    void add(float value) {
        sum += value;
        ++count;
    }
};

void compress_to_signs(std::span<float> values, std::span<float> words) {
    Means above, below;
    for (const float value : values) (value < 0 ? below : above).add(value);
    words[0] = above.mean();
    words[1] = below.mean();
    for (std::size_t first = 0, word = 2; first < values.size(); first += 32, ++word) {
        std::uint32_t bits = 0;
        for (std::size_t i = first; i < std::min(first + 32, values.size()); ++i) {
            const bool negative = values[i] < 0;
            bits |= static_cast<std::uint32_t>(negative) << (i - first);
            values[i] -= words[negative ? 1 : 0];
        }
        words[word] = std::bit_cast<float>(bits);
    }
}

}  // namespace

void compress(const Compression& compression, std::span<float> values, std::span<float> words) {
    if (values.empty()) return;
    if (compression.kind == Compression::Kind::top) {
        compress_top(values, words);
    } else {
        compress_to_signs(values, words);
    }
}

void add_compressed(const Compression& compression, std::span<const float> words, std::span<float> sum) {
    if (compression.kind == Compression::Kind::top) {
        const std::size_t kept = words.size() / 2;
        for (std::size_t i = 0; i < kept; ++i) sum[std::bit_cast<std::uint32_t>(words[i])] += words[kept + i];
        return;
    }
    for (std::size_t i = 0; i < sum.size(); ++i) {
        const auto bits = std::bit_cast<std::uint32_t>(words[2 + i / 32]);
        sum[i] += words[(bits >> (i % 32) & 1U) != 0 ? 1 : 0];
    }
}

bool CompressionMethod::prepare(ReadyStep& ready) {
    const auto* const communicate = std::get_if<Communicate>(&ready.step->action);
    if (communicate == nullptr || communicate->content != Content::compressed) return false;
    const Schedule& schedule = rank_.schedule;
    const std::span<float> gradients = rank_.tensors.bucket(communicate->bucket()).applied;
    const std::int64_t ranks = size_of(schedule.mesh, communicate->axis);
    const std::size_t each =
        at(compressed_words(schedule.methods.get<Compression>(), static_cast<std::int64_t>(gradients.size())));
    require(communicate->elements == ranks * static_cast<std::int64_t>(each), "a rank's words after the other's");
    std::vector<float>& left = left_out_[communicate->bucket()];
    std::vector<float>& words = words_[communicate->bucket()];
    left.resize(gradients.size());
    words.resize(each * at(ranks));
    ready.data = std::span<float>{words};
    const std::size_t own = at(place_on(schedule.mesh, communicate->axis, rank_.rank));
    ready.before = [this, bucket = communicate->bucket(), &left, &words, gradients, each, own] {
        for (std::size_t i = 0; i < left.size(); ++i) left[i] += gradients[i];
        const std::span<float> sent = std::span{words}.subspan(own * each, each);
        compress(rank_.schedule.methods.get<Compression>(), left, sent);
        if (sent_ != nullptr) (*sent_)[bucket].emplace_back(sent.begin(), sent.end());
    };
    ready.after = [&by = schedule.methods.get<Compression>(), &words, gradients, each] {
        std::ranges::fill(gradients, 0.0F);
        for (std::size_t from = 0; from < words.size(); from += each) {
            add_compressed(by, std::span{words}.subspan(from, each), gradients);
        }
    };
    return true;
}

void CompressionMethod::visit_state(const UseNumbers& use) {
    for (auto& [bucket, left] : left_out_) use(left);
}

Reference train_compressed;          // run/reference/single_rank_compression.cpp
extern const MethodRow compression;  // a row of methods.cpp
constinit const MethodRow compression{
    .name = "compression",
    .used = [](const Schedule& s) { return s.methods.get<Compression>() != Compression{}; },
    .make = make_method<CompressionMethod>,
    .sums_gradients = false,
    .own_state = true,
    .by_bits = true,
    .reference = train_compressed};

}  // namespace rehearse::run
