// SPDX-License-Identifier: Apache-2.0
// Layers on the rows of a sequence, as modules of transformers name them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/rotary.hpp"
#include "models/builder.hpp"
#include "models/huggingface/config.hpp"

namespace rehearse::models::huggingface {

/// A function by its name in `hidden_act`: "gelu", "gelu_new" (the tanh form), "silu", "relu", ...; none of that name:
/// nothing. `shape`: of what it is computed.
std::optional<Op> activation(std::string_view name, const Shape& shape);

/// Attention of `queries` rows over `keys` rows: what differs between networks beside its three dense layers.
struct Heads {
    std::int64_t heads = 1, key_heads = 1, head_size = 1;
    std::int64_t value_size = 0;  // 0: head_size
    bool causal = false;
    std::int64_t rotary = 0;  // numbers of each head's queries and keys that rotary embeddings turn
};

class Rows {
public:
    Rows(const Config& config, NetworkBuilder& builder) : config_(config), b_(builder) {}

    int dense(const std::string& name, int from, std::int64_t features, bool bias);
    int layer_norm(const std::string& name, int from);
    /// Root mean square normalization (Zhang and Sennrich 2019) of each row, or of each `size` numbers of a row.
    int rms_norm(const std::string& name, int from, std::int64_t size = 0);
    /// The function that config's `key` names, `otherwise` where it is absent.
    int function(const std::string& name, int from, std::string_view key, std::string_view otherwise);
    int multiply(const std::string& name, int a, int b);
    /// Rotary embeddings (core/rotary.hpp) of the first `heads` heads of each row; 0: of all. `base`: of the angles, by
    /// the config where it is 0.
    int rotary(const std::string& name, int from, Rotation rotation, std::int64_t heads = 0);
    int attention(const std::string& name, int q, int k, int v, const Heads& heads);
    int dropout(const std::string& name, int from, double share);
    /// `count` numbers of an axis, from number `first` on; one row of rows is a vector.
    int slice(const std::string& name, int from, std::size_t axis, std::int64_t first, std::int64_t count);
    int transpose(const std::string& name, int from, const std::vector<std::int64_t>& axes);
    /// The same numbers seen as another shape.
    int view(const std::string& name, int from, const Shape& shape);
    /// silu(gate) * up, then down: the gated block of Shazeer 2020.
    /// The function is the one that `key` names, `otherwise` where it is absent.
    int gated(const std::string& name, int from, std::int64_t inner, bool bias, std::string_view key = "hidden_act",
              std::string_view otherwise = "silu");
    /// The same with one dense layer for both halves.
    int gated_at_once(const std::string& name, int from, std::int64_t inner);
    /// The loss of the next word at each row.
    void word_loss(int scores);
    /// The loss of a sample's label. Of one score it is a regression, which is not run.
    void label_loss(int scores);

    std::int64_t rows(int layer) const { return b_.shape(layer).size() == 1 ? 1 : b_.shape(layer).front(); }
    std::int64_t width(int layer) const { return b_.shape(layer).back(); }
    NetworkBuilder& builder() { return b_; }

private:
    const Config& config_;
    NetworkBuilder& b_;
};

/// The shape of `rows` rows: of one, a vector.
Shape rows_of(std::int64_t rows, std::int64_t features);

/// Heads that share a width: InputError, with the key, when they cannot.
std::int64_t evenly(const Config& config, std::int64_t width, std::int64_t heads, std::string_view key);

/// How many layers, from `key`: so many that they can be listed.
std::int64_t layers_of(const Config& config, std::string_view key);

}  // namespace rehearse::models::huggingface
