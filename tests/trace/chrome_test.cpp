// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "core/error.hpp"
#include "tests/trace/timelines.hpp"
#include "trace/trace.hpp"

namespace rehearse::trace {

namespace {

std::string written(const std::vector<Timeline>& timelines) {
    const std::string path = path_of(fmt::format("chrome_{}.json", ::getpid()));
    write(timelines, path, Format::chrome);
    std::string file = content_of(path);
    ::unlink(path.c_str());
    return file;
}

std::string refusal_of(const std::string& content) {
    const std::string path = path_of(fmt::format("chrome_bad_{}.json", ::getpid()));
    put(path, content);
    std::string message = "no error";
    try {
        read(path);
    } catch (const InputError& error) {
        message = error.what();
    }
    ::unlink(path.c_str());
    return message;
}

TEST(Chrome, WritesTheFileThatWeWroteByHand) {
    EXPECT_EQ(written({three_events()}),
              R"({"displayTimeUnit":"ns","otherData":{"schema":"rehearse.timeline/1","shift_ns":0},"traceEvents":[
{"ph":"M","pid":1,"name":"rehearse_timeline","args":{"timeline":0,"title":"lenet5 on this-host","measured":false,"ranks":2}},
{"ph":"M","pid":1,"name":"process_name","args":{"name":"rank 0","timeline":0}},
{"ph":"M","pid":1,"name":"process_sort_index","args":{"sort_index":1}},
{"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"compute"}},
{"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"communication"}},
{"ph":"X","pid":1,"tid":1,"ts":0.000,"dur":1.500,"name":"conv1:forward","cat":"compute","args":{"rank":0,"layer":"conv1","pass":"forward","micro_batch":0,"iteration":0,"bytes":4096,"flops":1000000}},
{"ph":"X","pid":1,"tid":1,"ts":1.500,"dur":1.501,"name":"conv1:backward_weights","cat":"compute","args":{"rank":0,"layer":"conv1","pass":"backward_weights","micro_batch":0,"iteration":0,"flops":2.5}},
{"ph":"X","pid":1,"tid":2,"ts":2.000,"dur":1000.000,"name":"bucket0:allreduce","cat":"communication","args":{"rank":0,"layer":"bucket0","pass":"allreduce","micro_batch":0,"iteration":0,"bytes":246824}},
{"ph":"M","pid":2,"name":"process_name","args":{"name":"counters","timeline":0}},
{"ph":"M","pid":2,"name":"process_sort_index","args":{"sort_index":2}},
{"ph":"M","pid":2,"name":"rehearse_counter","args":{"name":"memory rank 0","unit":"bytes"}},
{"ph":"C","pid":2,"counter":0,"name":"memory rank 0","ts":0.000,"args":{"value":1024}},
{"ph":"C","pid":2,"counter":0,"name":"memory rank 0","ts":1.000,"args":{"value":2048.5}}
]})");
}

TEST(Chrome, DrawsArrowsAlongAFlow) {
    Timeline timeline = three_events();
    timeline.events[0].flow = timeline.events[2].flow = 5;
    timeline.events[1].flow = 6;  // alone: no arrow
    const std::string text = written({timeline});
    EXPECT_THAT(text, testing::HasSubstr(
                          R"({"ph":"s","pid":1,"tid":1,"ts":0.000,"id":"0.5","cat":"flow","name":"flow"},
{"ph":"f","bp":"e","pid":1,"tid":2,"ts":2.000,"id":"0.5","cat":"flow","name":"flow"},)"));
    EXPECT_EQ(text.find("0.6\""), std::string::npos);
}

TEST(Chrome, PutsOverlappingEventsOnThreadsOfTheirOwn) {
    Timeline timeline = three_events();
    timeline.events[1].start = Seconds{1e-6};  // the first one ends at 1.5 us
    EXPECT_THAT(written({timeline}),
                testing::HasSubstr(R"("pid":1,"tid":2,"name":"thread_name","args":{"name":"compute 2"})"));
}

TEST(Chrome, SaysWhatIsWrongWithAFile) {
    using testing::HasSubstr;
    EXPECT_THAT(refusal_of("{\"a\": 1}"), HasSubstr("JSON, but without \"traceEvents\""));
    EXPECT_THAT(refusal_of("[1, 2]"), HasSubstr("JSON, but without \"traceEvents\""));
    EXPECT_THAT(refusal_of("{\"schemaVersion\": 1, \"traceEvents\": [{\"ph\": \"X\", \"ts\": 1}]}"),
                HasSubstr("a Chrome trace of another program"));
    EXPECT_THAT(refusal_of("{\"traceEvents\": []}"), HasSubstr("without a timeline of ours"));
    EXPECT_THAT(refusal_of("{nonsense"), HasSubstr("broken at byte"));
    EXPECT_THAT(refusal_of("{\"traceEvents\": [{\"ph\": \"X\"}"), HasSubstr("another program"));
    EXPECT_THAT(refusal_of(std::string(200'000, '[')), HasSubstr("cut off at byte 200000"));
    EXPECT_THAT(refusal_of("\n\n  {\"a\": 1"), HasSubstr("cut off at byte 11"));
}

// Each replacement spoils one value of a good file; the message names it and a byte inside or just behind its element.
TEST(Chrome, NamesTheValueThatIsWrongAndWhere) {
    const std::string good = written({three_events()});
    struct Spoil {
        std::string from, to, message;
    };
    const std::vector<Spoil> spoils{
        {R"("ts":1.500)", R"("ts":"1.5")", "\"ts\" is missing or of the wrong kind"},
        {R"("dur":1.501)", R"("dur":-1)", "\"dur\" is out of range"},
        {R"("dur":1.501)", R"("dur":1e300)", "\"dur\" is out of range"},
        {R"("cat":"compute")", R"("cat":"computer")", "\"cat\" is no stream of ours"},
        {R"("iteration":0)", R"("iteration":99999999999)", "\"iteration\" is out of range"},
        {R"("layer":"conv1")", R"("layer":null)", "\"layer\" is missing or of the wrong kind"},
        {R"("counter":0)", R"("counter":7)", "a counter that is not described"},
        {R"("ph":"X","pid":1)", R"("ph":"X","pid":9)", "a process that has no name yet"},
    };
    for (const Spoil& spoil : spoils) {
        SCOPED_TRACE(spoil.to);
        std::string bad = good;
        const std::size_t at = bad.find(spoil.from);
        ASSERT_NE(at, std::string::npos);
        bad.replace(at, spoil.from.size(), spoil.to);
        const std::string message = refusal_of(bad);
        EXPECT_THAT(message, testing::HasSubstr(spoil.message));
        const std::size_t byte_at = message.find("broken at byte ");
        ASSERT_NE(byte_at, std::string::npos) << message;
        const std::size_t byte = std::stoul(message.substr(byte_at + 15));
        EXPECT_GT(byte, at);
        EXPECT_LE(byte, bad.find('\n', at) + 1);
    }
}

}  // namespace

}  // namespace rehearse::trace
