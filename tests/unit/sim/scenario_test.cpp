#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scenarios.h"

namespace ringside::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Scenario, FillsInDefaults) {
    const Scenario one = scenarioOf("{'model':'gpt2','device':'a100-80gb-sxm'}");
    EXPECT_EQ(one.cluster.deviceCount(), 1);
    EXPECT_EQ(one.parallel.strategy, "single");
    EXPECT_EQ(one.training.seqLen, 1024) << "the model's own context";
    EXPECT_EQ(one.training.precision.name, "bf16-autocast");
    EXPECT_EQ(scenarioOf("{'model':'gpt2','device':'a100-80gb-sxm','devices':2}").parallel.strategy, "ddp");
    EXPECT_EQ(scenarioOf("{'model':'gpt2','device':'v100-sxm'}").training.precision.name, "fp16-autocast") << "a V100 has no bf16";
}

TEST(Scenario, AnyTwoOfTheBatchFiguresSettleTheThird) {
    const std::string base = "{'model':'gpt2','device':'a100-80gb-sxm','devices':8,'training':{'global_batch':64,";
    EXPECT_EQ(scenarioOf(base + "'micro_batch':4}}").training.gradAccum, 2);   // 64 / (4·8)
    EXPECT_EQ(scenarioOf(base + "'grad_accum':4}}").training.microBatch, 2);   // 64 / (4·8)
    EXPECT_EQ(scenarioOf(base + "'micro_batch':8,'grad_accum':1}}").globalBatch(), 64);
}

TEST(Scenario, WrittenOutAndReadBackPredictsTheSame) {
    for (const char* text : {"{'model':'gpt2','device':'h100-sxm','devices':16,'training':{'micro_batch':4,'recompute':'selective','attention':'math'},"
                             "'strategy':{'name':'ddp','bucket_mb':10,'comm_hook':'bf16','gradient_as_bucket_view':true}}",
                             "{'model':'resnet-50','cluster':'mixed-a100-h100','training':{'micro_batch':16,'precision':'tf32','optimizer':'momentum'}}",
                             "{'model':'bert-large','device':'l4','devices':4,'step':'first','collectives':{'nccl_version':'2.27','algorithm':'ring'},"
                             "'memory':{'expandable_segments':true},'strategy':'naive'}"}) {
        const Scenario scenario = scenarioOf(text);
        const Json written = toJson(scenario);
        const Scenario again = scenarioOfJson(Json::parse(written.dump()));
        EXPECT_EQ(toJson(again).dump(), written.dump());
        const Prediction a = predictionOf(scenario), b = predictionOf(again);
        EXPECT_EQ(a.timeline.stepTime, b.timeline.stepTime) << text;
        EXPECT_EQ(a.memory.peakReserved, b.memory.peakReserved) << text;
    }
}

TEST(Scenario, DeviceFiguresCanBeOverridden) {
    const Scenario scenario = scenarioOf("{'model':'gpt2','device':{'name':'a100-80gb-sxm','sms':50},'devices':2}");
    EXPECT_EQ(scenario.cluster.nodes[0].kind.device.sms, 50);
}

TEST(Scenario, UnknownNamesAreRefusedWithTheNearest) {
    EXPECT_THAT(refusal("{'model':'gtp2-xl','device':'h100-sxm'}"), AllOf(HasSubstr("test.json: model"), HasSubstr("did you mean 'gpt2-xl'")));
    EXPECT_THAT(refusal("{'model':'gpt2','device':'h100-smx'}"), HasSubstr("did you mean 'h100-sxm'"));
    EXPECT_THAT(refusal("{'model':'gpt2','device':'h100-sxm','training':{'precision':'bf61'}}"), AllOf(HasSubstr("training.precision"), HasSubstr("did you mean 'bf16'")));
    EXPECT_THAT(refusal("{'model':'gpt2','device':'h100-sxm','training':{'optimizer':'adamx'}}"), HasSubstr("did you mean 'adam"));
    EXPECT_THAT(refusal("{'model':'gpt2','device':'h100-sxm','training':{'recompute':'ful'}}"), HasSubstr("did you mean 'full'"));
    EXPECT_THAT(refusal("{'model':'gpt2','device':'h100-sxm','devices':2,'strategy':'pictron'}"), HasSubstr("did you mean 'picotron'"));
    EXPECT_THAT(refusal("{'model':'gpt2','device':'h100-sxm','devices':2,'strategy':{'name':'ddp','comm_hook':'fp61'}}"), HasSubstr("did you mean 'fp16'"));
    EXPECT_THAT(refusal("{'model':'gpt2','cluster':'dgx-a100'}"), HasSubstr("unknown cluster"));
    EXPECT_THAT(refusal("{'model':'gpt2','device':'h100-sxm','devices':16,'network':'ib-hrd'}"), HasSubstr("unknown network"));
}

