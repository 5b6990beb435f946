// SPDX-License-Identifier: Apache-2.0
// Wrong input ends with exit code 2, nothing on stdout, and a message that says what would be right.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "tests/cli/process.hpp"

namespace rehearse {

struct Wrong {
    const char* arguments;
    const char* message;
};

class BadInput : public Program {
protected:
    void expect_refused(const std::vector<Wrong>& cases) const {
        for (const Wrong& wrong : cases) {
            SCOPED_TRACE(wrong.arguments);
            const Output output = run(wrong.arguments);
            EXPECT_EQ(output.code, 2) << output.err;
            EXPECT_EQ(output.out, "");
            EXPECT_THAT(output.err, testing::HasSubstr(wrong.message));
            EXPECT_THAT(output.err, testing::StartsWith("rehearse: "));
            EXPECT_LT(std::count(output.err.begin(), output.err.end(), '\n'), 4) << "one clear message";
        }
    }
};

}  // namespace rehearse
