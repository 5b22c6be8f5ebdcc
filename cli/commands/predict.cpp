// ringside predict: one scenario, one answer.
#include "cli/command.h"
#include "cli/commands/scenario_flags.h"
#include "cli/output/prediction_text.h"
#include "sim/prediction.h"
#include "traces/export/chrome_json.h"
#include "traces/terminal/ascii_timeline.h"

namespace ringside {
namespace {

struct PredictFlags {
    ScenarioFlags scenario;
    OutputFlags output;
    std::string trace;
    bool timeline = false;
};

Result<int> runPredict(const PredictFlags& flags) {
    if (flags.timeline && flags.output.wantsJson())
        return failure(ErrorCode::Usage, "--timeline", "draws in text; leave it out, or leave out --json (--trace FILE writes the step as JSON)");
    TRY(const Catalogs catalogs, Catalogs::builtin());
    TRY(const Scenario scenario, flags.scenario.resolve(catalogs));
    PredictOptions options;
    options.memoryTimeline = !flags.trace.empty();
    TRY(const Prediction prediction, predict(scenario, options));

    std::string text;
    if (flags.output.wantsJson()) {
        text = toJson(scenario, prediction).dump(2) + "\n";
    } else {
        text = predictionText(scenario, prediction, flags.output.wantsColor());
        if (flags.timeline) {
            TimelineOptions drawing;
            drawing.colour = flags.output.wantsColor();
            text += "\n" + asciiTimeline(traceOf(prediction), drawing);
        }
    }
    if (!flags.trace.empty()) TRY_VOID(writeChromeTrace(traceOf(prediction), flags.trace));
    TRY_VOID(writeOutput(flags.output, text));
    return prediction.verdict == MemoryVerdict::OutOfMemory ? static_cast<int>(ErrorCode::AnswerIsNo) : 0;
}

}  // namespace

void addPredict(CommandLine& line) {
    auto flags = std::make_shared<PredictFlags>();
    Command command = line.add("predict", "predict one training step: time, throughput, memory, and why", [flags] { return runPredict(*flags); });
    command.footer(
        "Examples:\n"
        "  ringside predict --model gpt2-xl --device a100-80gb-sxm --devices 16 --micro-batch 4\n"
        "  ringside predict scenario.json --bucket-mb 50 --json\n"
        "  ringside predict --model llama-3-8b --device h100-sxm --devices 8 --precision bf16 --recompute full --trace step.json\n"
        "Exit code 1: the answer is that it does not fit in memory.");
    flags->scenario.addTo(command);
    command.option("--trace", flags->trace, "write the step as a Chrome trace (open it in Perfetto)", "FILE", "Output");
    command.flag("--timeline", flags->timeline, "draw the step in the terminal", "Output");
    addOutputFlags(command, flags->output);
}

}  // namespace ringside
