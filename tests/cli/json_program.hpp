// SPDX-License-Identifier: Apache-2.0
// The program, with what it says as JSON.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/process.hpp"

namespace rehearse {

using Json = nlohmann::json;

class JsonProgram : public Program {
protected:
    Json json(const std::string& arguments, int code = 0) const {
        const Output output = run(arguments + " --format json");
        EXPECT_EQ(output.code, code) << output.err;
        return Json::parse(output.out);
    }
};

}  // namespace rehearse
