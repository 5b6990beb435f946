// SPDX-License-Identifier: Apache-2.0
#include "models/frameworks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "models/reader/machine_files.hpp"
#include "models/reader/machine_reader.hpp"
#include "models/reader/toml.hpp"

namespace rehearse::models {

namespace {

constexpr std::array words{
    FrameworkWord{"allreduce", "how gradients are summed, unless the plan says it; own: by the machine's library",
                  true},
    FrameworkWord{"bucket", "gradients that are sent together, unless the plan says it", true},
    FrameworkWord{"first", "the first of these, unless the plan says it", true},
    FrameworkWord{"overlap", "whether sums go on beside the backward pass, unless the plan says it", true},
    FrameworkWord{"control", "how ranks agree on what to sum, unless the plan says it", true},
    FrameworkWord{"zero", "what the ranks share out, unless the plan says it", true},
    FrameworkWord{"layout",
                  "of images; nchw: 16-bit convolutions turn them; nhwc-turned: all do for NCHW, 16-bit ones twice"},
    FrameworkWord{"transforms", "off: its convolutions go by no transform (Winograd, Fourier), but as products"},
    FrameworkWord{"workspace",
                  "memory that its library gets for a convolution: transforms that keep more are not taken"},
    FrameworkWord{"strided_gradients", "dense: what strided convolutions' inputs get is computed with zeros between"},
    FrameworkWord{"dilations", "space-to-batch: dilated convolutions are of images of every so many-th pixel, copied"},
    FrameworkWord{"software", "of models/software.toml: values cross memory as often as under it"},
    FrameworkWord{"memory", "whose accounting decoders' memory follows: megatron-core"},
    FrameworkWord{"loss", "of scores in memory; operators: two copies more in f32; fused: one in all"},
    FrameworkWord{"bucket_memory", "copies: gradients that ranks sum lie in their tensors and in the buckets, too"},
    FrameworkWord{"pool_index", "bytes that a max pool keeps of each value that it gives"},
    FrameworkWord{"issue", "that the host takes for a pass of an operator: kernels come no faster"},
    FrameworkWord{"issue_error", "how far hosts differ in it, one standard deviation: needed beside any of these"},
    FrameworkWord{"issue_convolution", "the same of convolutions; without it as others"},
    FrameworkWord{"issue_product", "the same of dense layers and attention; without it as others"},
    FrameworkWord{"issue_normalization", "the same of normalizations; without it as others"},
    FrameworkWord{"statistics", "operators for each tensor of weights, one by one, between backward pass and update"},
    FrameworkWord{"statistics_shared", "the same where several ranks sum gradients"},
    FrameworkWord{"sgd_passes", "how often SGD's kernels read or write a parameter"},
    FrameworkWord{"adam_passes", "the same of Adam"},
    FrameworkWord{"lamb_passes", "the same of LAMB"},
    FrameworkWord{"update_rate", "of these: read and written, where not all cores of the device do it"},
    FrameworkWord{"bucket_copies", "of gradients between their tensors and the buffer that ranks sum, a step"},
    FrameworkWord{"gather_copies", "passes over weights that are gathered from shards, beside each gather"},
    FrameworkWord{"scatter_copies", "the same over gradients, beside each sum whose results are shards"},
    FrameworkWord{"update", "after-sums: weights are updated when all gradients have been summed, none earlier"},
    FrameworkWord{"transport", "sockets: ranks of processors talk as calibrate --transport sockets measures it"},
    FrameworkWord{"loader", "of samples, as predict --loader has it"},
};

FrameworkProfile shipped(const MachineFile& file) {
    return parse_framework(file.text, std::string{file.name}, fmt::format("frameworks/{}.toml", file.name));
}

// Where the data axis begins and ends in a plan; commas inside parentheses do not end it.
struct Part {
    std::size_t begin = 0, end = 0;
};
Part data_axis(std::string_view plan) {
    int depth = 0;
    for (std::size_t begin = 0, at = 0; at <= plan.size(); ++at) {
        const char c = at < plan.size() ? plan[at] : ',';
        depth += (c == '(' ? 1 : 0) - (c == ')' ? 1 : 0);
        if (c != ',' || depth != 0) continue;
        const std::string_view axis = plan.substr(begin, at - begin);
        if (axis == "data" || axis.starts_with("data=") || axis.starts_with("data:")) return {begin, at};
        begin = at + 1;
    }
    return {};
}

}  // namespace

std::string FrameworkProfile::value(std::string_view setting) const {
    const auto found = std::ranges::find(settings, setting, &FrameworkSetting::name);
    return found == settings.end() ? std::string{} : found->value;
}

std::span<const FrameworkWord> framework_words() { return words; }

FrameworkProfile parse_framework(std::string_view text, const std::string& name, const std::string& origin) {
    const toml::table table = parse_toml(text, origin);
    Reader top(table, origin, "framework");
    FrameworkProfile profile{.name = name, .summary = top.text("summary"), .settings = {}};
    std::vector<std::string_view> known;
    for (const FrameworkWord& word : words) known.push_back(word.name);
    for (Reader& reader : top.tables("setting", "setting")) {
        const FrameworkSetting setting{reader.text("name"), reader.text("value"), reader.text("source")};
        if (std::ranges::find(known, setting.name) == known.end()) {
            reader.fail("name", fmt::format("a framework has no setting '{}'{}; there are {}", setting.name,
                                            did_you_mean(setting.name, known), join(known)));
        }
        if (!profile.value(setting.name).empty()) reader.fail("name", "it is set above");
        reader.done();
        profile.settings.push_back(setting);
    }
    top.done();
    return profile;
}

std::vector<FrameworkProfile> frameworks() {
    std::vector<FrameworkProfile> all;
    for (const MachineFile& file : framework_files()) all.push_back(shipped(file));
    return all;
}

FrameworkProfile load_framework(const std::string& name_or_file) {
    std::vector<std::string_view> names;
    for (const MachineFile& file : framework_files()) {
        if (file.name == name_or_file) return shipped(file);
        names.push_back(file.name);
    }
    if (name_or_file.ends_with(".toml")) {
        return parse_framework(read_file(name_or_file), std::filesystem::path(name_or_file).stem().string(),
                               name_or_file);
    }
    throw InputError(fmt::format("unknown framework '{}'{}; choose one of {}, or give the path of a .toml file",
                                 name_or_file, did_you_mean(name_or_file, names), join(names)));
}

std::string plan_with(const std::string& plan, const FrameworkProfile& profile) {
    const Part data = data_axis(plan);
    if (data.end == 0) return plan;
    std::string axis = plan.substr(data.begin, data.end - data.begin);
    for (const FrameworkWord& word : words) {
        const std::string value = profile.value(word.name);
        if (!word.of_plan || value.empty() || axis.find(fmt::format(":{}=", word.name)) != std::string::npos) continue;
        axis += fmt::format(":{}={}", word.name, value);
    }
    return plan.substr(0, data.begin) + axis + plan.substr(data.end);
}

}  // namespace rehearse::models
