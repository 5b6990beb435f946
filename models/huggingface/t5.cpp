// SPDX-License-Identifier: Apache-2.0
// T5 (Raffel et al. 2020), named as Hugging Face's modules: an encoder, and a decoder that also attends to what it
// made. Scores get a learned bias of the distance, the same in all blocks, so that they are formed one by one:
//
//   q {heads, n, d} k {heads, d, n} ─ product ─ + bias {heads, n, n} (+ mask) ─ softmax ─ product with v ─ o
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "core/error.hpp"
#include "models/huggingface/families.hpp"
#include "models/huggingface/rows.hpp"

namespace rehearse::models::huggingface {
namespace {

/// In which bucket a key lies that is `ahead` rows beyond its query (before it where negative), as section 2.1 of
/// Raffel et al. and T5Attention._relative_position_bucket of Hugging Face's transformers have it: half of the buckets
/// for one distance each, the others for ranges that grow with the logarithm, up to `farthest`. Both ways, half of all
/// are of keys beyond.
std::int64_t bucket_of(std::int64_t ahead, std::int64_t buckets, std::int64_t farthest, bool both_ways) {
    if (both_ways) buckets /= 2;
    const std::int64_t first = both_ways && ahead > 0 ? buckets : 0;
    const std::int64_t away = both_ways ? std::abs(ahead) : std::max<std::int64_t>(0, -ahead);
    const std::int64_t exact = buckets / 2;
    if (away < exact) return first + away;
    const auto least = static_cast<float>(exact);
    const float share = std::log(static_cast<float>(away) / least) / std::log(static_cast<float>(farthest) / least);
    const auto beyond = static_cast<std::int64_t>(share * static_cast<float>(buckets - exact));
    return first + std::min(buckets - 1, exact + beyond);
}

class T5 {
public:
    explicit T5(const Request& request)
        : c_(request.config),
          tokens_(request.sizes.take("tokens", std::max<std::int64_t>(2, c_.size("n_positions", 512)), 0,
                                     "tokens of the encoder", request.notes)),
          targets_(request.sizes.take("targets", tokens_, 0, "tokens of the decoder", request.notes)),
          hidden_(c_.size("d_model")),
          heads_(c_.size("num_heads")),
          size_(c_.size("d_kv")),
          b_(request.name, Input{{tokens_}, c_.size("vocab_size")}),
          rows_(c_, b_) {}

    Network build() {
        const Embedding table{tokens_, c_.size("vocab_size"), hidden_};
        const int shared = b_.layer("shared", table, {NetworkBuilder::input});
        const std::int64_t layers = layers_of(c_, "num_layers");
        const std::int64_t layers_of_decoder = c_.size("num_decoder_layers", layers);
        int x = dropped("encoder.dropout_in", shared);
        for (std::int64_t i = 0; i < layers; ++i) x = encode(fmt::format("encoder.block.{}", i), x);
        const int memory = dropped("encoder.dropout", rows_.rms_norm("encoder.final_layer_norm", x));
        const int ids = b_.layer("decoder_input", Input{{targets_}, table.vocabulary}, {});
        const Embedding again{targets_, table.vocabulary, hidden_};
        x = b_.layer("decoder.embed_tokens", Shared{std::make_shared<const SharedOp>(SharedOp{again})}, {ids});
        b_.at(x).weights_of = shared;
        x = dropped("decoder.dropout_in", x);
        bias_ = -1;
        for (std::int64_t i = 0; i < layers_of_decoder; ++i) x = decode(fmt::format("decoder.block.{}", i), x, memory);
        x = dropped("decoder.dropout", rows_.rms_norm("decoder.final_layer_norm", x));
        const bool tied = c_.flag("tie_word_embeddings", true);
        if (tied) x = scaled("lm_head.scale", x, 1 / std::sqrt(static_cast<double>(hidden_)));
        rows_.word_loss(tied ? b_.tied_dense("lm_head", x, shared)
                             : rows_.dense("lm_head", x, table.vocabulary, false));
        return b_.build();
    }

private:
    int dropped(const std::string& name, int from) { return rows_.dropout(name, from, c_.number("dropout_rate", 0.1)); }

    int scaled(const std::string& name, int from, double by) {
        const Shape shape = b_.shape(from);
        return b_.layer(name, Elementwise{.function = "mul", .shape = shape, .inputs = {shape}, .numbers = {by}},
                        {from});
    }

    int encode(const std::string& block, int x) {
        x = self(block + ".layer.0", x, false);
        return feed_forward(block + ".layer.1", x);
    }

    int decode(const std::string& block, int x, int memory) {
        x = self(block + ".layer.0", x, true);
        const std::string name = block + ".layer.1";
        const int normed = rows_.rms_norm(name + ".layer_norm", x);
        const std::string cross = name + ".EncDecAttention";
        const std::int64_t inner = heads_ * size_;
        // T5 leaves scores as they are, which our attention divides by sqrt(d_kv).
        const int q = scaled(cross + ".q.scale", rows_.dense(cross + ".q", normed, inner, false),
                             std::sqrt(static_cast<double>(size_)));
        const int k = rows_.dense(cross + ".k", memory, inner, false),
                  v = rows_.dense(cross + ".v", memory, inner, false);
        const int y = rows_.attention(cross, q, k, v,
                                      {.heads = heads_, .key_heads = heads_, .head_size = size_, .value_size = size_});
        x = b_.add(name + ".add", x, dropped(name + ".dropout", rows_.dense(cross + ".o", y, hidden_, false)));
        return feed_forward(block + ".layer.2", x);
    }

