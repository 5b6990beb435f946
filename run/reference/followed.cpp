// SPDX-License-Identifier: Apache-2.0
#include "run/reference/followed.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "core/error.hpp"
#include "core/index.hpp"

namespace rehearse::run {

namespace {

void append(std::string& text, std::int64_t number) {
    text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

class Reader {
public:
    explicit Reader(const std::string& text) : text_(text) {}
    bool more() const { return at_ < text_.size(); }
    std::int64_t number() {
        std::int64_t number = 0;
        take(&number, sizeof number);
        return number;
    }
    void take(void* to, std::size_t bytes) {
        require(at_ + bytes <= text_.size(), "what a rank wrote down is whole");
        if (bytes > 0) std::memcpy(to, text_.data() + at_, bytes);
        at_ += bytes;
    }

private:
    const std::string& text_;
    std::size_t at_ = 0;
};

}  // namespace

AllSent share_sent(const kernels::Communicator& world, const SentWords& own) {
    std::string text;  // of each time: bucket, words, the words
    for (const auto& [bucket, times] : own) {
        for (const std::vector<float>& words : times) {
            append(text, bucket);
            append(text, static_cast<std::int64_t>(words.size()));
            text.append(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(float));
        }
    }
    const std::vector<std::string> texts = world.all_gather(text);
    AllSent all;
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
        for (Reader reader{texts[rank]}; reader.more();) {
            const auto bucket = static_cast<int>(reader.number());
            std::vector<float> words(at(reader.number()));
            reader.take(words.data(), words.size() * sizeof(float));
            all[{RankIndex{static_cast<std::int64_t>(rank)}, bucket}].push_back(std::move(words));
        }
    }
    return all;
}

void follow_signs(std::span<float> values, std::span<const float> below, std::span<const float> reach) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        const bool sent_below = (std::bit_cast<std::uint32_t>(below[i / 32]) >> (i % 32) & 1U) != 0;
        if (sent_below == (values[i] < 0) || std::abs(values[i]) >= reach[i]) continue;
        values[i] = sent_below ? -std::numeric_limits<float>::min() : 0.0F;
    }
}

void follow_largest(std::span<float> values, std::span<const float> words, std::span<const float> reach) {
    const std::size_t kept = words.size() / 2;
    if (kept == 0 || kept >= values.size()) return;
    std::vector<bool> was_sent(values.size());
    for (std::size_t i = 0; i < kept; ++i) was_sent.at(std::bit_cast<std::uint32_t>(words[i])) = true;
    std::vector<float> magnitudes;
    for (const float value : values) magnitudes.push_back(std::abs(value));
    std::ranges::nth_element(magnitudes, magnitudes.begin() + static_cast<std::ptrdiff_t>(kept) - 1, std::greater<>{});
    const float smallest = magnitudes[kept - 1];
    for (std::size_t i = 0; i < values.size(); ++i) {
        const float magnitude = std::abs(values[i]);
        const bool over = was_sent[i] && magnitude <= smallest, under = !was_sent[i] && magnitude >= smallest;
        if ((!over && !under) || std::abs(magnitude - smallest) >= reach[i]) continue;
        const float towards = over ? std::numeric_limits<float>::infinity() : 0;
        values[i] = std::copysign(std::nextafter(smallest, towards), values[i]);
    }
}

std::vector<float> signs_of(std::span<const float> values) {
    std::vector<std::uint32_t> bits((values.size() + 31) / 32);
    for (std::size_t i = 0; i < values.size(); ++i)
        bits[i / 32] |= static_cast<std::uint32_t>(values[i] < 0) << (i % 32);
    std::vector<float> words;
    for (const std::uint32_t word : bits) words.push_back(std::bit_cast<float>(word));
    return words;
}

void Followed::decide(RankIndex rank, int bucket, std::vector<float> words) {
    if (!always_) decided_[{rank, bucket}].push_back(std::move(words));
}

std::span<const float> Followed::next(RankIndex rank, int bucket) {
    const auto found = all_.find({rank, bucket});
    if (found == all_.end()) return {};
    const std::size_t time = times_[{rank, bucket}]++;
    return time < found->second.size() ? std::span<const float>{found->second[time]} : std::span<const float>{};
}

std::vector<float> Followed::reach(std::span<const float> measured) const {
    if (!always_) return {measured.begin(), measured.end()};
    return std::vector<float>(measured.size(), std::numeric_limits<float>::infinity());
}

}  // namespace rehearse::run
