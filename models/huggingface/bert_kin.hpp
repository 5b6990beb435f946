// SPDX-License-Identifier: Apache-2.0
// In what BERT and its kin differ: the keys of their configs, the names of their modules, their heads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::models::huggingface {

struct BertKeys {
    std::string_view hidden = "hidden_size", heads = "num_attention_heads", layers = "num_hidden_layers",
                     inner = "intermediate_size", function = "hidden_act", dropout = "hidden_dropout_prob";
};

/// Modules of a layer, behind its own name.
struct BertModules {
    std::string layer = "encoder.layer.{}";
    std::string query = ".attention.self.query", key = ".attention.self.key", value = ".attention.self.value";
    std::string out = ".attention.output.dense", out_norm = ".attention.output.LayerNorm";
    std::string up = ".intermediate.dense", down = ".output.dense", norm = ".output.LayerNorm";
};

/// What tells masked words: a dense layer, a normalization, scores that share the table.
struct BertHead {
    std::string dense = "cls.predictions.transform.dense", norm = "cls.predictions.transform.LayerNorm",
                decoder = "cls.predictions.decoder";
};

struct BertKin {
    std::string base = "Bert", prefix = "bert";  // of classes, and of modules in networks with a head
    std::vector<std::string> heads{"Model", "ForMaskedLM", "ForSequenceClassification"};
    BertKeys keys{};
    BertModules modules{};
    BertHead head{};
    std::string function = "gelu";        // where the config says none
    std::string pooler = "pooler.dense";  // of Model; empty: none
    std::string head_of_classes{};        // a dense layer before the classes, in the pooler's place
    std::string head_function = "tanh";   // behind it
    std::string classes = "classifier";
    std::string widened{};            // the dense layer behind tables narrower than a row
    std::int64_t narrow_tables = 0;   // their width where the config does not say; 0: a row's
    std::int64_t first_position = 0;  // rows of the positions' table before the first token's
    bool segments = true, shared_layers = false;
    bool decodes = true;  // transformers follows is_decoder: a token sees those before it
};

/// Of one of the model types that `bert` builds.
const BertKin& bert_kin(std::string_view model_type);

}  // namespace rehearse::models::huggingface
