// SPDX-License-Identifier: Apache-2.0
// BERT (Devlin et al. 2018) and its kin of the same modules, with the head that its architecture names.
#include <fmt/format.h>

#include "core/error.hpp"
#include "models/huggingface/families.hpp"
#include "models/huggingface/rows.hpp"

namespace rehearse::models::huggingface {
namespace {

class Bert {
public:
    explicit Bert(const Request& request)
        : c_(request.config),
          architecture_(request.architecture.empty() ? "BertModel" : request.architecture),
          prefix_(architecture_ == "BertModel" ? "" : "bert."),
          hidden_(c_.size("hidden_size")),
          tokens_(tokens_of(request, "max_position_embeddings")),
          table_{tokens_, c_.size("vocab_size"), hidden_, c_.size("max_position_embeddings"),
                 c_.size("type_vocab_size", 2)},
          b_(request.name, Input{{tokens_}, table_.vocabulary}),
          rows_(c_, b_) {}

    Network build() {
        const int embedding = b_.layer(prefix_ + "embeddings.word_embeddings", table_, {NetworkBuilder::input});
        int x = dropped("embeddings.dropout", rows_.layer_norm(prefix_ + "embeddings.LayerNorm", embedding));
        for (std::int64_t i = 0; i < layers_of(c_, "num_hidden_layers"); ++i)
            x = block(fmt::format("encoder.layer.{}", i), x);
        if (architecture_ == "BertForMaskedLM") {
            words(x, embedding);
        } else {
            pooled(x);
        }
        return b_.build();
    }

private:
    int dropped(const std::string& name, int from) {
        return rows_.dropout(prefix_ + name, from, c_.number("hidden_dropout_prob", 0.1));
    }

    int block(const std::string& name, int x) {
        const std::int64_t heads = c_.size("num_attention_heads"),
                           size = evenly(c_, hidden_, heads, "num_attention_heads");
        const std::string self = prefix_ + name + ".attention.self";
        const int q = rows_.dense(self + ".query", x, hidden_, true), k = rows_.dense(self + ".key", x, hidden_, true);
        const int v = rows_.dense(self + ".value", x, hidden_, true);
        int y =
            rows_.attention(self, q, k, v, {.heads = heads, .key_heads = heads, .head_size = size, .value_size = size});
        const auto added = [&](const std::string& part, int from, std::int64_t) {
            const int made = dropped(part + ".dropout", rows_.dense(prefix_ + part + ".dense", from, hidden_, true));
            return rows_.layer_norm(prefix_ + part + ".LayerNorm", b_.add(prefix_ + part + ".add", x, made));
        };
        x = added(name + ".attention.output", y, hidden_);
        y = rows_.dense(prefix_ + name + ".intermediate.dense", x, c_.size("intermediate_size"), true);
        y = rows_.function(prefix_ + name + ".intermediate.act", y, "hidden_act", "gelu");
        return added(name + ".output", y, hidden_);
    }

    // Words that were masked are told from all rows; the scores' bias is a tensor of its own.
    void words(int x, int embedding) {
        const std::string head = "cls.predictions.";
        x = rows_.dense(head + "transform.dense", x, hidden_, true);
        x = rows_.function(head + "transform.transform_act_fn", x, "hidden_act", "gelu");
        x = rows_.layer_norm(head + "transform.LayerNorm", x);
        const bool tied = c_.flag("tie_word_embeddings", true);
        if (!tied) return rows_.word_loss(rows_.dense(head + "decoder", x, table_.vocabulary, true));
        const int scores = b_.tied_dense(head + "decoder", x, embedding);
        rows_.word_loss(b_.layer(head + "bias", Bias{b_.shape(scores), 1}, {scores}));
    }

    // The first row, of what stands before the sentence.
    void pooled(int x) {
        x = rows_.slice(prefix_ + "pooler.first_token", x, 0, 0, 1);
        x = rows_.dense(prefix_ + "pooler.dense", x, hidden_, true);
        x = b_.layer(prefix_ + "pooler.activation", Activation{Nonlinearity::tanh, b_.shape(x)}, {x});
        if (architecture_ == "BertForSequenceClassification")
            x = rows_.dense("classifier", dropped("dropout", x), std::max<std::int64_t>(2, c_.labels(2)), true);
        b_.loss(x);
    }

    const Config& c_;
    std::string architecture_, prefix_;
    std::int64_t hidden_, tokens_;
    Embedding table_;
    NetworkBuilder b_;
    Rows rows_;
};

}  // namespace

Network bert(const Request& request) {
    only_architectures(request, {"BertModel", "BertForMaskedLM", "BertForSequenceClassification"});
    Network network = Bert(request).build();
    const std::int64_t hidden = request.config.size("hidden_size");
    if (request.architecture == "BertForMaskedLM") {  // what is published as BERT's size has the pooler, not this head
        const std::int64_t words = request.config.size("vocab_size");
        const std::int64_t square = hidden * hidden + hidden;
        const std::int64_t tables = request.config.flag("tie_word_embeddings", true) ? 0 : words * hidden;
        request.notes.push_back(fmt::format(
            "BertForMaskedLM has the head that tells masked words and no pooler; BertModel has {} parameters",
            parameters(network) - square - 2 * hidden - words - tables + square));
    }
    return network;
}

}  // namespace rehearse::models::huggingface
