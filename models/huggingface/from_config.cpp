// SPDX-License-Identifier: Apache-2.0
// Which model type is built by which family, and what is the same for all.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text.hpp"
#include "models/huggingface/families.hpp"

namespace rehearse::models::huggingface {
namespace {

struct Family {
    std::string_view type;
    Network (*build)(const Request& request);
};
constexpr std::array families{Family{"albert", bert},       Family{"bert", bert},
                              Family{"bloom", bloom},       Family{"camembert", bert},
                              Family{"deepseek_v2", llama}, Family{"deepseek_v3", llama},
                              Family{"distilbert", bert},   Family{"electra", bert},
                              Family{"falcon", falcon},     Family{"gemma", llama},
                              Family{"gemma2", llama},      Family{"gpt2", gpt2},
                              Family{"gpt_neox", gpt_neox}, Family{"llama", llama},
                              Family{"mistral", llama},     Family{"mixtral", llama},
                              Family{"opt", opt},           Family{"phi", phi},
                              Family{"phi3", llama},        Family{"qwen2", llama},
                              Family{"qwen2_moe", llama},   Family{"qwen3", llama},
                              Family{"qwen3_moe", llama},   Family{"roberta", bert},
                              Family{"swin", swin},         Family{"t5", t5},
                              Family{"vit", vit},           Family{"xlm-roberta", bert}};

constexpr std::int64_t most_unasked = 8192;  // the sequences that Llama 3 was trained with

}  // namespace

namespace {

std::int64_t positions_of(const Request& request, std::string_view key, std::int64_t unused) {
    const std::int64_t positions = request.config.size(key, 2048 + unused) - unused;
    if (positions < 2) request.config.fail(key, fmt::format("is {}, at least 2", positions));
    return positions;
}

// At most `most` of them where it is not 0.
std::int64_t taken(const Request& request, std::string_view key, std::int64_t unused, std::int64_t most) {
    const std::int64_t positions = positions_of(request, key, unused), usual = std::min(positions, most_unasked);
    return request.sizes.take("tokens", usual, most,
                              usual < positions ? fmt::format("of {} {}", positions, key)
                              : unused > 0      ? fmt::format("as {} without {}", key, unused)
                                                : fmt::format("as {}", key),
                              request.notes);
}

}  // namespace

std::int64_t tokens_of(const Request& request, std::string_view key, std::int64_t unused) {
    return taken(request, key, unused, positions_of(request, key, unused));
}

std::int64_t unbounded_tokens_of(const Request& request, std::string_view key) {
    constexpr std::int64_t no_limit = 0;
    const std::int64_t tokens = taken(request, key, 0, no_limit), positions = positions_of(request, key, 0);
    if (tokens > positions)
        request.notes.push_back(fmt::format("{} tokens are more than {} ({})", tokens, positions, key));
    return tokens;
}

void only_architectures(const Request& request, const std::vector<std::string_view>& known) {
    if (request.architecture.empty() || std::ranges::find(known, request.architecture) != known.end()) return;
    request.config.fail("architectures", fmt::format("names {}, which is not known; of its model_type there are {}",
                                                     request.architecture, fmt::join(known, ", ")));
}

Network from_config(std::string_view text, const std::string& origin, const std::string& name,
                    const ImportOptions& options, const std::string& typed) {
    const Config config(text, origin);
    if (!config.has("model_type")) config.fail("model_type", "is missing: it says which network this is");
    const std::string type = config.text("model_type", "");
    const auto* const family = std::ranges::find(families, type, &Family::type);
    if (family == families.end()) {
        std::vector<std::string_view> types;
        for (const Family& each : families) types.push_back(each.type);
        config.fail("model_type", fmt::format("is '{}'{}; known are {}. Any other network is read from an .onnx file",
                                              type, did_you_mean(type, types), fmt::join(types, ", ")));
    }
    Sizes sizes(options, origin, typed);
    std::vector<std::string> notes;
    Network network = family->build({config, sizes, name, config.first("architectures"), notes});
    sizes.check();
    network.notes = std::move(notes);
    if (const std::vector<std::string> unread = config.unread(); !unread.empty()) {
        network.notes.push_back(
            fmt::format("{}: not read, and so without effect: {}", origin, fmt::join(unread, ", ")));
    }
    return network;
}

}  // namespace rehearse::models::huggingface
