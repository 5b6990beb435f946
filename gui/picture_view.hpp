// SPDX-License-Identifier: Apache-2.0
// Shows a picture: replays its marks, shows their titles under the pointer or, by the arrow keys, one after the other;
// copies and saves it.
#pragma once

#include <QWidget>
#include <functional>

#include "picture/chart.hpp"

class QPainter;

namespace rehearse::gui {

/// The marks on a painter, in points of the picture; with `part`, at least those that are in it.
void replay(QPainter& painter, const picture::Picture& picture, const QRectF& part = {});

class PictureView : public QWidget {
public:
    /// Makes the picture for the room that there is; it may be higher than asked for, and is then scrolled.
    using Maker = std::function<picture::Picture(picture::Size, picture::Theme)>;

    explicit PictureView(QWidget* parent = nullptr);
    void show(Maker maker);
    void set_theme(picture::Theme theme);
    /// At once where it is seen, else when it is.
    void remake();
    const picture::Picture& shown() const { return picture_; }
    /// The mark with a title under a place, or null.
    const picture::Mark* mark_at(QPointF at) const;
    /// The mark with a title that the arrow keys have come to, or null; Enter is a click on it.
    const picture::Mark* current() const;
    void copy() const;
    /// By the suffix: .svg, .png, .pdf. InputError, BackendError.
    void save(const QString& path) const;

    std::function<void(const picture::Mark&)> clicked;

protected:
    void paintEvent(QPaintEvent* event) override;
    void showEvent(QShowEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    bool event(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;

private:
    /// Of the text on screen, as the window's: with it the whole picture grows.
    double scale() const;
    /// To the next mark with another title, forward (1) or back (-1); says it as a tool tip and to screen readers.
    void step(int direction);
    void say_current();

    Maker maker_;
    double points_;  // of the text at scale 1
    picture::Theme theme_ = picture::Theme::light;
    picture::Picture picture_;
    bool stale_ = true;
    std::ptrdiff_t at_ = -1;  // of the picture's marks: the current one
};

/// A few words in the middle of an empty page.
picture::Picture note(picture::Size size, picture::Theme theme, const std::string& text);

/// A picture that cannot be made says why in its place.
PictureView::Maker careful(PictureView::Maker maker);

/// In a scroll area, as large as the room.
QWidget* scrolled(PictureView* view);

/// Asks for a name and saves; what goes wrong is a message.
void ask_and_save(QWidget* parent, const picture::Picture& picture);

}  // namespace rehearse::gui
