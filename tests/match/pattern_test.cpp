// SPDX-License-Identifier: Apache-2.0
#include "match/pattern.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"

namespace rehearse::match {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;

std::string refusal(const std::string& expression) {
    try {
        Pattern{expression, "--filter"};
    } catch (const InputError& error) {
        return error.what();
    }
    return "";
}

TEST(Pattern, IsFoundAnywhereOrMatchesAllWithItsGroups) {
    const Pattern net{"res.*([0-9]+)", "--filter"};
    EXPECT_TRUE(net.is_in("a resnet50 here"));
    EXPECT_FALSE(net.is_in("vgg16"));
    EXPECT_THAT(net.groups_of("resnet50"), Optional(ElementsAre("0")));  // .* takes all it can
    EXPECT_EQ(net.groups_of("a resnet50"), std::nullopt);
    EXPECT_THAT((Pattern{"(a)|(b)", ""}.groups_of("b")), Optional(ElementsAre("", "b")));
}

TEST(Pattern, MayIgnoreCase) {
    EXPECT_FALSE((Pattern{"bert", ""}.is_in("BERT-large")));
    EXPECT_TRUE((Pattern{"bert.*", "", Case::ignored}.groups_of("BERT-large")));
}

TEST(Pattern, SaysWhatIsWrong) {
    EXPECT_THAT(refusal("("), HasSubstr("--filter '(': not a regular expression: missing )"));
    EXPECT_THAT(refusal("(?!a).*"), HasSubstr("no lookahead"));
    EXPECT_THAT(refusal("(a)\\1"), HasSubstr("reference to a group"));
    EXPECT_EQ(refusal("\\\\1"), "");
}

// Each of these overflowed the stack of std::regex, or kept it busy for ever.
TEST(Pattern, IsBoundedInTimeAndStack) {
    EXPECT_TRUE((Pattern{std::string(20'000, '(') + std::string(20'000, ')'), ""}.is_in("any")));
    EXPECT_THAT(refusal("((a{1000}){1000}){1000}"), HasSubstr("not a regular expression"));
    EXPECT_LT(refusal(std::string(100'000, '(')).size(), 600U) << "a message, not the expression again";
    const std::string text(1'000'000, 'a');
    EXPECT_FALSE((Pattern{"(a+)+b", ""}.groups_of(text)));
    EXPECT_FALSE((Pattern{"(a|aa)*c", ""}.is_in(text)));
    EXPECT_TRUE((Pattern{".*", ""}.groups_of(text)));
}

TEST(Pattern, TakesTextThatIsNoUnicode) {
    EXPECT_FALSE((Pattern{"a.b", ""}.groups_of("a\xFF\xFE b")));
    EXPECT_NE(refusal("\xFF"), "");
}

}  // namespace
}  // namespace rehearse::match
