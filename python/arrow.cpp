// SPDX-License-Identifier: Apache-2.0
#include "python/arrow.hpp"

#include <array>
#include <memory>
#include <string_view>

namespace rehearse::python {

namespace {

// Field for field as https://arrow.apache.org/docs/format/CDataInterface.html lays them down.
struct Schema {
    const char* format;
    const char* name;
    const char* metadata;
    std::int64_t flags, n_children;
    Schema** children;
    Schema* dictionary;
    void (*release)(Schema*);
    void* private_data;
};
struct Array {
    std::int64_t length, null_count, offset, n_buffers, n_children;
    const void** buffers;
    Array** children;
    Array* dictionary;
    void (*release)(Array*);
    void* private_data;
};

// What a struct's pointers point to. A consumer may move a child out, which then has no release of its own any more;
// the shell that stays behind goes with the parent.
struct SchemaOwner {
    std::string name;
    std::vector<std::unique_ptr<Schema>> shells;
    std::vector<Schema*> children;
};
struct ArrayOwner {
    std::vector<std::int64_t> integers, offsets;
    std::vector<double> numbers;
    std::string text;
    std::array<const void*, 3> buffers{};
    std::vector<std::unique_ptr<Array>> shells;
    std::vector<Array*> children;
};

template <typename Struct, typename Owner>
void release(Struct* released) {
    const std::unique_ptr<Owner> owner{static_cast<Owner*>(released->private_data)};
    for (Struct* child : owner->children)
        if (child->release != nullptr) child->release(child);
    released->release = nullptr;
}

const char* format_of(const ArrowColumn& column) {
    constexpr std::array formats{"l", "g", "U"};  // 64-bit integers, 64-bit floats, UTF-8 with 64-bit offsets
    return formats.at(column.values.index());
}

Schema schema_of(const char* format, std::string name, std::vector<std::unique_ptr<Schema>> shells) {
    auto owner = std::make_unique<SchemaOwner>();
    owner->name = std::move(name);
    owner->shells = std::move(shells);
    for (const auto& shell : owner->shells) owner->children.push_back(shell.get());
    const auto children = static_cast<std::int64_t>(owner->children.size());
    Schema** first = owner->children.empty() ? nullptr : owner->children.data();
    const char* text = owner->name.c_str();
    return {format, text, nullptr, 0, children, first, nullptr, &release<Schema, SchemaOwner>, owner.release()};
}

Schema schema_of(const std::vector<ArrowColumn>& columns) {
    std::vector<std::unique_ptr<Schema>> shells;
    for (const ArrowColumn& column : columns)
        shells.push_back(std::make_unique<Schema>(schema_of(format_of(column), column.name, {})));
    return schema_of("+s", "", std::move(shells));
}

Array array_of(std::unique_ptr<ArrayOwner> owner, std::int64_t rows, std::int64_t buffers) {
    const auto children = static_cast<std::int64_t>(owner->children.size());
    Array** first = owner->children.empty() ? nullptr : owner->children.data();
    const void** data = owner->buffers.data();
    return {rows, 0, 0, buffers, children, data, first, nullptr, &release<Array, ArrayOwner>, owner.release()};
}

struct Fill {  // the first buffer would say which values are missing
    ArrayOwner& owner;
    std::int64_t operator()(std::vector<std::int64_t>& values) const {
        owner.integers = std::move(values);
        owner.buffers[1] = owner.integers.data();
        return 2;
    }
    std::int64_t operator()(std::vector<double>& values) const {
        owner.numbers = std::move(values);
        owner.buffers[1] = owner.numbers.data();
        return 2;
    }
    std::int64_t operator()(const std::vector<std::string>& values) const {
        owner.offsets.push_back(0);
        for (const std::string& value : values) {
            owner.text += value;
            owner.offsets.push_back(static_cast<std::int64_t>(owner.text.size()));
        }
        owner.buffers[1] = owner.offsets.data();
        owner.buffers[2] = owner.text.data();
        return 3;
    }
};

Array array_of(std::vector<ArrowColumn>& columns, std::int64_t rows) {
    auto table = std::make_unique<ArrayOwner>();
    for (ArrowColumn& column : columns) {
        auto owner = std::make_unique<ArrayOwner>();
        const std::int64_t buffers = std::visit(Fill{*owner}, column.values);
        table->shells.push_back(std::make_unique<Array>(array_of(std::move(owner), rows, buffers)));
        table->children.push_back(table->shells.back().get());
    }
    return array_of(std::move(table), rows, 1);
}

// A capsule that gives back what nobody took over.
template <typename Struct>
py::capsule capsule_of(Struct value, const char* name) {
    auto kept = std::make_unique<Struct>(value);
    PyObject* made = PyCapsule_New(kept.get(), name, [](PyObject* capsule) {
        const std::unique_ptr<Struct> last{
            static_cast<Struct*>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)))};
        if (last->release != nullptr) last->release(last.get());
    });
    if (made == nullptr) {
        kept->release(kept.get());
        throw py::error_already_set();
    }
    kept.release();
    return py::reinterpret_steal<py::capsule>(made);
}

}  // namespace

py::capsule arrow_schema(const std::vector<ArrowColumn>& columns) {
    return capsule_of(schema_of(columns), "arrow_schema");
}

std::pair<py::capsule, py::capsule> arrow_array(std::vector<ArrowColumn> columns, std::int64_t rows) {
    py::capsule schema = arrow_schema(columns);
    return {std::move(schema), capsule_of(array_of(columns, rows), "arrow_array")};
}

}  // namespace rehearse::python
