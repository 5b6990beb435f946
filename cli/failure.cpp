// SPDX-License-Identifier: Apache-2.0
#include "cli/failure.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <new>

#include "cli/command.hpp"
#include "core/error.hpp"

namespace rehearse::cli {

Failure failure_of(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const InputError& input) {
        return {wrong_input, input.what()};
    } catch (const InfeasibleError& plan) {
        return {infeasible, plan.what()};
    } catch (const BackendError& backend) {
        return {refused, backend.what()};
    } catch (const std::filesystem::filesystem_error& file) {
        return {wrong_input, fmt::format("{}: {}: give another path", file.path1().string(), file.code().message())};
    } catch (const std::bad_alloc&) {
        return {refused, "this machine's memory does not suffice for that"};
    } catch (const std::exception& bug) {
        return {own_bug, fmt::format("{}\nThis is a bug of Rehearse's, not a mistake of yours: please report this line "
                                     "with the command that led to it.",
                                     bug.what())};
    }
}

}  // namespace rehearse::cli
