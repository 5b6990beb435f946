// SPDX-License-Identifier: Apache-2.0
#include "core/quoting.hpp"

#include <gtest/gtest.h>

namespace rehearse {
namespace {

TEST(Printable, LeavesWhatCanBeRead) {
    for (const char* text : {"", "resnet50", "1.5 µs\tand\nmore", "日本語 𝄞"}) EXPECT_EQ(printable(text), text);
}

TEST(Printable, WritesControlsAsTheirBytes) {
    EXPECT_EQ(printable("a\x1b[2Jb"), "a\\x1b[2Jb");
    EXPECT_EQ(printable(std::string_view{"a\0b", 3}), "a\\x00b");
    EXPECT_EQ(printable("\r\x7f"), "\\x0d\\x7f");
    EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b") << "U+009B begins what ESC [ begins";
    EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae") << "U+202E: right to left from here";
}

TEST(Printable, WritesWhatIsNoUtf8AsItsBytes) {
    EXPECT_EQ(printable("\xff"), "\\xff");
    EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "an overlong slash";
    EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
    EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "above U+10FFFF";
    EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82") << "cut short";
    EXPECT_EQ(printable("\xe2X"), "\\xe2X");
    EXPECT_EQ(printable("\xef\xbf\xbf"), "\\xef\\xbf\\xbf") << "U+FFFF, which XML has no place for";
}

TEST(CsvField, IsQuotedWhereItMustBe) {
    EXPECT_EQ(csv_field("a b"), "a b");
    EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
    EXPECT_EQ(csv_field("say \"x\""), "\"say \"\"x\"\"\"");
    EXPECT_EQ(csv_field("a\r"), "\"a\r\"");
    EXPECT_EQ(csv_field("a\nb"), "\"a\nb\"");
}

}  // namespace
}  // namespace rehearse
