// SPDX-License-Identifier: Apache-2.0
// An engine as a device that trains.
#pragma once

#include <memory>
#include <vector>

#include "kernels/backend.hpp"
#include "kernels/cuda/engine.hpp"
#include "kernels/device.hpp"

namespace rehearse::kernels::cuda {

/// `own` run on the engine's memory, those of `hosts` on the host, on the same memory, once the engine has finished.
/// `besides` run on the engine's memory, too, but are not chosen from. All outlive it.
std::unique_ptr<Device> device(Engine& engine, std::vector<const Backend*> own, std::vector<const Backend*> hosts,
                               std::vector<const Backend*> besides = {});

}  // namespace rehearse::kernels::cuda
