// SPDX-License-Identifier: Apache-2.0
#include "models/huggingface/config.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse::models::huggingface {
namespace {

// Tokens, decoding, initial values, files and versions: nothing that a layer's size depends on, and what only the
// families that ask for it follow. Dropout of attention's probabilities, too: its fused kernels do it on the way.
constexpr std::array silent{"_name_or_path",
                            "_attn_implementation",
                            "_attn_implementation_autoset",
                            "_commit_hash",
                            "add_cross_attention",
                            "architectures",
                            "attention_dropout",
                            "attention_probs_dropout_prob",
                            "attn_implementation",
                            "attn_pdrop",
                            "auto_map",
                            "aux_loss_alpha",
                            "bad_words_ids",
                            "chunk_size_feed_forward",
                            "classifier_dropout",
                            "cross_attention_hidden_size",
                            "decoder_start_token_id",
                            "diversity_penalty",
                            "do_sample",
                            "drop_path_rate",
                            "dtype",
                            "early_stopping",
                            "encoder_no_repeat_ngram_size",
                            "ep_size",
                            "encoder_stride",
                            "exponential_decay_length_penalty",
                            "finetuning_task",
                            "gradient_checkpointing",
                            "id2label",
                            "initializer_factor",
                            "initializer_range",
                            "is_decoder",
                            "is_encoder_decoder",
                            "label2id",
                            "layer_norm_eps",
                            "layer_norm_epsilon",
                            "layer_types",
                            "length_penalty",
                            "max_length",
                            "max_window_layers",
                            "min_length",
                            "model_type",
                            "n_ctx",
                            "no_repeat_ngram_size",
                            "num_beam_groups",
                            "num_beams",
                            "num_return_sequences",
                            "out_features",
                            "out_indices",
                            "output_attentions",
                            "output_hidden_states",
                            "output_past",
                            "output_router_logits",
                            "output_scores",
                            "path_norm",
                            "prefix",
                            "pretraining_tp",
                            "problem_type",
                            "pruned_heads",
                            "remove_invalid_values",
                            "reorder_and_upcast_attn",
                            "repetition_penalty",
                            "return_dict",
                            "return_dict_in_generate",
                            "rms_norm_eps",
                            "rope_interleave",
                            "rope_scaling",
                            "rope_theta",
                            "rotary_emb_base",
                            "router_aux_loss_coef",
                            "router_jitter_noise",
                            "routed_scaling_factor",
                            "scale_attn_by_inverse_layer_idx",
                            "scale_attn_weights",
                            "scoring_func",
                            "seq_aux",
                            "stage_names",
                            "suppress_tokens",
                            "task_specific_params",
                            "temperature",
                            "tf_legacy_loss",
                            "tokenizer_class",
                            "top_k",
                            "top_p",
                            "torch_dtype",
                            "torchscript",
                            "transformers_version",
                            "typical_p",
                            "use_bfloat16",
                            "use_cache"};

}  // namespace

using nlohmann::json;

Config::Config(std::string_view text, std::string origin) : origin_(std::move(origin)), text_(text) {
    try {
        json_ = json::parse(text);
    } catch (const json::parse_error& error) {
        const auto* const end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
        throw InputError(
            fmt::format("{}:{}: no JSON: {}", origin_, 1 + std::count(text.begin(), end, '\n'), error.what()));
    } catch (const json::exception& error) {  // a number that no double holds
        throw InputError(fmt::format("{}: cannot be read: {}", origin_, error.what()));
    }
    if (!json_.is_object())
        throw InputError(fmt::format("{}: a config.json is an object, {{\"model_type\": ...}}", origin_));
}

void Config::fail(std::string_view key, std::string_view what) const {
    const std::size_t found = text_.find(fmt::format("\"{}\"", key));
    std::string line;
    if (found != std::string::npos) {
        const auto end = text_.begin() + static_cast<std::ptrdiff_t>(found);
        line = fmt::format(":{}", 1 + std::count(text_.begin(), end, '\n'));
    }
    throw InputError(fmt::format("{}{}: key '{}' {}", origin_, line, key, what));
}

const json* Config::find(std::string_view key) const {
    read_.emplace(key);
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
}

bool Config::has(std::string_view key) const { return find(key) != nullptr; }

std::int64_t Config::size(std::string_view key) const {
    if (find(key) == nullptr) fail(key, "is missing: the network's sizes depend on it");
    const std::int64_t value = size(key, 1);
    if (value < 1) fail(key, fmt::format("is {}, at least 1", value));
    return value;
}

namespace {

constexpr std::int64_t largest = std::int64_t{1} << 31;  // products of two sizes still fit

}  // namespace

std::int64_t Config::size(std::string_view key, std::int64_t otherwise, std::int64_t least) const {
    const json* const value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_number_integer() || value->get<double>() < static_cast<double>(least) ||
        value->get<double>() > static_cast<double>(largest))
        fail(key, fmt::format("is {}, not a size (a whole number of at least {})", value->dump(), least));
    return value->get<std::int64_t>();
}

