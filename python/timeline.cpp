// SPDX-License-Identifier: Apache-2.0
// Timelines as columns, and to and from files.
#include "core/timeline.hpp"

#include <filesystem>

#include "picture/lanes.hpp"
#include "picture/timeline_picture.hpp"
#include "picture/write.hpp"
#include "python/arrow.hpp"
#include "python/bindings.hpp"
#include "trace/trace.hpp"

namespace rehearse::python {

namespace {

/// A column of numbers in memory of its own, which Python's buffer protocol (and so NumPy) reads without copying.
template <typename T>
struct Column {
    std::vector<T> values;
};

template <typename T>
void bind_column(py::module_& module, const char* name) {
    py::class_<Column<T>>(module, name, py::buffer_protocol())
        .def_buffer([](Column<T>& column) {
            return py::buffer_info(column.values.data(), static_cast<py::ssize_t>(column.values.size()), true);
        })
        .def("__len__", [](const Column<T>& column) { return column.values.size(); })
        .def("__getitem__",
             [](const Column<T>& column, py::ssize_t i) { return column.values[place_of(i, column.values.size())]; });
}

template <typename T, typename Get>
Column<T> column_of(const Timeline& timeline, Get get) {
    Column<T> column;
    column.values.reserve(timeline.events.size());
    for (const Event& event : timeline.events) column.values.push_back(static_cast<T>(get(event)));
    return column;
}

template <typename Get>
py::list words_of(const Timeline& timeline, Get get) {
    py::list column;
    for (const Event& event : timeline.events) column.append(py::str(get(event)));
    return column;
}

py::dict columns_of(const Timeline& timeline) {
    py::dict columns;
    columns["rank"] = column_of<std::int64_t>(timeline, [](const Event& e) { return e.rank; });
    columns["stream"] = words_of(timeline, [](const Event& e) { return to_string(e.stream); });
    columns["step"] = words_of(timeline, [](const Event& e) { return e.step; });
    columns["layer"] = words_of(timeline, [](const Event& e) { return e.layer; });
    columns["pass"] = words_of(timeline, [](const Event& e) { return e.pass; });
    columns["micro_batch"] = column_of<std::int64_t>(timeline, [](const Event& e) { return e.micro_batch; });
    columns["iteration"] = column_of<std::int64_t>(timeline, [](const Event& e) { return e.iteration; });
    columns["start_s"] = column_of<double>(timeline, [](const Event& e) { return e.start.value; });
    columns["end_s"] = column_of<double>(timeline, [](const Event& e) { return e.end.value; });
    columns["bytes"] = column_of<double>(timeline, [](const Event& e) { return e.bytes.value; });
    columns["flops"] = column_of<double>(timeline, [](const Event& e) { return e.flops.value; });
    return columns;
}

std::vector<ArrowColumn> arrow_columns_of(const Timeline& timeline) {
    std::vector<ArrowColumn> columns;
    const auto add = [&]<typename Value>(const char* name, Value, auto get) {
        std::vector<Value> values;
        values.reserve(timeline.events.size());
        for (const Event& event : timeline.events) values.push_back(static_cast<Value>(get(event)));
        columns.push_back({name, std::move(values)});
    };
    constexpr std::int64_t integer = 0;
    constexpr double number = 0;
    const std::string words;
    add("rank", integer, [](const Event& e) { return e.rank; });
    add("stream", words, [](const Event& e) { return std::string{to_string(e.stream)}; });
    add("step", words, [](const Event& e) { return e.step; });
    add("layer", words, [](const Event& e) { return e.layer; });
    add("pass", words, [](const Event& e) { return e.pass; });
    add("micro_batch", integer, [](const Event& e) { return e.micro_batch; });
    add("iteration", integer, [](const Event& e) { return e.iteration; });
    add("start_s", number, [](const Event& e) { return e.start.value; });
    add("end_s", number, [](const Event& e) { return e.end.value; });
    add("bytes", number, [](const Event& e) { return e.bytes.value; });
    add("flops", number, [](const Event& e) { return e.flops.value; });
    return columns;
}

}  // namespace

void bind_timelines(py::module_& module) {
    bind_column<double>(module, "Numbers");
    bind_column<std::int64_t>(module, "Integers");
    py::class_<Timeline>(module, "Timeline", "When everything happened, event by event; seconds since its origin.")
        .def_static(
            "read",
            [](const std::filesystem::path& path) {
                const py::gil_scoped_release unlocked;
                return trace::read(path.string());
            },
            py::arg("path"), "A .pftrace or .json that Rehearse wrote; 'FILE#measured' picks one of several.")
        .def_readonly("title", &Timeline::title)
        .def_readonly("measured", &Timeline::measured)
        .def_readonly("ranks", &Timeline::ranks)
        .def_property_readonly("length_s", [](const Timeline& timeline) { return length(timeline).value; })
        .def(
            "columns", &columns_of,
            "A dict of columns of one length: rank, stream, step, layer, pass, micro_batch, iteration, start_s, end_s, "
            "bytes (on the wire, or moved), flops. Those of numbers serve numpy.asarray without a copy.")
        .def(
            "__arrow_c_schema__", [](const Timeline&) { return arrow_schema(arrow_columns_of({})); },
            "Names and types of the columns, by Arrow's C data interface.")
        .def(
            "__arrow_c_array__",
            [](const Timeline& timeline, const py::object&) {
                return arrow_array(arrow_columns_of(timeline), static_cast<std::int64_t>(timeline.events.size()));
            },
            py::arg("requested_schema") = py::none(),
            "The columns by Arrow's C data interface, so that pyarrow.record_batch(timeline), polars and others take "
            "them. Other types than these are not made on request.")
        .def(
            "write",
            [](const Timeline& timeline, const std::filesystem::path& path) {
                const py::gil_scoped_release unlocked;
                trace::write(timeline, path.string());
            },
            py::arg("path"), "To .pftrace (Perfetto), .json (Chrome) or .csv. Replaces the file.")
        .def(
            "to_perfetto",
            [](const Timeline& timeline, const std::filesystem::path& path) {
                const py::gil_scoped_release unlocked;
                trace::write({timeline}, path.string(), trace::Format::perfetto);
            },
            py::arg("path"), "To a file of ui.perfetto.dev, whatever its name ends in. Replaces the file.")
        .def(
            "_repr_svg_",
            [](const Timeline& timeline) {
                const py::gil_scoped_release unlocked;
                return picture::to_svg(picture::timeline_picture(picture::lanes_of(timeline)));
            },
            "A lane a rank and stream, for a notebook.")
        .def("__len__", [](const Timeline& timeline) { return timeline.events.size(); })
        .def("__copy__", [](const Timeline& timeline) { return timeline; })
        .def("__deepcopy__", [](const Timeline& timeline, const py::dict&) { return timeline; })
        .def("__repr__", [](const Timeline& timeline) {
            return "<rehearse.Timeline " + timeline.title + ", " + std::to_string(timeline.events.size()) + " events>";
        });
}

}  // namespace rehearse::python
