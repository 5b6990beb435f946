// SPDX-License-Identifier: Apache-2.0
// Queries, keys and values come from one dense layer, as every implementation has it. Not modelled: dropout of
// attention probabilities, BERT's next-sentence head, its decoder's bias (30,522 numbers), GPT-3's sparse attention in
// every other layer. gelu is the exact one: GPT-2's tanh form differs by less than 5e-4.
#include "models/zoo/transformer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.hpp"
#include "core/text.hpp"
#include "models/builder.hpp"
#include "models/models.hpp"

namespace rehearse::models {
namespace {

using enum TransformerKind;

// Megatron-LM pads a vocabulary to a multiple of 128 for each rank that shares it: 50304 of GPT-2's 50257 words.
// M6 (Lin et al. 2021), as mixtures of experts (M6-T, Yang et al. 2021; in Whale, Jia et al. 2022): 24 blocks of 1024,
// 512 experts of 4096 or 960 of 21248, as remembered: their weights are the 103.2e9 and 1002.7e9 published, to 0.1 %.
// Not known to us: the tokens of a sample (512 here, or m6-1t@N), and in which groups they compete (8 samples, of one
// GPU). Images are tokens like others. Experts have no bias, and there is no auxiliary loss that spreads tokens.
constexpr std::int64_t m6_words = 21128;
constexpr std::int64_t bert_words = 30522, gpt_words = 50257, gpt_words_padded = 50304, megatron_words = 51200;

constexpr Transformer asking(Transformer size, Asked asked) {
    size.asked = asked;
    return size;
}

// BERT: Devlin et al. 2018, section 3. GPT-2: Radford et al. 2019, table 2 (heads of 64). GPT-3: Brown et al. 2020,
// table 2.1. Megatron-LM: Narayanan et al. 2021, table 1, sequences of 2048.
constexpr std::array transformers{
    Transformer{"bert-base", encoder, 12, 768, 12, bert_words, 512, 2},
    Transformer{"bert-large", encoder, 24, 1024, 16, bert_words, 512, 2},
    asking(Transformer{"bert-base-masked", encoder, 12, 768, 12, bert_words, 512, 2}, Asked::masked),
    asking(Transformer{"bert-large-masked", encoder, 24, 1024, 16, bert_words, 512, 2}, Asked::masked),
    asking(Transformer{"bert-base-squad", encoder, 12, 768, 12, bert_words, 512, 2}, Asked::answers),
    asking(Transformer{"bert-large-squad", encoder, 24, 1024, 16, bert_words, 512, 2}, Asked::answers),
    Transformer{"gpt2-xl", decoder, 48, 1600, 25, gpt_words, 1024},
    Transformer{"gpt3-175b", decoder, 96, 12288, 96, gpt_words_padded, 2048},
    Transformer{"megatron-1.7b", decoder, 24, 2304, 24, megatron_words, 2048},
    Transformer{"megatron-3.6b", decoder, 30, 3072, 32, megatron_words, 2048},
    Transformer{"megatron-7.5b", decoder, 36, 4096, 32, megatron_words, 2048},
    Transformer{"megatron-18.4b", decoder, 40, 6144, 48, megatron_words, 2048},
    Transformer{"megatron-39.1b", decoder, 48, 8192, 64, megatron_words, 2048},
    Transformer{"megatron-76.1b", decoder, 60, 10240, 80, megatron_words, 2048},
    Transformer{"megatron-145.6b", decoder, 80, 12288, 96, megatron_words, 2048},
    Transformer{"megatron-310.1b", decoder, 96, 16384, 128, megatron_words, 2048},
    Transformer{"megatron-529.6b", decoder, 105, 20480, 128, megatron_words, 2048},
    Transformer{"megatron-1t", decoder, 128, 25600, 160, megatron_words, 2048},
    Transformer{"m6-100b", encoder, 24, 1024, 16, m6_words, 512, 0, 0.9, 4096, 512, 1, 1.25, 8},
    Transformer{"m6-1t", encoder, 24, 1024, 16, m6_words, 512, 0, 0.9, 21248, 960, 1, 1.25, 8},
};

class Blocks {
public:
    Blocks(const Transformer& size, std::int64_t sequence)
        : size_(size), sequence_(sequence), b_(std::string{size.name}, Input{{sequence}, size.vocabulary}) {}

