// ringside compare: two scenarios or results side by side, and where the difference comes from; or two profiles of one machine.
#include <fmt/format.h>

#include "calibrate/fit/profile_agreement.h"
#include "cli/command.h"
#include "cli/output/agreement_text.h"
#include "cli/output/comparison_text.h"
#include "sim/prediction.h"
#include "sim/study/scenario_patch.h"

namespace ringside {
namespace {

struct CompareFlags {
    std::string a, b;
    std::vector<std::string> setA, setB;
    OutputFlags output;
};

/// The document with the changes of --set-a or --set-b; a result gives its scenario.
Result<Json> changed(Json document, const std::vector<std::string>& assignments, const std::string& flag) {
    if (document.contains("format") && document["format"] == "ringside-result") {
        Json scenario = document.value("scenario", Json::object());
        document = std::move(scenario);
    }
    std::vector<std::string> paths;
    for (const std::string& assignment : assignments) {
        const std::string key = assignment.substr(0, assignment.find('='));
        if (assignment.find('=') == std::string::npos || key.empty())
            return failure(ErrorCode::Usage, flag, fmt::format("expected key=value, found '{}'", assignment));
        const auto path = scenarioPath(key);
        if (!path) return failure(path.error().code, flag, path.error().message);
        paths.push_back(*path);
    }
    makeRoomFor(document, paths);
    for (std::size_t i = 0; i < paths.size(); ++i) {  // the strategy first: its settings go over it
        const std::string value = assignments[i].substr(assignments[i].find('=') + 1);
        if (paths[i] == "strategy.name") setStrategy(document, value);
    }
    for (std::size_t i = 0; i < paths.size(); ++i) {
        if (paths[i] == "strategy.name") continue;
        const auto set = setScenarioKey(document, paths[i] + assignments[i].substr(assignments[i].find('=')));
        if (!set) return failure(set.error().code, flag, set.error().message);
    }
    return document;
}

/// A result that nothing is changed in stands as it was written; everything else is predicted now.
Result<Json> resultOf(const Json& document, const std::string& source, const std::vector<std::string>& assignments, const std::string& flag,
                      const Catalogs& catalogs) {
    if (!document.is_object()) return badInput(source, "expected a JSON object (a scenario or a result)");
    const bool isResult = document.contains("format") && document["format"] == "ringside-result";
    if (isResult && assignments.empty()) return document;
    TRY(const Json scenarioDocument, changed(document, assignments, flag));
    TRY(const Scenario scenario, resolveScenario(scenarioDocument, source, catalogs));
    PredictOptions options;
    options.sensitivity = false;
    TRY(const Prediction prediction, predict(scenario, options));
    return toJson(scenario, prediction);
}

bool isProfile(const Json& document) { return document.is_object() && document.value("format", "") == "ringside-profile"; }

/// Exit code 1: they do not agree.
Result<int> compareTwoProfiles(const CompareFlags& flags, const Json& documentA, const std::string& sourceA, const Json& documentB, const std::string& sourceB) {
    if (!flags.setA.empty() || !flags.setB.empty())
        return failure(ErrorCode::Usage, flags.setA.empty() ? "--set-b" : "--set-a", "is for scenarios; profiles are compared as they were measured");
    for (const auto& [document, source] : {std::pair{&documentA, &sourceA}, {&documentB, &sourceB}})
        if (!isProfile(*document)) return badInput(*source, "is no profile, but the other one is; compare two profiles (of calibrate), or two scenarios or results");
    TRY(const Profile a, profileFromJson(JsonCursor(documentA, sourceA)));
    TRY(const Profile b, profileFromJson(JsonCursor(documentB, sourceB)));
    const ProfileAgreement agreement = compareProfiles(a, b);
    TRY_VOID(writeOutput(flags.output, flags.output.wantsJson() ? toJson(agreement).dump(2) + "\n" : agreementText(agreement, sourceA, sourceB)));
    return agreement.agree() ? 0 : 1;
}

Result<int> runCompare(const CompareFlags& flags) {
    if (flags.a.empty()) return failure(ErrorCode::Usage, "", "nothing to compare; give two scenarios, results or profiles, or one scenario and --set-b key=value");
    if (flags.b.empty() && flags.setB.empty())
        return failure(ErrorCode::Usage, "", "only one scenario is given; give a second file, or say with --set-b key=value what is different");
    if (flags.a == "-" && flags.b == "-") return failure(ErrorCode::Usage, "", "only one of the two can be standard input");
    TRY(const Catalogs catalogs, Catalogs::builtin());
    TRY(const Json documentA, readJsonFile(flags.a));
    Json documentB = documentA;
    if (!flags.b.empty()) {
        TRY(documentB, readJsonFile(flags.b));
    }
    const auto nameOf = [](const std::string& file) { return file == "-" ? std::string("standard input") : file; };
    const std::string sourceA = nameOf(flags.a), sourceB = flags.b.empty() ? sourceA + " with --set-b" : nameOf(flags.b);
    if (isProfile(documentA) || isProfile(documentB)) return compareTwoProfiles(flags, documentA, sourceA, documentB, sourceB);
    TRY(const Json a, resultOf(documentA, sourceA, flags.setA, "--set-a", catalogs));
    TRY(const Json b, resultOf(documentB, sourceB, flags.setB, "--set-b", catalogs));
    TRY(const Comparison comparison, compareResults(a, sourceA, b, sourceB));
    TRY_VOID(writeOutput(flags.output, flags.output.wantsJson() ? toJson(comparison).dump(2) + "\n"
                                                                : comparisonText(comparison, sourceA, sourceB, flags.output.wantsColor())));
    return 0;
}

}  // namespace

void addCompare(CommandLine& line) {
    auto flags = std::make_shared<CompareFlags>();
    Command command =
        line.add("compare", "two scenarios or results side by side, and where the difference comes from; or two calibrations of one machine", [flags] { return runCompare(*flags); });
    command.footer(
        "Examples:\n"
        "  ringside compare scenario.json --set-b network=ethernet-100g --set-b devices=16\n"
        "  ringside predict scenario.json --bucket-mb 100 --json | ringside compare scenario.json -\n"
        "A result (of predict --json) is taken as it stands; a scenario, or a result with changes, is predicted.\n"
        "Of two profiles (of calibrate: ringside compare here.json again.json) it says whether they agree within the spreads that they state; exit code 1: they do not.");
    command.option("a", flags->a, "scenario, result or profile (JSON)", "A", "");
    command.option("b", flags->b, "the other one ('-': standard input; default: A with the changes of --set-b)", "B", "");
    command.repeated("--set-a", flags->setA, "change a key of A's scenario first (may be repeated)", "KEY=VALUE", "Scenario");
    command.repeated("--set-b", flags->setB, "change a key of B's scenario first (may be repeated)", "KEY=VALUE", "Scenario");
    addOutputFlags(command, flags->output);
}

}  // namespace ringside
