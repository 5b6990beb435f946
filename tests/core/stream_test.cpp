// SPDX-License-Identifier: Apache-2.0
#include "core/stream.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/schedule.hpp"

namespace rehearse {
namespace {

TEST(Stream, HasANameOfItsOwnAndIsFoundByIt) {
    std::set<std::string> names;
    for (int i = 0; i < stream_count; ++i) {
        const auto stream = static_cast<Stream>(i);
        EXPECT_TRUE(names.emplace(to_string(stream)).second) << i;
        EXPECT_EQ(stream_named(to_string(stream)), stream);
    }
    EXPECT_EQ(names.count("compute"), 1);
    EXPECT_EQ(names.count("communication(data+tensor)"), 1);
    EXPECT_EQ(stream_named("communication(no axis)"), std::nullopt);
}

TEST(Stream, OfACommunicatorIsOfTheAxesThatItRunsAlong) {
    Mesh mesh{.axes = {{"pipe", 4}, {"data", 2}, {"tensor", 2}}};
    const int both = join(mesh, 1, 2), ends = pair_of(mesh, 0, 0, 3);
    EXPECT_EQ(to_string(communicator_stream(mesh, 1)), "communication(data)");
    EXPECT_EQ(to_string(communicator_stream(mesh, 2)), "communication(tensor)");
    EXPECT_EQ(to_string(communicator_stream(mesh, both)), "communication(data+tensor)");
    EXPECT_EQ(to_string(communicator_stream(mesh, ends)), "communication(pipe)");
    EXPECT_EQ(communicator_stream({.axes = {{"unheard-of", 2}}}, 0), Stream::communication);
    for (const int axis : {1, 2, both, ends}) EXPECT_TRUE(is_communicator(communicator_stream(mesh, axis)));
    EXPECT_TRUE(is_communicator(Stream::communication));
    EXPECT_FALSE(is_communicator(Stream::send_gradients));
}

TEST(Stream, OfGradientsIsADataParallelGroupsOwn) {
    Mesh mesh{.axes = {{"expert", 4}, {"context", 2}, {"tensor", 2}}};
    const int both = join(mesh, 0, 1), all = join(mesh, 0, 2);
    EXPECT_EQ(to_string(communicator_stream(mesh, 1)), "communication(context)");
    EXPECT_EQ(to_string(gradient_stream(mesh, 0)), "communication(data+expert)");
    EXPECT_EQ(to_string(gradient_stream(mesh, both)), "communication(data+expert+context)");
    EXPECT_EQ(to_string(gradient_stream(mesh, all)), "communication(data+expert+tensor+context)");
    EXPECT_EQ(gradient_stream(mesh, 2), communicator_stream(mesh, 2));
    EXPECT_EQ(gradient_stream({.axes = {{"data", 2}}}, 0), communicator_stream({.axes = {{"data", 2}}}, 0));
    EXPECT_EQ(gradient_stream({.axes = {{"unheard-of", 2}}}, 0), Stream::communication);
}

TEST(Stream, OfStepsAreThoseThatTheyAreOn) {
    const std::vector<Step> steps{
        {"l", Stream::io, Load{}, {}}, {"c", Stream::compute, Compute{}, {0}}, {"m", Stream::io, Load{}, {}}};
    EXPECT_EQ(streams_of(steps), (std::vector{Stream::compute, Stream::io}));
}

}  // namespace
}  // namespace rehearse
