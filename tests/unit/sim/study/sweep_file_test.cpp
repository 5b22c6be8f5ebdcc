// SweepFile: what is on disk after any end, and what the next run makes of it.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/study/sweep_file.h"

namespace ringside {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

const std::string kHeader = "{\"format\":\"ringside-sweep\",\"grid\":\"1\"}\n";
const std::string kRows[] = {"{\"index\":0,\"x\":1}\n", "{\"index\":1,\"x\":2}\n", "{\"index\":2,\"x\":3}\n"};

class SweepFileTest : public ::testing::Test {
protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "ringside-sweep-XXXXXX").string();
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        dir_ = name;
        path_ = dir_ / "rows.jsonl";
    }
    void TearDown() override { fs::remove_all(dir_); }

    void put(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
    std::string content() const {
        std::ifstream file(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    Result<SweepFile> open(bool overwrite = false) const { return SweepFile::open(path_.string(), kHeader, 3, overwrite); }
    std::string refusal() const {
        const auto file = open();
        return file ? "accepted" : file.error().toString();
    }

    fs::path dir_, path_;
};

TEST_F(SweepFileTest, BeginsWithTheHeaderAndThenHoldsTheRows) {
    {
        auto file = open();
        ASSERT_TRUE(file) << file.error().toString();
        EXPECT_EQ(file->rows(), 0U);
        EXPECT_EQ(content(), kHeader);  // at once: a kill before the first row leaves a file that goes on
        ASSERT_TRUE(file->append(kRows[0] + kRows[1], 2));
        ASSERT_TRUE(file->flush());
    }
    EXPECT_EQ(content(), kHeader + kRows[0] + kRows[1]);
}

TEST_F(SweepFileTest, GoesOnAfterTheLastWholeRow) {
    put(kHeader + kRows[0]);
    auto file = open();
    ASSERT_TRUE(file) << file.error().toString();
    EXPECT_EQ(file->rows(), 1U);
    ASSERT_TRUE(file->append(kRows[1], 1));
    ASSERT_TRUE(file->flush());
    EXPECT_EQ(content(), kHeader + kRows[0] + kRows[1]);
}

TEST_F(SweepFileTest, DropsATornLineWhereverItWasCut) {
    const std::string whole = kHeader + kRows[0] + kRows[1];
    for (std::size_t length = 0; length <= whole.size(); ++length) {
        put(whole.substr(0, length));
        const auto file = open();
        ASSERT_TRUE(file) << "cut at " << length << ": " << file.error().toString();
        const std::size_t rows = length == whole.size() ? 2 : length >= kHeader.size() + kRows[0].size() ? 1 : 0;
        EXPECT_EQ(file->rows(), rows) << "cut at " << length;
        EXPECT_EQ(content(), whole.substr(0, kHeader.size() + (rows > 0 ? kRows[0].size() : 0) + (rows > 1 ? kRows[1].size() : 0)));
    }
}

TEST_F(SweepFileTest, RefusesAnotherGridAndLeavesItAlone) {
    const std::string other = "{\"format\":\"ringside-sweep\",\"grid\":\"2\"}\n" + kRows[0];
    put(other);
    EXPECT_THAT(refusal(), HasSubstr("another grid"));
    EXPECT_THAT(refusal(), HasSubstr("--overwrite"));
    EXPECT_EQ(content(), other);
    const auto file = open(true);
    ASSERT_TRUE(file);
    EXPECT_EQ(content(), kHeader);
}

TEST_F(SweepFileTest, RefusesAFileThatIsNoSweep) {
    put("my thesis\n");
    EXPECT_THAT(refusal(), HasSubstr("not the file of a sweep"));
    EXPECT_EQ(content(), "my thesis\n");
}

TEST_F(SweepFileTest, RefusesRowsThatAreDoubledMissingOrTooMany) {
    put(kHeader + kRows[0] + kRows[0]);
    EXPECT_THAT(refusal(), HasSubstr("something else has changed the file"));
    put(kHeader + kRows[1]);
    EXPECT_THAT(refusal(), HasSubstr("something else has changed the file"));
    put(kHeader + kRows[0] + kRows[1] + kRows[2] + "{\"index\":3,\"x\":4}\n");
    EXPECT_THAT(refusal(), HasSubstr("something else has changed the file"));
}

TEST_F(SweepFileTest, IsWrittenByOneAtATime) {
    const auto first = open();
    ASSERT_TRUE(first);
    EXPECT_THAT(refusal(), HasSubstr("another sweep is writing this file"));
}

TEST_F(SweepFileTest, ReadsCsvRowsToo) {
    const std::string header = "# ringside-sweep\nindex,x\n";
    put(header + "0,1\n1,2\n2,");
    const auto file = SweepFile::open(path_.string(), header, 3, false);
    ASSERT_TRUE(file) << file.error().toString();
    EXPECT_EQ(file->rows(), 2U);
}

TEST_F(SweepFileTest, SaysWhyItCannotBeOpened) {
    const auto file = SweepFile::open((dir_ / "none" / "rows.jsonl").string(), kHeader, 3, false);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, ErrorCode::RuntimeFailure);
    EXPECT_THAT(file.error().message, HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace ringside
