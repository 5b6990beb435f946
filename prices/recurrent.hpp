// SPDX-License-Identifier: Apache-2.0
// What a recurrent layer takes, by what its library does: products with the input are one of all steps, products with
// the state are one a step, each of which waits for the one before.
#pragma once

#include "prices/prices.hpp"

namespace rehearse {

/// `input`: the products with the layer's input, of all its steps and directions at once. `steps`: what goes from step
/// to step, one product with the state and one kernel of its gates each (backward_weights: the product of all states,
/// since all gates' gradients are there by then).
struct RecurrentPrice {
    Price input, steps;
    Price whole() const;
};

/// Of `pass` of `batch` samples. InputError as price(): of a device without samples, peak or bandwidth.
RecurrentPrice recurrent_price(const Recurrent& op, Pass pass, std::int64_t batch, DataType type,
                               const DeviceClass& device);

}  // namespace rehearse
