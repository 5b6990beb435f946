// SPDX-License-Identifier: Apache-2.0
#include "core/recording.hpp"

namespace rehearse {

std::string_view to_string(RecordedCall::Part part) {
    switch (part) {
        case RecordedCall::Part::forward:
            return "forward";
        case RecordedCall::Part::backward:
            return "backward";
        case RecordedCall::Part::update:
            return "update";
        case RecordedCall::Part::loader:
            return "load";
        case RecordedCall::Part::idle:
            return "idle";
    }
    return "";
}

}  // namespace rehearse
