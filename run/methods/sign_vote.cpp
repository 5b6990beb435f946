// SPDX-License-Identifier: Apache-2.0
// SignSGD with majority vote: ranks send the signs of their gradients, and all update by that which most of them have.
#include "core/methods/sign_vote.hpp"

#include <bit>
#include <map>

#include "run/methods/method.hpp"

namespace rehearse::run {

namespace {

/// The signs of `values`, 32 in a word, the first in its lowest bit: set where a value is below 0.
void take_signs(std::span<const float> values, std::span<float> words) {
    for (std::size_t word = 0; word < words.size(); ++word) {
        std::uint32_t bits = 0;
        for (std::size_t i = 32 * word; i < std::min(32 * word + 32, values.size()); ++i) {
            bits |= static_cast<std::uint32_t>(values[i] < 0) << (i % 32);
        }
        words[word] = std::bit_cast<float>(bits);
    }
}

/// All-gathers of the signs of a bucket. The gradients become 1, -1, or 0 where as many ranks have one as the other.
class SignVoteMethod : public Method {
public:
    explicit SignVoteMethod(RankContext& rank) : rank_(rank) {}

    bool prepare(ReadyStep& ready) override {
        const auto* const communicate = std::get_if<Communicate>(&ready.step->action);
        if (communicate == nullptr || communicate->content != Content::compressed) return false;
        const std::span<float> gradients = rank_.tensors.bucket(communicate->bucket()).applied;
        const std::int64_t ranks = size_of(rank_.schedule.mesh, communicate->axis);
        const std::size_t each = at(words_of_signs(static_cast<std::int64_t>(gradients.size())));
        std::vector<float>& words = words_[communicate->bucket()];
        words.resize(each * at(ranks));
        ready.data = std::span<float>{words};
        const std::size_t own = at(place_on(rank_.schedule.mesh, communicate->axis, rank_.rank));
        ready.before = [this, bucket = communicate->bucket(), &words, gradients, each, own] {
            const std::span<float> sent = std::span{words}.subspan(own * each, each);
            take_signs(gradients, sent);
            if (sent_ != nullptr) (*sent_)[bucket].emplace_back(sent.begin(), sent.end());
        };
        ready.after = [&words, gradients, each, ranks] {
            for (std::size_t i = 0; i < gradients.size(); ++i) {
                std::int64_t below = 0;
                for (std::size_t from = 0; from < words.size(); from += each) {
                    below += std::bit_cast<std::uint32_t>(words[from + i / 32]) >> (i % 32) & 1U;
                }
                gradients[i] = 2 * below > ranks ? -1.0F : 2 * below < ranks ? 1.0F : 0.0F;
            }
        };
        return true;
    }

    void write_down(SentWords& sent) override { sent_ = &sent; }

private:
    RankContext& rank_;
    SentWords* sent_ = nullptr;
    std::map<int, std::vector<float>> words_;  // by bucket: all ranks' signs
};

}  // namespace

Reference train_by_vote;           // run/reference/single_rank_sign_vote.cpp
extern const MethodRow sign_vote;  // a row of methods.cpp
constinit const MethodRow sign_vote{.name = "sign_vote",
                                    .used = [](const Schedule& s) { return s.methods.get<SignVote>().on; },
                                    .make = make_method<SignVoteMethod>,
                                    .sums_gradients = false,
                                    .by_bits = true,
                                    .reference = train_by_vote};

}  // namespace rehearse::run
