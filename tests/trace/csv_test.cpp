// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/trace/timelines.hpp"
#include "trace/trace.hpp"

namespace rehearse::trace {

namespace {

TEST(Csv, HasOneRowAnEventAndUnitsInItsHeader) {
    Timeline timeline = three_events();
    timeline.title = "a \"b\", c";
    const std::string path = path_of("csv_" + std::to_string(::getpid()) + ".csv");
    write(timeline, path);
    EXPECT_EQ(
        content_of(path),
        "timeline,title,iteration,rank,stream,step,layer,pass,micro_batch,start_ns,duration_ns,bytes,flop\n"
        "predicted,\"a \"\"b\"\", c\",0,0,compute,conv1:forward,conv1,forward,0,0,1500,4096,1000000\n"
        "predicted,\"a \"\"b\"\", c\",0,0,compute,conv1:backward_weights,conv1,backward_weights,0,1500,1501,0,2.5\n"
        "predicted,\"a \"\"b\"\", c\",0,0,communication,bucket0:allreduce,bucket0,allreduce,0,2000,1000000,246824,0\n");
    ::unlink(path.c_str());
}

}  // namespace

}  // namespace rehearse::trace
