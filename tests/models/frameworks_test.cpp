// SPDX-License-Identifier: Apache-2.0
// Profiles of frameworks. Oracle: small files written out by hand.
#include "models/frameworks.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"

namespace rehearse::models {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

FrameworkProfile profile(const std::string& text) { return parse_framework(text, "mine", "mine.toml"); }

const std::string ring = R"(summary = "mine"
[[setting]]
name = "allreduce"
value = "ring"
source = "its manual"
[[setting]]
name = "bucket"
value = "8MB"
source = "its manual"
)";

TEST(Frameworks, AreReadWithASourceForEachSetting) {
    const FrameworkProfile read = profile(ring);
    EXPECT_EQ(read.summary, "mine");
    EXPECT_EQ(read.value("bucket"), "8MB");
    EXPECT_EQ(read.value("loader"), "");
    const auto reading = [](const std::string& text) { return [text] { profile(text); }; };
    EXPECT_THAT(reading(ring + "[[setting]]\nname = \"buckets\"\nvalue = \"1MB\"\nsource = \"s\"\n"),
                ThrowsMessage<InputError>(HasSubstr("no setting 'buckets' (did you mean 'bucket'?)")));
    EXPECT_THAT(reading("summary = \"x\"\n[[setting]]\nname = \"first\"\nvalue = \"1MB\"\n"),
                ThrowsMessage<InputError>(HasSubstr("source")));
    EXPECT_THAT(reading(ring + "[[setting]]\nname = \"bucket\"\nvalue = \"1MB\"\nsource = \"s\"\n"),
                ThrowsMessage<InputError>(HasSubstr("it is set above")));
}

TEST(Frameworks, AddToThePlanWhatItDoesNotSay) {
    const FrameworkProfile mine = profile(ring);
    EXPECT_EQ(plan_with("data", mine), "data:allreduce=ring:bucket=8MB");
    EXPECT_EQ(plan_with("data=8:bucket=1MB,tensor=2", mine), "data=8:bucket=1MB:allreduce=ring,tensor=2");
    EXPECT_EQ(plan_with("pipe=2,data:allreduce=hierarchical(ring,halving)", mine),
              "pipe=2,data:allreduce=hierarchical(ring,halving):bucket=8MB");
    EXPECT_EQ(plan_with("tensor=4", mine), "tensor=4") << "nobody sums gradients";
}

TEST(Frameworks, AreShippedWithADefaultThatSaysNothing) {
    EXPECT_GE(frameworks().size(), 8U);
    EXPECT_TRUE(load_framework(std::string{default_framework}).settings.empty());
    EXPECT_EQ(plan_with("data", load_framework("chainermn")), "data:allreduce=ring:bucket=1GB:overlap=off");
    EXPECT_THAT([] { load_framework("pytorch"); }, ThrowsMessage<InputError>(HasSubstr("unknown framework 'pytorch'")));
}

}  // namespace
}  // namespace rehearse::models
