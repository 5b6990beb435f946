// SPDX-License-Identifier: Apache-2.0
// What `rehearse predict` is asked, as a file that can be kept and sent:
//   [experiment]
//   model = "resnet50"
//   machine = "summit"            # or a file, beside this one
//   plan = "data=64,pipe=6:microbatches=12"
//   devices = [6, 384]
//   batch = 32
//   precision = "mixed"
//   optimizer = "sgd"
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::models {

/// Empty or 0: the file does not say.
struct ExperimentFile {
    std::string model, machine, plan, precision, optimizer;
    std::vector<std::int64_t> devices;
    std::int64_t batch = 0;
};

/// Whether a TOML text is one: it has a table [experiment], which a machine file has not.
bool is_experiment(std::string_view toml);

/// Whether a TOML text is what `rehearse report` is asked: it has a table [request].
bool is_request(std::string_view toml);

/// A model or machine that is a file beside `path` gets its folder. InputError with file:line: no TOML, an unknown key,
/// a value of another type. What the words mean is checked by who uses them.
ExperimentFile load_experiment(const std::string& path);

/// The text from which load_experiment reads the same.
std::string to_toml(const ExperimentFile& experiment);

}  // namespace rehearse::models
