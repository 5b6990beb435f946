// SPDX-License-Identifier: Apache-2.0
// The parts of a machine file, each read by its own function.
#pragma once

#include <array>
#include <string_view>

#include "core/machine.hpp"
#include "models/reader/machine_reader.hpp"

namespace rehearse {
struct CollectiveSoftware;  // core/collectives/library.hpp
}

namespace rehearse::models {

inline constexpr std::string_view machine_schema = "rehearse.machine/1";
inline constexpr std::array data_types{DataType::f32, DataType::f16, DataType::bf16, DataType::tf32, DataType::fp8};
inline constexpr std::array passes{Pass::forward, Pass::backward_data, Pass::backward_weights, Pass::update};

/// What `software` of a machine says: a name of models/software.toml, or a table of figures, perhaps `like` such.
Software parse_software(Reader& top);
inline constexpr std::array<std::string_view, 15> software_figures{
    "issues_ahead",        "elementwise_passes", "score_passes",
    "masked_passes",       "loss_passes",        "issue",
    "dense_kernels",       "attention_kernels",  "loss_kernels",
    "mixture_kernels",     "attention_kernel",   "rms_passes",
    "rms_backward_passes", "rotary_passes",      "rotary_backward_passes"};

/// [collectives] of a machine; without it the newest NCCL over InfiniBand.
CollectiveSoftware parse_collectives(Reader& top);
/// Of models/libraries/, by its name there.
const CollectiveLibrary& shipped_library(const std::string& name);
/// "2.18.3" as 21803. InputError where it is not like that.
std::int64_t library_version(Reader& reader, std::string_view key);

DeviceClass parse_device(Reader reader);
/// The links of a `detected` host may not be measured yet.
NodeKind parse_node(Reader reader, const std::vector<DeviceClass>& classes, bool detected);
/// Every device reaches every other one and, where there are several `nodes`, a NIC, by bridges alone.
void check_routes(const Reader& reader, const NodeKind& node, std::int64_t nodes);
/// `nodes` of the machine must find a place in it; more than one needs a link.
Fabric parse_fabric(Reader reader, std::int64_t nodes);
/// Of [fabric.fat-tree], where it says one.
std::string parse_taper_source(Reader& top);
Messaging parse_messaging(Reader reader);
StorageTier parse_storage(Reader reader);

}  // namespace rehearse::models
