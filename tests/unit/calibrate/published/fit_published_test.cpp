// The fit of profiles to published measurements: what it recovers, what it leaves alone, and what the program ships.
#include "calibrate/published/fit_published.h"

#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/published/fit_stage.h"

namespace ringside {
namespace {

const Catalogs& catalogs() {
    static const Catalogs all = Catalogs::builtin().value();
    return all;
}

Json runOf(const std::string& id, const std::string& repo, const char* gpu, int gpus, int micro, const char* precision) {
    return Json{{"id", id}, {"source", {{"repo", repo}}}, {"hardware", {{"gpu", gpu}, {"n_gpus", gpus}}}, {"measured", {{"step_time_s", 1}}},
                {"model", {{"name", "gpt"}, {"layers", 12}, {"hidden", 2048}, {"heads", 16}, {"vocab", 50304}, {"seq_len", 1024}}},
                {"strategy", {{"kind", gpus > 1 ? "ddp" : "single"}, {"micro_batch", micro}, {"grad_accum", 1}, {"precision", precision}, {"act_ckpt", "none"}}}};
}

/// Runs that were measured by the model itself, with other figures.
std::vector<PublishedRecord> madeRecords(const PublishedFigures& truth) {
    Json list = Json::array();
    for (const char* repo : {"a/one", "b/two", "c/three"})
        for (const char* gpu : {"A100-80GB-SXM", "H100"})
            for (const int gpus : {1, 8})
                for (const int micro : {2, 8}) list.push_back(runOf(fmt::format("{}-{}-{}-{}", repo, gpu, gpus, micro), repo, gpu, gpus, micro, "bf16"));
    std::vector<PublishedRecord> records = recordsFromJson(list, "made").value();
    for (PublishedRecord& record : records) {
        const MappedRecord mapped = toScenario(record, catalogs()).value();
        record.speed.stepSeconds = predictRun(mapped.scenario, truth)->stepSeconds;
    }
    return records;
}

const PublishedFigure* find(const PublishedFigures& figures, const std::string& key, const std::string& scope) {
    for (const PublishedFigure& one : figures.figures)
        if (one.key == key && one.scope == scope) return &one;
    return nullptr;
}

PublishedFit fitOf(const std::vector<PublishedRecord>& records) {
    auto fit = fitPublished(records, catalogs());
    EXPECT_TRUE(fit) << fit.error().toString();
    return std::move(*fit);
}

TEST(FitPublished, RecoversTheClocksThatMadeItsData) {
    PublishedFigures truth;
    truth.figures = {{"sustained_clock", "ampere", {0.90, 0, Provenance::Published, ""}, 0}, {"sustained_clock", "hopper", {0.80, 0, Provenance::Published, ""}, 0}};
    const PublishedFit fit = fitOf(madeRecords(truth));
    ASSERT_TRUE(find(fit.figures, "sustained_clock", "ampere") && find(fit.figures, "sustained_clock", "hopper"));
    const auto distance = [&](const char* scope, double made) { return std::abs(std::log(find(fit.figures, "sustained_clock", scope)->figure.value / made)); };
    EXPECT_LT(distance("ampere", 0.90), 2 * find(fit.figures, "sustained_clock", "ampere")->figure.relativeSpread);
    EXPECT_LT(distance("hopper", 0.80), 2 * find(fit.figures, "sustained_clock", "hopper")->figure.relativeSpread);
    EXPECT_FALSE(find(fit.figures, "sustained_clock", "volta")) << "no row of that generation";
    EXPECT_EQ(find(fit.figures, "sustained_clock", "ampere")->figure.source, "fit to training runs: a/one, b/two, c/three");
}

TEST(FitPublished, JudgesEveryRowWithFiguresThatHaveNotSeenItsSource) {
    PublishedFigures truth;
    truth.figures = {{"sustained_clock", "ampere", {0.80, 0, Provenance::Published, ""}, 0}};
    std::vector<PublishedRecord> records = madeRecords(truth);
    for (PublishedRecord& record : records)
        if (record.repository == "a/one") *record.speed.stepSeconds *= 2;  // a source that is slow for reasons of its own
    const PublishedFit fit = fitOf(records);
    ASSERT_EQ(fit.folds.size(), 3U) << "one for each source";
    for (const JudgedRow& row : fit.verdict.rows) {
        ASSERT_TRUE(row.heldOut) << row.id;
        // In sample the slow source pulls the figures its way; held out it cannot.
        if (row.repository == "a/one") {
            EXPECT_LE(row.heldOut->error(), row.error() + 1e-3) << row.id;
        }
    }
}

TEST(Folds, KeepRecordsOfOneRepositoryTogetherInAtMostFive) {
    std::vector<PublishedRecord> records;
    for (int r = 0; r < 9; ++r)
        for (int i = 0; i <= r; ++i) {
            records.emplace_back();
            records.back().repository = fmt::format("owner/{}", r);
        }
    const std::vector<Fold> folds = dealFolds(records);
    ASSERT_EQ(folds.size(), 5U);
    std::set<std::string> seen;
    for (const Fold& fold : folds)
        for (const std::string& name : fold.heldOut) EXPECT_TRUE(seen.insert(name).second) << name;
    EXPECT_EQ(seen.size(), 9U);
    EXPECT_EQ(folds.front().heldOut, std::vector<std::string>{"owner/8"});  // 9 records; 45 over five folds
}

// 10 errors of 1 … 10 %: four fifths lie within 8 %, which is 1.2816 standard deviations.
TEST(CoveringSpread, CoversFourFifths) {
    std::vector<double> errors;
    for (int i = 1; i <= 10; ++i) errors.push_back((i % 2 ? 1 : -1) * 0.01 * i);
    const std::vector<std::string> sources(10, "a/b");
    EXPECT_NEAR(coveringSpread(errors, std::vector<double>(10, 0.0), sources), 0.08 / 1.2816, 1e-4);
    EXPECT_NEAR(coveringSpread(errors, std::vector<double>(10, 0.05), sources), std::sqrt(std::pow(0.08 / 1.2816, 2) - 0.0025), 1e-4);
    EXPECT_EQ(coveringSpread(errors, std::vector<double>(10, 0.2), sources), 0);
}

// Nine rows of one source within 1 %, one of another at 10 %. Alike, nine of ten are enough. By roots of numbers the first weigh three, the second one: three
// of four are too few.
TEST(CoveringSpread, LetsRowsWeighAlikeUnlessTheirSourcesAreGiven) {
    std::vector<double> errors(9, 0.01);
    errors.push_back(0.1);
    std::vector<std::string> sources(9, "a/b");
    sources.push_back("c/d");
    const std::vector<double> spreads(10, 0.0);
    EXPECT_NEAR(coveringSpread(errors, spreads, {}), 0.01 / 1.2816, 1e-4);
    EXPECT_NEAR(coveringSpread(errors, spreads, sources), 0.1 / 1.2816, 1e-4);
}

TEST(FitTable, NamesFiguresOfAProfileWithAPositivePriorInItsBounds) {
    const Profile profile = datasheetProfile(catalogs().hardware.findDevice("h100-sxm").value(), PublishedFigures{});
    for (const FitParameter& parameter : fitParameters()) {
        const Figure* figure = findProfileFigure(profile, parameter.key);
        ASSERT_TRUE(figure) << parameter.key;
        EXPECT_GE(figure->value, parameter.min) << parameter.key;
        EXPECT_LE(figure->value, parameter.max) << parameter.key;
        EXPECT_GT(parameter.min, 0) << parameter.key;
        EXPECT_NE(parameter.meaning, "") << parameter.key;
    }
}

std::vector<PublishedRecord> publishedRecords() {
    std::vector<PublishedRecord> records;
    const auto files = ownRecordFiles(true);
    EXPECT_TRUE(files) << files.error().toString();
    for (const std::string& file : *files) {
        auto read = readRecords(file);
        EXPECT_TRUE(read) << read.error().toString();
        for (PublishedRecord& record : *read) records.push_back(std::move(record));
    }
    return records;
}

// Twelve blocks in four stages of three chunks, two replicas: 4 or 2,048 micro-batches, so 48 or 24,576 passes of a block.
TEST(FitRows, LeaveOutInterleavedPipelinesOfThousandsOfPasses) {
    Json list = Json::array();
    for (const int batch : {8, 4096}) {
        Json run = runOf(fmt::format("batch-{}", batch), "a/one", "A100-80GB-SXM", 8, 1, "bf16");
        run["strategy"] = {{"kind", "zero1 (Megatron distributed optimizer)"}, {"pp", 4}, {"vp", 3}, {"micro_batch", 1}, {"global_batch", batch}, {"precision", "bf16"}, {"act_ckpt", "none"}};
        run["measured"]["step_time_s"] = batch;
        list.push_back(run);
    }
    const std::vector<PublishedRecord> records = recordsFromJson(list, "made").value();
    const std::vector<PublishedRun> runs = prepareRuns(records, catalogs());
    for (const PublishedRun& run : runs) EXPECT_EQ(run.reason, "");
    const std::vector<FitRow> rows = fitRows(records, runs, catalogs(), 120);
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].id, "batch-8");
}

