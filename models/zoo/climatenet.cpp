// SPDX-License-Identifier: Apache-2.0
// The semi-supervised network for extreme weather of Kurth et al. 2017 (section III.B, table 2: 9 convolutions, 5
// deconvolutions, 302.1 MiB): an encoder of strided convolutions, of whose last features one branch finds boxes and the
// other, of transposed convolutions, makes the input again. Sizes are those of its authors' program (github.com/eracah/
// hur-detect, src/dotpy_src/models: 5x5 of stride 2 with 128 to 1,024 filters, heads of 3x3 with 4, 2 and 4 outputs).
// The sixth convolution, 3x3 with 1,280 filters, is ours: with it there are nine, and the weights take 302.1 MiB.
//
// `run` knows one loss, softmax cross-entropy, and labels that are integers. So a box's numbers are told apart in steps
// of an eighth of their range, with the scores -(x - middle)^2 / (2 s^2) of a normal distribution about what the head
// says: to within the steps, that is its squared error. The squared error of the reconstruction, L, is the cross-
// entropy of {0, log(exp(L) - 1)} against label 0, exactly.
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "models/builder.hpp"
#include "models/zoo/zoo.hpp"

namespace rehearse::models {
namespace {

struct Size {
    const char* name;
    Shape input;
    std::vector<std::int64_t> filters;  // of the encoder; each halves the width and height
    std::int64_t detector;              // filters before the heads
};

constexpr std::int64_t numbers = 4, kinds = 4, steps = 8;      // of a box, of weather, of a number's range
constexpr std::int64_t objects = 2;                            // none, one
constexpr std::int64_t classes = objects + kinds + steps + 1;  // the last one is of what nobody asks for
constexpr double unlikely = -1e4;

// Twice as large: the last row and column of padding are left out, as TensorFlow's "same" does.
Window twice() {
    Window window = square(5, 2, 2);
    window.pad_top = window.pad_left = 1;
    return window;
}

int encoded(NetworkBuilder& b, int x, const std::vector<std::int64_t>& filters) {
    for (std::size_t i = 0; i < filters.size(); ++i) {
        x = b.conv(fmt::format("conv{}", i + 1), x, filters[i], square(5, 2, 2), true);
        x = b.relu(fmt::format("relu{}", i + 1), x);
    }
    return x;
}

int decoded(NetworkBuilder& b, int x, const std::vector<std::int64_t>& filters, std::int64_t channels) {
    for (std::size_t i = filters.size(); i-- > 0;) {
        x = b.conv_transpose(fmt::format("deconv{}", i + 1), x, i > 0 ? filters[i - 1] : channels, twice(), true);
        if (i > 0) x = b.relu(fmt::format("deconv{}.relu", i + 1), x);
    }
    return x;
}

int applied(NetworkBuilder& b, const std::string& name, const char* function, int x, std::vector<double> with = {}) {
    const Shape shape = b.shape(x);
    return b.layer(name, Elementwise{function, shape, {shape}, {}, {}, std::move(with)}, {x});
}

// Scores of `classes`, of which those from `first` on are known: {known, rows} becomes {classes, rows}.
int among_all(NetworkBuilder& b, const std::string& name, int x, std::int64_t first) {
    const Shape known = b.shape(x);
    Rearrangement pad{"pad", {known}, {classes, known[1]}, {first, 0}, unlikely};
    return b.layer(name, std::move(pad), {x});
}

int flat(NetworkBuilder& b, const std::string& name, int x, Shape to) {
    return b.layer(name, Flatten{b.shape(x), std::move(to)}, {x});
}

// Scores of the steps in which each of the box's numbers may lie, {steps, 4 cells}.
int number_scores(NetworkBuilder& b, int head) {
    const std::int64_t all = elements(b.shape(head));
    const int column = flat(b, "box.numbers", head, {all, 1});
    int x = b.layer("box.less", Elementwise{"sub", {all, steps}, {{all, 1}}, {}, {{steps}}}, {column});
    Given middles;
    middles.fixed.emplace_back();
    for (int i = 0; i < steps; ++i) middles.fixed.back().push_back((static_cast<float>(i) + 0.5F) / steps);
    b.at(x).given = std::make_shared<const Given>(std::move(middles));
    x = applied(b, "box.squares", "square", x);
    const double width = 0.5 / steps;  // the standard deviation: half a step
    x = applied(b, "box.scores", "mul", x, {-1 / (2 * width * width)});
    return b.layer("box.turned", Rearrangement{"transpose", {{all, steps}}, {steps, all}, {1, 0}}, {x});
}

// {0, log(exp(L) - 1)} of L, `rows` times the mean squared error, as a column.
int error_scores(NetworkBuilder& b, int made, std::int64_t rows) {
    const Shape shape = b.shape(NetworkBuilder::input);
    int x = b.layer("error.less", Elementwise{"sub", shape, {shape, shape}}, {made, NetworkBuilder::input});
    x = applied(b, "error.squares", "square", x);
    x = b.layer("error.mean", Reduction{"mean", shape, {0, 1, 2}, true}, {x});
    const int error = applied(b, "error.loss", "mul", flat(b, "error.column", x, {1, 1}), {static_cast<double>(rows)});
    x = applied(b, "error.exp", "exp", applied(b, "error.minus", "neg", error));
    x = applied(b, "error.log", "log", applied(b, "error.rest", "rsub", x, {1}));
    x = b.layer("error.score", Elementwise{"add", {1, 1}, {{1, 1}, {1, 1}}}, {error, x});
    return b.layer("error.both", Rearrangement{"pad", {{1, 1}}, {2, 1}, {1, 0}, 0}, {x});
}

// Penalties of its authors' program (configs.py): 0.5 where there is no object, 5 of coordinates.
std::vector<double> weights() {
    std::vector<double> all{0.5};
    all.resize(objects + kinds, 1);
    all.resize(objects + kinds + steps, 5);
    all.push_back(0);
    return all;
}

Network build(const Size& size) {
    NetworkBuilder b(size.name, size.input);
    const int features = encoded(b, NetworkBuilder::input, size.filters);
    const int x = b.relu("detect.relu", b.conv("detect", features, size.detector, square(3, 1, 1), true));
    const auto head = [&](const char* name, std::int64_t outputs) {
        return b.conv(name, x, outputs, square(3, 1, 1), true);
    };
    const int box = head("box", numbers), object = head("object", objects), kind = head("kind", kinds);
    const std::int64_t cells = b.shape(x)[1] * b.shape(x)[2], rows = cells * (2 + numbers) + 1;
    const int made = decoded(b, features, size.filters, size.input[0]);
    const std::vector<int> parts{
        among_all(b, "object.all", flat(b, "object.rows", object, {objects, cells}), 0),
        among_all(b, "kind.all", flat(b, "kind.rows", kind, {kinds, cells}), objects),
        among_all(b, "box.all", number_scores(b, box), objects + kinds),
        among_all(b, "error.all", error_scores(b, made, rows), 0),
    };
    Rearrangement join{"join", {}, {classes, rows}, {1}};
    for (const int part : parts) join.inputs.push_back(b.shape(part));
    b.pixel_loss(flat(b, "scores", b.layer("all", std::move(join), parts), {classes, rows, 1}), weights());
    return b.build();
}

}  // namespace

Network climatenet() { return build({"climatenet", {16, 768, 768}, {128, 256, 512, 768, 1024}, 1280}); }

// A sixteenth of the width and height, three levels, few filters.
Network climatenet_small() { return build({"climatenet-small", {16, 48, 72}, {16, 32, 48}, 64}); }

}  // namespace rehearse::models
