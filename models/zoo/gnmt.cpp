// SPDX-License-Identifier: Apache-2.0
// Google's translation (Wu et al. 2016) as MLPerf and NVIDIA's examples train it ("GNMT v2"): four layers of 1,024 in
// the encoder, the first one in both directions, four in the decoder. The decoder's first layer alone asks what to look
// at (Bahdanau et al. 2015, normalized), and all later ones read the answer, so that each layer goes through all words
// at once:
//
//   words ─ embedding ─ lstm both ways ─ lstm ─ lstm + ─ lstm + ──────┐ keys, values
//   words ─ the same  ─ lstm ────────────────────────────── attention ┤
//                          └ [state | answer] ─ lstm ─ lstm + ─ lstm + ─ scores of 32,320 words
//
// Dropout of a fifth before each layer. Sentences have one length here; labels are not smoothed.
#include "models/zoo/gnmt.hpp"

#include <fmt/format.h>

#include <string>

#include "models/builder.hpp"

namespace rehearse::models {
namespace {

constexpr std::int64_t vocabulary = 32'320, hidden = 1024;
constexpr double keep = 0.8;

class Gnmt {
public:
    explicit Gnmt(std::int64_t words) : words_(words), b_("gnmt", Input{{words}, vocabulary}) {}

    Network build() {
        const Embedding table{words_, vocabulary, hidden};
        const int embedding = b_.layer("embedding", table, {NetworkBuilder::input});
        int x = lstm("encoder.lstm1", embedding, 2);
        x = lstm("encoder.lstm2", x);
        const int memory = residual("encoder.lstm4", residual("encoder.lstm3", x));

        const int ids = b_.layer("decoder_input", Input{{words_}, vocabulary}, {});
        const int said =
            b_.layer("decoder.embedding", Shared{std::make_shared<const SharedOp>(SharedOp{table})}, {ids});
        b_.at(said).weights_of = embedding;
        const int query = recurrent("decoder.lstm1", said, 1);
        const int answer = attention(query, memory);
        x = lstm("decoder.lstm2", query, 1, answer);
        x = residual("decoder.lstm4", residual("decoder.lstm3", x, answer), answer);
        x = b_.layer("scores", MatMul{.m = words_, .n = vocabulary, .k = hidden}, {x});
        b_.layer("loss", SoftmaxLoss{.classes = vocabulary, .rows = words_}, {x});
        return b_.build();
    }

private:
    int recurrent(const std::string& name, int from, std::int64_t directions) {
        const Recurrent op{
            .steps = words_, .inputs = b_.shape(from).back(), .hidden = hidden, .directions = directions};
        const int made = b_.layer(name, op, {from});
        return b_.layer(name + ".rows", Flatten{b_.shape(made), {words_, directions * hidden}}, {made});
    }
    // Behind dropout, and beside what was looked at (none: -1).
    int lstm(const std::string& name, int from, std::int64_t directions = 1, int answer = -1) {
        int x = b_.dropout(name + ".dropout", from, keep);
        if (answer >= 0) {
            const Rearrangement beside{"join", {b_.shape(x), b_.shape(answer)}, {words_, 2 * hidden}, {1}};
            x = b_.layer(name + ".beside", beside, {x, answer});
        }
        return recurrent(name, x, directions);
    }
    int residual(const std::string& name, int from, int answer = -1) {
        return b_.add(name + ".add", from, lstm(name, from, 1, answer));
    }

    // tanh(q + k + bias) times a vector of length `scale`, for each pair of words.
    int attention(int query, int memory) {
        const std::string name = "decoder.attention.";
        const auto project = [&](const char* which, int from) {
            return b_.layer(name + which, MatMul{.m = words_, .n = hidden, .k = hidden, .bias = false}, {from});
        };
        const Shape pairs{words_, words_, hidden};
        const int q = project("query", query), k = project("key", memory);
        const int rows = b_.layer(name + "query.rows", Flatten{b_.shape(q), {words_, 1, hidden}}, {q});
        const Elementwise sums{"add", pairs, {b_.shape(rows), b_.shape(k)}, {{hidden}}};
        int x = b_.layer(name + "sum", sums, {rows, k});
        x = b_.layer(name + "tanh", Activation{Nonlinearity::tanh, pairs}, {x});
        x = b_.layer(name + "pairs", Flatten{pairs, {words_ * words_, hidden}}, {x});
        const int vector = direction(name);
        x = b_.layer(name + "scores", BatchedMatMul{b_.shape(x), b_.shape(vector)}, {x, vector});
        x = b_.layer(name + "table", Flatten{b_.shape(x), {words_, words_}}, {x});
        x = b_.layer(name + "softmax", SoftmaxAlong{{words_, words_}, 1}, {x});
        return b_.layer(name + "answer", BatchedMatMul{b_.shape(x), b_.shape(memory)}, {x, memory});
    }

    // scale v / |v|
    int direction(const std::string& name) {
        const int v = b_.layer(name + "vector", Parameter{{hidden, 1}}, {});
        const int length = b_.layer(name + "length", Reduction{"l2", {hidden, 1}, {0, 1}, true}, {v});
        const Elementwise unit{"div", {hidden, 1}, {{hidden, 1}, {1, 1}}};
        const int one = b_.layer(name + "unit", unit, {v, length});
        return b_.layer(name + "scale", Elementwise{"mul", {hidden, 1}, {{hidden, 1}}, {{1}}}, {one});
    }

    std::int64_t words_;
    NetworkBuilder b_;
};

}  // namespace

Network gnmt(std::int64_t words) { return Gnmt(words).build(); }

}  // namespace rehearse::models
