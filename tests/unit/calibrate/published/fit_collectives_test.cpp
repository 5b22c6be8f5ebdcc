#include "calibrate/published/fit_collectives.h"

#include <gtest/gtest.h>

#include "calibrate/published/collective_rows.h"

namespace ringside {
namespace {

std::vector<Json> publishedTables() {
    const auto document = readJsonFile(RINGSIDE_SOURCE_DIR "/tests/data/published/collectives.json");
    if (!document) ADD_FAILURE() << document.error().toString();
    return {document->begin(), document->end()};
}

Json tableOf(const std::string& source, const std::string& gpu, const std::string& op, std::int64_t ranks) {
    Json record;
    record["id"] = source + gpu + op;
    record["source"]["repo"] = source;
    record["gpu"] = gpu;
    record["fabric"] = "NVLink";
    record["op"] = op;
    record["n_ranks"] = ranks;
    record["table"] = Json::array();
    return record;
}

/// The record with the times that the model has with these constants.
Json measuredWith(Json record, const CollectiveConstantValues& values) {
    const CollectiveCase one = collectiveCase(record).value();
    Profile profile;
    setCollectiveFigures(profile, one.cluster.nodes[0].kind.device, values);
    CollectiveOptions options = one.options;
    options.nccl.achieved = ncclAchieved(profile);
    const auto model = CollectiveModel::create(one.cluster, one.shape, CollectiveBackend::Nccl, options).value();
    for (Bytes bytes = 16 * kKiB; bytes <= 8 * kGiB; bytes *= 2) record["table"].push_back({bytes, model.cost(one.op, bytes).seconds * 1e6});
    return record;
}

std::vector<Json> madeTables(const CollectiveConstantValues& values) {
    std::vector<Json> records;
    for (const char* gpu : {"A100-SXM4-80GB", "H100", "B200"})
        for (const std::int64_t ranks : {2, 4, 8})
            for (const char* op : {"all_reduce", "all_gather", "alltoall"}) records.push_back(measuredWith(tableOf("made/by-the-model", gpu, op, ranks), values));
    return records;
}

double valueOf(const CollectiveFit& fit, CollectiveConstant constant) { return fit.constants[static_cast<std::size_t>(constant)].value; }

TEST(FitCollectives, RecoversTheConstantsThatMadeItsData) {
    CollectiveConstantValues truth = shippedCollectiveConstants();
    const auto set = [&](CollectiveConstant c, double value) { truth[static_cast<std::size_t>(c)] = value; };
    set(CollectiveConstant::CallUs, 24);
    set(CollectiveConstant::LinkAmpere, 0.8);
    set(CollectiveConstant::LinkHopper, 0.9);
    set(CollectiveConstant::RampUs, 5);
    const auto fit = fitCollectives(madeTables(truth));
    ASSERT_TRUE(fit.has_value());
    for (const auto constant : {CollectiveConstant::CallUs, CollectiveConstant::LinkAmpere, CollectiveConstant::LinkHopper, CollectiveConstant::LinkBlackwell,
                                CollectiveConstant::RampUs, CollectiveConstant::NvlsHopper, CollectiveConstant::SmallPart}) {
        const double made = truth[static_cast<std::size_t>(constant)];
        EXPECT_NEAR(valueOf(*fit, constant), made, 0.05 * made) << collectiveConstants()[static_cast<std::size_t>(constant)].key;
    }
}

TEST(FitCollectives, LeavesAConstantThatNoTableTellsAboutNeutral) {
    const auto fit = fitCollectives(madeTables(shippedCollectiveConstants())).value();
    const FittedConstant& rccl = fit.constants[static_cast<std::size_t>(CollectiveConstant::RcclCallUs)];
    EXPECT_EQ(rccl.tables, 0);
    EXPECT_EQ(rccl.value, collectiveConstants()[static_cast<std::size_t>(CollectiveConstant::RcclCallUs)].neutral);
}

TEST(FitCollectives, RefusesRecordsOfWhichNoneCanBeUsed) {
    const auto fit = fitCollectives({tableOf("a/b", "abacus", "all_reduce", 8)});
    ASSERT_FALSE(fit.has_value());
    EXPECT_NE(fit.error().message.find("none of the tables can be used"), std::string::npos);
}

TEST(FitCollectives, PassesOverFlaggedRecords) {
    std::vector<Json> records = madeTables(shippedCollectiveConstants());
    const auto tables = static_cast<std::int64_t>(records.size());
    records.push_back(records.front());
    records.back()["flag"] = "typo";
    EXPECT_EQ(fitCollectives(records)->tables, tables);
}

// What the program ships is what the fit says: within a tenth of the spread plus the three digits that are written down.
TEST(FitCollectives, OnThePublishedTablesGivesTheShippedConstants) {
    const auto fit = fitCollectives(publishedTables());
    ASSERT_TRUE(fit.has_value());
    for (std::size_t c = 0; c < kCollectiveConstants; ++c) {
        const CollectiveConstantInfo shipped = collectiveConstants()[c];
        EXPECT_NEAR(fit->constants[c].value, shipped.value, (0.1 * shipped.relativeSpread + 0.005) * shipped.value) << shipped.key;
        EXPECT_NEAR(fit->constants[c].relativeSpread, shipped.relativeSpread, 0.5 * shipped.relativeSpread + 0.02) << shipped.key;
        EXPECT_GT(fit->constants[c].tables, 0) << shipped.key;
    }
    EXPECT_GT(fit->rows, 100 * static_cast<std::int64_t>(kCollectiveConstants)) << "a constant per hundred rows at most";
    EXPECT_GT(fit->tables, 4 * static_cast<std::int64_t>(kCollectiveConstants));
}

// Per row, of which vTrain has nine in ten; table by table the error is 13 %, which openxla/xla's devices, seen nowhere else, account for.
TEST(FitCollectives, PredictsSourcesItHasNotSeenWithinATenthFromOneMebibyteOn) {
    const auto folds = crossValidateCollectives(publishedTables());
    ASSERT_TRUE(folds.has_value());
    ASSERT_EQ(folds->size(), 4u) << "one fold per source, as there are fewer than five";
    double errors = 0, byTable = 0;
    std::int64_t rows = 0, tables = 0;
    for (const HeldOutCollectives& fold : *folds) {
        errors += fold.mapeLarge * static_cast<double>(fold.rowsLarge);
        rows += fold.rowsLarge;
        byTable += fold.mapeLargeByTable * static_cast<double>(fold.tables);
        tables += fold.tables;
        EXPECT_LT(fold.mapeLarge, 0.20) << fold.sources;
    }
    EXPECT_LT(errors / static_cast<double>(rows), 0.10);
    EXPECT_LT(byTable / static_cast<double>(tables), 0.14);
}

TEST(JudgeCollectives, ShippedConstantsBeatTheTunerOnThePublishedTables) {
    const auto records = publishedTables();
    const auto shipped = judgeCollectives(records, shippedCollectiveConstants()).value();
    EXPECT_LT(shipped.mapeLarge, 0.05);
    EXPECT_LT(shipped.mapeSmall, 0.30);
}

}  // namespace
}  // namespace ringside