    int self(const std::string& name, int x, bool causal) {
        const int normed = rows_.rms_norm(name + ".layer_norm", x);
        const std::string self = name + ".SelfAttention";
        const std::int64_t n = rows_.rows(x), inner = heads_ * size_;
        const auto part = [&](const std::string& which, const std::vector<std::int64_t>& axes) {
            const int made = rows_.dense(self + "." + which, normed, inner, false);
            return rows_.transpose(self + "." + which + ".transpose",
                                   rows_.view(self + "." + which + ".view", made, {n, heads_, size_}), axes);
        };
        const int q = part("q", {1, 0, 2}), k = part("k", {1, 2, 0}), v = part("v", {1, 0, 2});
        const int products = b_.layer(self + ".scores", BatchedMatMul{b_.shape(q), b_.shape(k)}, {q, k});
        if (bias_ < 0) bias_ = distances(self + ".relative_attention_bias", n, !causal);
        const Shape scores = b_.shape(products);
        Elementwise biased{"add", scores, {scores, scores}};
        if (causal) biased.constants = {{n, n}};
        int p = b_.layer(self + ".bias", biased, {products, bias_});
        if (causal) b_.at(p).given = mask(n);
        p = b_.layer(self + ".softmax", SoftmaxAlong{scores, 2}, {p});
        int y = b_.layer(self + ".context", BatchedMatMul{scores, b_.shape(v)}, {p, v});
        y = rows_.view(self + ".context.view", rows_.transpose(self + ".context.transpose", y, {1, 0, 2}), {n, inner});
        return b_.add(name + ".add", x, dropped(name + ".dropout", rows_.dense(self + ".o", y, hidden_, false)));
    }

    // {heads, n, n}: of each pair of rows the number of its distance's bucket.
    int distances(const std::string& name, std::int64_t n, bool both_ways) {
        const std::int64_t buckets = c_.size("relative_attention_num_buckets", 32);
        const std::int64_t farthest = c_.size("relative_attention_max_distance", 128);
        if (buckets < 4) c_.fail("relative_attention_num_buckets", fmt::format("is {}, at least 4", buckets));
        if (farthest <= buckets / 2) {
            c_.fail("relative_attention_max_distance",
                    fmt::format("is {}, more than half of the {} buckets", farthest, buckets));
        }
        const int picked = b_.layer(name, Gather{{buckets, heads_}, {n * n, heads_}, n * n, true}, {});
        Given told;
        if (is_told(n)) {
            std::vector<std::int32_t>& places = told.places.emplace_back();
            for (std::int64_t pair = 0; pair < n * n; ++pair) {
                const std::int64_t bucket = bucket_of(pair % n - pair / n, buckets, farthest, both_ways);
                for (std::int64_t head = 0; head < heads_; ++head)
                    places.push_back(static_cast<std::int32_t>(bucket * heads_ + head));
            }
        } else {
            told.not_run = not_told(n);
        }
        b_.at(picked).given = std::make_shared<const Given>(std::move(told));
        return rows_.view(name + ".view", rows_.transpose(name + ".transpose", picked, {1, 0}), {heads_, n, n});
    }

    // {n, n}: a query's row sees the keys up to it. The same of all blocks.
    std::shared_ptr<const Given> mask(std::int64_t n) {
        if (mask_ != nullptr) return mask_;
        Given told;
        if (is_told(n)) {
            std::vector<float>& hidden = told.fixed.emplace_back();
            for (std::int64_t pair = 0; pair < n * n; ++pair)
                hidden.push_back(pair % n <= pair / n ? 0 : -std::numeric_limits<float>::infinity());
        } else {
            told.not_run = not_told(n);
        }
        return mask_ = std::make_shared<const Given>(std::move(told));
    }

    // A number for each pair and head is kept in 32 bits: at most 64 MiB of them.
    bool is_told(std::int64_t n) const { return n <= 4096 && n * n <= (1 << 24) / heads_; }
    std::string not_told(std::int64_t n) const {
        return fmt::format("the distances of {0} from {0} rows for {1} heads take more than 64 MiB; give fewer tokens",
                           n, heads_);
    }

    int feed_forward(const std::string& name, int x) {
        const std::string way = c_.text("feed_forward_proj", "relu");
        const bool gated = way.starts_with("gated-");
        std::string function = gated ? way.substr(6) : way;
        if (gated && function == "gelu") function = "gelu_new";
        for (const auto* said : {"dense_act_fn", "is_gated_act"}) (void)c_.has(said);  // what feed_forward_proj says
        const std::string part = name + ".DenseReluDense";
        const int normed = rows_.rms_norm(name + ".layer_norm", x);
        const std::int64_t inner = c_.size("d_ff");
        int y = rows_.dense(part + (gated ? ".wi_0" : ".wi"), normed, inner, false);
        auto op = activation(function, b_.shape(y));
        if (!op) c_.fail("feed_forward_proj", fmt::format("is '{}', a function that is not known", way));
        y = b_.layer(part + ".act", *std::move(op), {y});
        if (gated) y = rows_.multiply(part + ".gated", y, rows_.dense(part + ".wi_1", normed, inner, false));
        y = rows_.dense(part + ".wo", dropped(part + ".dropout", y), hidden_, false);
        return b_.add(name + ".add", x, dropped(name + ".dropout", y));
    }

    const Config& c_;
    std::int64_t tokens_, targets_, hidden_, heads_, size_;
    NetworkBuilder b_;
    Rows rows_;
    int bias_ = -1;  // the layer with the biases of this half's distances
    std::shared_ptr<const Given> mask_{};
};

}  // namespace

Network t5(const Request& request) {
    only_architectures(request, {"T5ForConditionalGeneration", "T5WithLMHeadModel"});
    return T5(request).build();
}

}  // namespace rehearse::models::huggingface
