#include "gui/scenario/field_row.h"

#include <QGridLayout>
#include <QLabel>
#include <QToolButton>

namespace ringside::gui {
namespace {

constexpr int kLabelWidth = 132;

QString tooltipOf(const FormField& field) {
    QString text = "<p>" + QString::fromStdString(field.help).toHtmlEscaped() + "</p><p>";
    if (field.spec.kind == ValueKind::Whole || field.spec.kind == ValueKind::Number)
        text += QString("From %1 to %2%3. ").arg(field.spec.min, 0, 'g', 10).arg(field.spec.max, 0, 'g', 10).arg(field.spec.unit.empty() ? "" : " " + QString::fromStdString(field.spec.unit));
    if (!field.defaultText.empty()) text += "Default: " + QString::fromStdString(field.defaultText).toHtmlEscaped() + ". ";
    return text + "</p><p>Key: <code>" + QString::fromStdString(field.path) + "</code></p>";
}

}  // namespace

FieldRow::FieldRow(const FormField& field, const Json& usual, const Theme& theme, QWidget* parent) : QWidget(parent), field_(field), theme_(theme) {
    setObjectName("field." + QString::fromStdString(field.path));
    label_ = new QLabel(QString::fromStdString(field.label));
    label_->setFixedWidth(kLabelWidth);
    label_->setWordWrap(true);
    editor_ = makeEditor(field, usual, this);
    editor_->changed = [this](const Json& value) {
        if (edited) edited(field_.path, value);
    };
    label_->setBuddy(editor_->input());
    reset_ = new QToolButton;
    reset_->setObjectName("reset");
    reset_->setText("↺");
    reset_->setAutoRaise(true);
    reset_->setFixedSize(22, 22);
    connect(reset_, &QToolButton::clicked, this, [this] {
        if (edited) edited(field_.path, nullptr);
    });
    error_ = new QLabel;
    error_->setObjectName("error");
    error_->setWordWrap(true);
    error_->hide();

    auto* grid = new QGridLayout(this);
    grid->setContentsMargins(10, 2, 6, 2);
    grid->setHorizontalSpacing(6);
    grid->setVerticalSpacing(1);
    grid->addWidget(label_, 0, 0);
    grid->addWidget(editor_, 0, 1);
    grid->addWidget(reset_, 0, 2);
    grid->addWidget(error_, 1, 1, 1, 2);
    grid->setColumnStretch(1, 1);
    const QString tip = tooltipOf(field);
    label_->setToolTip(tip);
    editor_->input()->setToolTip(tip);
    reset_->setToolTip(field.defaultText.empty() ? "Leave it out" : "Back to the default: " + QString::fromStdString(field.defaultText));
}

void FieldRow::show(const Json& value, bool given, const QString& error) {
    editor_->show(value);
    const bool required = field_.path == "model" || field_.path == "device";
    // What was changed stands out: a mark and bold letters, so that it does not hang on colour alone.
    const bool modified = given && !required;
    label_->setText((modified ? QStringLiteral("• ") : QString()) + QString::fromStdString(field_.label));
    QFont font = label_->font();
    font.setBold(modified);
    label_->setFont(font);
    reset_->setEnabled(modified);
    reset_->setVisible(true);
    QPalette palette = reset_->palette();
    palette.setColor(QPalette::ButtonText, modified ? theme_.colors().text : theme_.colors().window);
    reset_->setPalette(palette);
    error_->setText(error);
    error_->setVisible(!error.isEmpty());
    palette = error_->palette();
    palette.setColor(QPalette::WindowText, theme_.colors().bad);
    error_->setPalette(palette);
}

QString FieldRow::errorText() const { return error_->text(); }

bool FieldRow::matches(const QString& typed) const {
    if (typed.isEmpty()) return true;
    for (const std::string& text : {field_.label, field_.path, field_.help})
        if (QString::fromStdString(text).contains(typed, Qt::CaseInsensitive)) return true;
    return false;
}

}  // namespace ringside::gui
