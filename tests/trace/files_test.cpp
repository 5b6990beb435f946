// SPDX-License-Identifier: Apache-2.0
// Paths that cannot be written or read, and what the disk looks like afterwards.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "core/error.hpp"
#include "tests/trace/timelines.hpp"
#include "trace/trace.hpp"

namespace rehearse::trace {

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string refusal_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const InputError& error) {
        return error.what();
    }
    return "no error";
}

class Files : public testing::Test {
protected:
    Files() : folder_(path_of(fmt::format("files_{}", ::getpid()))) { fs::create_directory(folder_); }
    ~Files() override { fs::remove_all(folder_); }
    std::string in_folder(const std::string& name) const { return folder_ + "/" + name; }
    std::vector<std::string> names() const {
        std::vector<std::string> found;
        for (const auto& entry : fs::directory_iterator(folder_)) found.push_back(entry.path().filename().string());
        std::ranges::sort(found);
        return found;
    }

private:
    std::string folder_;
};

TEST_F(Files, TellFormatsByTheirEnding) {
    EXPECT_EQ(format_of("a/b.pftrace"), Format::perfetto);
    EXPECT_EQ(format_of("b.perfetto-trace"), Format::perfetto);
    EXPECT_EQ(format_of("b.json"), Format::chrome);
    EXPECT_EQ(format_of("b.csv"), Format::csv);
    EXPECT_EQ(refusal_of([] { format_of("b.txt"); }),
              "b.txt: cannot tell the format of a trace from the file's ending: "
              "right would be .pftrace (Perfetto), .json (Chrome) or .csv");
}

TEST_F(Files, ReplaceAnOldFileAndLeaveNothingElse) {
    put(in_folder("a.json"), "old");
    write(three_events(), in_folder("a.json"));
    expect_equal(read(in_folder("a.json")), three_events());
    EXPECT_THAT(names(), testing::ElementsAre("a.json"));
}

TEST_F(Files, AreWrittenThroughALink) {
    put(in_folder("real.json"), "old");
    fs::create_symlink("real.json", in_folder("link.json"));
    write(three_events(), in_folder("link.json"));
    EXPECT_TRUE(fs::is_symlink(in_folder("link.json")));
    expect_equal(read(in_folder("real.json")), three_events());
}

TEST_F(Files, ThatCannotBeWrittenSayWhy) {
    const Timeline timeline = three_events();
    put(in_folder("file"), "");
    EXPECT_THAT(refusal_of([&] { write(timeline, in_folder("none/a.json")); }), HasSubstr("No such file or directory"));
    EXPECT_THAT(refusal_of([&] { write(timeline, in_folder("file/a.json")); }), HasSubstr("Not a directory"));
    EXPECT_THAT(refusal_of([&] { write({timeline}, in_folder("file"), Format::csv); }), HasSubstr("no error"));
    EXPECT_THAT(refusal_of([&] { write({timeline}, in_folder(""), Format::csv); }), HasSubstr("is a directory"));
    EXPECT_THAT(refusal_of([&] { write({timeline}, "", Format::csv); }), HasSubstr("the path is empty"));
    EXPECT_THAT(refusal_of([&] { write(timeline, in_folder(std::string(300, 'a') + ".csv")); }), HasSubstr("too long"));
    EXPECT_THAT(names(), testing::ElementsAre("file"));
}

TEST_F(Files, OnAFullDiskAreRefused) {
    if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
    EXPECT_THAT(refusal_of([] { write({three_events()}, "/dev/full", Format::csv); }),
                HasSubstr("No space left on device"));
    EXPECT_TRUE(fs::is_character_file("/dev/full"));  // and not replaced by a file
}

TEST_F(Files, LeaveNothingBehindWhenATimelineIsImpossible) {
    Timeline timeline = three_events();
    timeline.events[1].end = Seconds{0};  // before its start
    EXPECT_THROW(write(timeline, in_folder("a.json")), std::logic_error);
    timeline.events[1].end = Seconds{std::numeric_limits<double>::quiet_NaN()};
    EXPECT_THROW(write(timeline, in_folder("a.pftrace")), std::logic_error);
    EXPECT_THAT(names(), testing::IsEmpty());
}

TEST_F(Files, ThatAreNoTracesSayWhatTheyAre) {
    const auto refusal = [&](const std::string& name) { return refusal_of([&] { read(in_folder(name)); }); };
    EXPECT_THAT(refusal("missing.json"), HasSubstr("No such file or directory"));
    EXPECT_THAT(refusal("missing.json#measured"), HasSubstr("missing.json: cannot read"));
    EXPECT_THAT(refusal(""), HasSubstr("is a directory"));
    put(in_folder("empty.pftrace"), "");
    EXPECT_THAT(refusal("empty.pftrace"), HasSubstr("the file is empty"));
    EXPECT_THAT(refusal("empty.pftrace/x"), HasSubstr("cannot read"));
    put(in_folder("text.json"), "hello");
    EXPECT_THAT(refusal("text.json"), HasSubstr("it begins with byte 0x68"));
    put(in_folder("zip.json.gz"), "\x1f\x8b\x08");
    EXPECT_THAT(refusal("zip.json.gz"), HasSubstr("cut off at byte 3: its gzip stream does not end"));
    put(in_folder("lines.pftrace"), "\n\nhello\n");
    EXPECT_THAT(refusal("lines.pftrace"), HasSubstr("or no trace at all"));
    write(three_events(), in_folder("t.csv"));
    EXPECT_THAT(refusal("t.csv"), HasSubstr("CSV is for spreadsheets"));
    EXPECT_THAT(refusal_of([] { read("/dev/null"); }), HasSubstr("a device or a pipe"));
}

TEST_F(Files, AreToldApartByTheirContent) {
    write({three_events()}, in_folder("chrome.txt"), Format::chrome);
    write({three_events()}, in_folder("perfetto.txt"), Format::perfetto);
    expect_equal(read(in_folder("chrome.txt")), three_events());
    expect_equal(read(in_folder("perfetto.txt")), three_events());
}

}  // namespace

}  // namespace rehearse::trace