    Network build() {
        const Embedding table{sequence_, size_.vocabulary, size_.hidden, size_.positions, size_.segments};
        const int embedding = b_.layer("embedding", table, {NetworkBuilder::input});
        int x = embedding;
        if (size_.kind == encoder) x = norm("embedding.norm", x);
        x = drop("embedding.dropout", x);
        for (std::int64_t i = 0; i < size_.layers; ++i) x = block(fmt::format("layer{}", i), x);
        if (size_.asked == Asked::answers) {
            // A softmax over the tokens, for begin and end: here over the two, for each token, which is as many
            // numbers.
            b_.layer("loss", SoftmaxLoss{.classes = 2, .rows = sequence_}, {dense("head.scores", x, 2)});
            return b_.build();
        }
        if (size_.asked == Asked::masked) {
            const std::int64_t masked = std::max<std::int64_t>(2, sequence_ * 5 / 32);
            x = b_.layer("head.masked", Rearrangement{"slice", {b_.shape(x)}, {masked, size_.hidden}, {0, 0, 1, 1}},
                         {x});
        }
        if (size_.kind == encoder) {  // the head that predicts masked words
            x = gelu("head.gelu", dense("head.dense", x, size_.hidden));
        }
        x = norm("head.norm", x);
        const int scores = b_.tied_dense("head.scores", x, embedding);
        b_.layer("loss", SoftmaxLoss{.classes = size_.vocabulary, .rows = rows(x)}, {scores});
        return b_.build();
    }

private:
    int block(const std::string& name, int x) {
        const bool before = size_.kind == decoder;
        const auto half = [&](const std::string& part, int from, auto compute) {
            int y = compute(before ? norm(name + "." + part + "_norm", from) : from);
            y = b_.add(name + "." + part + "_add", from, drop(name + "." + part + "_dropout", y));
            return before ? y : norm(name + "." + part + "_norm", y);
        };
        x = half("attention", x, [&](int from) {
            const int qkv = dense(name + ".qkv", from, 3 * size_.hidden);
            const Attention op{size_.heads,           sequence_, sequence_, size_.hidden / size_.heads,
                               size_.kind == decoder, true};
            return dense(name + ".projection", b_.layer(name + ".attention", op, {qkv}), size_.hidden);
        });
        return half("mlp", x, [&](int from) {
            const std::int64_t inner = size_.inner > 0 ? size_.inner : 4 * size_.hidden;
            if (size_.experts > 0) return mixture(name, from, inner);
            const int wide = dense(name + ".fc1", from, inner);
            return dense(name + ".fc2", gelu(name + ".gelu", wide), size_.hidden);
        });
    }

    int mixture(const std::string& name, int from, std::int64_t inner) {
        const double even =
            static_cast<double>(size_.top * sequence_ * size_.group) / static_cast<double>(size_.experts);
        const auto capacity = static_cast<std::int64_t>(std::ceil(size_.room * even));
        const Routing routing{sequence_, size_.hidden, size_.experts, size_.top, capacity, size_.group};
        const auto experts = [&](const char* which, int rows, std::int64_t wide) {
            const GroupedMatMul op{size_.experts, capacity, wide, b_.shape(rows).back(), 1, size_.group, false};
            return b_.layer(name + which, op, {rows});
        };
        const int scores = b_.layer(name + ".gate", MatMul{sequence_, size_.experts, size_.hidden, false}, {from});
        const int slots = b_.layer(name + ".dispatch", DispatchTokens{routing}, {from, scores});
        const int wide = gelu(name + ".gelu", experts(".experts1", slots, inner));
        return b_.layer(name + ".combine", CombineTokens{routing}, {experts(".experts2", wide, size_.hidden), scores});
    }

    int dense(const std::string& name, int from, std::int64_t features) {
        return b_.layer(name, MatMul{rows(from), features, b_.shape(from).back(), true}, {from});
    }
    int norm(const std::string& name, int from) { return b_.layer(name, LayerNorm{rows(from), size_.hidden}, {from}); }
    std::int64_t rows(int from) const { return b_.shape(from).front(); }
    int gelu(const std::string& name, int from) {
        return b_.layer(name, Activation{Nonlinearity::gelu, b_.shape(from)}, {from});
    }
    int drop(const std::string& name, int from) { return size_.keep < 1 ? b_.dropout(name, from, size_.keep) : from; }

