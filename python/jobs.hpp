// SPDX-License-Identifier: Apache-2.0
// A job as Python says it, and as predict and search take it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/frameworks.hpp"
#include "predict/job.hpp"

namespace rehearse::python {

struct JobWords {
    std::string plan = "data";
    std::int64_t batch = 32;                     // samples of one step on one device
    std::optional<std::int64_t> global_batch{};  // ... on all devices, instead
    std::string precision = "fp32", optimizer = "sgd", framework{models::default_framework};
};

/// InputError for a word that is none.
schedule::Job job_of(const JobWords& words, std::int64_t devices);
predict::Job job_of(const Network& network, const Machine& machine, const JobWords& words);

}  // namespace rehearse::python
