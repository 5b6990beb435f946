// SPDX-License-Identifier: Apache-2.0
#include "core/text.hpp"

#include <gtest/gtest.h>

#include <array>

#include "core/error.hpp"

namespace rehearse {
namespace {

constexpr std::array<std::string_view, 4> words{"resnet50", "resnet101", "vgg16", "lenet5"};

TEST(DidYouMean, FindsTypingErrorsOnly) {
    EXPECT_EQ(did_you_mean("resnet5", words), " (did you mean 'resnet50'?)");
    EXPECT_EQ(did_you_mean("resent50", words), " (did you mean 'resnet50'?)");
    EXPECT_EQ(did_you_mean("vg16", words), " (did you mean 'vgg16'?)");
    EXPECT_EQ(did_you_mean("transformer", words), "");
    EXPECT_EQ(did_you_mean("", words), "");
}

// A third of its letters may be wrong, those that are missing or too many counted.
TEST(DidYouMean, GoesByAThirdOfALongName) {
    const std::string asked(60, 'x');
    const auto answer = [&](std::size_t letters) {
        const std::string name(letters, 'x');
        const std::array<std::string_view, 1> known{name};
        return did_you_mean(asked, known);
    };
    EXPECT_EQ(answer(39), "");
    EXPECT_EQ(answer(40), " (did you mean '" + std::string(40, 'x') + "'?)");
    EXPECT_EQ(answer(80), " (did you mean '" + std::string(80, 'x') + "'?)");
    EXPECT_EQ(answer(81), "");
}

TEST(Split, KeepsEmptyParts) {
    EXPECT_EQ(split("a::b", ':'), (std::vector<std::string_view>{"a", "", "b"}));
    EXPECT_EQ(split("", ':'), (std::vector<std::string_view>{""}));
}

TEST(ParseInt, TakesTheWholeTextOrNothing) {
    EXPECT_EQ(parse_int("-12", "--batch"), -12);
    for (const char* text : {"", "1x", "1.5", " 1", "99999999999999999999"}) {
        EXPECT_THROW(parse_int(text, "--batch"), InputError) << text;
    }
}

}  // namespace
}  // namespace rehearse
