// SPDX-License-Identifier: Apache-2.0
// Vision transformer (Dosovitskiy et al. 2021), named as Hugging Face's modules.
#include <fmt/format.h>

#include "core/error.hpp"
#include "models/huggingface/families.hpp"
#include "models/huggingface/rows.hpp"

namespace rehearse::models::huggingface {
namespace {

int block(Rows& rows, const Config& c, const std::string& name, int x) {
    const std::int64_t hidden = rows.width(x), heads = c.size("num_attention_heads");
    const std::int64_t size = evenly(c, hidden, heads, "num_attention_heads");
    const double dropped = c.number("hidden_dropout_prob", 0);
    const bool bias = c.flag("qkv_bias", true);
    NetworkBuilder& b = rows.builder();
    const int normed = rows.layer_norm(name + ".layernorm_before", x);
    const std::string self = name + ".attention.attention";
    const int q = rows.dense(self + ".query", normed, hidden, bias),
              k = rows.dense(self + ".key", normed, hidden, bias);
    const int v = rows.dense(self + ".value", normed, hidden, bias);
    int y = rows.attention(self, q, k, v, {.heads = heads, .key_heads = heads, .head_size = size, .value_size = size});
    y = rows.dropout(name + ".attention.output.dropout", rows.dense(name + ".attention.output.dense", y, hidden, true),
                     dropped);
    x = b.add(name + ".attention.add", x, y);
    y = rows.dense(name + ".intermediate.dense", rows.layer_norm(name + ".layernorm_after", x),
                   c.size("intermediate_size"), true);
    y = rows.function(name + ".intermediate.act", y, "hidden_act", "gelu");
    y = rows.dropout(name + ".output.dropout", rows.dense(name + ".output.dense", y, hidden, true), dropped);
    return b.add(name + ".output.add", x, y);
}

}  // namespace

Network vit(const Request& request) {
    only_architectures(request, {"ViTForImageClassification", "ViTModel"});
    const Config& c = request.config;
    const bool classifies = request.architecture != "ViTModel";
    const std::int64_t image = c.size("image_size", 224), patch = c.size("patch_size", 16);
    const std::int64_t hidden = c.size("hidden_size"),
                       side = evenly(c, image, std::max<std::int64_t>(1, patch), "patch_size");
    NetworkBuilder b(request.name, {c.size("num_channels", 3), image, image});
    Rows rows{c, b};
    const std::string vit = classifies ? "vit." : "", embeddings = vit + "embeddings.";
    int x =
        b.conv(embeddings + "patch_embeddings.projection", NetworkBuilder::input, hidden, square(patch, patch), true);
    x = rows.view(embeddings + "patch_embeddings.flatten", x, {hidden, side * side});
    x = rows.transpose(embeddings + "patch_embeddings.transpose", x, {1, 0});
    const int token = b.layer(embeddings + "cls_token", Parameter{{1, hidden}}, {});
    const Shape all{1 + side * side, hidden};
    x = b.layer(embeddings + "concat", Rearrangement{"join", {b.shape(token), b.shape(x)}, all, {0}}, {token, x});
    x = b.layer(embeddings + "position_embeddings", Elementwise{"add", all, {all}, {all}}, {x});
    x = rows.dropout(embeddings + "dropout", x, c.number("hidden_dropout_prob", 0));
    for (std::int64_t i = 0; i < layers_of(c, "num_hidden_layers"); ++i)
        x = block(rows, c, fmt::format("{}encoder.layer.{}", vit, i), x);
    x = rows.slice(vit + "first_token", rows.layer_norm(vit + "layernorm", x), 0, 0, 1);
    if (classifies) {
        rows.label_loss(rows.dense("classifier", x, c.labels(2), true));
    } else {
        x = rows.dense("pooler.dense", x, hidden, true);
        b.loss(b.layer("pooler.activation", Activation{Nonlinearity::tanh, b.shape(x)}, {x}));
    }
    return b.build();
}

}  // namespace rehearse::models::huggingface
