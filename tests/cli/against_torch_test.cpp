// validate --against torch, with a stand-in for PyTorch: a python3 that answers as our script would, so that what is made of its answers can
// be tested where there is no PyTorch.
#include <cmath>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"

namespace ringside {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// Every collective takes 0.1 s, rank 1 coming 0.3 s late; a step alone 1 ms, one of two ranks 0.5 s.
class AgainstTorch : public testing::Test {
protected:
    void SetUp() override {
        const ProgramRun python = dir_.shell("command -v python3");
        if (python.exitCode != 0) GTEST_SKIP() << "python3 is not installed";
        dir_.write("python3", "#!/bin/sh\nif [ \"$1\" = -c ]; then echo 2.15.0; exit; fi\nexec " + python.out.substr(0, python.out.find('\n')) + " answer.py \"$2\" \"$3\"\n");
        std::filesystem::permissions(dir_.path() / "python3", std::filesystem::perms::owner_all);
        answer("");
        dir_.write("tiny.json", R"({"model": {"model_type": "mlp", "widths": [64, 96, 96, 32], "activation": "gelu"}, "training": {"micro_batch": 8, "precision": "fp32", "optimizer": "sgd"}})");
    }
    void answer(const std::string& change) const {
        dir_.write("answer.py", "import json, sys\njob = json.load(open(sys.argv[1]))\nanswer = {'seconds': [1e-3 if job['world'] == 1 else 0.5] * job.get('steps', 0)}\n"
                                "late = 0.3 * job['rank']\n"
                                "answer['calls'] = [[[t + late, t + 0.4] for t in range(times)] for _, _, times in job.get('collectives', [])]\n" + change +
                                    "json.dump(answer, open(sys.argv[2], 'w'))\n");
    }
    ProgramRun validate(const std::string& arguments) const {
        return dir_.shell("export PATH=\"$PWD:$PATH\"; ringside calibrate --trial --local-ranks 1 --out here.json > /dev/null && ringside validate --profile here.json --any-machine --against torch --local-ranks 2 --models tiny.json --rounds 1 --steps 2 --json " + arguments);
    }
    json rows(const std::string& arguments) const {
        const ProgramRun run = validate(arguments);
        EXPECT_EQ(run.exitCode, 0) << run.err;
        return run.exitCode == 0 ? json::parse(run.out)["rows"] : json::array();
    }

    WorkDir dir_;
};

TEST_F(AgainstTorch, CollectivesCostWhatPyTorchTakesForThem) {
    for (const json& row : rows("--strategies ddp,zero-redundancy-optimizer,fsdp2")) {
        const double calls = row["communication"]["predicted_s"].get<double>() / 0.1;
        EXPECT_NEAR(calls, std::round(calls), 1e-3) << row["strategy"];
        EXPECT_GT(calls, 0.9) << row["strategy"];
        EXPECT_EQ(row["measured_s"], 0.5);
        if (row["strategy"] == "ddp") {
            EXPECT_NEAR(row["predicted_s"].get<double>(), 0.1, 0.02) << "one bucket, and 2 ms of compute";
        }
    }
}

// Its CPU tensors have no streams: whatever FSDP2 sends holds the rank, unless the case says otherwise.
TEST_F(AgainstTorch, Fsdp2HidesNothingThere) {
    const json all = rows("--strategies fsdp2,fsdp2:overlap_comm=true,ddp");
    ASSERT_EQ(all.size(), 3U);
    const auto hidden = [](const json& row) { return row["communication"]["predicted_s"].get<double>() - row["communication_exposed"]["predicted_s"].get<double>(); };
    EXPECT_EQ(hidden(all[0]), 0);
    EXPECT_GT(hidden(all[1]), 0);
    EXPECT_GT(all[0]["predicted_s"], all[1]["predicted_s"]);
}

TEST_F(AgainstTorch, AnswersWithoutTimesAreAnErrorThatSaysSo) {
    answer("answer.pop('calls')\n");
    const ProgramRun run = validate("--strategies ddp");
    EXPECT_EQ(run.exitCode, 5);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr("PyTorch's collectives"));
}

}  // namespace
}  // namespace ringside
