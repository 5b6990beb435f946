// SPDX-License-Identifier: Apache-2.0
// BERT (Devlin et al. 2018) and its kin, with the head that the architecture names: RoBERTa (Liu et al. 2019),
// DistilBERT (Sanh et al. 2019), ELECTRA (Clark et al. 2020), ALBERT (Lan et al. 2019). What differs stands in
// bert_kin.cpp.
#include <fmt/format.h>

#include "core/error.hpp"
#include "models/huggingface/bert_kin.hpp"
#include "models/huggingface/families.hpp"
#include "models/huggingface/rows.hpp"

namespace rehearse::models::huggingface {
namespace {

// "x.output" of "x.output.dense": what stands beside a dense layer in its module.
std::string beside(const std::string& dense) {
    constexpr std::string_view layer = ".dense";
    return dense.ends_with(layer) ? dense.substr(0, dense.size() - layer.size()) : dense;
}

class Bert {
public:
    Bert(const Request& request, const BertKin& kin)
        : c_(request.config),
          kin_(kin),
          architecture_(request.architecture.empty() ? kin.base + "Model" : request.architecture),
          prefix_(architecture_ == kin.base + "Model" ? "" : kin.prefix + "."),
          hidden_(c_.size(kin.keys.hidden)),
          narrow_(c_.size("embedding_size", kin.narrow_tables == 0 ? hidden_ : kin.narrow_tables)),
          tokens_(tokens_of(request, "max_position_embeddings", kin.first_position)),
          table_{tokens_, c_.size("vocab_size"), narrow_, c_.size("max_position_embeddings"),
                 kin.segments ? c_.size("type_vocab_size", 2) : 0},
          b_(request.name, Input{{tokens_}, table_.vocabulary}),
          rows_(c_, b_) {}

    Network build() {
        const int embedding = b_.layer(prefix_ + "embeddings.word_embeddings", table_, {NetworkBuilder::input});
        int x = dropped(prefix_ + "embeddings.dropout", rows_.layer_norm(prefix_ + "embeddings.LayerNorm", embedding));
        if (narrow_ != hidden_ || kin_.shared_layers) x = rows_.dense(prefix_ + kin_.widened, x, hidden_, true);
        const std::int64_t layers = layers_of(c_, kin_.keys.layers);
        for (std::int64_t i = 0; i < layers; ++i) x = kin_.shared_layers ? again(i, x) : block(layer_name(i), x);
        if (architecture_ == kin_.base + "ForMaskedLM") {
            words(x, embedding);
        } else if (architecture_ == kin_.base + "ForPreTraining") {
            replaced(x);
        } else if (classifies()) {
            rows_.label_loss(classified(x));
        } else {
            b_.loss(classified(x));
        }
        return b_.build();
    }

private:
    int dropped(const std::string& name, int from) {
        return rows_.dropout(name, from, c_.number(kin_.keys.dropout, 0.1));
    }

    std::string layer_name(std::int64_t index) const {
        return prefix_ + fmt::format(fmt::runtime(kin_.modules.layer), index);
    }

    int block(const std::string& name, int x) {
        const BertModules& m = kin_.modules;
        const std::int64_t heads = c_.size(kin_.keys.heads), size = evenly(c_, hidden_, heads, kin_.keys.heads);
        const int q = rows_.dense(name + m.query, x, hidden_, true), k = rows_.dense(name + m.key, x, hidden_, true);
        const int v = rows_.dense(name + m.value, x, hidden_, true);
        int y = rows_.attention(name + ".attention.self", q, k, v,
                                {.heads = heads,
                                 .key_heads = heads,
                                 .head_size = size,
                                 .value_size = size,
                                 .causal = kin_.decodes && c_.flag("is_decoder", false)});
        const auto added = [&](const std::string& dense, const std::string& norm, int from) {
            const int made = dropped(name + beside(dense) + ".dropout", rows_.dense(name + dense, from, hidden_, true));
            return rows_.layer_norm(name + norm, b_.add(name + beside(dense) + ".add", x, made));
        };
        x = added(m.out, m.out_norm, y);
        y = rows_.dense(name + m.up, x, c_.size(kin_.keys.inner), true);
        y = rows_.function(name + beside(m.up) + ".act", y, kin_.keys.function, kin_.function);
        return added(m.down, m.norm, y);
    }

    // The first block's layers once more, with their weights.
    int again(std::int64_t index, int x) {
        if (index == 0) {
            first_ = x + 1;  // a block's layers lie one after the other, what it makes is the last
            read_ = x;
            return last_ = block(layer_name(0), x);
        }
        const int shift = x + 1 - first_;
        int made = x;
        for (int i = first_; i <= last_; ++i) {
            const Layer layer = b_.at(i);
            std::vector<int> inputs = layer.inputs;
            for (int& input : inputs) input = input == read_ ? x : input + shift;
            const bool trained = parameters(layer.op) > 0;
            Op op = trained ? Op{Shared{std::make_shared<const SharedOp>(SharedOp{layer.op})}} : layer.op;
            made = b_.layer(fmt::format("{}#{}", layer.name, index + 1), std::move(op), std::move(inputs));
            if (trained) b_.at(made).weights_of = i;
        }
        return made;
    }

