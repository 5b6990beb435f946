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
    timeline.events[2].flow = 7;
    const std::string path = path_of("csv_" + std::to_string(::getpid()) + ".csv");
    write(timeline, path);
    EXPECT_EQ(
        content_of(path),
        "timeline,title,iteration,rank,stream,step,layer,pass,micro_batch,start_ns,duration_ns,bytes,flop,flow\n"
        "predicted,\"a \"\"b\"\", c\",0,0,compute,conv1:forward,conv1,forward,0,0,1500,4096,1000000,0\n"
        "predicted,\"a \"\"b\"\", c\",0,0,compute,conv1:backward_weights,conv1,backward_weights,0,1500,1501,0,2.5,0\n"
        "predicted,\"a \"\"b\"\", "
        "c\",0,0,communication,bucket0:allreduce,bucket0,allreduce,0,2000,1000000,246824,0,7\n");
    ::unlink(path.c_str());
}

TEST(Csv, HasOneRowALink) {
    Timeline timeline = three_events();  // 1.002 ms long
    timeline.links = {{"nic:up", "nic:up", 4, Bandwidth{1e9}, Bytes{2.004e6}, Bytes{1e6}}};
    const std::string path = path_of("links_" + std::to_string(::getpid()) + ".csv");
    write({timeline}, path, Format::links);
    EXPECT_EQ(content_of(path),
              "timeline,title,link,kind,links,capacity_bytes_per_s,bytes,most_bytes,utilisation\n"
              "predicted,lenet5 on this-host,nic:up,nic:up,4,1000000000,2004000,1000000,0.5\n");
    ::unlink(path.c_str());
}

}  // namespace

}  // namespace rehearse::trace
