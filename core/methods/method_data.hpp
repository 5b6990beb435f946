// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <any>
#include <map>
#include <typeindex>
#include <typeinfo>

namespace rehearse {

/// What methods of training keep in a plan and in a schedule: of each method a struct of its own, with defaults that
/// say that the method is not used. Found by its type, so that who holds this need not know which methods there are.
class MethodData {
public:
    /// What a method has left here; its defaults where it has left nothing.
    template <typename Data>
    const Data& get() const {
        static const Data none{};
        const auto found = data_.find(typeid(Data));
        return found == data_.end() ? none : *std::any_cast<Data>(&found->second);
    }

    /// The same to be changed: with its defaults where there was nothing.
    template <typename Data>
    Data& edit() {
        std::any& data = data_[typeid(Data)];
        if (!data.has_value()) data.emplace<Data>();
        return *std::any_cast<Data>(&data);
    }

private:
    std::map<std::type_index, std::any> data_;
};

}  // namespace rehearse
