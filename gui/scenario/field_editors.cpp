// The widgets of FieldRow, one per kind of value.
#include <cmath>

#include <QAbstractItemView>
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QCompleter>
#include <QDoubleSpinBox>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QPainter>
#include <QSignalBlocker>
#include <QSlider>
#include <QStyledItemDelegate>
#include <QWheelEvent>

#include "gui/scenario/field_row.h"
#include "gui/scenario/slider_scale.h"

namespace ringside::gui {
namespace {

constexpr int kNumberWidth = 130;

/// A wheel over a form scrolls the form; values change by wheel only where the user has clicked.
template <class Input>
class Calm : public Input {
public:
    using Input::Input;

protected:
    void wheelEvent(QWheelEvent* event) override {
        if (this->hasFocus()) Input::wheelEvent(event);
        else event->ignore();
    }
};

class FlagEditor : public FieldEditor {
public:
    explicit FlagEditor(QWidget* parent) : FieldEditor(parent), box_(new QCheckBox) {
        auto* row = new QHBoxLayout(this);
        row->setContentsMargins(0, 0, 0, 0);
        row->addWidget(box_);
        connect(box_, &QCheckBox::toggled, this, [this](bool on) {
            if (changed) changed(on);
        });
    }
    void show(const Json& value) override {
        const QSignalBlocker quiet(box_);
        box_->setChecked(value.is_boolean() ? value.get<bool>() : value.is_number() && value.get<double>() != 0);
    }
    QWidget* input() override { return box_; }

private:
    QCheckBox* box_;
};

/// Numbers as people write them: no zeros behind, thousands apart.
class NumberBox : public Calm<QDoubleSpinBox> {
public:
    explicit NumberBox(const ValueSpec& spec) : whole_(spec.kind == ValueKind::Whole) {
        setRange(spec.min, spec.max);
        setDecimals(whole_ ? 0 : 6);
        setStepType(whole_ ? DefaultStepType : AdaptiveDecimalStepType);
        setGroupSeparatorShown(whole_ && spec.max > 9999);
        if (!spec.unit.empty()) setSuffix(" " + QString::fromStdString(spec.unit));
        setButtonSymbols(UpDownArrows);
    }
    /// Wide enough for what is usual; the widest possible number would not leave room for anything else.
    QSize sizeHint() const override { return {kNumberWidth, QDoubleSpinBox::sizeHint().height()}; }
    QSize minimumSizeHint() const override { return {kNumberWidth - 20, QDoubleSpinBox::minimumSizeHint().height()}; }
    QString textFromValue(double value) const override {
        if (whole_) return QDoubleSpinBox::textFromValue(value);
        return std::abs(value) >= 1e4 && value == std::round(value) ? locale().toString(value, 'f', 0) : locale().toString(value, 'g', 7);
    }

private:
    bool whole_;
};

class NumberEditor : public FieldEditor {
public:
    NumberEditor(const FormField& field, const Json& usual, QWidget* parent)
        : FieldEditor(parent), box_(new NumberBox(field.spec)), slider_(new Calm<QSlider>(Qt::Horizontal)), scale_(field.spec, usual.is_number() ? usual.get<double>() : 1), whole_(field.spec.kind == ValueKind::Whole) {
        auto* row = new QHBoxLayout(this);
        row->setContentsMargins(0, 0, 0, 0);
        row->setSpacing(8);
        box_->findChild<QLineEdit*>()->setPlaceholderText(QString::fromStdString(field.defaultText));
        row->addWidget(box_, 3);
        slider_->setRange(0, std::max(scale_.steps(), 1));
        slider_->setMinimumWidth(60);
        row->addWidget(slider_, 4);
        slider_->setVisible(scale_.steps() > 1);
        connect(box_, &QDoubleSpinBox::valueChanged, this, [this](double value) {
            const QSignalBlocker quiet(slider_);
            slider_->setValue(scale_.positionOf(value));
            tell(value);
        });
        connect(slider_, &QSlider::valueChanged, this, [this](int position) {
            const QSignalBlocker quiet(box_);
            box_->setValue(scale_.valueAt(position));
            tell(box_->value());
        });
    }
    void show(const Json& value) override {
        const QSignalBlocker quietBox(box_), quietSlider(slider_);
        if (!value.is_number()) {
            if (!box_->hasFocus()) box_->clear();
            return;
        }
        // What is being typed stays as it is typed.
        if (box_->value() != value.get<double>() || box_->text().isEmpty()) box_->setValue(value.get<double>());
        slider_->setValue(scale_.positionOf(value.get<double>()));
    }
    QWidget* input() override { return box_; }

private:
    void tell(double value) {
        if (changed) changed(whole_ ? Json(static_cast<std::int64_t>(std::llround(value))) : Json(value));
    }

    NumberBox* box_;
    QSlider* slider_;
    SliderScale scale_;
    bool whole_;
};

/// A choice's name at the left, a word about it at the right.
class ChoiceDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;
    static constexpr int kDetail = Qt::UserRole + 1;

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        QStyledItemDelegate::paint(painter, option, index);
        const QString detail = index.data(kDetail).toString();
        if (detail.isEmpty()) return;
        const QColor color = option.palette.color(option.state & QStyle::State_Selected ? QPalette::HighlightedText : QPalette::PlaceholderText);
        const int name = option.fontMetrics.horizontalAdvance(index.data().toString());
        const QRect room = option.rect.adjusted(name + 28, 0, -8, 0);
        painter->setPen(color);
        painter->drawText(room, Qt::AlignRight | Qt::AlignVCenter, option.fontMetrics.elidedText(detail, Qt::ElideRight, room.width()));
    }
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        QSize size = QStyledItemDelegate::sizeHint(option, index);
        size.setWidth(size.width() + std::min(option.fontMetrics.horizontalAdvance(index.data(kDetail).toString()), 460) + 48);
        size.setHeight(size.height() + 4);
        return size;
    }
};

