// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_choice.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <map>
#include <span>
#include <vector>

#include "calibrate/fit.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"

namespace rehearse::cli {

namespace {

// What rank 0 has, on every rank. A file that cannot be read is every rank's InputError.
std::string text_of(const std::string& path, const kernels::Communicator& ranks) {
    std::string text, why;
    if (ranks.rank() == 0) {
        try {
            text = read_file(path);
        } catch (const InputError& error) {
            why = error.what();
        }
    }
    for (std::string* each : {&text, &why}) {
        std::uint64_t size = each->size();
        ranks.broadcast(std::as_writable_bytes(std::span{&size, 1}), 0);
        each->resize(size);
        ranks.broadcast(std::as_writable_bytes(std::span{*each}), 0);
    }
    if (!why.empty()) throw InputError(why);
    return text;
}

}  // namespace

kernels::AlgorithmChoice read_choice(const std::string& path, const bench::Traffic& traffic,
                                     const kernels::Communicator& ranks) {
    const nlohmann::json document = nlohmann::json::parse(text_of(path, ranks), nullptr, false);
    const std::string prefix = fmt::format("{}:n{}:", bench::name_of(traffic), ranks.size());
    const std::string middle = fmt::format("B:{}/comm/", to_string(traffic.type));
    std::map<std::pair<std::int64_t, std::string>, std::vector<double>> times;
    for (const auto& row :
         document.is_object() ? document.value("benchmarks", nlohmann::json::array()) : nlohmann::json::array()) {
        if (!row.is_object() || !row.contains("name") || !row["name"].is_string()) continue;
        const std::string name = row["name"].get<std::string>();
        const std::size_t at = name.find(middle);
        if (!name.starts_with(prefix) || at == std::string::npos || !row.contains("median_s")) continue;
        const std::int64_t size = parse_int(std::string_view{name}.substr(prefix.size(), at - prefix.size()), path);
        const std::string algorithm = name.substr(at + middle.size());
        if (!row["median_s"].is_number())
            throw InputError(fmt::format("--samples {}: median_s of '{}' is no number", path, name));
        if (algorithm != "auto") times[{size, algorithm}].push_back(row["median_s"].get<double>());
    }
    if (times.empty()) {
        throw InputError(fmt::format("--samples {}: no '{}...{}...' in it: write one with rehearse bench {} --out",
                                     path, prefix, middle, bench::name_of(traffic)));
    }
    kernels::AlgorithmChoice choice;
    for (const auto& [key, seconds] : times) {
        choice.add(Bytes{static_cast<double>(key.first)}, parse_algorithm(key.second, traffic.kind.value()),
                   Seconds{calibrate::median(seconds)});
    }
    return choice;
}

}  // namespace rehearse::cli