    // Words that were masked are told from all rows; the scores' bias is a tensor of its own.
    void words(int x, int embedding) {
        const BertHead& head = kin_.head;
        x = rows_.dense(head.dense, x, narrow_, true);
        x = rows_.function(beside(head.dense) + ".transform_act_fn", x, kin_.keys.function, kin_.function);
        x = rows_.layer_norm(head.norm, x);
        const bool tied = c_.flag("tie_word_embeddings", true);
        if (!tied) return rows_.word_loss(rows_.dense(head.decoder, x, table_.vocabulary, true));
        const int scores = b_.tied_dense(head.decoder, x, embedding);
        rows_.word_loss(b_.layer(head.decoder + ".bias", Bias{b_.shape(scores), 1}, {scores}));
    }

    // ELECTRA's discriminator says of each token whether it was replaced.
    void replaced(int x) {
        x = rows_.dense("discriminator_predictions.dense", x, hidden_, true);
        x = rows_.function("discriminator_predictions.act", x, kin_.keys.function, kin_.function);
        x = rows_.dense("discriminator_predictions.dense_prediction", x, 1, true);
        b_.loss(rows_.view("discriminator_predictions.squeeze", x, {tokens_}));
    }

    bool classifies() const { return architecture_ == kin_.base + "ForSequenceClassification"; }

    // From the first row, of what stands before the sentence.
    int classified(int x) {
        x = rows_.slice(prefix_ + "first_token", x, 0, 0, 1);
        if (!kin_.pooler.empty() && (!classifies() || kin_.head_of_classes.empty())) {
            x = rows_.dense(prefix_ + kin_.pooler, x, hidden_, true);
            x = b_.layer(prefix_ + beside(kin_.pooler) + ".activation", Activation{Nonlinearity::tanh, b_.shape(x)},
                         {x});
        }
        if (!classifies()) return x;
        if (!kin_.head_of_classes.empty()) {
            x = rows_.dense(kin_.head_of_classes, x, hidden_, true);
            x = b_.layer(kin_.head_of_classes + ".act", *activation(kin_.head_function, b_.shape(x)), {x});
        }
        return rows_.dense(kin_.classes, dropped("dropout", x), c_.labels(2), true);
    }

    const Config& c_;
    const BertKin& kin_;
    std::string architecture_, prefix_;
    std::int64_t hidden_, narrow_, tokens_;
    Embedding table_;
    NetworkBuilder b_;
    Rows rows_;
    int first_ = 0, last_ = 0, read_ = 0;  // of the block that is repeated
};

// What differs from attention of all tokens to all, by their rows in a table of positions.
void check_attention(const Config& config, const BertKin& kin) {
    const std::string positions = config.text("position_embedding_type", "absolute");
    if (positions != "absolute") {
        config.fail("position_embedding_type",
                    fmt::format("is '{}': scores by distance are not known; only 'absolute' is", positions));
    }
    if (kin.decodes) config.only("add_cross_attention", false, "attention to what an encoder made is not built");
}

}  // namespace

Network bert(const Request& request) {
    const BertKin& kin = bert_kin(request.config.text("model_type", ""));
    std::vector<std::string> known;
    for (const std::string& head : kin.heads) known.push_back(kin.base + head);
    only_architectures(request, {known.begin(), known.end()});
    if (kin.shared_layers)
        for (const char* key : {"num_hidden_groups", "inner_group_num"})
            if (request.config.size(key, 1) != 1) request.config.fail(key, "is not 1: one block is repeated here");
    check_attention(request.config, kin);
    Network network = Bert(request, kin).build();
    if (request.architecture == "BertForMaskedLM") {  // what is published as BERT's size has the pooler, not this head
        const std::int64_t hidden = request.config.size("hidden_size"), words = request.config.size("vocab_size");
        const std::int64_t square = hidden * hidden + hidden;
        const std::int64_t tables = request.config.flag("tie_word_embeddings", true) ? 0 : words * hidden;
        request.notes.push_back(fmt::format(
            "BertForMaskedLM has the head that tells masked words and no pooler; BertModel has {} parameters",
            parameters(network) - square - 2 * hidden - words - tables + square));
    }
    if (request.architecture == kin.base + "ForPreTraining")
        request.notes.push_back("the loss of each token, replaced or not, is one softmax over the tokens here");
    return network;
}

}  // namespace rehearse::models::huggingface
