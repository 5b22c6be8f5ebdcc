#include "calibrate/measure/sample_file.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include <sys/resource.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "calibrate/measure/machine.h"

namespace ringside {
namespace {

class SampleFileTest : public ::testing::Test {
protected:
    void SetUp() override {
        path_ = (std::filesystem::temp_directory_path() / ("ringside_samples_" + std::to_string(::getpid()) + "_" +
                                                           ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".jsonl")).string();
        std::filesystem::remove(path_);
    }
    void TearDown() override { std::filesystem::remove(path_); }

    static StoredSeries series(const std::string& key, double seconds) {
        StoredSeries s;
        s.key = key;
        s.settings = Json{{"max_seconds", 1.0}};
        s.fingerprint = "00ff";
        s.seconds = {seconds, 2 * seconds};
        s.cpuSeconds = {0, seconds};
        s.waited = 3;
        s.converged = true;
        return s;
    }
    void addText(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }
    std::string text() const {
        std::stringstream out;
        out << std::ifstream(path_).rdbuf();
        return out.str();
    }

    std::string path_;
};

TEST_F(SampleFileTest, WhatWasAppendedIsFoundAgainByKeySettingsAndFingerprint) {
    SampleFile file = SampleFile::open(path_).value();
    EXPECT_TRUE(file.series().empty());
    ASSERT_TRUE(file.append(series("gelu 4096", 1e-3)));
    ASSERT_TRUE(file.append(series("gelu 8192", 2e-3)));
    const SampleFile again = SampleFile::open(path_).value();
    ASSERT_EQ(again.series().size(), 2U);
    const StoredSeries* found = again.find("gelu 8192", Json{{"max_seconds", 1.0}}, "00ff");
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(*found, series("gelu 8192", 2e-3));
    EXPECT_EQ(again.find("gelu 8192", Json{{"max_seconds", 2.0}}, "00ff"), nullptr);
    EXPECT_EQ(again.find("gelu 8192", Json{{"max_seconds", 1.0}}, "1234"), nullptr);
    EXPECT_TRUE(again.notes().empty());
}

TEST_F(SampleFileTest, ATornLastLineIsDroppedWithANoteAndWrittenOver) {
    SampleFile file = SampleFile::open(path_).value();
    ASSERT_TRUE(file.append(series("a", 1e-3)));
    const std::string whole = text();
    addText(R"({"version":1,"key":"b","sec)");
    SampleFile torn = SampleFile::open(path_).value();
    EXPECT_EQ(torn.series().size(), 1U);
    ASSERT_EQ(torn.notes().size(), 1U);
    EXPECT_NE(torn.notes()[0].find(":2"), std::string::npos) << torn.notes()[0];
    ASSERT_TRUE(torn.append(series("c", 3e-3)));
    EXPECT_EQ(text().substr(0, whole.size()), whole);
    const SampleFile again = SampleFile::open(path_).value();
    EXPECT_EQ(again.series().size(), 2U);
    EXPECT_TRUE(again.notes().empty());
}

TEST_F(SampleFileTest, ABrokenLineInTheMiddleIsAnErrorThatNamesIt) {
    SampleFile file = SampleFile::open(path_).value();
    ASSERT_TRUE(file.append(series("a", 1e-3)));
    addText("nonsense\n");
    addText(R"({"version":1,"key":"b","seconds":[1]})" "\n");
    const auto broken = SampleFile::open(path_);
    ASSERT_FALSE(broken);
    EXPECT_NE(broken.error().toString().find(":2"), std::string::npos) << broken.error().toString();
}

TEST_F(SampleFileTest, TimesThatAreNoneAreRefusedOnBothWays) {
    SampleFile file = SampleFile::open(path_).value();
    StoredSeries bad = series("a", 1e-3);
    bad.seconds.push_back(std::numeric_limits<double>::quiet_NaN());
    EXPECT_FALSE(file.append(bad));
    addText(R"({"version":1,"key":"b","seconds":[0]})" "\n");
    addText(R"({"version":1,"key":"c","seconds":[1]})" "\n");
    const auto refused = SampleFile::open(path_);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().toString().find("seconds[0]"), std::string::npos) << refused.error().toString();
}

TEST_F(SampleFileTest, AFullDiskIsARuntimeFailureAndWhatWasThereStays) {
    SampleFile file = SampleFile::open(path_).value();
    ASSERT_TRUE(file.append(series("a", 1e-3)));
    const std::string before = text();
    // A limit on the file's size stands for the full disk: the write ends in the middle of the line.
    rlimit old{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit tight = old;
    tight.rlim_cur = before.size() + 20;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
    const auto full = file.append(series("b", 1e-3));
    setrlimit(RLIMIT_FSIZE, &old);
    std::signal(SIGXFSZ, handler);
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code, ErrorCode::RuntimeFailure);
    EXPECT_EQ(file.series().size(), 1U);
    ASSERT_TRUE(file.append(series("b", 1e-3))) << "with room again, the torn line is written over";
    EXPECT_EQ(text().substr(0, before.size()), before);
    EXPECT_EQ(SampleFile::open(path_).value().series().size(), 2U);
}

TEST_F(SampleFileTest, OnlyARegularFileIsTaken) { EXPECT_FALSE(SampleFile::open("/dev/zero")); }

TEST(Machine, TheProcessorIsFoundInCpuinfo) {
    EXPECT_EQ(cpuModelOf("processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\n"), "Some CPU @ 3 GHz");
    EXPECT_EQ(cpuModelOf("processor : 0\nCPU part : 0xd0c\n"), "0xd0c");
    EXPECT_EQ(cpuModelOf(""), "");
}

TEST(Machine, TheEnvironmentHereHasCoresAndAFingerprintThatStays) {
    const Environment a = environmentHere(1, "loopback", {{"ringside", "x"}});
    EXPECT_GE(a.cores, 1);
    EXPECT_FALSE(a.kernel.empty());
    EXPECT_EQ(a.date.size(), 10U);
    EXPECT_EQ(fingerprint(a), fingerprint(environmentHere(1, "1gbit", {{"ringside", "x"}})));
}

}  // namespace
}  // namespace ringside
