// SPDX-License-Identifier: Apache-2.0
// Machine files that change a few things of a machine that is known.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "machine_equality.hpp"
#include "models/models.hpp"

namespace rehearse::models {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& text) {
    try {
        parse_machine(text, "mine.toml");
    } catch (const InputError& error) {
        return error.what();
    }
    return "taken";
}

TEST(Extends, NothingMoreThanTheNameIsTheMachineItself) {
    Machine mine = parse_machine("name = \"mine\"\nextends = \"summit\"\n", "mine.toml");
    EXPECT_EQ(mine.name, "mine");
    EXPECT_EQ(mine.origin, "mine.toml");
    mine.name = "summit";
    expect_equal(mine, load_machine("summit"));
}

TEST(Extends, ChangesWhatItSaysAndKeepsTheRestWithItsSources) {
    const Machine eos = load_machine("eos");
    const Machine mine = parse_machine(
        "name = \"mine\"\nextends = \"eos\"\nsoftware = \"generic\"\n"
        "[[device]]\nname = \"h100-sxm\"\nmemory = { value = \"94GB\", source = \"our order\" }\n"
        "[[node]]\nname = \"dgx-h100\"\ncount = 4\n"
        "[fabric]\nlink = { value = \"25GBps\", source = \"our switch\" }\n[fabric.star]\n"
        "[messaging.across]\nfraction = { value = 0.5, source = \"we measured\" }\n"
        "[[storage]]\nname = \"nfs\"\nread = { value = \"1GBps\", source = \"we measured\" }\n",
        "mine.toml");
    EXPECT_EQ(mine.software.name, "generic");
    ASSERT_EQ(mine.classes.size(), 1U);
    EXPECT_EQ(mine.classes[0].memory.value, Bytes{94e9});
    EXPECT_EQ(mine.classes[0].memory.source, "our order");
    expect_equal(mine.classes[0].memory_bandwidth, eos.classes[0].memory_bandwidth, "memory_bandwidth");
    EXPECT_EQ(device_count(mine), 32);
    EXPECT_EQ(mine.nodes[0].links.size(), eos.nodes[0].links.size());
    EXPECT_EQ(mine.fabric.link.value, Bandwidth{25e9});
    EXPECT_TRUE(std::holds_alternative<Star>(mine.fabric.topology));
    expect_equal(mine.fabric.latency, eos.fabric.latency, "latency");
    EXPECT_EQ(mine.across.fraction.value, 0.5);
    expect_equal(mine.across.overhead, eos.across.overhead, "overhead");
    expect_equal(mine.inside, eos.inside);
    ASSERT_EQ(mine.storage.size(), eos.storage.size() + 1);
    EXPECT_EQ(mine.storage.back().name, "nfs");
    expect_equal(parse_machine(to_toml(mine), "again.toml"), mine);
}

TEST(Extends, AFileThatIsThereByItsPathFromTheFile) {
    const std::string folder = testing::TempDir();
    std::ofstream(folder + "base.toml") << "name = \"base\"\nextends = \"dgx2\"\nsummary = \"ours\"\n";
    std::ofstream(folder + "mine.toml") << "name = \"mine\"\nextends = \"base.toml\"\n";
    const Machine mine = load_machine(folder + "mine.toml");
    EXPECT_EQ(mine.summary, "ours");
    EXPECT_EQ(device_count(mine), device_count(load_machine("dgx2")));
    std::ofstream(folder + "base.toml") << "name = \"base\"\nextends = \"mine.toml\"\n";
    try {
        load_machine(folder + "mine.toml");
        FAIL() << "files that extend each other were taken";
    } catch (const InputError& error) {
        EXPECT_THAT(error.what(), HasSubstr("base.toml:2: 'mine.toml' extends this file in turn"));
    }
}

TEST(Extends, TellsTheFileAndLineOfAMistake) {
    const std::string start = "name = \"mine\"\nextends = \"eos\"\n";
    EXPECT_THAT(refusal("extends = \"eos\"\n"), testing::StartsWith("mine.toml:1: 'name' is missing"));
    EXPECT_THAT(refusal("name = \"mine\"\nextends = \"eoss\"\n"),
                testing::AllOf(testing::StartsWith("mine.toml:2: "), HasSubstr("did you mean 'eos'?")));
    EXPECT_THAT(refusal("name = \"mine\"\nextends = \"no.toml\"\n"), testing::StartsWith("mine.toml:2: "));
    EXPECT_THAT(refusal(start + "[[device]]\nname = \"h100-sxm\"\nmemory = \"94GB\"\n"),
                testing::AllOf(testing::StartsWith("mine.toml:5: "), HasSubstr("memory has no source")));
    EXPECT_THAT(refusal(start + "[fabrik]\n"),
                testing::AllOf(testing::StartsWith("mine.toml:3: "), HasSubstr("'fabric'")));
    // More nodes than its tree has places for: the tree stands in the other file.
    EXPECT_THAT(refusal(start + "[[node]]\nname = \"dgx-h100\"\ncount = 100000\n"),
                testing::AllOf(testing::StartsWith("models/machines/eos.toml:"), HasSubstr("places for")));
}

}  // namespace
}  // namespace rehearse::models
