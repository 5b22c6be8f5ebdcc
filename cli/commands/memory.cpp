// ringside memory: what a step needs of device memory, by category, and whether it fits.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/commands/scenario_flags.h"
#include "cli/output/prediction_text.h"
#include "sim/prediction.h"

namespace ringside {
namespace {

struct MemoryFlags {
    ScenarioFlags scenario;
    OutputFlags output;
};

Result<int> runMemory(const MemoryFlags& flags) {
    TRY(const Catalogs catalogs, Catalogs::builtin());
    TRY(const Scenario scenario, flags.scenario.resolve(catalogs));
    PredictOptions options;
    options.sensitivity = false;
    TRY(const Prediction prediction, predict(scenario, options));
    std::string text;
    if (flags.output.wantsJson()) {
        const Json whole = toJson(scenario, prediction);
        Json json;
        json["format"] = "ringside-memory";
        json["version"] = 1;
        for (const char* key : {"scenario", "parameters", "memory", "warnings"}) json[key] = whole[key];
        text = json.dump(2) + "\n";
    } else {
        text = memoryText(scenario, prediction, flags.output.wantsColor());
    }
    TRY_VOID(writeOutput(flags.output, text));
    return prediction.verdict == MemoryVerdict::OutOfMemory ? static_cast<int>(ErrorCode::AnswerIsNo) : 0;
}

}  // namespace

void addMemory(CommandLine& line) {
    auto flags = std::make_shared<MemoryFlags>();
    Command command = line.add("memory", "device memory of a step by category, at its peak, and whether it fits", [flags] { return runMemory(*flags); });
    command.footer(
        "Examples:\n"
        "  ringside memory --model llama-2-7b --device a100-80gb-sxm --devices 8 --precision bf16-master\n"
        "  ringside memory --model gpt2-xl --device rtx-4090 --micro-batch 1 --recompute full --optimizer adam-8bit\n"
        "Exit code 1: it does not fit.");
    flags->scenario.addTo(command);
    addOutputFlags(command, flags->output);
}

}  // namespace ringside
