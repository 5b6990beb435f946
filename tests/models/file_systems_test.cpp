// SPDX-License-Identifier: Apache-2.0
#include "models/file_systems.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "core/error.hpp"
#include "models/models.hpp"

namespace rehearse::models {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& text) {
    try {
        read_file_system(text, "mine.toml");
    } catch (const InputError& error) {
        return error.what();
    }
    return "none";
}

TEST(FileSystems, AreMountedAsTiersThatTheirMachinesHave) {
    for (const FileSystem& system : file_systems()) {
        SCOPED_TRACE(system.name);
        for (const FileSystem::Mount& mount : system.mounts) {
            const Machine machine = load_machine(mount.machine);
            const auto tier = std::ranges::find(machine.storage, mount.tier, &StorageTier::name);
            ASSERT_NE(tier, machine.storage.end()) << mount.machine << ' ' << mount.tier;
            // Two files must not say two figures of one thing.
            EXPECT_NEAR(tier->read.value / system.read.value, 1, 0.02) << mount.machine << ' ' << mount.tier;
            EXPECT_EQ(mounted_file_system(machine, mount.tier).name, system.name);
        }
    }
}

TEST(FileSystems, SayWhatIsWrongAndWhere) {
    const std::string good = "name = 'mine'\nsummary = 'a test'\nread = { value = '2GBps', source = 'test' }\n";
    EXPECT_EQ(error_of(good), "none");
    EXPECT_THAT(error_of(good + "sek = 1\n"), HasSubstr("mine.toml:4"));
    EXPECT_THAT(error_of(good + "seek = { value = '1ms', source = 'test' }\n"), HasSubstr("how many there are"));
    EXPECT_THAT(error_of("name = 'mine'\nsummary = 'a test'\nread = '2GBps'\n"), HasSubstr("source"));
    EXPECT_THROW(load_file_system("alpin"), InputError);
    EXPECT_THROW(mounted_file_system(load_machine("summit"), "nvme"), InputError);
}

}  // namespace
}  // namespace rehearse::models
