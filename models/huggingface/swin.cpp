// SPDX-License-Identifier: Apache-2.0
// Swin transformer (Liu et al. 2021), named as Hugging Face's modules: attention inside windows of an image, whose
// borders every other block shifts. Its scores get a learned bias of the distance, so that they are formed one by one:
//
//   q, k, v {rows, heads d} ─ to windows ─ {windows, heads, w^2, d} ─ q k^T / sqrt d ─ + bias (+ mask) ─ softmax ─ v ─
//   back
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "core/error.hpp"
#include "models/huggingface/families.hpp"
#include "models/huggingface/rows.hpp"
#include "models/huggingface/windows.hpp"

namespace rehearse::models::huggingface {
namespace {

class Swin {
public:
    explicit Swin(const Request& request)
        : request_(request),
          c_(request.config),
          image_(c_.size("image_size", 224)),
          prefix_(request.architecture == "SwinModel" ? "" : "swin."),
          b_(request.name, {c_.size("num_channels", 3), image_, image_}),
          rows_(c_, b_) {}

    Network build() {
        const std::int64_t patch = c_.size("patch_size", 4), width = c_.size("embed_dim");
        side_ = evenly(c_, image_, std::max<std::int64_t>(1, patch), "patch_size");
        const std::string patches = prefix_ + "embeddings.patch_embeddings.";
        int x = b_.conv(patches + "projection", NetworkBuilder::input, width, square(patch, patch), true);
        x = rows_.view(patches + "flatten", x, {width, side_ * side_});
        x = rows_.transpose(patches + "transpose", x, {1, 0});
        x = dropped(prefix_ + "embeddings.dropout", rows_.layer_norm(prefix_ + "embeddings.norm", x));
        const std::vector<std::int64_t> depths = c_.sizes("depths"), heads = c_.sizes("num_heads");
        if (heads.size() != depths.size()) c_.fail("num_heads", "has another number of stages than 'depths'");
        for (std::size_t stage = 0; stage < depths.size(); ++stage) {
            const std::string name = fmt::format("{}encoder.layers.{}", prefix_, stage);
            if (heads[stage] < 1) c_.fail("num_heads", "has a stage without heads");
            for (std::int64_t i = 0; i < depths[stage]; ++i)
                x = block(fmt::format("{}.blocks.{}", name, i), x, heads[stage], i % 2 == 1);
            if (stage + 1 < depths.size()) x = downsample(name + ".downsample", x);
        }
        x = rows_.layer_norm(prefix_ + "layernorm", x);
        const Shape shape = b_.shape(x);
        x = b_.layer(prefix_ + "pooler", Reduction{"mean", shape, {0}}, {x});
        if (request_.architecture == "SwinModel") {
            b_.loss(x);
        } else {
            rows_.label_loss(rows_.dense("classifier", x, c_.labels(2), true));
        }
        return b_.build();
    }

private:
    int dropped(const std::string& name, int from) {
        return rows_.dropout(name, from, c_.number("hidden_dropout_prob", 0));
    }

    int block(const std::string& name, int x, std::int64_t heads, bool shifts) {
        const std::int64_t width = rows_.width(x);
        int y = attention(name + ".attention", rows_.layer_norm(name + ".layernorm_before", x), heads, shifts);
        x = b_.add(name + ".attention.add", x, y);
        const std::int64_t inner = c_.part("mlp_ratio", 4, width);
        if (inner < 1) c_.fail("mlp_ratio", "leaves no width between the two dense layers");
        y = rows_.dense(name + ".intermediate.dense", rows_.layer_norm(name + ".layernorm_after", x), inner, true);
        y = rows_.function(name + ".intermediate.act", y, "hidden_act", "gelu");
        y = dropped(name + ".output.dropout", rows_.dense(name + ".output.dense", y, width, true));
        return b_.add(name + ".output.add", x, y);
    }

