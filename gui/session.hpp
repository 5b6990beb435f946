// SPDX-License-Identifier: Apache-2.0
// What is open, and which of it the screens show.
#pragma once

#include <QWidget>
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "gui/document.hpp"
#include "gui/experiment.hpp"
#include "gui/runner.hpp"
#include "picture/palette.hpp"
#include "picture/picture.hpp"

namespace rehearse::gui {

struct Session {
    std::vector<Document> documents;
    int timeline = -1, prediction = -1, benchmarks = -1;  // the current ones: indices, or -1
    int point = -1;                                       // of the prediction; -1: the last
    std::optional<double> cursor_ns;                      // the moment that was last pointed at
    Experiment experiment;
    Runner* runner = nullptr;

    // What screens ask of the window.
    std::function<void(const std::string& screen)> go;
    std::function<void(Document)> add;
    std::function<void(const QString& path)> open;
    std::function<void()> ask;  // which files to open
    std::function<void(const QString& message)> warn;
    std::function<void()> refresh;
    std::function<void()> cursor_moved;  // to another cursor_ns

    const Document* at(int i) const {
        return i >= 0 && i < static_cast<int>(documents.size()) ? &documents[static_cast<std::size_t>(i)] : nullptr;
    }
    /// By Document::id, which stays where indices move as files are closed.
    const Document* with_id(int id) const {
        const auto found = std::ranges::find(documents, id, &Document::id);
        return found != documents.end() ? &*found : nullptr;
    }
    const Prediction* current_prediction() const {
        const Document* document = at(prediction);
        return document != nullptr ? document->prediction.get() : nullptr;
    }
    std::vector<int> with(bool (*has)(const Document&)) const {
        std::vector<int> found;
        for (int i = 0; i < static_cast<int>(documents.size()); ++i) {
            if (has(documents[static_cast<std::size_t>(i)])) found.push_back(i);
        }
        return found;
    }
};

/// One page of the window.
class Screen : public QWidget {
public:
    explicit Screen(Session& session) : session_(session) {}
    /// What is open has changed.
    virtual void refresh() = 0;
    virtual void set_theme(picture::Theme theme) = 0;
    /// For "copy picture" and "save picture"; an empty one where there is none.
    virtual picture::Picture picture() const { return {}; }
    /// "/" was pressed.
    virtual void search() {}

protected:
    Session& session_;
};

std::unique_ptr<Screen> make_overview(Session& session);
std::unique_ptr<Screen> make_timeline(Session& session);
std::unique_ptr<Screen> make_editor(Session& session);
std::unique_ptr<Screen> make_scaling(Session& session);
std::unique_ptr<Screen> make_pipeline(Session& session);
std::unique_ptr<Screen> make_compare(Session& session);
std::unique_ptr<Screen> make_topology(Session& session);
std::unique_ptr<Screen> make_memory(Session& session);
std::unique_ptr<Screen> make_kernels(Session& session);
std::unique_ptr<Screen> make_runs(Session& session);

}  // namespace rehearse::gui