TEST(ShippedFigures, AreFewBesideTheRunsThatTheyPredict) {
    std::size_t runs = 0;
    for (const PublishedRecord& record : publishedRecords()) runs += record.kind == RecordKind::Training ? 1 : 0;
    EXPECT_LT(20 * shippedFigures().figures.size(), runs);
}

// One more Gauss–Newton round from where the committed figures stand leaves them where they are.
TEST(ShippedFigures, AreWhatAFitThatStartsThereLeavesNearlyUnchanged) {
    ASSERT_FALSE(shippedFolds().empty()) << "a fit is part of the catalogue: make fit";
    const std::vector<PublishedRecord> records = publishedRecords();
    const std::vector<PublishedRun> runs = prepareRuns(records, catalogs());
    const std::vector<FitRow> rows = fitRows(records, runs, catalogs(), PublishedFitOptions().mostPerSource);
    for (const FitRows kind : {FitRows::Kernels, FitRows::Training, FitRows::Memory}) {
        FitStage stage(kind, rows, 0);
        const std::vector<PublishedFigure> again = stage.solve(shippedFigures(), [](const FitRow&) { return true; }, 1, &shippedFigures());
        for (const PublishedFigure& one : again) {
            const PublishedFigure* shipped = find(shippedFigures(), one.key, one.scope);
            ASSERT_TRUE(shipped) << one.key << " of " << one.scope << " is not in model/catalog/published/figures.json; run ringside calibrate --from-published";
            const double tolerance = std::max(0.03, 0.5 * shipped->figure.relativeSpread);
            EXPECT_NEAR(std::log(one.figure.value / shipped->figure.value), 0, tolerance) << one.key << " of " << one.scope;
        }
    }
}

TEST(ShippedFigures, SaySomethingOfPeaksOfMemory) {
    const PublishedFigure* spread = find(shippedFigures(), "model_spread_memory", "all");
    ASSERT_TRUE(spread);
    EXPECT_LT(spread->figure.value, 0.15);
}

TEST(ShippedFolds, HoldEverySourceOutOnce) {
    ASSERT_FALSE(shippedFolds().empty()) << "a fit is part of the catalogue: make fit";
    std::set<std::string> sources, held;
    for (const PublishedRecord& record : publishedRecords()) sources.insert(record.repository);
    for (const Fold& fold : shippedFolds())
        for (const std::string& name : fold.heldOut) EXPECT_TRUE(held.insert(name).second) << name << " is held out twice";
    EXPECT_EQ(sources, held);
    EXPECT_LE(shippedFolds().size(), 5U);
}

}  // namespace
}  // namespace ringside
