// FieldRow: one setting of a scenario with the widget that its kind asks for, a way back to the default, and what is wrong with it.
#pragma once

#include <functional>

#include <QWidget>

#include "gui/core/theme.h"
#include "gui/scenario/scenario_form.h"

class QLabel;
class QToolButton;

namespace ringside::gui {

/// The widget that holds the value. Every change of the user's is told; what the program sets is not.
class FieldEditor : public QWidget {
    Q_OBJECT
public:
    using QWidget::QWidget;
    /// Null: the default, which has no value of its own.
    virtual void show(const Json& value) = 0;
    virtual QWidget* input() = 0;  ///< what takes the focus

    std::function<void(const Json& value)> changed;  ///< null: reset
};

FieldEditor* makeEditor(const FormField& field, const Json& usual, QWidget* parent);

class FieldRow : public QWidget {
    Q_OBJECT
public:
    FieldRow(const FormField& field, const Json& usual, const Theme& theme, QWidget* parent = nullptr);

    const FormField& field() const { return field_; }
    /// `error` empty: fine.
    void show(const Json& value, bool given, const QString& error);
    bool matches(const QString& typed) const;
    FieldEditor* editor() { return editor_; }
    QString errorText() const;

    std::function<void(const std::string& path, const Json& value)> edited;

private:
    FormField field_;
    const Theme& theme_;
    QLabel* label_;
    FieldEditor* editor_;
    QToolButton* reset_;
    QLabel* error_;
};

}  // namespace ringside::gui
