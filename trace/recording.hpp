// SPDX-License-Identifier: Apache-2.0
// Traces of PyTorch's profiler (Kineto's Chrome JSON, or what PyTorch writes where it is built without Kineto), gzip or
// not, as what an operator takes.
#pragma once

#include <string>

#include "core/recording.hpp"
#include "core/timeline.hpp"

namespace rehearse::trace {

/// Reads a trace of one rank. Steps are those that the program marked (ProfilerStep#N), else those between optimizer
/// steps, else a sequence of operators that repeats. InputError with the byte: cut off, no JSON, times that are
/// negative or no numbers; or no operator or no whole step in it.
Recording read_recording(const std::string& path);

/// Its calls and collectives as events, named by what the framework calls them. On a device a call is where its kernels
/// begin, as long as they take; one that launched none is left out. Idle time at a step's ends is an event, so that
/// each step is as long as it was.
Timeline timeline_of(const Recording& recording);

}  // namespace rehearse::trace
