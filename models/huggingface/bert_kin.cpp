// SPDX-License-Identifier: Apache-2.0
// By transformers' modeling_*.py and configuration_*.py of each.
#include "models/huggingface/bert_kin.hpp"

#include <map>

#include "core/error.hpp"

namespace rehearse::models::huggingface {
namespace {

BertKin roberta(std::string base, std::string prefix) {
    return {.base = std::move(base),
            .prefix = std::move(prefix),
            .head = {"lm_head.dense", "lm_head.layer_norm", "lm_head.decoder"},
            .head_of_classes = "classifier.dense",
            .classes = "classifier.out_proj",
            .first_position = 2};
}

BertKin distilbert() {
    return {.base = "DistilBert",
            .prefix = "distilbert",
            .keys = {"dim", "n_heads", "n_layers", "hidden_dim", "activation", "dropout"},
            .modules = {"transformer.layer.{}", ".attention.q_lin", ".attention.k_lin", ".attention.v_lin",
                        ".attention.out_lin", ".sa_layer_norm", ".ffn.lin1", ".ffn.lin2", ".output_layer_norm"},
            .head = {"vocab_transform", "vocab_layer_norm", "vocab_projector"},
            .pooler = "",
            .head_of_classes = "pre_classifier",
            .head_function = "relu",
            .segments = false,
            .decodes = false};
}

BertKin electra() {
    return {.base = "Electra",
            .prefix = "electra",
            .heads = {"Model", "ForPreTraining", "ForMaskedLM", "ForSequenceClassification"},
            .head = {"generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head"},
            .pooler = "",
            .head_of_classes = "classifier.dense",
            .head_function = "gelu",
            .classes = "classifier.out_proj",
            .widened = "embeddings_project",
            .narrow_tables = 128};
}

BertKin albert() {
    return {.base = "Albert",
            .prefix = "albert",
            .modules = {"encoder.albert_layer_groups.{}.albert_layers.0", ".attention.query", ".attention.key",
                        ".attention.value", ".attention.dense", ".attention.LayerNorm", ".ffn", ".ffn_output",
                        ".full_layer_layer_norm"},
            .head = {"predictions.dense", "predictions.LayerNorm", "predictions.decoder"},
            .function = "gelu_new",
            .pooler = "pooler",
            .widened = "encoder.embedding_hidden_mapping_in",
            .narrow_tables = 128,
            .shared_layers = true,
            .decodes = false};
}

}  // namespace

const BertKin& bert_kin(std::string_view model_type) {
    static const std::map<std::string_view, BertKin> kin{{"albert", albert()},
                                                         {"bert", {}},
                                                         {"camembert", roberta("Camembert", "roberta")},
                                                         {"distilbert", distilbert()},
                                                         {"electra", electra()},
                                                         {"roberta", roberta("Roberta", "roberta")},
                                                         {"xlm-roberta", roberta("XLMRoberta", "roberta")}};
    const auto found = kin.find(model_type);
    require(found != kin.end(), "a model type of bert's family");
    return found->second;
}

}  // namespace rehearse::models::huggingface
