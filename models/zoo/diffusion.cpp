// SPDX-License-Identifier: Apache-2.0
// The U-Net of Stable Diffusion 1.x (Rombach et al. 2022; sizes of its v1-inference.yaml), named as the modules of
// Hugging Face's diffusers. It reads a latent image of 4x64x64, the time as 320 sines and cosines, and a text of 77
// rows of 768; at three of four scales each residual block is followed by attention, of pixels to pixels and of pixels
// to the text. The loss is the squared error of the noise, costed here as one over its channels.
#include <array>
#include <vector>

#include <fmt/format.h>

#include "models/zoo/image_blocks.hpp"
#include "models/zoo/zoo_images.hpp"

namespace rehearse::models {
namespace {

constexpr std::array<std::int64_t, 4> widths{320, 640, 1280, 1280};
constexpr std::int64_t heads = 8, groups = 32, text_rows = 77, text_width = 768, steps = 320, time_width = 1280;
constexpr std::size_t lowest = widths.size() - 1;  // the scale without attention
constexpr int blocks_a_scale = 2;

class Diffusion {
public:
    Diffusion() : b_("stable-diffusion-unet", {4, 64, 64}) {
        text_ = b_.layer("encoder_hidden_states", Input{{text_rows, text_width}}, {});
        const int time = b_.layer("timestep", Input{{steps}}, {});
        const int wide = b_.dense("time_embedding.linear_1", time, time_width);
        const int made =
            b_.dense("time_embedding.linear_2", function_of(b_, "time_embedding.act", wide, "silu"), time_width);
        time_ = function_of(b_, "time_embedding.silu", made, "silu");  // every residual block would do the same
    }

    Network build() {
        int x = b_.conv("conv_in", NetworkBuilder::input, widths[0], square(3, 1, 1), true);
        kept_.push_back(x);
        for (std::size_t scale = 0; scale < widths.size(); ++scale) x = down(scale, x);
        x = residual("mid_block.resnets.0", x, widths[lowest]);
        x = residual("mid_block.resnets.1", transformer("mid_block.attentions.0", x), widths[lowest]);
        for (std::size_t scale = 0; scale < widths.size(); ++scale) x = up(scale, x);
        x = function_of(b_, "conv_act", group_norm("conv_norm_out", x), "silu");
        b_.pixel_loss(b_.conv("conv_out", x, 4, square(3, 1, 1), true));
        return b_.build();
    }

private:
    int down(std::size_t scale, int x) {
        const std::string name = fmt::format("down_blocks.{}", scale);
        for (int i = 0; i < blocks_a_scale; ++i) {
            x = residual(fmt::format("{}.resnets.{}", name, i), x, widths[scale]);
            if (scale < lowest) x = transformer(fmt::format("{}.attentions.{}", name, i), x);
            kept_.push_back(x);
        }
        if (scale == lowest) return x;
        x = b_.conv(name + ".downsamplers.0.conv", x, widths[scale], square(3, 2, 1), true);
        kept_.push_back(x);
        return x;
    }

    // Back up, each block beside what came by on the way down.
    int up(std::size_t index, int x) {
        const std::size_t scale = lowest - index;
        const std::string name = fmt::format("up_blocks.{}", index);
        for (int i = 0; i <= blocks_a_scale; ++i) {
            const std::string block = fmt::format("{}.resnets.{}", name, i);
            x = residual(block, b_.concat(block + ".concat", {x, kept_.back()}), widths[scale]);
            kept_.pop_back();
            if (scale < lowest) x = transformer(fmt::format("{}.attentions.{}", name, i), x);
        }
        if (scale == 0) return x;
        const Shape shape = b_.shape(x);
        const Resize twice{Interpolation::nearest, shape[0], shape[1], shape[2], 2 * shape[1], 2 * shape[2]};
        x = b_.layer(name + ".upsamplers.0", twice, {x});
        return b_.conv(name + ".upsamplers.0.conv", x, widths[scale], square(3, 1, 1), true);
    }

    int group_norm(const std::string& name, int x) {
        const Shape shape = b_.shape(x);
        return b_.layer(
            name,
            Normalization{
                .shape = shape, .sets = groups, .gamma = shape[0], .beta = shape[0], .inner = shape[1] * shape[2]},
            {x});
    }