    int attention(const std::string& name, int x, std::int64_t heads, bool shifts) {
        const std::int64_t width = rows_.width(x), size = evenly(c_, width, heads, "num_heads");
        // Windows no larger than the image, which is filled up to whole ones; of one window none is shifted.
        const std::int64_t window = std::min(c_.size("window_size"), side_);
        const std::int64_t along = (side_ + window - 1) / window, windows = along * along, seen = window * window;
        const bool shifted = shifts && windows > 1;
        const Windows parts{side_, window, shifted ? window / 2 : 0};
        x = told(b_.layer(name + ".windows", Rearrangement{"pack", {b_.shape(x)}, {windows * seen, width}}, {x}), parts,
                 width, &Windows::cut);
        const bool bias = c_.flag("qkv_bias", true);
        const auto part = [&](const std::string& which, const std::vector<std::int64_t>& axes) {
            const int made = rows_.dense(name + ".self." + which, x, width, bias);
            const int view = rows_.view(name + ".self." + which + ".view", made, {windows, seen, heads, size});
            return rows_.transpose(name + ".self." + which + ".transpose", view, axes);
        };
        const int q = part("query", {0, 2, 1, 3}), k = part("key", {0, 2, 3, 1}), v = part("value", {0, 2, 1, 3});
        const int products = b_.layer(name + ".self.scores", BatchedMatMul{b_.shape(q), b_.shape(k)}, {q, k});
        const Shape scores = b_.shape(products);
        const double scale = 1 / std::sqrt(static_cast<double>(size));
        const int scaled =
            b_.layer(name + ".self.scale", Elementwise{"mul", scores, {scores}, {}, {}, {scale}}, {products});
        const std::int64_t apart = (2 * window - 1) * (2 * window - 1);
        const Gather picked{{apart, heads}, {seen * seen, heads}, seen * seen, true};
        int distances =
            told(b_.layer(name + ".self.relative_position_bias_table", picked, {}), parts, heads, &Windows::distances);
        distances = rows_.transpose(name + ".self.relative_position_bias.transpose", distances, {1, 0});
        distances = rows_.view(name + ".self.relative_position_bias", distances, {heads, seen, seen});
        Elementwise biased{"add", scores, {scores, b_.shape(distances)}};
        if (shifted) biased.constants = {{windows, 1, seen, seen}};
        int p = b_.layer(name + ".self.bias", biased, {scaled, distances});
        if (shifted) b_.at(p).given = parts.mask();
        p = b_.layer(name + ".self.softmax", SoftmaxAlong{scores, 3}, {p});
        int y = b_.layer(name + ".self.context", BatchedMatMul{scores, b_.shape(v)}, {p, v});
        y = rows_.view(name + ".self.context.view", rows_.transpose(name + ".self.context.transpose", y, {0, 2, 1, 3}),
                       {windows * seen, width});
        y = dropped(name + ".output.dropout", rows_.dense(name + ".output.dense", y, width, true));
        return told(b_.layer(name + ".image", Rearrangement{"pack", {b_.shape(y)}, {side_ * side_, width}}, {y}), parts,
                    width, &Windows::joined);
    }

    // What blocks of one stage are told is kept once.
    using Tell = Windows::Told (Windows::*)(std::int64_t) const;
    int told(int layer, const Windows& parts, std::int64_t width, Tell tell) {
        const auto order = std::tuple{tell == &Windows::cut, tell == &Windows::joined};
        Windows::Told& known = told_[{parts.side, parts.window, parts.shift, width, order}];
        if (known == nullptr) known = (parts.*tell)(width);
        b_.at(layer).given = known;
        return layer;
    }

    // Four neighbours side by side, an image of odd size filled up.
    int downsample(const std::string& name, int x) {
        const std::int64_t width = rows_.width(x);
        const Windows before{side_};
        side_ = (side_ + 1) / 2;
        const Shape wide{side_ * side_, 4 * width};
        x = b_.layer(name + ".neighbours", Rearrangement{"pack", {b_.shape(x)}, wide}, {x});
        b_.at(x).given = before.neighbours(width);
        return rows_.dense(name + ".reduction", rows_.layer_norm(name + ".norm", x), 2 * width, false);
    }

    const Request& request_;
    const Config& c_;
    std::int64_t image_, side_ = 0;
    std::string prefix_;
    NetworkBuilder b_;
    Rows rows_;
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::tuple<bool, bool>>, Windows::Told>
        told_;
};

}  // namespace

Network swin(const Request& request) {
    only_architectures(request, {"SwinForImageClassification", "SwinModel"});
    request.config.only("use_absolute_embeddings", false, "a table of positions");
    for (const auto* said : {"hidden_size", "num_layers"}) (void)request.config.has(said);  // follow from the stages
    return Swin(request).build();
}

}  // namespace rehearse::models::huggingface
