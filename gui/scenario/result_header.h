// ResultHeader: the answer above the form: step time with its band, rates, utilisation, exposed communication, memory and verdict.
#pragma once

#include <optional>

#include <QWidget>

#include "gui/core/document.h"
#include "gui/core/theme.h"
#include "gui/scenario/result_summary.h"

class QLabel;

namespace ringside::gui {

class MemoryBar;

class ResultHeader : public QWidget {
    Q_OBJECT
public:
    explicit ResultHeader(const Theme& theme, QWidget* parent = nullptr);

    /// `kept`: what the change is measured against; null: none. Null document: nothing predicted yet.
    void show(const DocumentPtr& document, const DocumentPtr& kept);
    /// The form has changed and the answer has not come yet, or cannot.
    void setOutdated(bool outdated);
    QString text() const;  ///< all of it, for tests and for the clipboard

private:
    const Theme& theme_;
    QLabel *step_, *band_, *change_, *throughput_, *utilisation_, *exposed_, *memory_, *warnings_;
    MemoryBar* bar_;
};

}  // namespace ringside::gui
