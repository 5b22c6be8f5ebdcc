// FormView: the fields of a scenario in groups that fold, with a line to find one by typing.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include <QWidget>

#include "gui/core/theme.h"
#include "gui/scenario/field_row.h"

class QLabel;
class QLineEdit;
class QToolButton;
class QVBoxLayout;

namespace ringside::gui {

class FormView : public QWidget {
    Q_OBJECT
public:
    explicit FormView(const Theme& theme, QWidget* parent = nullptr);

    /// Shows the form as it is now. Rows are kept where the fields are the same, so that nobody loses the focus while typing.
    /// `later`: an error that only a later stage (predict) found.
    void show(const ScenarioForm& form, const std::optional<FormError>& later = {});
    /// Null where the form has no such field.
    FieldRow* row(const std::string& path) const;
    QLineEdit* findLine() { return find_; }
    /// Unfolds the field's group and brings it into sight.
    void reveal(const std::string& path);

    std::function<void(const std::string& path, const Json& value)> edited;

private:
    struct Group {
        QToolButton* header = nullptr;
        QWidget* body = nullptr;
        QVBoxLayout* column = nullptr;
        std::vector<FieldRow*> rows;
        bool open = true;
    };
    void rebuild(const ScenarioForm& form);
    void applyFilter();

    const Theme& theme_;
    QLineEdit* find_;
    QLabel* error_;  ///< what belongs to no field
    QWidget* content_;
    QVBoxLayout* column_;
    std::map<FieldGroup, Group> groups_;
    std::vector<std::string> paths_;
};

}  // namespace ringside::gui
