// SPDX-License-Identifier: Apache-2.0
// What a board computes of a transformer's block by its plan: products by tiles, attention by its kernel, casts to
// 8 bits and what lies between products by the bytes that it moves. docs/language_models.md explains it.
#pragma once

#include "core/machine.hpp"
#include "predict/language_node.hpp"
#include "predict/language_plan.hpp"
#include "prices/tile_model.hpp"

namespace rehearse::predict {

struct Passes {
    Seconds forward, backward;
    Passes& operator+=(const Passes& other) {
        forward += other.forward;
        backward += other.backward;
        return *this;
    }
    Seconds both() const { return forward + backward; }
};

class LanguageBlock {
public:
    /// `device` has tiles. All four outlive the block.
    LanguageBlock(const LanguageModel& model, const LanguagePlan& plan, const DeviceClass& device,
                  const LanguageBoard& board);

    /// Time of one micro-batch on one rank; what is computed again is part of the backward pass.
    Passes block(std::int64_t index) const;
    /// The product with the table of words, and the loss.
    Passes scores() const;
    /// The product that joins a block's rows with those of the next token.
    Passes joined_rows() const { return product(tokens_, hidden(), 2 * hidden(), 1, p_.type); }
    /// Products of as many experts as a rank has, of so many rows each, without casts.
    Passes expert_products(double rows, double columns, double depth, double experts, DataType type) const;

    Seconds moved(double bytes) const { return Bytes{bytes} / memory_; }
    double tokens() const { return tokens_; }
    double element() const { return element_; }  // bytes of a value of a row

private:
    bool fused_experts() const { return p_.fused_experts && !m_.biases; }
    double hidden() const { return static_cast<double>(m_.hidden); }
    /// A block's kernels without those that are computed again.
    struct Work {
        Passes products, attention, casts;
        Passes experts;   // what is done to their rows beside products and activation
        Passes rotation;  // beyond a fused one
        double kernels = 0, operators = 0;
        Seconds again;  // forward work that backward does once more, beside `recompute`
    };
    /// Where a product's operands come from: rows gathered from, or results summed over a tensor group.
    enum class Side { none, gathered, scattered };

    Passes product(double rows, double columns, double depth, double count, DataType type) const;
    void multiply(Work& work, double rows, double columns, double depth, double count, Side side) const;
    void cast(Work& work, double inputs, double results, double weights, Side side) const;
    double add_attention(Work& work, std::int64_t index) const;
    void rotate_scaled(Work& work, double heads, double key_heads) const;
    void fused_attention(Work& work, double key, double value, double heads, bool windowed) const;
    void kept_attention(Work& work, double size, double heads) const;
    double feed_forward(Work& work, double rows, double width, double count) const;
    double add_experts(Work& work) const;
    void dispatch(Work& work, double taken) const;
    void add_biases(Work& work, double taken) const;
    double between_products(double own_rows, double rotated) const;
    Passes with_recomputation(const Work& work, Passes between) const;

    const LanguageModel& m_;
    const LanguagePlan& p_;
    const DeviceClass& device_;
    const LanguageBoard& board_;
    TileModel tiles_, tiles_8bit_, bare_tiles_, bare_tiles_8bit_;  // bare: without what begins and stores them
    Bandwidth memory_;
    double tokens_ = 0, tensor_ = 1, element_ = 2;
};

}  // namespace rehearse::predict