TEST(Scenario, UnknownKeysAreRefusedWithTheNearest) {
    EXPECT_THAT(refusal("{'model':'gpt2','device':'h100-sxm','devcies':4}"), AllOf(HasSubstr("devcies"), HasSubstr("devices")));
    EXPECT_THAT(refusal("{'model':'gpt2','device':'h100-sxm','training':{'micro_bach':4}}"), AllOf(HasSubstr("micro_bach"), HasSubstr("micro_batch")));
    EXPECT_THAT(refusal("{'model':'gpt2','device':'h100-sxm','collectives':{'algoritm':'ring'}}"), HasSubstr("algorithm"));
    EXPECT_THAT(refusal("{'model':'gpt2','device':'h100-sxm','memory':{'expandable':true}}"), HasSubstr("expandable"));
}

TEST(Scenario, ASettingThatTheStrategyDoesNotTakeIsRefused) {
    EXPECT_THAT(refusal("{'model':'gpt2','device':'h100-sxm','devices':2,'strategy':{'name':'naive','bucket_mb':25}}"),
                AllOf(HasSubstr("strategy.bucket_mb"), HasSubstr("the strategy 'naive' has no such setting"), HasSubstr("no_sync")));
    EXPECT_THAT(refusal("{'model':'gpt2','device':'h100-sxm','strategy':{'name':'single','no_sync':true}}"), HasSubstr("the strategy 'single' has no such setting"));
}

TEST(Scenario, ImpossibleNumbersAreRefusedWhereTheyStand) {
    const std::string base = "{'model':'gpt2','device':'h100-sxm',";
    EXPECT_THAT(refusal(base + "'devices':0}"), HasSubstr("devices"));
    EXPECT_THAT(refusal(base + "'devices':-4}"), HasSubstr("devices"));
    EXPECT_THAT(refusal(base + "'devices':1000000000000}"), HasSubstr("devices"));
    EXPECT_THAT(refusal(base + "'devices':2.5}"), HasSubstr("devices"));
    EXPECT_THAT(refusal(base + "'training':{'micro_batch':0}}"), HasSubstr("training.micro_batch"));
    EXPECT_THAT(refusal(base + "'training':{'micro_batch':-1}}"), HasSubstr("training.micro_batch"));
    EXPECT_THAT(refusal(base + "'training':{'seq_len':0}}"), HasSubstr("training.seq_len"));
    EXPECT_THAT(refusal(base + "'training':{'grad_accum':0}}"), HasSubstr("training.grad_accum"));
    EXPECT_THAT(refusal(base + "'devices':2,'strategy':{'name':'ddp','bucket_mb':0}}"), HasSubstr("strategy.bucket_mb"));
    EXPECT_THAT(refusal(base + "'devices':2,'strategy':{'name':'ddp','bucket_mb':-25}}"), HasSubstr("strategy.bucket_mb"));
}

TEST(Scenario, AGlobalBatchThatCannotBeSplitIsRefused) {
    const std::string base = "{'model':'gpt2','device':'h100-sxm','devices':8,'training':{'global_batch':";
    EXPECT_THAT(refusal(base + "60}}"), AllOf(HasSubstr("training.global_batch"), HasSubstr("a global batch of 60 cannot be split evenly over 8"), HasSubstr("multiple of 8")));
    EXPECT_THAT(refusal(base + "64,'micro_batch':5}}"), HasSubstr("cannot be split evenly over 40"));
    EXPECT_THAT(refusal(base + "64,'micro_batch':4,'grad_accum':4}}"), HasSubstr("64 is not micro_batch 4 × grad_accum 4 × 8 devices = 128"));
}