    Transformer size_;
    std::int64_t sequence_;
    NetworkBuilder b_;
};

}  // namespace

Network transformer(const Transformer& size, std::int64_t sequence) {
    require(size.hidden % size.heads == 0, "heads share the width evenly");
    if (sequence < 2) throw InputError(fmt::format("{}: a sample of {} tokens, at least 2", size.name, sequence));
    if (sequence > size.positions) {
        throw InputError(
            fmt::format("{}: a sample of {} tokens; 2 to {} have positions", size.name, sequence, size.positions));
    }
    return Blocks(size, sequence).build();
}

const Transformer* find_transformer(std::string_view name) {
    for (const Transformer& each : transformers) {
        if (each.name == name) return &each;
    }
    return nullptr;
}

namespace {

constexpr std::string_view any_gpt = "gpt-";

/// "gpt-h1024-a16-l24-v50257": a decoder of these sizes, as wide a table of positions as the sequence asks for.
Transformer parse_gpt(std::string_view name, std::int64_t sequence) {
    const auto fail = [&](std::string_view why) {
        return InputError(
            fmt::format("network '{}': {}; a decoder of any size is written gpt-hHIDDEN-aHEADS-lLAYERS, then "
                        "-vWORDS and @TOKENS if they are not {} and 2048, -eEXPERTS and -tTOP for mixtures of experts",
                        name, why, gpt_words));
    };
    Transformer size{
        .name = "gpt", .layers = 0, .hidden = 0, .heads = 0, .vocabulary = gpt_words, .positions = sequence};
    std::string said;  // the letters of its sizes
    for (const std::string_view part : split(name.substr(any_gpt.size()), '-')) {
        std::int64_t* const to = part.starts_with('h')   ? &size.hidden
                                 : part.starts_with('a') ? &size.heads
                                 : part.starts_with('l') ? &size.layers
                                 : part.starts_with('v') ? &size.vocabulary
                                 : part.starts_with('e') ? &size.experts
                                 : part.starts_with('t') ? &size.top
                                                         : nullptr;
        if (to == nullptr) throw fail(fmt::format("'{}' is no size", part));
        if (said.find(part.front()) != std::string::npos)
            throw fail(fmt::format("-{} stands there twice", part.front()));
        said += part.front();
        *to = parse_int(part.substr(1), fmt::format("network '{}'", name));
    }
    if (size.layers < 1 || size.hidden < 1 || size.heads < 1 || size.vocabulary < 1)
        throw fail("a size is missing or 0");
    if (said.find('t') != std::string::npos && said.find('e') == std::string::npos)
        throw fail("-t says to how many experts a token goes, and there are none without -e");
    if (size.experts < 0 || size.top < 1 || size.top > 2 || (size.experts > 0 && size.top > size.experts)) {
        throw fail(fmt::format("a token goes to {} of {} experts: 1 or 2 of at least as many", size.top, size.experts));
    }
    if (size.hidden % size.heads != 0) {
        throw fail(fmt::format("{} heads do not share a width of {} evenly", size.heads, size.hidden));
    }
    return size;
}

// By its first size: "gpt-13b" is the name of something else.
bool is_any_gpt(std::string_view name) {
    if (!name.starts_with(any_gpt)) return false;
    const std::string_view sizes = name.substr(any_gpt.size());
    return sizes.size() > 1 && std::string_view{"halvet"}.find(sizes[0]) != std::string_view::npos && sizes[1] >= '0' &&
           sizes[1] <= '9';
}

}  // namespace

std::optional<Network> load_transformer(std::string_view name) {
    const std::size_t at = name.find('@');
    if (is_any_gpt(name)) {
        const bool given = at != std::string_view::npos;
        const std::int64_t sequence =
            given ? parse_int(name.substr(at + 1), fmt::format("sequence of '{}'", name)) : 2048;
        Network network = transformer(parse_gpt(name.substr(0, at), sequence), sequence);
        network.name = name;
        return network;
    }
    const Transformer* size = find_transformer(name.substr(0, at));
    if (size == nullptr) return std::nullopt;
    if (at == std::string_view::npos) return transformer(*size, size->positions);
    Network network = transformer(*size, parse_int(name.substr(at + 1), fmt::format("sequence of '{}'", name)));
    network.name = name;
    return network;
}

}  // namespace rehearse::models
