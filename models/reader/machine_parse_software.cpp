// SPDX-License-Identifier: Apache-2.0
// `software` of a machine, and models/software.toml.
#include <fmt/format.h>

#include <optional>

#include "core/text.hpp"
#include "models/models.hpp"
#include "models/reader/machine_files.hpp"
#include "models/reader/machine_parse.hpp"

namespace rehearse::models {
namespace {

// The entry of that name, or the names that there are.
const toml::table* entry(std::string_view name, std::vector<std::string_view>& names) {
    static const toml::table catalog = toml::parse(software_catalog(), std::string_view{"models/software.toml"});
    for (const toml::node& each : *catalog["software"].as_array()) {
        const toml::table& table = *each.as_table();
        names.push_back(*table["name"].value<std::string_view>());
        if (names.back() == name) return &table;
    }
    return nullptr;
}

// What it is like stands behind it, and what that is like.
void add_bases(Reader& reader, std::string like, const Reader& asked, std::string_view key) {
    while (!like.empty()) {
        std::vector<std::string_view> names;
        const toml::table* base = entry(like, names);
        if (base == nullptr)
            asked.fail(key, fmt::format("no software '{}' is known{}; there are {}", like, did_you_mean(like, names),
                                        join(names)));
        reader.add_base(*base);
        like = (*base)["like"].value_or(std::string{});
    }
}

FusedKernel fused_kernel(Reader& reader) {
    const std::string name = reader.text("attention_kernel", std::string{to_string(FusedKernel::library)});
    for (const FusedKernel each : {FusedKernel::library, FusedKernel::flash, FusedKernel::triton})
        if (name == to_string(each)) return each;
    reader.fail("attention_kernel", fmt::format("'{}' is none of library, flash, triton", name));
}

Software figures(Reader reader) {
    Software software;
    software.name = reader.text("name");
    software.summary = reader.text("summary", "");
    reader.text("like", "");
    software.elementwise_passes = reader.figure<double>("elementwise_passes");
    software.score_passes = reader.figure<double>("score_passes", Reader::Least::zero);
    software.masked_passes = reader.figure_if_given<double>("masked_passes", Reader::Least::zero);
    software.loss_passes = reader.figure<double>("loss_passes");
    software.issue = reader.figure_if_given<Seconds>("issue");
    software.dense_kernels = reader.figure<double>("dense_kernels");
    software.attention_kernels = reader.figure<double>("attention_kernels");
    software.loss_kernels = reader.figure<double>("loss_kernels");
    software.mixture_kernels = reader.figure_if_given<double>("mixture_kernels");
    software.issues_ahead = reader.yes("issues_ahead", false);
    software.attention_kernel = fused_kernel(reader);
    software.modules = {
        reader.figure_if_given<double>("rms_passes"), reader.figure_if_given<double>("rms_backward_passes"),
        reader.figure_if_given<double>("rotary_passes"), reader.figure_if_given<double>("rotary_backward_passes")};
    reader.done();
    return software;
}

}  // namespace

Software parse_software(Reader& top) {
    const bool named = top.is_text("software");
    if (auto table = named ? std::nullopt : top.table("software", "software")) {
        const Reader own = *table;
        add_bases(*table, table->text("like", ""), own, "like");
        return figures(*table);
    }
    static const toml::table none;
    Reader reader(none, "models/software.toml", "");
    add_bases(reader, named ? top.text("software") : std::string{generic_software}, top, "software");
    return figures(std::move(reader));
}

Software load_software(const std::string& name) {
    const toml::table asked{{"software", name}};
    Reader reader(asked, "--framework", "");
    return parse_software(reader);
}

}  // namespace rehearse::models
