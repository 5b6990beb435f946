// SPDX-License-Identifier: Apache-2.0
// Puts what was measured into the machine that it was measured on.
#pragma once

#include <string>

#include "calibrate/in_situ.hpp"
#include "calibrate/read_samples.hpp"
#include "calibrate/samples.hpp"
#include "core/machine.hpp"

namespace rehearse::calibrate {

/// `host` with measured prices, peak, memory bandwidth, launch cost, efficiency rows and messaging inside the node,
/// each with its source and error. Prices of problems that `samples` does not hold are kept. InputError when the host
/// has no device class, or several (which one was measured?).
Machine apply(Machine host, const Samples& samples);

/// Residuals of messages (one robust standard deviation, relative) above which what was measured is in doubt: on a host
/// that does nothing else it is 0.02 to 0.1.
inline constexpr double most_message_error = 1;

/// Why the messages contradict themselves, in words for InSitu::doubt; empty where they do not.
std::string doubt_of_messages(const Samples& samples);
/// Likewise of kernels inside training steps, by network.
std::string doubt_of_steps(const Samples& samples, const std::vector<InSituStretch>& stretches);

/// A machine of one node with one device, to be measured: its class, too, is called `name`.
Machine machine_of_one(const std::string& name, const std::string& description, Bytes memory);

/// `machine` with the prices of problems that a file holds; what it does not hold stays. The error of a problem that
/// was measured once is the median spread of the file's problems that were repeated, or that of the machine's own
/// price. InputError as above.
Machine apply(Machine machine, const FileSamples& samples);

}  // namespace rehearse::calibrate
