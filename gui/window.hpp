// SPDX-License-Identifier: Apache-2.0
// The main window: screens at the left, what is open below them, the screen itself in the middle, messages above it.
#pragma once

#include <QMainWindow>
#include <atomic>
#include <map>
#include <memory>

#include "gui/session.hpp"

class QAction;
class QDockWidget;
class QLabel;
class QListWidget;
class QMenu;
class QProgressBar;
class QStackedWidget;

namespace rehearse::gui {

/// Large: one method a menu, a dock or a kind of file; window_*.cpp has those of one kind each.
class Window : public QMainWindow {
public:
    /// `program`: the rehearse to run; empty for ours. `remembers`: restores the last session and keeps this one.
    explicit Window(bool remembers = true, const QString& program = {});
    ~Window() override;

    /// Reads in a thread of its own; what goes wrong is a message.
    void open(const QString& given);
    void add(Document document);
    void go(const std::string& screen);
    /// In a dock of its own, beside the screen in the middle, until it is closed there.
    void put_beside(const std::string& screen);
    void set_theme(picture::Theme theme);
    void set_scale(double scale);
    void warn(const QString& message);

    bool is_busy() const;
    QString message() const;
    std::string screen() const;
    Screen* screen(const std::string& name) const;
    Session& session() { return session_; }
    Runner& runner() { return runner_; }
    QList<QAction*> commands() const;
    void show_palette();
    void show_keys();
    void copy_picture();

protected:
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;
    void closeEvent(QCloseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void make_screens();
    void make_docks();
    int place_of(const std::string& screen) const;
    QWidget* exchange(int place, QWidget* widget);
    void take_back(const std::string& screen);
    void make_message_bar(QWidget* parent);
    void make_menus();
    QAction* command(QMenu* menu, const QString& text, const QString& keys, std::function<void()> action);
    void refresh();
    void ask();
    void list_recent();
    void close_document(int row);
    void erase_document(int row);
    std::vector<int> forget(const std::string& path);
    void take_experiment(const QString& path);
    void save_experiment();
    static Experiment kept_experiment();
    void restore();
    void keep();

    Runner runner_;
    Session session_;
    bool remembers_;
    picture::Theme theme_ = picture::Theme::light;
    double scale_ = 1, base_points_ = 10;
    std::vector<std::pair<std::string, Screen*>> screens_;
    std::map<std::string, QDockWidget*> beside_;
    QListWidget *names_ = nullptr, *files_ = nullptr;
    QStackedWidget* stack_ = nullptr;
    QWidget* bar_ = nullptr;
    QLabel* bar_text_ = nullptr;
    QProgressBar* progress_ = nullptr;
    QMenu* recent_ = nullptr;
    std::shared_ptr<std::atomic<bool>> stop_ = std::make_shared<std::atomic<bool>>(false);
    int loading_ = 0, next_id_ = 1;
};

}  // namespace rehearse::gui
