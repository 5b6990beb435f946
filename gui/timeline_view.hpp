// SPDX-License-Identifier: Apache-2.0
// The timeline on screen: a mini-map, a ruler, names at the left, rows of pixels, and over them the selection, its
// arrows, the critical path and marked areas. Keys as in Perfetto.
#pragma once

#include <QImage>
#include <QStaticText>
#include <QWidget>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "gui/timeline_rows.hpp"
#include "picture/slack.hpp"

class QPainter;

namespace rehearse::gui {

/// Large: Qt's events change, and eight layers draw, one state: what part of which rows is shown, and what is
/// selected in it. Each timeline_*.cpp has the methods of one of these tasks.
class TimelineView : public QWidget {
public:
    struct Area {
        double from = 0, to = 0;  // ns
        std::vector<std::size_t> lanes;
    };

    explicit TimelineView(QWidget* parent = nullptr);
    ~TimelineView() override;
    void show(std::shared_ptr<const picture::Lanes> lanes);
    void set_theme(picture::Theme theme);
    void set_coloring(picture::Coloring coloring);
    void set_filter(const std::string& filter);
    /// Of a large timeline it comes later, as selection_changed says.
    void set_critical_path(bool on);
    bool shows_path() const { return path_on_; }

    void set_view(picture::TimeView view);
    /// The time that can be looked at, in place of the timeline's own: for two on one axis.
    void set_limits(picture::TimeView limits);
    void zoom(double factor, double at_ns);
    void pan(double share);
    void show_all();
    /// The selection, or the marked area; all when that is shown already.
    void focus();
    void select(std::optional<picture::EventAt> event);
    void select_area(std::optional<Area> area);
    /// The next event whose step has the text, after the selection; false when there is none.
    bool find_next(const std::string& text, bool backwards = false);
    /// The first event of exactly this step that begins at `from` ns or later, selected; nothing when there is none.
    std::optional<picture::EventAt> find_step(const std::string& step, double from);
    void next_on_lane(int by);
    void open_rank(std::int64_t rank, bool open);
    void pin_rank_of_selection();

    const std::shared_ptr<const picture::Lanes>& lanes() const { return lanes_; }
    picture::TimeView view() const { return view_; }
    const std::optional<picture::EventAt>& selected() const { return selected_; }
    const std::optional<Area>& area() const { return area_; }
    /// How long the marked area is, to a pixel: "1.35 ms"; "" without one.
    std::string extent() const;
    const std::vector<picture::PathStep>& path() const { return path_; }
    const std::vector<TimelineRow>& rows() const { return rows_; }
    /// Of each event, where the timeline knows what its steps wait for; else nothing. Made when first asked for.
    const picture::Slack* slack();
    std::size_t visible_events_drawn() const { return names_drawn_; }

    std::function<void()> selection_changed, view_changed;
    std::function<void(double ns)> cursor_moved;

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    bool event(QEvent* event) override;
    void leaveEvent(QEvent* event) override;

private:
    QRect plot() const;
    double ns_at(double x) const;
    double x_of(double ns) const;
    double y_of(const TimelineRow& row) const;
    const TimelineRow* row_at(double y) const;
    const TimelineRow* row_of_lane(std::size_t lane) const;
    std::optional<picture::EventAt> event_at(QPointF at) const;
    void relayout();
    void find_path();
    void changed();
    void scroll(double by);
    void reveal(picture::EventAt event);
    std::string text_of(picture::EventAt event) const;

    /// What of image_ can stay: so many columns, moved to the left by `shift`.
    struct Kept {
        int shift = 0, columns = 0;
    };
    void render();
    Kept keep_columns(QSize room);
    void paint_ranks(const TimelineRow& row, Kept kept, std::span<std::uint32_t> line) const;
    void draw_names(QPainter& painter);
    const QStaticText& name_of(std::uint32_t what, int room, const QFont& font);
    void draw_heads(QPainter& painter);
    void draw_ruler(QPainter& painter);
    void draw_map(QPainter& painter);
    void draw_flows(QPainter& painter);
    void draw_path(QPainter& painter);
    void draw_selection(QPainter& painter);
    void draw_extent(QPainter& painter, const QRectF& box);
    double pixel_s() const;
    std::optional<QRectF> rect_of(picture::EventAt event) const;
    bool show_tip(QEvent* event);

    std::shared_ptr<const picture::Lanes> lanes_;
    const double points_ = font().pointSizeF();  // of the text at scale 1
    picture::Theme theme_ = picture::Theme::light;
    picture::Coloring coloring_ = picture::Coloring::activity;
    picture::PixelColors colors_{picture::Theme::light, picture::Coloring::activity};
    picture::TimeView view_, limits_;
    RowChoice choice_;
    std::vector<TimelineRow> rows_;
    std::vector<std::size_t> row_of_lane_;  // SIZE_MAX: filtered away
    double content_height_ = 0, scroll_ = 0;
    std::optional<picture::EventAt> selected_;
    std::vector<picture::EventAt> partners_;
    std::optional<Area> area_;
    std::vector<picture::PathStep> path_;
    std::shared_ptr<const picture::Lanes> sought_;  // a thread looks for its path
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
    std::unique_ptr<const picture::Slack> slack_;
    bool path_on_ = false;
    QImage image_, map_;
    picture::TimeView drawn_;  // in image_: of view_, to half a pixel
    bool stale_ = true;        // image_, by more than a view that has moved
    std::size_t names_drawn_ = 0;
    std::unordered_map<std::uint64_t, QStaticText> names_;  // laid out, by what, room and size
    enum class Drag { none, area, pan, map } drag_ = Drag::none;
    QPointF press_, pointer_{-1, -1};
    picture::TimeView press_view_;
};

}  // namespace rehearse::gui
