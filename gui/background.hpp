// SPDX-License-Identifier: Apache-2.0
// What may take longer than a frame does so in a thread; its result comes back into the window's.
#pragma once

#include <QCoreApplication>
#include <QThreadPool>
#include <memory>
#include <utility>

namespace rehearse::gui {

/// Calls `done(work())` later, unless `alive` is false by then. `work` must not throw, and holds what it looks at.
template <typename Work, typename Done>
void in_background(std::shared_ptr<bool> alive, Work work, Done done) {
    QThreadPool::globalInstance()->start([alive = std::move(alive), work = std::move(work), done = std::move(done)] {
        auto result = std::make_shared<decltype(work())>(work());
        QMetaObject::invokeMethod(QCoreApplication::instance(), [alive, done, result] {
            if (*alive) done(std::move(*result));
        });
    });
}

}  // namespace rehearse::gui