std::int64_t Config::size_unless_null(std::string_view key, std::int64_t otherwise) const {
    return size(key, json_.contains(key) ? 0 : otherwise);
}

std::vector<std::int64_t> Config::sizes(std::string_view key) const {
    if (find(key) == nullptr) fail(key, "is missing: the network's sizes depend on it");
    return sizes(key, {});
}

std::vector<std::int64_t> Config::sizes(std::string_view key, std::vector<std::int64_t> otherwise) const {
    const json* const value = find(key);
    if (value == nullptr) return otherwise;
    std::vector<std::int64_t> all;
    for (const json& each : *value) {
        if (!value->is_array() || !each.is_number_integer() || each.get<double>() < 0 ||
            each.get<double>() > static_cast<double>(largest))
            fail(key, fmt::format("is {}, not a list of sizes", value->dump()));
        all.push_back(each.get<std::int64_t>());
    }
    return all;
}

double Config::number(std::string_view key, double otherwise) const {
    const json* const value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_number()) fail(key, fmt::format("is {}, not a number", value->dump()));
    return value->get<double>();
}

double Config::of_rotary(std::string_view key, double otherwise) const {
    const json* const table = find("rope_parameters");
    const double own = number(key, otherwise);
    if (table == nullptr || !table->is_object() || !table->contains(key)) return own;
    const json& value = table->at(std::string{key});
    if (!value.is_number()) fail(key, fmt::format("is {} in rope_parameters, not a number", value.dump()));
    return value.get<double>();
}

namespace {

std::int64_t part_of(const Config& config, std::string_view key, double times, std::int64_t of) {
    const double all = times * static_cast<double>(of);
    if (!(all >= 0) || all > static_cast<double>(largest))
        config.fail(key, fmt::format("is {}: {} times that is no size (0 to 2^31)", times, of));
    return static_cast<std::int64_t>(all);
}

}  // namespace

std::int64_t Config::part(std::string_view key, double otherwise, std::int64_t of) const {
    return part_of(*this, key, number(key, otherwise), of);
}

std::int64_t Config::turned(std::string_view key, double otherwise, std::int64_t size) const {
    return part_of(*this, key, of_rotary("partial_rotary_factor", number(key, otherwise)), size);
}

bool Config::flag(std::string_view key, bool otherwise) const {
    const json* const value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) fail(key, fmt::format("is {}, not true or false", value->dump()));
    return value->get<bool>();
}

std::string Config::text(std::string_view key, std::string_view otherwise) const {
    const json* const value = find(key);
    if (value == nullptr) return std::string{otherwise};
    if (!value->is_string()) fail(key, fmt::format("is {}, not a text", value->dump()));
    return value->get<std::string>();
}

std::string Config::first(std::string_view key) const {
    const json* const value = find(key);
    if (value == nullptr || (value->is_array() && value->empty())) return "";
    if (!value->is_array() || !value->front().is_string())
        fail(key, fmt::format("is {}, not a list of texts", value->dump()));
    return value->front().get<std::string>();
}

std::int64_t Config::labels(std::int64_t otherwise) const {
    if (has("num_labels")) return size("num_labels");
    const json* const value = find("id2label");
    if (value == nullptr) return otherwise;
    if (!value->is_object() || value->empty()) fail("id2label", "holds no labels");
    return static_cast<std::int64_t>(value->size());
}

void Config::only(std::string_view key, bool wanted, std::string_view why) const {
    if (flag(key, wanted) != wanted) fail(key, fmt::format("is {}: {}; only {} is known", !wanted, why, wanted));
}

std::vector<std::string> Config::unread() const {
    std::vector<std::string> all;
    for (const auto& [key, value] : json_.items()) {
        if (read_.contains(key) || value.is_null() || key.ends_with("_token_id") || key.starts_with("summary_") ||
            key.starts_with("pooler_") || std::ranges::find(silent, key) != silent.end())
            continue;
        all.push_back(key);
    }
    return all;
}

std::int64_t Sizes::take(const std::string& name, std::int64_t otherwise, std::int64_t most, std::string_view why,
                         std::vector<std::string>& notes) {
    asked_.push_back(name);
    const auto given = given_.find(name);
    if (given == given_.end()) {
        notes.push_back(fmt::format("{} {}, {}; --sizes {}=N takes others", otherwise, name, why, name));
        return otherwise;
    }
    if (given->second < 2 || (most > 0 && given->second > most)) {
        throw InputError(fmt::format("{}: {} takes 2{} {}",
                                     typed_.empty() ? fmt::format("--sizes {}={}", name, given->second) : typed_,
                                     origin_, most > 0 ? fmt::format(" to {}", most) : " or more", name));
    }
    return given->second;
}

void Sizes::check() const {
    for (const auto& [name, size] : given_) {
        if (std::ranges::find(asked_, name) != asked_.end()) continue;
        throw InputError(
            fmt::format("--sizes {}={}: {} has no such size; it has {}", name, size, origin_,
                        asked_.empty() ? "none that is left open" : fmt::format("{}", fmt::join(asked_, ", "))));
    }
}

}  // namespace rehearse::models::huggingface
