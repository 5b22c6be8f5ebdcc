#include "gui/core/command_registry.h"

#include <algorithm>
#include <utility>

#include <QMenu>
#include <QMenuBar>
#include <QWidget>

#include "model/base/check.h"

namespace ringside::gui {

QString Command::shownKeys() const {
    if (!spec.shownKeys.isEmpty()) return spec.shownKeys;
    return spec.keys.isEmpty() ? QString() : spec.keys.first().toString(QKeySequence::NativeText);
}

CommandRegistry::CommandRegistry(QWidget* window) : QObject(window), window_(window) {}

QAction* CommandRegistry::add(CommandSpec spec) {
    CHECK(action(spec.id) == nullptr);
    for (const Command& other : commands_)
        for (const QKeySequence& key : spec.keys) CHECK(!other.spec.keys.contains(key));
    auto* action = new QAction(spec.title, window_);
    action->setObjectName(spec.id);
    action->setShortcuts(spec.keys);
    action->setCheckable(spec.checkable);
    action->setToolTip(spec.keys.isEmpty() ? spec.help : QString("%1 (%2)").arg(spec.help, spec.keys.first().toString(QKeySequence::NativeText)));
    action->setStatusTip(spec.help);
    if (spec.run) connect(action, &QAction::triggered, this, [run = spec.run] { run(); });
    window_->addAction(action);
    commands_.push_back({std::move(spec), action});
    return action;
}

QAction* CommandRegistry::action(const QString& id) const {
    for (const Command& command : commands_)
        if (command.spec.id == id) return command.action;
    return nullptr;
}

void CommandRegistry::fillMenus(QMenuBar& bar) const {
    std::vector<std::pair<QString, QMenu*>> menus;
    for (const Command& command : commands_) {
        if (command.spec.menu.isEmpty() || !command.spec.run) continue;
        auto it = std::find_if(menus.begin(), menus.end(), [&](const auto& menu) { return menu.first == command.spec.menu; });
        if (it == menus.end()) it = menus.insert(menus.end(), {command.spec.menu, bar.addMenu("&" + command.spec.menu)});
        if (command.spec.separatorBefore) it->second->addSeparator();
        it->second->addAction(command.action);
    }
}

std::vector<const Command*> CommandRegistry::matching(const QString& typed) const {
    std::vector<std::pair<int, const Command*>> found;
    for (const Command& command : commands_) {
        if (!command.spec.run || !command.action->isEnabled()) continue;
        const int score = std::max(matchScore(command.spec.title, typed), matchScore(command.spec.menu + " " + command.spec.title, typed) - 1);
        if (score >= 0) found.emplace_back(score, &command);
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<const Command*> commands;
    for (const auto& [score, command] : found) commands.push_back(command);
    return commands;
}

int matchScore(const QString& text, const QString& typed) {
    int score = 1, run = 0;
    qsizetype at = 0;
    for (const QChar wanted : typed) {
        if (wanted.isSpace()) continue;
        const qsizetype from = at;
        while (at < text.size() && text[at].toLower() != wanted.toLower()) ++at;
        if (at == text.size()) return -1;
        const bool wordBegins = at == 0 || !text[at - 1].isLetterOrNumber();
        run = at == from && at > 0 ? run + 1 : 0;
        score += 1 + 2 * run + (wordBegins ? 4 : 0);
        ++at;
    }
    return score;
}

}  // namespace ringside::gui
