// SPDX-License-Identifier: Apache-2.0
// The folder of a training's checkpoints, to which no other run saves meanwhile.
#pragma once

#include <filesystem>

namespace rehearse::run {

/// A folder that one run saves to. Its file `lock` is locked as long as this lives: the system lets go of it when the
/// process ends, however it ends.
class HeldFolder {
public:
    /// Makes the folder, with those that it lies in. InputError where that cannot be done, or another run holds it.
    /// Where the file system knows no locks, nobody is refused.
    explicit HeldFolder(const std::filesystem::path& folder);
    ~HeldFolder();
    HeldFolder(const HeldFolder&) = delete;
    HeldFolder& operator=(const HeldFolder&) = delete;

private:
    int lock_ = -1;
};

}  // namespace rehearse::run
