// SPDX-License-Identifier: Apache-2.0
// The words of a plan: its axes, and behind each, when it is clicked, the options that it takes.
#include <QEvent>
#include <QLabel>
#include <set>

#include "gui/editor_form.hpp"
#include "schedule/plan.hpp"

namespace rehearse::gui {

namespace {

QString escaped(std::string_view s) {
    return QString::fromUtf8(s.data(), static_cast<qsizetype>(s.size())).toHtmlEscaped();
}

// "ring|doubling" may be broken before each bar.
QString choices(std::string_view values) { return escaped(values).replace("|", "|&#8203;"); }

class PlanHelp : public QLabel {
public:
    PlanHelp() {
        setObjectName("plan_help");
        setWordWrap(true);
        setMinimumWidth(1);  // a long word of a plan is no reason to cut the fields above it
        setTextFormat(Qt::RichText);
        QFont font = this->font();
        font.setPointSizeF(font.pointSizeF() * 0.9);
        setFont(font);
        connect(this, &QLabel::linkActivated, this, [this](const QString& axis) {
            if (open_.erase(axis) == 0) open_.insert(axis);
            write();
        });
        write();
    }

protected:
    void changeEvent(QEvent* event) override {
        QLabel::changeEvent(event);
        if (event->type() == QEvent::PaletteChange) write();
    }

private:
    void write() {
        QString text =
            "<p><b>Words of a plan</b><br>axes joined by commas, each with its options, as "
            "<tt>pipe=2:microbatches=8,data</tt>; one axis may leave its size to be inferred</p>";
        QString axis;
        const auto close = [&] { text += open_.contains(axis) ? "</table>" : ""; };
        for (const schedule::PlanWord& word : schedule::plan_words()) {
            if (word.axis.empty()) {
                close();
                axis = escaped(word.name);
                const bool open = open_.contains(axis);
                text +=
                    QString("<p><a style='text-decoration:none; color:%6' href='%1'>%2 <b>%1=%3</b></a> &nbsp;%4</p>%5")
                        .arg(axis, open ? "▾" : "▸", choices(word.values), escaped(word.summary),
                             open ? "<table cellspacing=3>" : "", palette().color(QPalette::Link).name());
            } else if (open_.contains(axis)) {
                text += QString("<tr><td width='38%'><tt>:%1=%2</tt></td><td>%3</td></tr>")
                            .arg(escaped(word.name), choices(word.values), escaped(word.summary));
            }
        }
        close();
        setText(text);
    }

    std::set<QString> open_;
};

}  // namespace

QWidget* plan_help() { return new PlanHelp; }

}  // namespace rehearse::gui
