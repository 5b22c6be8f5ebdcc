// The form of a scenario: fields from the project's own tables, edits as a document, errors at their field.
#include "gui/scenario/scenario_form.h"

#include <atomic>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gui/scenario/latest_worker.h"
#include "gui/scenario/result_summary.h"
#include "gui/scenario/slider_scale.h"
#include "model/training/parallel_knobs.h"
#include "sim/scenario_keys.h"

namespace ringside::gui {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const Catalogs> catalogs() {
    static const auto built = std::make_shared<const Catalogs>(Catalogs::builtin().value());
    return built;
}

ScenarioForm formOf(const char* text) { return ScenarioForm(catalogs(), Json::parse(text)); }

TEST(ScenarioForm, AnEmptyDocumentIsSomethingToLookAt) {
    const ScenarioForm form(catalogs());
    EXPECT_NE(form.scenario(), nullptr);
    EXPECT_FALSE(form.error());
}

TEST(ScenarioForm, HasEveryKeyOfTheTableAndEveryKnobOfEachStrategy) {
    for (const auto& strategy : strategies()) {
        ScenarioForm form(catalogs());
        form.set("strategy.name", std::string(strategy->name()));
        std::set<std::string> paths;
        for (const FormField& field : form.fields()) EXPECT_TRUE(paths.insert(field.path).second) << field.path << " stands twice";
        for (const ScenarioKey& key : scenarioKeys()) EXPECT_TRUE(paths.contains(key.path)) << key.path;
        for (const Knob& knob : strategy->knobs()) {
            const FormField* field = form.find("strategy." + knob.key);
            ASSERT_NE(field, nullptr) << strategy->name() << " " << knob.key;
            EXPECT_EQ(field->help, knob.help);
            EXPECT_EQ(field->spec.kind, parallelKnobSpec(knob.key).kind);
        }
        for (const std::string& key : parallelKnobKeys()) {
            const auto knobs = strategy->knobs();
            const bool takes = std::any_of(knobs.begin(), knobs.end(), [&](const Knob& knob) { return knob.key == key; });
            EXPECT_EQ(form.find("strategy." + key) != nullptr, takes) << strategy->name() << " " << key;
        }
    }
}

TEST(ScenarioForm, WordsAndNamesOfferWhatResolves) {
    const ScenarioForm form(catalogs());
    EXPECT_EQ(form.find("model")->choices.size(), catalogs()->models.models().size());
    EXPECT_EQ(form.find("device")->choices.size(), catalogs()->hardware.devices().size());
    EXPECT_EQ(form.find("strategy.name")->choices.size(), strategies().size());
    EXPECT_GE(form.find("training.precision")->choices.size(), 8U);
}

TEST(ScenarioForm, AnEditIsInTheDocumentAndAResetTakesItOut) {
    ScenarioForm form = formOf(R"({"model": "gpt2", "device": "a100-80gb-sxm", "devices": 8})");
    EXPECT_EQ(form.shown("training.micro_batch"), 1);
    EXPECT_FALSE(form.isGiven("training.micro_batch"));
    form.set("training.micro_batch", 4);
    EXPECT_TRUE(form.isGiven("training.micro_batch"));
    EXPECT_EQ(form.document()["training"]["micro_batch"], 4);
    EXPECT_EQ(form.scenario()->training.microBatch, 4);
    form.reset("training.micro_batch");
    EXPECT_FALSE(form.document().contains("training"));
    EXPECT_EQ(form.scenario()->training.microBatch, 1);
}

TEST(ScenarioForm, ShowsWhatAppliesWhereTheDocumentIsSilent) {
    const ScenarioForm form = formOf(R"({"model": "gpt2", "device": "a100-80gb-sxm", "devices": 16})");
    EXPECT_EQ(form.shown("training.seq_len"), 1024);
    EXPECT_EQ(form.shown("strategy.name"), "ddp");
    EXPECT_EQ(form.shown("devices_per_node"), 8);
    EXPECT_EQ(form.shown("training.precision"), "bf16-autocast");
    EXPECT_TRUE(form.shown("cluster").is_null());
}

TEST(ScenarioForm, AnErrorStandsAtItsField) {
    ScenarioForm form(catalogs());
    form.set("training.micro_batch", -3);
    ASSERT_TRUE(form.error());
    EXPECT_EQ(form.error()->path, "training.micro_batch");
    form.set("training.micro_batch", 2);
    EXPECT_FALSE(form.error());
    form.set("device", "a100-80gb-sxn");
    ASSERT_TRUE(form.error());
    EXPECT_EQ(form.error()->path, "device");
    EXPECT_THAT(form.error()->message, HasSubstr("a100-80gb-sxm"));
    form.set("device", "a100-80gb-sxm");
    form.set("strategy.tp", 3);
    ASSERT_TRUE(form.error());
    EXPECT_TRUE(form.error()->path.starts_with("strategy.")) << form.error()->path;
    form.reset("strategy.tp");
    form.set("model", "gpt-no");
    EXPECT_EQ(form.error()->path, "model");
}

TEST(ScenarioForm, AnErrorOfTheSimulatorStandsAtItsFieldToo) {
    const ScenarioForm form(catalogs());
    EXPECT_EQ(form.located({ErrorCode::BadInput, "too many", "training.grad_accum"}).path, "training.grad_accum");
    EXPECT_EQ(form.located({ErrorCode::BadInput, "no", "perturbation.stragglers[0].rank"}).path, "perturbation.stragglers");
    EXPECT_EQ(form.located({ErrorCode::BadInput, "no", "--devices-per-node"}).path, "devices_per_node");
    const FormError elsewhere = form.located({ErrorCode::BadInput, "odd", "nccl"});
    EXPECT_EQ(elsewhere.path, "");
    EXPECT_EQ(elsewhere.message, "nccl: odd");
}

TEST(ScenarioForm, AnotherStrategyKeepsOnlyTheSettingsThatItHas) {
    ScenarioForm form = formOf(R"({"model": "gpt2", "device": "a100-80gb-sxm", "devices": 8, "strategy": {"name": "ddp", "bucket_mb": 50, "tp": 2}})");
    form.set("strategy.name", "zero3");
    EXPECT_FALSE(form.error()) << form.error()->message;
    EXPECT_FALSE(form.isGiven("strategy.bucket_mb"));
    EXPECT_EQ(form.find("strategy.bucket_mb"), nullptr);
    EXPECT_NE(form.find("strategy.prefetch_bucket_size"), nullptr);
}

TEST(ScenarioForm, AClusterGivesWayToAnotherDeviceCount) {
    const std::string cluster = catalogs()->hardware.clusters().front().name;
    ScenarioForm form(catalogs(), Json{{"model", "gpt2"}, {"cluster", cluster}});
    ASSERT_FALSE(form.error()) << form.error()->message;
    form.set("devices", 8);
    ASSERT_FALSE(form.error()) << form.error()->message;
    EXPECT_EQ(form.scenario()->cluster.deviceCount(), 8);
    form.set("device", "h100-sxm");
    ASSERT_FALSE(form.error()) << form.error()->message;
    EXPECT_EQ(form.scenario()->cluster.nodes.front().kind.device.name, "h100-sxm");
    form.set("cluster", cluster);
    ASSERT_FALSE(form.error()) << form.error()->message;
    EXPECT_FALSE(form.isGiven("device"));
}

TEST(ScenarioForm, AResultCountsAsTheScenarioThatItAnswers) {
    ScenarioForm form(catalogs());
    const Json inner = {{"model", "gpt2-xl"}, {"device", "h100-sxm"}, {"devices", 4}};
    ASSERT_TRUE(form.setDocument({{"format", "ringside-result"}, {"scenario", inner}}));
    EXPECT_EQ(form.document(), inner);
    EXPECT_FALSE(form.setDocument({{"format", "ringside-profile"}}));
    EXPECT_FALSE(form.setDocument(Json::array()));
    EXPECT_EQ(form.document(), inner) << "a refused document changes nothing";
}

TEST(FieldText, IsReadAsTheKindAsks) {
    EXPECT_EQ(valueOfText({ValueKind::Name}, " 8b "), "8b");
    EXPECT_TRUE(valueOfText({ValueKind::Name}, "  ").is_null());
    EXPECT_EQ(valueOfText({ValueKind::List}, "1, 2,3"), (Json{1, 2, 3}));
    EXPECT_EQ(valueOfText({ValueKind::List}, "model.layers.0"), Json::array({"model.layers.0"}));
    EXPECT_EQ(valueOfText({ValueKind::List}, R"([{"rank": 1}])").front()["rank"], 1);
    EXPECT_EQ(textOfValue(0.25), "0.25");
    EXPECT_EQ(textOfValue(nullptr), "");
}

TEST(SliderScale, WholeNumbersGoByPowersOfTwoAndReachBothEnds) {
    const SliderScale scale({ValueKind::Whole, 1, 1024}, 1);
    EXPECT_EQ(scale.steps(), 6);  // 1, 2, 4, …, 64
    for (int i = 0; i <= scale.steps(); ++i) {
        EXPECT_EQ(scale.valueAt(i), std::exp2(i));
        EXPECT_EQ(scale.positionOf(scale.valueAt(i)), i);
    }
    EXPECT_EQ(scale.positionOf(1e6), 6);
}

TEST(SliderScale, AFactorStandsInTheMiddleAndZeroAtTheLeft) {
    const SliderScale factor({ValueKind::Number, 0.01, 1000}, 1);
    EXPECT_NEAR(factor.valueAt(factor.steps() / 2), 1, 1e-9);
    const SliderScale added({ValueKind::Number, 0, 1e6}, 1);
    EXPECT_EQ(added.valueAt(0), 0);
    EXPECT_EQ(added.positionOf(0), 0);
    const SliderScale share({ValueKind::Number, 0, 1}, 0);
    EXPECT_EQ(share.steps(), 100);
    EXPECT_NEAR(share.valueAt(25), 0.25, 1e-12);
}

TEST(LatestWorker, NeverLooksAtQuestionsThatANewerOneOvertook) {
    std::mutex gate;
    std::vector<int> seen;
    std::atomic<int> answers = 0;
    std::uint64_t last = 0;
    std::unique_lock closed(gate);
    {
        LatestWorker<int, int> worker([&](int question) {
            const std::lock_guard wait(gate);
            seen.push_back(question);
            return question;
        }, [&](std::uint64_t ticket, int answer) {
            EXPECT_GT(ticket, last);
            last = ticket;
            ++answers;
            if (answer == 100) {
                EXPECT_EQ(ticket, 101U);
            }
        });
        worker.ask(0);
        while (worker.idle()) std::this_thread::yield();
        for (int i = 1; i <= 100; ++i) worker.ask(i);
        closed.unlock();
        while (!worker.idle()) std::this_thread::yield();
    }
    // The first may or may not have been taken before the second came; of the rest only the last is looked at.
    EXPECT_LE(seen.size(), 2U);
    EXPECT_EQ(seen.back(), 100);
    EXPECT_EQ(static_cast<std::size_t>(answers.load()), seen.size());
}

TEST(LatestWorker, EndsWithoutAnAnswerWhenItIsDestroyedAtWork) {
    std::atomic<bool> begun = false, answered = false;
    {
        LatestWorker<int, int> worker([&](int) {
            begun = true;
            for (int i = 0; i < 1000; ++i) std::this_thread::yield();
            return 0;
        }, [&](std::uint64_t, int) { answered = true; });
        worker.ask(1);
        while (!begun) std::this_thread::yield();
        if (answered) GTEST_SKIP() << "the work was done before it could be interrupted";
    }
    SUCCEED();
}

TEST(ResultSummary, PartsOfMemorySumToWhatTheDeviceShows) {
    const ScenarioForm form = formOf(R"({"model": "gpt2-xl", "device": "a100-80gb-sxm", "devices": 16, "training": {"micro_batch": 4}})");
    const Result<Prediction> prediction = predict(*form.scenario());
    ASSERT_TRUE(prediction);
    const ResultSummary summary = summaryOf(*form.scenario(), *prediction);
    Bytes sum = 0;
    for (const MemoryPart& part : summary.memory) sum += part.bytes;
    EXPECT_EQ(sum, summary.memoryUsed);
    EXPECT_THAT(summary.memoryText, HasSubstr("fits"));
    EXPECT_THAT(summary.throughput, HasSubstr("tokens/s"));
}

TEST(ResultSummary, ChangesAreSaidWithTheirSign) {
    EXPECT_EQ(changeText(1.0, 0.876), "−12.4 %");
    EXPECT_EQ(changeText(1.0, 1.031), "+3.1 %");
    EXPECT_EQ(changeText(1.0, 1.0004), "no change");
}

}  // namespace
}  // namespace ringside::gui
