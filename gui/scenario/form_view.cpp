#include "gui/scenario/form_view.h"

#include <QLabel>
#include <QLineEdit>
#include <QScrollArea>
#include <QToolButton>
#include <QVBoxLayout>

namespace ringside::gui {

FormView::FormView(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    find_ = new QLineEdit;
    find_->setPlaceholderText("Find a setting; Enter goes to it");
    find_->setClearButtonEnabled(true);
    connect(find_, &QLineEdit::textChanged, this, &FormView::applyFilter);
    connect(find_, &QLineEdit::returnPressed, this, [this] {
        for (const auto& [id, group] : groups_)
            for (FieldRow* row : group.rows)
                if (row->isVisibleTo(content_)) {
                    row->editor()->input()->setFocus(Qt::TabFocusReason);
                    return;
                }
    });
    error_ = new QLabel;
    error_->setObjectName("formError");
    error_->setWordWrap(true);
    error_->setContentsMargins(10, 4, 10, 4);
    error_->hide();
    content_ = new QWidget;
    column_ = new QVBoxLayout(content_);
    column_->setContentsMargins(0, 0, 0, 12);
    column_->setSpacing(0);
    for (int g = 0; g < kFieldGroups; ++g) {
        const auto id = static_cast<FieldGroup>(g);
        if (id == FieldGroup::WhatIf) continue;  // has a bar of its own
        Group& group = groups_[id];
        group.open = id <= FieldGroup::Strategy;
        group.header = new QToolButton;
        group.header->setText(QString::fromUtf8(nameOf(id).data(), static_cast<qsizetype>(nameOf(id).size())));
        group.header->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
        group.header->setAutoRaise(true);
        group.header->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
        QFont font = group.header->font();
        font.setBold(true);
        group.header->setFont(font);
        group.body = new QWidget;
        group.column = new QVBoxLayout(group.body);
        group.column->setContentsMargins(0, 2, 0, 8);
        group.column->setSpacing(0);
        connect(group.header, &QToolButton::clicked, this, [this, id] {
            groups_[id].open = !groups_[id].open;
            applyFilter();
        });
        column_->addWidget(group.header);
        column_->addWidget(group.body);
    }
    column_->addStretch(1);
    auto* scroll = new QScrollArea;
    scroll->setWidget(content_);
    scroll->setWidgetResizable(true);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setMinimumHeight(120);

    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(4);
    auto* top = new QHBoxLayout;
    top->setContentsMargins(10, 6, 10, 0);
    top->addWidget(find_);
    column->addLayout(top);
    column->addWidget(error_);
    column->addWidget(scroll, 1);
}

FieldRow* FormView::row(const std::string& path) const {
    for (const auto& [id, group] : groups_)
        for (FieldRow* row : group.rows)
            if (row->field().path == path) return row;
    return nullptr;
}

void FormView::rebuild(const ScenarioForm& form) {
    content_->setUpdatesEnabled(false);
    for (auto& [id, group] : groups_) {
        std::vector<FieldRow*> kept;
        for (const FormField& field : form.fields()) {
            if (field.group != id) continue;
            FieldRow* found = nullptr;
            for (FieldRow*& old : group.rows)
                if (old && old->field().path == field.path && old->field().defaultText == field.defaultText) std::swap(found, old);
            if (!found) {
                found = new FieldRow(field, form.shown(field.path), theme_, group.body);
                found->edited = [this](const std::string& path, const Json& value) {
                    if (edited) edited(path, value);
                };
            }
            group.column->removeWidget(found);
            group.column->addWidget(found);
            kept.push_back(found);
        }
        for (FieldRow* gone : group.rows)
            if (gone) {
                group.column->removeWidget(gone);
                gone->hide();
                gone->deleteLater();  // it may be the one whose signal brought us here
            }
        group.rows = std::move(kept);
    }
    applyFilter();
    content_->setUpdatesEnabled(true);
}

void FormView::show(const ScenarioForm& form, const std::optional<FormError>& later) {
    std::vector<std::string> paths;
    for (const FormField& field : form.fields()) paths.push_back(field.path + "=" + field.defaultText);
    if (paths != paths_) {
        paths_ = std::move(paths);
        rebuild(form);
    }
    const std::optional<FormError>& error = form.error() ? form.error() : later;
    for (auto& [id, group] : groups_)
        for (FieldRow* row : group.rows) {
            const std::string& path = row->field().path;
            row->show(form.shown(path), form.isGiven(path), error && error->path == path ? QString::fromStdString(error->message) : QString());
        }
    const bool homeless = error && !row(error->path);
    error_->setVisible(homeless);
    if (homeless) error_->setText(QString::fromStdString(error->message));
    QPalette palette = error_->palette();
    palette.setColor(QPalette::WindowText, theme_.colors().bad);
    error_->setPalette(palette);
    if (error && !homeless) reveal(error->path);
}

void FormView::reveal(const std::string& path) {
    for (auto& [id, group] : groups_)
        for (FieldRow* row : group.rows)
            if (row->field().path == path && !group.open) {
                group.open = true;
                applyFilter();
            }
}

void FormView::applyFilter() {
    const QString typed = find_->text().trimmed();
    for (auto& [id, group] : groups_) {
        int matching = 0;
        for (FieldRow* row : group.rows) {
            const bool match = row->matches(typed);
            row->setVisible(match);
            matching += match ? 1 : 0;
        }
        const bool open = typed.isEmpty() ? group.open : matching > 0;
        group.header->setVisible(!group.rows.empty() && (typed.isEmpty() || matching > 0));
        group.header->setArrowType(open ? Qt::DownArrow : Qt::RightArrow);
        group.body->setVisible(open && matching > 0);
    }
}

}  // namespace ringside::gui