    int residual(const std::string& name, int from, std::int64_t filters) {
        int x = function_of(b_, name + ".nonlinearity1", group_norm(name + ".norm1", from), "silu");
        x = b_.conv(name + ".conv1", x, filters, square(3, 1, 1), true);
        const int time = b_.dense(name + ".time_emb_proj", time_, filters);
        const Shape shape = b_.shape(x);
        const int seen = b_.layer(name + ".time", Flatten{b_.shape(time), {filters, 1, 1}}, {time});
        x = b_.layer(name + ".add_time", Elementwise{"add", shape, {shape, b_.shape(seen)}}, {x, seen});
        x = function_of(b_, name + ".nonlinearity2", group_norm(name + ".norm2", x), "silu");
        x = b_.conv(name + ".conv2", x, filters, square(3, 1, 1), true);
        const bool same = b_.shape(from).front() == filters;
        return b_.add(name + ".add", same ? from : b_.conv(name + ".conv_shortcut", from, filters, square(1), true), x);
    }

    int rows(const std::string& name, int from, std::int64_t features, bool bias) {
        const Shape shape = b_.shape(from);
        return b_.layer(name, MatMul{shape.front(), features, shape.back(), bias}, {from});
    }

    int attend(const std::string& name, int from, int to) {
        const Shape shape = b_.shape(from);
        const int q = rows(name + ".to_q", from, shape.back(), false),
                  k = rows(name + ".to_k", to, shape.back(), false);
        const int v = rows(name + ".to_v", to, shape.back(), false);
        const Attention op{heads, shape.front(), b_.shape(to).front(), shape.back() / heads};
        return rows(name + ".to_out.0", b_.layer(name + ".attention", op, {q, k, v}), shape.back(), true);
    }

    int transformer(const std::string& name, int from) {
        const Shape image = b_.shape(from);
        const std::int64_t width = image[0], pixels = image[1] * image[2];
        int x = b_.conv(name + ".proj_in", group_norm(name + ".norm", from), width, square(1), true);
        x = b_.layer(name + ".flatten", Flatten{image, {width, pixels}}, {x});
        x = b_.layer(name + ".turn", Rearrangement{"transpose", {{width, pixels}}, {pixels, width}, {1, 0}}, {x});
        const std::string block = name + ".transformer_blocks.0";
        const auto norm = [&](int index) {
            return b_.layer(fmt::format("{}.norm{}", block, index), LayerNorm{pixels, width}, {x});
        };
        const int own = norm(1);
        x = b_.add(block + ".add1", x, attend(block + ".attn1", own, own));
        x = b_.add(block + ".add2", x, attend(block + ".attn2", norm(2), text_));
        x = b_.add(block + ".add3", x, gated(block + ".ff", norm(3)));
        x = b_.layer(name + ".back", Rearrangement{"transpose", {{pixels, width}}, {width, pixels}, {1, 0}}, {x});
        x = b_.layer(name + ".image", Flatten{{width, pixels}, image}, {x});
        return b_.add(name + ".add", from, b_.conv(name + ".proj_out", x, width, square(1), true));
    }

    // Half of the wide rows, times the GELU of the other half (Shazeer 2020).
    int gated(const std::string& name, int from) {
        const Shape shape = b_.shape(from);
        const std::int64_t inner = 4 * shape.back();
        const int wide = rows(name + ".net.0.proj", from, 2 * inner, true);
        const Shape half{shape.front(), inner};
        const auto part = [&](const char* which, std::int64_t first) {
            return b_.layer(name + which, Rearrangement{"slice", {b_.shape(wide)}, half, {0, first, 1, 1}}, {wide});
        };
        const int up = part(".net.0.up", 0),
                  gate = function_of(b_, name + ".net.0.gelu", part(".net.0.gate", inner), "gelu");
        const int both = b_.layer(name + ".net.0.gated", Elementwise{"mul", half, {half, half}}, {up, gate});
        return rows(name + ".net.2", both, shape.back(), true);
    }

    NetworkBuilder b_;
    int text_ = 0, time_ = 0;
    std::vector<int> kept_;  // for the way up
};

}  // namespace

Network stable_diffusion_unet() { return Diffusion().build(); }

}  // namespace rehearse::models
