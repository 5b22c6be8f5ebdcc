#include "gui/app/empty_state.h"


#include <QCommandLinkButton>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

namespace ringside::gui {

const std::vector<Example>& examples() {
    static const std::vector<Example> list = {
        {"GPT-2 XL, DDP on 16 A100s", "gradient buckets hide behind the backward pass",
         R"({"model": "gpt2-xl", "device": "a100-80gb-sxm", "devices": 16, "strategy": "ddp", "training": {"micro_batch": 4, "precision": "bf16-autocast"}})"},
        {"Llama 3 8B, FSDP2 on 16 H100s", "gathers ahead of every layer, recompute in full",
         R"({"model": "llama-3-8b", "device": "h100-sxm", "devices": 16, "strategy": "fsdp2", "training": {"micro_batch": 2, "precision": "bf16-master", "recompute": "full"}})"},
        {"ResNet-50 on a slow network", "communication that nothing hides",
         R"({"model": "resnet-50", "device": "v100-sxm-32gb", "devices": 16, "network": "ethernet-25g", "strategy": "ddp", "training": {"micro_batch": 64, "precision": "fp16-autocast", "optimizer": "sgd-momentum"}})"},
    };
    return list;
}

EmptyState::EmptyState(QWidget* parent) : QWidget(parent) {
    auto* column = new QVBoxLayout;
    column->setSpacing(10);
    auto* title = new QLabel("Open a trace or a scenario");
    QFont font = title->font();
    font.setPointSizeF(font.pointSizeF() * 1.6);
    font.setBold(true);
    title->setFont(font);
    column->addWidget(title);
    auto* hint = new QLabel("Drop a file here: a trace of PyTorch's profiler (.json, .json.gz), any Chrome trace, a trace of\n"
                            "<code>ringside run</code> or <code>ringside predict --trace</code>, or a scenario, which is predicted at once.");
    hint->setTextFormat(Qt::RichText);
    hint->setEnabled(false);
    hint->setWordWrap(true);
    column->addWidget(hint);
    auto* open = new QPushButton("Open a file…");
    open->setDefault(true);
    open->setMinimumHeight(34);
    connect(open, &QPushButton::clicked, this, &EmptyState::openRequested);
    auto* line = new QHBoxLayout;
    line->addWidget(open);
    line->addStretch();
    column->addLayout(line);
    column->addSpacing(12);
    auto* tryLabel = new QLabel("<b>Or try an example</b>");
    column->addWidget(tryLabel);
    for (std::size_t i = 0; i < examples().size(); ++i) {
        auto* button = new QCommandLinkButton(examples()[i].title, examples()[i].hint);
        button->setObjectName(QString("example%1").arg(i));
        connect(button, &QPushButton::clicked, this, [this, i] { emit exampleRequested(static_cast<int>(i)); });
        column->addWidget(button);
    }
    recent_ = new QWidget;
    new QVBoxLayout(recent_);
    recent_->layout()->setContentsMargins(0, 12, 0, 0);
    column->addWidget(recent_);
    auto* keys = new QLabel("<b>?</b> lists every key · <b>Ctrl+Shift+P</b> finds every command");
    keys->setEnabled(false);
    column->addSpacing(12);
    column->addWidget(keys);

    auto* box = new QWidget;
    box->setLayout(column);
    box->setFixedWidth(640);
    auto* page = new QWidget;
    auto* centred = new QVBoxLayout(page);
    centred->addStretch();
    centred->addWidget(box, 0, Qt::AlignHCenter);
    centred->addStretch();
    auto* scroll = new QScrollArea;
    scroll->setWidget(page);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(scroll);
}

void EmptyState::setRecentFiles(const QStringList& files) {
    while (QLayoutItem* item = recent_->layout()->takeAt(0)) {
        delete item->widget();
        delete item;
    }
    if (files.isEmpty()) return;
    recent_->layout()->addWidget(new QLabel("<b>Recent files</b>"));
    for (const QString& file : files.mid(0, 5)) {
        auto* link = new QLabel(QString("<a href='%1'>%2</a> <span style='color:gray'>%3</span>")
                                    .arg(file.toHtmlEscaped(), QFileInfo(file).fileName().toHtmlEscaped(), QFileInfo(file).path().toHtmlEscaped()));
        connect(link, &QLabel::linkActivated, this, &EmptyState::fileRequested);
        recent_->layout()->addWidget(link);
    }
}

}  // namespace ringside::gui
