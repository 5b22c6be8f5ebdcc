// KeptList: results that somebody wanted to compare with. They stay as they were, whatever is edited afterwards.
#pragma once

#include <functional>
#include <vector>

#include <QWidget>

#include "gui/core/document.h"
#include "gui/core/theme.h"

class QTreeWidget;

namespace ringside::gui {

/// "fsdp2 · llama-3-8b · 8 × h100-sxm · batch 1"
std::string shortTitle(const Scenario& scenario);

class KeptList : public QWidget {
    Q_OBJECT
public:
    explicit KeptList(const Theme& theme, QWidget* parent = nullptr);

    void keep(DocumentPtr document);
    /// What changes are measured against: the chosen one, else the last kept. Null where nothing is kept.
    DocumentPtr chosen() const;
    const std::vector<DocumentPtr>& all() const { return kept_; }
    /// The figures beside each one are relative to this.
    void show(const DocumentPtr& current);

    std::function<void(DocumentPtr kept)> compare, open;
    std::function<void()> changed;  ///< another one is chosen

private:
    void rebuild();
    int row() const;

    const Theme& theme_;
    QTreeWidget* list_;
    std::vector<DocumentPtr> kept_;
    DocumentPtr current_;
};

}  // namespace ringside::gui
