// SPDX-License-Identifier: Apache-2.0
// A folder with files for the window, which goes with the test.
#pragma once

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.hpp"
#include "gui/document.hpp"

namespace rehearse::gui {

class Files : public testing::Test {
protected:
    Files() {
        std::string name = (std::filesystem::temp_directory_path() / "rehearse_gui_XXXXXX").string();
        folder_ = mkdtemp(name.data());
    }
    ~Files() override { std::filesystem::remove_all(folder_); }
    std::string write(const std::string& name, const std::string& text) const {
        std::ofstream{folder_ / name, std::ios::binary} << text;
        return (folder_ / name).string();
    }
    std::string problem(const std::string& path) const {
        try {
            load(path);
        } catch (const InputError& error) {
            return error.what();
        }
        return "";
    }
    std::filesystem::path folder_;
};

inline constexpr const char* kineto = R"({"schemaVersion": 1, "distributedInfo": {"rank": 3}, "traceEvents": [
 {"ph": "X", "cat": "kernel", "name": "volta_sgemm_128x64", "pid": 0, "tid": 7, "ts": 10.5, "dur": 4.25, "args": {"stream": 7}},
 {"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce_RING", "pid": 0, "tid": 20, "ts": 12, "dur": 8},
 {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 100, "tid": 1, "ts": 1, "dur": 20, "args": {"shape": [1, [2]]}},
 {"ph": "X", "cat": "cpu_op", "name": "inner", "pid": 100, "tid": 1, "ts": 2, "dur": 5},
 {"ph": "B", "name": "step", "pid": 100, "tid": 2, "ts": 0},
 {"ph": "E", "pid": 100, "tid": 2, "ts": 30},
 {"ph": "s", "id": 1, "pid": 0, "tid": 7, "ts": 10},
 {"ph": "M", "name": "process_name", "pid": 100, "args": {"name": "python"}},
 {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7"}}]})";

}  // namespace rehearse::gui
