// SPDX-License-Identifier: Apache-2.0
#include "gui/picture_view.hpp"

#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QFileDialog>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMenu>
#include <QMessageBox>
#include <QPainter>
#include <QPainterPath>
#include <QScrollArea>
#include <QToolTip>

#include "core/file.hpp"
#include "gui/theme.hpp"
#include "picture/text.hpp"
#include "picture/write.hpp"

namespace rehearse::gui {

namespace {

QRectF bounds_of(const picture::Shape& shape) {
    if (const auto* r = std::get_if<picture::Rectangle>(&shape)) return {r->at.x, r->at.y, r->width, r->height};
    if (const auto* c = std::get_if<picture::Circle>(&shape)) {
        return {c->center.x - c->radius - 2, c->center.y - c->radius - 2, 2 * c->radius + 4, 2 * c->radius + 4};
    }
    if (const auto* p = std::get_if<picture::Path>(&shape)) {
        QPolygonF polygon;
        for (const picture::Point& point : p->points) polygon << QPointF(point.x, point.y);
        return p->closed || p->points.size() == 2 ? polygon.boundingRect().adjusted(-2, -2, 2, 2) : QRectF();
    }
    const auto& text = std::get<picture::Text>(shape);
    return {text.at.x, text.at.y - text.size, picture::text_width(text.text, text.size, text.bold), text.size * 1.2};
}

// Of boxes and words, which are many; a high picture is scrolled.
bool outside(const picture::Shape& shape, const QRectF& part) {
    constexpr double edge = 4;
    if (const auto* r = std::get_if<picture::Rectangle>(&shape))
        return !QRectF(r->at.x - edge, r->at.y - edge, r->width + 2 * edge, r->height + 2 * edge).intersects(part);
    const auto* text = std::get_if<picture::Text>(&shape);
    return text != nullptr && text->rotation == 0 &&
           (text->at.y + text->size < part.top() || text->at.y - 2 * text->size > part.bottom());
}

void draw_text(QPainter& painter, const picture::Text& text) {
    QFont font("DejaVu Sans");
    font.setPixelSize(std::max(static_cast<int>(text.size + 0.5), 1));
    font.setBold(text.bold);
    painter.setFont(font);
    const QString string = QString::fromStdString(text.text);
    const double width = painter.fontMetrics().horizontalAdvance(string);
    const double before = text.anchor == picture::Anchor::start ? 0 : text.anchor == picture::Anchor::middle ? 0.5 : 1;
    painter.save();
    painter.translate(text.at.x, text.at.y);
    painter.rotate(text.rotation);
    painter.drawText(QPointF(-before * width, 0), string);
    painter.restore();
}

void draw_mark(QPainter& painter, const picture::Mark& mark) {
    if (const auto* text = std::get_if<picture::Text>(&mark.shape)) {
        if (!mark.fill) return;
        painter.setPen(qcolor(*mark.fill));
        return draw_text(painter, *text);
    }
    painter.setBrush(mark.fill ? QBrush(qcolor(*mark.fill)) : QBrush(Qt::NoBrush));
    painter.setPen(Qt::NoPen);
    if (mark.stroke) {
        QPen pen(qcolor(mark.stroke->color), mark.stroke->width);
        pen.setJoinStyle(Qt::RoundJoin);
        pen.setCapStyle(Qt::FlatCap);
        QList<qreal> dash;
        for (const double length : mark.stroke->dash) dash << length / mark.stroke->width;
        if (!dash.isEmpty()) pen.setDashPattern(dash);
        painter.setPen(pen);
    }
    if (const auto* r = std::get_if<picture::Rectangle>(&mark.shape)) {
        const QRectF rect(r->at.x, r->at.y, r->width, r->height);
        r->corner > 0 ? painter.drawRoundedRect(rect, r->corner, r->corner) : painter.drawRect(rect);
    } else if (const auto* c = std::get_if<picture::Circle>(&mark.shape)) {
        painter.drawEllipse(QPointF(c->center.x, c->center.y), c->radius, c->radius);
    } else if (const auto* p = std::get_if<picture::Path>(&mark.shape)) {
        QPolygonF polygon;
        for (const picture::Point& point : p->points) polygon << QPointF(point.x, point.y);
        p->closed ? painter.drawPolygon(polygon) : painter.drawPolyline(polygon);
    }
}

}  // namespace

void replay(QPainter& painter, const picture::Picture& picture, const QRectF& part) {
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setRenderHint(QPainter::TextAntialiasing);
    for (const picture::Mark& mark : picture.marks) {
        if (part.isEmpty() || !outside(mark.shape, part)) draw_mark(painter, mark);
    }
}

PictureView::PictureView(QWidget* parent) : QWidget(parent), points_(font().pointSizeF()) {
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
}

double PictureView::scale() const { return font().pointSizeF() / points_; }

void PictureView::show(Maker maker) {
    maker_ = std::move(maker);
    remake();
}

void PictureView::set_theme(picture::Theme theme) {
    theme_ = theme;
    remake();
}

void PictureView::remake() {
    stale_ = true;
    if (!maker_ || !isVisible() || width() < 50) return;
    stale_ = false;
    const int room = parentWidget() != nullptr ? parentWidget()->height() : height();
    picture_ = maker_({width() / scale(), std::max(room, 120) / scale()}, theme_);
    setMinimumHeight(static_cast<int>(picture_.height * scale()));
    at_ = -1;
    update();
}

const picture::Mark* PictureView::mark_at(QPointF at) const {
    for (auto mark = picture_.marks.rbegin(); mark != picture_.marks.rend(); ++mark) {
        if (!mark->title.empty() && bounds_of(mark->shape).contains(at / scale())) return &*mark;
    }
    return nullptr;
}

void PictureView::copy() const {
    QImage image(static_cast<int>(2 * picture_.width), static_cast<int>(2 * picture_.height), QImage::Format_RGB32);
    QPainter painter(&image);
    painter.scale(2, 2);
    replay(painter, picture_);
    painter.end();
    QApplication::clipboard()->setImage(image);
}

void PictureView::save(const QString& path) const {
    replace_file(path.toStdString(), picture::encoded(picture_, path.toStdString()));
}

void PictureView::paintEvent(QPaintEvent* event) {
    QPainter painter(this);
    painter.fillRect(rect(), qcolor(picture::palette(theme_).background));
    painter.scale(scale(), scale());
    replay(painter, picture_, painter.transform().inverted().mapRect(QRectF(event->rect())));
    if (!hasFocus()) return;
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(palette().color(QPalette::Highlight), 2));
    const picture::Mark* mark = current();
    const QRectF frame(0, 0, width() / scale(), height() / scale());
    painter.drawRect(mark != nullptr ? bounds_of(mark->shape).adjusted(-2, -2, 2, 2) : frame.adjusted(1, 1, -1, -1));
}

