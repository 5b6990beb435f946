// SPDX-License-Identifier: Apache-2.0
// Names and files in, Networks and Machines out.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/machine.hpp"
#include "core/network.hpp"

namespace rehearse::models {

struct ModelName {
    std::string_view name, summary;
    Network (*build)();
};
std::span<const ModelName> zoo();

/// How a file is taken: operators that are not known by their bytes, batch normalizations that an export for inference
/// folded into convolutions put back, and the sizes of dimensions that the file leaves open, by their names.
struct ImportOptions {
    bool allow_unknown = false;
    bool unfold = false;
    std::map<std::string, std::int64_t> sizes{};
    bool values = false;  // keeps what the file's tensors hold (Layer::given), for who runs the network
};

/// A network of the zoo by name (of a transformer, NAME@TOKENS sets the sequence), or an .onnx file by path. Every
/// network that `run` can train ends in a SoftmaxLoss: an imported one gets it in place of its final Softmax.
/// InputError: unknown name (did you mean), unreadable or cut-off file, unknown operator (named with its node) unless
/// `allow_unknown`.
Network load_network(const std::string& name_or_file, const ImportOptions& options = {});
/// One network, or those that a name stands for: "climate" is both of Kurth et al. 2018.
std::vector<Network> load_suite(const std::string& name_or_file);
Network import_onnx(const std::string& path, const ImportOptions& options = {});

struct MachineName {
    std::string name, summary;
};
std::vector<MachineName> machines();

/// A machine that ships with Rehearse by name, "this-host", or a .toml file by path. InputError: file:line, what is
/// wrong, what would be right.
Machine load_machine(const std::string& name_or_file);

/// An entry of models/software.toml. InputError names those that there are.
Software load_software(const std::string& name);
/// That of a machine that names none.
inline constexpr std::string_view generic_software = "generic";
Machine parse_machine(std::string_view toml, const std::string& origin);

/// What hwloc sees of this host: cores as devices of class "core", memory, caches. Peak, memory bandwidth, messaging
/// and prices are measured by `rehearse calibrate`, never guessed: without a calibration file they are absent.
Machine detect_this_host();
/// Hosts like this one, each with so many ranks on cores of their own and a NIC: "these-hosts".
Machine detect_hosts(std::int64_t hosts, std::int64_t ranks_a_host);
/// Where `calibrate` keeps the measured this-host: $REHEARSE_HOME, else $XDG_DATA_HOME/rehearse, else
/// ~/.local/share/rehearse; the file is this-host.toml. load_machine("this-host") reads it and refuses one that was
/// measured on another host.
std::string this_host_path();
/// Where the autotuner keeps its winners: tuned.db beside this-host.toml.
std::string tuned_path();

/// The TOML text from which parse_machine makes the same machine.
std::string to_toml(const Machine& machine);

}  // namespace rehearse::models
