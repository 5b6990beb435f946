// SPDX-License-Identifier: Apache-2.0
// Chakra execution traces written and read again, and files that are none. Bytes by hand, after the public schema.
#include "trace/programs.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "core/file.hpp"
#include "trace/recorded_programs.hpp"

namespace rehearse::trace {
namespace {

/// Groups of these ranks.
std::vector<std::vector<RankIndex>> groups_of(const std::vector<std::vector<int>>& numbers) {
    std::vector<std::vector<RankIndex>> groups;
    for (const std::vector<int>& each : numbers) groups.emplace_back(each.begin(), each.end());
    return groups;
}

using testing::HasSubstr;
using testing::ThrowsMessage;
using Kind = ProgramNode::Kind;
namespace fs = std::filesystem;

class Programs : public testing::Test {
protected:
    void SetUp() override {
        folder = fs::path{testing::TempDir()} / testing::UnitTest::GetInstance()->current_test_info()->name();
        fs::remove_all(folder);
        fs::create_directories(folder);
    }
    std::string write(const std::string& name, const std::string& bytes) const {
        std::ofstream{folder / name, std::ios::binary} << bytes;
        return (folder / name).string();
    }
    std::string prefix() const { return (folder / "job").string(); }
    fs::path folder;
};

RankPrograms example() {
    RankPrograms programs;
    programs.groups = groups_of({{0, 1, 2}, {0, 2}});
    programs.ranks.resize(3);
    for (std::size_t rank = 0; rank < 3; ++rank) {
        std::vector<ProgramNode>& nodes = programs.ranks[rank];
        nodes.push_back({.kind = Kind::load, .name = "load", .time = Seconds{3e-6}, .bytes = Bytes{77}});
        nodes.push_back({.name = "conv1:forward",
                         .time = Seconds{1.5e-6},
                         .flops = Flops{1e9},
                         .bytes = Bytes{4096},
                         .after = {0}});
        nodes.push_back({.kind = Kind::collective, .name = "bucket0:allreduce", .bytes = Bytes{1 << 20}, .after = {1}});
        if (rank == 1) continue;
        nodes.push_back({.kind = Kind::collective,
                         .name = "gather",
                         .bytes = Bytes{12},
                         .collective = CollectiveKind::all_gather,
                         .group = 1,
                         .after = {0, 2}});
        nodes.push_back({.kind = rank == 0 ? Kind::send : Kind::receive,
                         .name = "message",
                         .bytes = Bytes{640},
                         .peer = RankIndex{rank == 0 ? 2 : 0},
                         .tag = 1,
                         .after = {1}});
        nodes.push_back({.kind = Kind::collective,
                         .name = "weights",
                         .bytes = Bytes{24},
                         .collective = CollectiveKind::broadcast,
                         .group = 1,
                         .root = 1,
                         .after = {3}});
    }
    return programs;
}

TEST_F(Programs, ComeBackFromChakraAsTheyWere) {
    const RankPrograms programs = example();
    write_programs(programs, prefix(), ProgramFormat::chakra);
    std::vector<std::string> files = program_files(programs, prefix(), ProgramFormat::chakra);
    const std::string groups = read_file(files.front());
    files.erase(files.begin());
    const RankPrograms read = read_chakra(files, groups);
    EXPECT_EQ(read.groups, programs.groups);
    ASSERT_EQ(read.ranks.size(), 3U);
    for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(read.ranks[rank], programs.ranks[rank]) << rank;
}

// Field numbers of et_def.proto: GlobalMetadata.version 1; Node.id 1, name 2, type 3, data_deps 5, attr 10; an
// attribute's name 1, int64_val 9, bool_val 27 (tag 216, 1).
TEST_F(Programs, AreReadFromBytesWrittenByHand) {
    const std::string head = std::string{"\x07\x0a\x05"} + "1.0.0";
    const std::string size = std::string{"\x52\x0d\x0a\x09"} + "comm_size" + "\x48\x40";
    const std::string type = std::string{"\x52\x0d\x0a\x09"} + "comm_type" + std::string{"\x48\x07"};
    const std::string node = std::string{"\x08\x05\x12\x01"} + "a" + "\x18\x07" + size + type;
    const std::string file = write("0.et", head + static_cast<char>(node.size()) + node);
    const RankPrograms read = read_chakra({file, file}, "");
    ASSERT_EQ(read.ranks[0].size(), 1U);
    const ProgramNode& first = read.ranks[0].front();
    EXPECT_EQ(first.kind, Kind::collective);
    EXPECT_EQ(first.collective, CollectiveKind::reduce_scatter);
    EXPECT_EQ(first.bytes, Bytes{64});
}

// bool_list 28 (tag 226, 1), of packed values 1: the first dimension of two.
TEST_F(Programs, AmongTheRanksOfSomeDimensionsAreRefused) {
    const std::string head = std::string{"\x07\x0a\x05"} + "1.0.0";
    const std::string size = std::string{"\x52\x0d\x0a\x09"} + "comm_size" + "\x48\x40";
    const std::string type = std::string{"\x52\x0d\x0a\x09"} + "comm_type" + std::string{"\x48\x07"};
    const auto read_with = [&](char second) {
        const std::string dimensions =
            std::string{"\x52\x15\x0a\x0c"} + "involved_dim" + std::string{"\xe2\x01\x04\x0a\x02\x01"} + second;
        const std::string node = std::string{"\x08\x05\x12\x01"} + "a" + "\x18\x07" + size + type + dimensions;
        const std::string file = write("0.et", head + static_cast<char>(node.size()) + node);
        return read_chakra({file, file}, "");
    };
    EXPECT_EQ(read_with('\1').ranks[0].size(), 1U);
    EXPECT_THAT([&] { read_with('\0'); },
                ThrowsMessage<InputError>(HasSubstr("node 5 'a': is among the ranks of some dimensions")));
}

TEST_F(Programs, OfChakraAreRefusedWithTheirByte) {
    write_programs(example(), prefix(), ProgramFormat::chakra);
    const std::string whole = read_file(prefix() + ".1.et");
    const auto reading = [&](const std::string& bytes) {
        const std::string file = write("bad.et", bytes);
        return [file] { read_chakra({file}, ""); };
    };
    EXPECT_THAT(reading(""), ThrowsMessage<InputError>(HasSubstr("is empty")));
    EXPECT_THAT(reading(whole.substr(0, whole.size() - 1)), ThrowsMessage<InputError>(HasSubstr("cut off")));
    EXPECT_THAT(reading(std::string(12, '\xff')), ThrowsMessage<InputError>(HasSubstr("byte 0: no length")));
    EXPECT_THAT(reading(std::string{"\x03\x0a\x01"} + "9"), ThrowsMessage<InputError>(HasSubstr("version '9'")));
    EXPECT_THAT(reading("\x04zzzz"), ThrowsMessage<InputError>(HasSubstr("byte 0: no ")));
    for (const char* rank : {"-1", "2", "0.5", "18446744073709551615"})  // the last is -1 as a signed number
        EXPECT_THAT(([&] {
                        read_chakra({prefix() + ".0.et", prefix() + ".1.et"}, fmt::format("{{\"9\": [{}]}}", rank));
                    }),
                    ThrowsMessage<InputError>(HasSubstr("group '9' has a rank that is not there")))
            << rank;
    // All cuts and single changed bytes end in a message or in a program.
    for (std::size_t i = 0; i < whole.size(); ++i) {
        std::string changed = whole;
        changed[i] = static_cast<char>(changed[i] ^ 0x55);
        for (const std::string& bytes : {whole.substr(0, i), changed}) {
            try {
                reading(bytes)();
            } catch (const InputError&) {
            }
        }
    }
}

TEST_F(Programs, OfChakraNameWhatHasNoSchedule) {
    RankPrograms programs;
    programs.groups = groups_of({{0}});
    programs.ranks = {{{.name = "a", .time = Seconds{1e-6}}, {.kind = Kind::send, .name = "b", .peer = RankIndex{7}}}};
    write_programs(programs, prefix(), ProgramFormat::chakra);
    EXPECT_THAT([&] { read_chakra({prefix() + ".0.et"}, ""); },
                ThrowsMessage<InputError>(HasSubstr("node 1 'b': is a message between rank 0 and 7 of 1")));
    EXPECT_THAT([&] { read_chakra({prefix() + ".0.et"}, "[]"); },
                ThrowsMessage<InputError>(HasSubstr("groups of ranks: no JSON object")));
}

// Of steps of 101, 100 and 200 ns the one of 100, the lower one in the middle of those behind the warm-up: forward,
// backward, a sum that begins after the former's end and before the latter's, then the optimizer after both; a gap is
// part of its call.
Recording recorded(std::int64_t rank) {
    Recording recording;
    recording.path = "r.json";
    recording.rank = rank;
    recording.ranks = 2;
    recording.texts = {"", "conv", "SGD"};
    recording.steps = {{0, 101}, {101, 201}, {201, 401}};
    const auto call = [](RecordedCall::Part part, int step, std::uint32_t name, std::int64_t at, std::int64_t busy,
                         std::int64_t gap) {
        RecordedCall made;
        made.part = part;
        made.step = step;
        made.name = name;
        made.at = at;
        made.busy = busy;
        made.gap = gap;
        return made;
    };
    using Part = RecordedCall::Part;
    recording.calls = {call(Part::forward, 0, 1, 0, 90, 0), call(Part::forward, 1, 1, 100, 20, 5),
                       call(Part::backward, 1, 1, 130, 30, 0), call(Part::update, 1, 2, 185, 15, 0)};
    recording.collectives = {
        {.kind = "all_reduce", .bytes = Bytes{64}, .ranks = 2, .step = 1, .start = 140, .end = 180}};
    return recording;
}

TEST_F(Programs, AreMadeOfRecordingsOfAllRanks) {
    const std::vector<Recording> recordings{recorded(1), recorded(0)};
    const RankPrograms programs = programs_of(recordings);
    EXPECT_EQ(programs.groups, groups_of({{0, 1}}));
    ASSERT_EQ(programs.ranks.size(), 2U);
    const std::vector<ProgramNode> expected{
        {.name = "conv:forward", .time = Seconds{25e-9}},
        {.name = "conv:backward", .time = Seconds{30e-9}, .after = {0}},
        {.kind = Kind::collective, .name = "all_reduce", .bytes = Bytes{64}, .after = {0}},
        {.name = "SGD:update", .time = Seconds{15e-9}, .after = {1, 2}}};
    for (const std::vector<ProgramNode>& nodes : programs.ranks) {
        ASSERT_EQ(nodes.size(), expected.size());
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            EXPECT_EQ(nodes[i].name, expected[i].name);
            EXPECT_EQ(nodes[i].kind, expected[i].kind);
            EXPECT_EQ(nodes[i].after, expected[i].after) << nodes[i].name;
            EXPECT_EQ(nodes[i].bytes, expected[i].bytes);
            EXPECT_NEAR(nodes[i].time.value, expected[i].time.value, 1e-15);
        }
    }
}

// Calls without kernels, and waits that other work hides, are nothing that a device does.
TEST_F(Programs, OfADeviceAreMadeOfWhatItDoes) {
    std::vector<Recording> recordings{recorded(0), recorded(1)};
    for (Recording& recording : recordings) {
        recording.on_device = true;
        RecordedCall nothing = recording.calls[1];
        nothing.busy = nothing.gap = 0;
        recording.calls.insert(recording.calls.begin() + 2, nothing);
        nothing.part = RecordedCall::Part::loader;
        recording.calls.insert(recording.calls.begin() + 1, nothing);
    }
    for (const std::vector<ProgramNode>& nodes : programs_of(recordings).ranks) EXPECT_EQ(nodes.size(), 4U);
}

TEST_F(Programs, OfRecordingsThatDoNotTellEnoughAreRefused) {
    std::vector<Recording> recordings{recorded(0)};
    EXPECT_THAT([&] { programs_of(recordings); },
                ThrowsMessage<InputError>(HasSubstr("traces of 2 ranks, 1 are given")));
    recordings.push_back(recorded(0));
    EXPECT_THAT([&] { programs_of(recordings); }, ThrowsMessage<InputError>(HasSubstr("none of rank 1")));
    recordings.back() = recorded(1);
    recordings.back().collectives.front().bytes = Bytes{};
    EXPECT_THAT([&] { programs_of(recordings); }, ThrowsMessage<InputError>(HasSubstr("does not say its size")));
    recordings.back().collectives.front() = {.kind = "send_recv", .step = 1, .start = 140, .end = 180};
    EXPECT_THAT([&] { programs_of(recordings); }, ThrowsMessage<InputError>(HasSubstr("send_recv, has no form")));
}

TEST_F(Programs, AreWrittenForLogGopsimAndSmpi) {
    RankPrograms programs;
    programs.groups = groups_of({{0, 1}});
    programs.ranks.resize(2);
    programs.ranks[0] = {
        {.name = "a", .time = Seconds{2e-6}},
        {.kind = Kind::send, .name = "s", .bytes = Bytes{8}, .peer = RankIndex{1}, .tag = 3, .after = {0}}};
    programs.ranks[1] = {{.kind = Kind::receive, .name = "r", .bytes = Bytes{8}, .peer = RankIndex{0}, .tag = 3},
                         {.name = "b", .time = Seconds{1e-6}, .after = {0}}};
    write_programs(programs, prefix(), ProgramFormat::goal);
    EXPECT_EQ(read_file(prefix() + ".goal"),
              "num_ranks 2\n\nrank 0 {\nl1: calc 2000\nl2: send 8b to 1 tag 3\nl2 requires l1\n}\n"
              "\nrank 1 {\nl1: recv 8b from 0 tag 3\nl2: calc 1000\nl2 requires l1\n}\n");
    write_programs(programs, prefix(), ProgramFormat::smpi);
    EXPECT_EQ(read_file(prefix() + ".0.ti"), "0 init\n0 compute 2000\n0 isend 1 3 8 6\n0 waitall 1\n0 finalize\n");
    EXPECT_EQ(read_file(prefix() + ".1.ti"), "1 init\n1 irecv 0 3 8 6\n1 wait 0 1 3\n1 compute 1000\n1 finalize\n");
}

// A stage sends two activations and gets a gradient: only the computation that reads the gradient waits, for it alone,
// and the sends stay open to the end. Of two receives of a key the second is not over before the first.
TEST_F(Programs, ForSmpiWaitForNothingBeforeItIsNeeded) {
    const auto message = [](Kind kind, std::int64_t tag, std::vector<int> after) {
        return ProgramNode{
            .kind = kind, .name = "m", .bytes = Bytes{8}, .peer = RankIndex{1}, .tag = tag, .after = std::move(after)};
    };
    const auto computation = [](std::vector<int> after) {
        return ProgramNode{.name = "c", .time = Seconds{1e-9}, .after = std::move(after)};
    };
    RankPrograms programs;
    programs.groups = groups_of({{0}});
    programs.ranks = {{computation({}), message(Kind::send, 0, {0}), computation({0}), message(Kind::send, 0, {1, 2}),
                       message(Kind::receive, 1, {}), message(Kind::receive, 1, {4}), computation({2, 5})}};
    write_programs(programs, prefix(), ProgramFormat::smpi);
    EXPECT_EQ(read_file(prefix() + ".0.ti"),
              "0 init\n0 compute 1\n0 isend 1 0 8 6\n0 compute 1\n0 isend 1 0 8 6\n0 irecv 1 1 8 6\n0 irecv 1 1 8 6\n"
              "0 wait 1 0 1\n0 wait 1 0 1\n0 compute 1\n0 waitall 2\n0 finalize\n");
}

}  // namespace
}  // namespace rehearse::trace
