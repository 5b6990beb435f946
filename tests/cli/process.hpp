// SPDX-License-Identifier: Apache-2.0
// Runs the program as a user does, in a folder of its own that is gone afterwards.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace rehearse {

struct Output {
    int code = -1;
    std::string out, err;
};

class Program : public testing::Test {
protected:
    Program() {
        std::string name = (std::filesystem::temp_directory_path() / "rehearse_cli_XXXXXX").string();
        folder_ = mkdtemp(name.data());
    }
    ~Program() override { std::filesystem::remove_all(folder_); }

    // {} in `arguments` stands for the test's folder.
    Output run(std::string arguments) const {
        for (std::size_t at = 0; (at = arguments.find("{}", at)) != std::string::npos;) {
            arguments.replace(at, 2, folder_.string());
        }
        const std::string command = "cd '" + folder_.string() + "' && REHEARSE_HOME='" + folder_.string() + "' " +
                                    REHEARSE_BINARY + " " + arguments + " > '" + path("out") + "' 2> '" + path("err") +
                                    "'";
        const int status = std::system(command.c_str());
        return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read("out"), read("err")};
    }
    std::string path(const std::string& name) const { return (folder_ / name).string(); }
    std::string read(const std::string& name) const {
        std::ifstream file{path(name), std::ios::binary};
        std::ostringstream text;
        text << file.rdbuf();
        return text.str();
    }
    void write(const std::string& name, const std::string& text) const {
        std::ofstream{path(name), std::ios::binary} << text;
    }

private:
    std::filesystem::path folder_;
};

}  // namespace rehearse