void PictureView::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    if (stale_) remake();
}

void PictureView::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    remake();
}

bool PictureView::event(QEvent* event) {
    if (event->type() == QEvent::FontChange) remake();
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        if (const picture::Mark* mark = mark_at(help->pos())) {
            QToolTip::showText(help->globalPos(), QString::fromStdString(mark->title), this);
        } else {
            QToolTip::hideText();
        }
        return true;
    }
    return QWidget::event(event);
}

// The room is that of the scroll area around.
bool PictureView::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::Resize) remake();
    return QWidget::eventFilter(watched, event);
}

const picture::Mark* PictureView::current() const {
    return at_ < 0 ? nullptr : &picture_.marks[static_cast<std::size_t>(at_)];
}

void PictureView::step(int direction) {
    const auto end = static_cast<std::ptrdiff_t>(picture_.marks.size());
    const std::string before = current() == nullptr ? std::string{} : current()->title;
    std::ptrdiff_t at = at_ < 0 && direction < 0 ? end : at_;
    for (at += direction; at >= 0 && at < end; at += direction) {
        const picture::Mark& mark = picture_.marks[static_cast<std::size_t>(at)];
        if (mark.title.empty() || mark.title == before || bounds_of(mark.shape).isEmpty()) continue;
        at_ = at;
        return say_current();
    }
}