TEST(Scenario, WrongTypesAreRefused) {
    EXPECT_THAT(refusal("{'model':7,'device':'h100-sxm'}"), HasSubstr("model"));
    EXPECT_THAT(refusal("{'model':'gpt2','device':7}"), HasSubstr("device"));
    EXPECT_THAT(refusal("{'model':'gpt2','device':'h100-sxm','devices':'eight'}"), HasSubstr("devices"));
    EXPECT_THAT(refusal("{'model':'gpt2','device':'h100-sxm','training':5}"), HasSubstr("training"));
    EXPECT_THAT(refusal("{'model':'gpt2','device':'h100-sxm','training':{'dropout':'yes'}}"), HasSubstr("training.dropout"));
    EXPECT_THAT(refusal("{'model':'gpt2','device':'h100-sxm','devices':2,'strategy':[]}"), HasSubstr("strategy"));
    EXPECT_THAT(refusal("{'model':'gpt2','device':'h100-sxm','profile':5}"), HasSubstr("profile"));
    EXPECT_THAT(refusal("{'model':'gpt2','device':'h100-sxm','step':'second'}"), HasSubstr("\"steady\" or \"first\""));
    EXPECT_THAT(refusal("[1,2]"), HasSubstr("test.json"));
    EXPECT_THAT(refusal("{'format':'something-else','model':'gpt2','device':'h100-sxm'}"), HasSubstr("ringside-scenario"));
}

TEST(Scenario, WhatIsMissingIsNamedWithTheFlagThatGivesIt) {
    EXPECT_THAT(refusal("{'device':'h100-sxm'}"), HasSubstr("--model"));
    EXPECT_THAT(refusal("{'model':'gpt2'}"), AllOf(HasSubstr("--device"), HasSubstr("--cluster")));
}

TEST(Scenario, AClusterSaysItsOwnDevices) {
    EXPECT_THAT(refusal("{'model':'gpt2','cluster':'mixed-a100-h100','devices':4}"), HasSubstr("leave this out"));
    EXPECT_THAT(refusal("{'model':'gpt2','cluster':'mixed-a100-h100','device':'h100-sxm'}"), HasSubstr("leave this out"));
}

TEST(Scenario, HeadsThatDoNotDivideTheHiddenSizeAreRefused) {
    EXPECT_THAT(refusal("{'model':{'model_type':'gpt2','n_embd':100,'n_head':7,'n_layer':2,'vocab_size':1000,'n_positions':128},'device':'h100-sxm'}"), HasSubstr("head"));
}

TEST(SetScenarioKey, FindsTheSectionOfABareKey) {
    Json document = Json::object();
    for (const char* assignment : {"model=gpt2", "device=h100-sxm", "devices=4", "micro_batch=8", "bucket_mb=10", "nccl_version=2.27", "precision=bf16"})
        ASSERT_TRUE(setScenarioKey(document, assignment)) << assignment;
    const Scenario scenario = scenarioOfJson(document);
    EXPECT_EQ(scenario.training.microBatch, 8);
    EXPECT_EQ(scenario.parallel.bucketMb, 10);
    EXPECT_EQ(scenario.training.precision.name, "bf16");
    EXPECT_EQ(scenario.pricing.collectives.nccl.version, NcclVersion::V2_27);
}

TEST(SetScenarioKey, MakesRoomForFiguresBelowAName) {
    Json document = jsonOf("{'model':'gpt2','device':'a100-80gb-sxm'}");
    ASSERT_TRUE(setScenarioKey(document, "device.sms=50"));
    EXPECT_EQ(document["device"]["name"], "a100-80gb-sxm");
    EXPECT_EQ(scenarioOfJson(document).cluster.nodes[0].kind.device.sms, 50);
}

TEST(SetScenarioKey, RefusesWhatItCannotPlace) {
    Json document = jsonOf("{'model':'gpt2','devices':4}");
    EXPECT_EQ(setScenarioKey(document, "micro_batch").error().code, ErrorCode::Usage);
    EXPECT_EQ(setScenarioKey(document, "=4").error().code, ErrorCode::Usage);
    EXPECT_EQ(setScenarioKey(document, "training..x=4").error().code, ErrorCode::Usage);
    EXPECT_THAT(setScenarioKey(document, "micro_bach=4").error().toString(), HasSubstr("did you mean 'micro_batch'"));
    EXPECT_THAT(setScenarioKey(document, "devices.count=4").error().toString(), HasSubstr("'devices' is not an object"));
    Json array = Json::array();
    EXPECT_EQ(setScenarioKey(array, "micro_batch=4").error().code, ErrorCode::BadInput);
}

}  // namespace
}  // namespace ringside::testing