class ChoiceEditor : public FieldEditor {
public:
    ChoiceEditor(const FormField& field, QWidget* parent) : FieldEditor(parent), box_(new Calm<QComboBox>), searchable_(field.spec.kind == ValueKind::Name) {
        auto* row = new QHBoxLayout(this);
        row->setContentsMargins(0, 0, 0, 0);
        row->addWidget(box_);
        box_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
        box_->setMinimumContentsLength(8);
        box_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);  // a long placeholder must not widen the form
        box_->setMinimumWidth(80);
        box_->setMaxVisibleItems(20);
        for (const FieldChoice& choice : field.choices) {
            box_->addItem(QString::fromStdString(choice.value));
            box_->setItemData(box_->count() - 1, QString::fromStdString(choice.detail), ChoiceDelegate::kDetail);
        }
        box_->setItemDelegate(new ChoiceDelegate(box_));
        int width = 200;
        for (int i = 0; i < box_->count(); ++i) {
            QStyleOptionViewItem option;
            option.font = box_->font();
            width = std::max(width, box_->itemDelegate()->sizeHint(option, box_->model()->index(i, 0)).width() + 24);
        }
        box_->view()->setMinimumWidth(std::min(width, 640));
        placeholder_ = field.defaultText.empty() ? QStringLiteral("not given") : QString::fromStdString(field.defaultText);
        if (searchable_) makeSearchable();
        else box_->setPlaceholderText(placeholder_);
        connect(box_, &QComboBox::activated, this, [this](int index) { tell(box_->itemText(index)); });
    }
    void show(const Json& value) override {
        const QSignalBlocker quiet(box_);
        const QString text = QString::fromStdString(textOfValue(value));
        shown_ = text;
        if (box_->lineEdit() && box_->lineEdit()->hasFocus() && box_->lineEdit()->isModified()) return;  // somebody is typing
        box_->setCurrentIndex(text.isEmpty() ? -1 : box_->findText(text));
        if (searchable_) {
            box_->setEditText(text);
            box_->lineEdit()->setCursorPosition(0);
        }
    }
    QWidget* input() override { return box_; }

private:
    void makeSearchable() {
        box_->setEditable(true);
        box_->setInsertPolicy(QComboBox::NoInsert);
        box_->lineEdit()->setPlaceholderText(placeholder_);
        auto* completer = new QCompleter(box_->model(), box_);
        completer->setFilterMode(Qt::MatchContains);
        completer->setCaseSensitivity(Qt::CaseInsensitive);
        completer->setCompletionMode(QCompleter::PopupCompletion);
        completer->setMaxVisibleItems(14);
        completer->popup()->setItemDelegate(new ChoiceDelegate(completer));
        completer->popup()->setMinimumWidth(box_->view()->minimumWidth());
        box_->setCompleter(completer);
        connect(completer, qOverload<const QString&>(&QCompleter::activated), this, [this](const QString& text) { tell(text); });
        connect(box_->lineEdit(), &QLineEdit::editingFinished, this, [this] { tell(box_->currentText()); });
    }
    void tell(const QString& text) {
        if (box_->lineEdit()) box_->lineEdit()->setModified(false);
        if (text == shown_) return;
        shown_ = text;
        if (changed) changed(text.trimmed().isEmpty() ? Json(nullptr) : Json(text.trimmed().toStdString()));
    }

    QComboBox* box_;
    bool searchable_;
    QString shown_, placeholder_;
};

class TextEditor : public FieldEditor {
public:
    TextEditor(const FormField& field, QWidget* parent) : FieldEditor(parent), line_(new QLineEdit), spec_(field.spec) {
        auto* row = new QHBoxLayout(this);
        row->setContentsMargins(0, 0, 0, 0);
        row->addWidget(line_);
        line_->setPlaceholderText(field.defaultText.empty() ? "none" : QString::fromStdString(field.defaultText));
        connect(line_, &QLineEdit::editingFinished, this, [this] {
            if (!line_->isModified()) return;
            line_->setModified(false);
            if (changed) changed(valueOfText(spec_, line_->text().toStdString()));
        });
    }
    void show(const Json& value) override {
        if (line_->isModified()) return;
        line_->setText(QString::fromStdString(value.is_array() && value.empty() ? std::string() : textOfValue(value)));
        line_->setModified(false);
    }
    QWidget* input() override { return line_; }

private:
    QLineEdit* line_;
    ValueSpec spec_;
};

}  // namespace

FieldEditor* makeEditor(const FormField& field, const Json& usual, QWidget* parent) {
    switch (field.spec.kind) {
        case ValueKind::Flag: return new FlagEditor(parent);
        case ValueKind::Whole: case ValueKind::Number: return new NumberEditor(field, usual, parent);
        case ValueKind::Word: case ValueKind::Name: return new ChoiceEditor(field, parent);
        case ValueKind::List: return new TextEditor(field, parent);
    }
    return new TextEditor(field, parent);
}

}  // namespace ringside::gui
