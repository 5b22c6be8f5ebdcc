#include "gui/scenario/kept_list.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QSignalBlocker>
#include <QToolButton>
#include <QTreeWidget>
#include <QVBoxLayout>

#include <fmt/format.h>

#include "gui/scenario/result_summary.h"

namespace ringside::gui {

std::string shortTitle(const Scenario& scenario) {
    const NodeKind& kind = scenario.cluster.nodes.front().kind;
    return fmt::format("{} · {} · {} × {} · batch {}", scenario.parallel.strategy, scenario.model.name, scenario.cluster.deviceCount(), kind.device.name, scenario.training.microBatch);
}

KeptList::KeptList(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    list_ = new QTreeWidget;
    list_->setRootIsDecorated(false);
    list_->setHeaderLabels({"Kept", "Step", "Now against it"});
    list_->header()->setStretchLastSection(false);
    list_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
    list_->header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
    list_->header()->setSectionResizeMode(2, QHeaderView::ResizeToContents);
    list_->setFixedHeight(96);
    connect(list_, &QTreeWidget::currentItemChanged, this, [this] {
        if (changed) changed();
    });
    connect(list_, &QTreeWidget::itemDoubleClicked, this, [this] {
        if (row() >= 0 && compare) compare(kept_[static_cast<std::size_t>(row())]);
    });

    auto* buttons = new QHBoxLayout;
    buttons->setContentsMargins(6, 0, 6, 0);
    const auto button = [&](const char* name, const char* text, const char* tip, auto act) {
        auto* made = new QToolButton;
        made->setObjectName(name);
        made->setText(text);
        made->setToolTip(tip);
        made->setAutoRaise(true);
        connect(made, &QToolButton::clicked, this, [this, act] {
            if (row() >= 0) act(static_cast<std::size_t>(row()));
        });
        buttons->addWidget(made);
    };
    button("compareKept", "Compare", "Puts the kept one and the present one above each other", [this](std::size_t i) {
        if (compare) compare(kept_[i]);
    });
    button("openKept", "Open", "Opens it in a tab of its own", [this](std::size_t i) {
        if (open) open(kept_[i]);
    });
    button("removeKept", "Remove", "Forgets it", [this](std::size_t i) {
        kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
        rebuild();
        if (changed) changed();
    });
    buttons->addStretch(1);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(2);
    column->addWidget(list_);
    column->addLayout(buttons);
    hide();
}

int KeptList::row() const { return kept_.empty() ? -1 : std::max(0, list_->indexOfTopLevelItem(list_->currentItem())); }

DocumentPtr KeptList::chosen() const { return row() < 0 ? nullptr : kept_[static_cast<std::size_t>(row())]; }

void KeptList::keep(DocumentPtr document) {
    if (!document || !document->prediction) return;
    kept_.push_back(std::move(document));
    rebuild();
    const QSignalBlocker quiet(list_);
    list_->setCurrentItem(list_->topLevelItem(list_->topLevelItemCount() - 1));
    if (changed) changed();
}

void KeptList::show(const DocumentPtr& current) {
    current_ = current;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
        QTreeWidgetItem* item = list_->topLevelItem(static_cast<int>(i));
        const bool known = current_ && current_->prediction;
        const double before = kept_[i]->prediction->stepSeconds, now = known ? current_->prediction->stepSeconds : before;
        item->setText(2, known ? QString::fromStdString(changeText(before, now)) : QString());
        item->setForeground(2, now < before ? theme_.colors().good : now > before ? theme_.colors().bad : theme_.colors().muted);
    }
}

void KeptList::rebuild() {
    const QSignalBlocker quiet(list_);
    list_->clear();
    for (const DocumentPtr& document : kept_) {
        const QString title = QString::fromStdString(shortTitle(*document->scenario));
        auto* item = new QTreeWidgetItem({title, QString::fromStdString(formatSeconds(document->prediction->stepSeconds)), QString()});
        item->setToolTip(0, title);
        item->setTextAlignment(1, Qt::AlignRight | Qt::AlignVCenter);
        item->setTextAlignment(2, Qt::AlignRight | Qt::AlignVCenter);
        list_->addTopLevelItem(item);
    }
    if (!kept_.empty()) list_->setCurrentItem(list_->topLevelItem(static_cast<int>(kept_.size()) - 1));
    setVisible(!kept_.empty());
    show(current_);
}

}  // namespace ringside::gui