void PictureView::say_current() {
    const picture::Mark& mark = *current();
    const QRectF bounds = bounds_of(mark.shape);
    const QPoint place = (bounds.bottomLeft() * scale()).toPoint();
    setAccessibleDescription(QString::fromStdString(mark.title));
    auto* area = parentWidget() != nullptr ? qobject_cast<QScrollArea*>(parentWidget()->parentWidget()) : nullptr;
    if (area != nullptr) area->ensureVisible(place.x(), place.y());
    QToolTip::showText(mapToGlobal(place), QString::fromStdString(mark.title), this);
    update();
}

void PictureView::keyPressEvent(QKeyEvent* event) {
    switch (event->key()) {
        case Qt::Key_Right:
        case Qt::Key_Down:
            return step(1);
        case Qt::Key_Left:
        case Qt::Key_Up:
            return step(-1);
        case Qt::Key_Return:
        case Qt::Key_Enter:
            if (current() != nullptr && clicked) clicked(picture::Mark{*current()});  // which may make the picture anew
            return;
        default:
            event->matches(QKeySequence::Copy) ? copy() : QWidget::keyPressEvent(event);
    }
}

void PictureView::focusOutEvent(QFocusEvent* event) {
    QWidget::focusOutEvent(event);
    update();
}

void PictureView::mouseMoveEvent(QMouseEvent* event) {
    setCursor(clicked && mark_at(event->position()) != nullptr ? Qt::PointingHandCursor : Qt::ArrowCursor);
}

void PictureView::mouseReleaseEvent(QMouseEvent* event) {
    const picture::Mark* mark = mark_at(event->position());
    if (event->button() == Qt::LeftButton && mark != nullptr && clicked) clicked(*mark);
}

void PictureView::contextMenuEvent(QContextMenuEvent* event) {
    QMenu menu(this);
    menu.addAction("Copy picture", [this] { copy(); });
    menu.addAction("Save picture as…", [this] { ask_and_save(this, picture_); });
    menu.exec(event->globalPos());
}

picture::Picture note(picture::Size size, picture::Theme theme, const std::string& text) {
    constexpr double letters = 13, line_height = 18, margin = 24;
    const auto& colors = picture::palette(theme);
    const std::vector<std::string> lines = picture::wrapped(text, letters, std::max(size.width - 2 * margin, letters));
    const double height = line_height * static_cast<double>(lines.size());
    size.height = std::max(size.height, height + 2 * margin);
    picture::Picture picture = picture::canvas(size, colors, "");
    picture::Point at{size.width / 2, (size.height - height) / 2 + letters};
    for (const std::string& line : lines) {
        picture.marks.push_back({picture::Text{at, line, letters, picture::Anchor::middle}, colors.faint_text, {}, ""});
        at.y += line_height;
    }
    return picture;
}

PictureView::Maker careful(PictureView::Maker maker) {
    return [maker = std::move(maker)](picture::Size size, picture::Theme theme) {
        try {
            return maker(size, theme);
        } catch (const std::exception& error) {
            return note(size, theme, error.what());
        }
    };
}

QWidget* scrolled(PictureView* view) {
    auto* area = new QScrollArea;
    area->setWidget(view);
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->viewport()->installEventFilter(view);
    return area;
}

void ask_and_save(QWidget* parent, const picture::Picture& picture) {
    const QString path =
        QFileDialog::getSaveFileName(parent, "Save picture", "picture.svg", "Pictures (*.svg *.png *.pdf)");
    if (path.isEmpty()) return;
    try {
        replace_file(path.toStdString(), picture::encoded(picture, path.toStdString()));
    } catch (const std::exception& error) {
        QMessageBox::warning(parent, "Not saved", error.what());
    }
}

}  // namespace rehearse::gui
