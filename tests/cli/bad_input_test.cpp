// Every kind of wrong input: a clear message on standard error, the right exit code, nothing on standard output, no file left.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_program.h"

namespace ringside {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct Case {
    std::string name;
    std::string arguments;  // separated by spaces
    std::vector<std::string> says;
    int exitCode = 3;
};

std::string nameOf(const testing::TestParamInfo<Case>& info) { return info.param.name; }

class Refused : public testing::TestWithParam<Case> {};

TEST_P(Refused, WithAClearMessageTheRightExitCodeAndNoOutput) {
    const WorkDir dir;
    const ProgramRun run = dir.ringside(GetParam().arguments);
    EXPECT_EQ(run.exitCode, GetParam().exitCode) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_TRUE(run.err.starts_with("ringside: ")) << run.err;
    for (const std::string& words : GetParam().says) EXPECT_THAT(run.err, HasSubstr(words));
    EXPECT_THAT(dir.files(), IsEmpty());
}

const std::string kGpt2 = "predict --model gpt2 --device a100-80gb-sxm ";
const std::string kEight = kGpt2 + "--devices 8 ";
const std::string kH100 = "collective --device h100-sxm --devices 8 ";

INSTANTIATE_TEST_SUITE_P(UnknownName, Refused, testing::Values(
    Case{"Model", "predict --model gtp2-xl --device a100-80gb-sxm", {"--model", "unknown model 'gtp2-xl'", "did you mean 'gpt2-xl'?", "catalog models"}},
    Case{"ModelLikeNoOther", "predict --model zzzzzzzzzzzz --device a100-80gb-sxm", {"unknown model", "catalog models"}},
    Case{"Device", "predict --model gpt2 --device a100-80gb-sxn", {"--device", "did you mean 'a100-80gb-sxm'?"}},
    Case{"Strategy", kEight + "--strategy ddq", {"--strategy", "did you mean 'ddp'?"}},
    Case{"Precision", kGpt2 + "--precision bf61", {"--precision", "did you mean 'bf16'?"}},
    Case{"Optimizer", kGpt2 + "--optimizer adamx", {"--optimizer", "did you mean 'adam'?"}},
    Case{"Recompute", kGpt2 + "--recompute som", {"--recompute", "none, selective, selective-op, full"}},
    Case{"Cluster", "predict --model gpt2 --cluster dgx-a100-22", {"--cluster", "did you mean 'dgx-a100-2'?"}},
    Case{"Network", kGpt2 + "--devices 16 --network ib-hdx", {"--network", "did you mean 'ib-hdr'?"}},
    Case{"Node", kGpt2 + "--node dgx-a10", {"--node", "did you mean 'dgx-a100'?"}},
    Case{"Profile", "predict --model gpt2 --device b200 --profile b200-bost", {"--profile", "did you mean 'b200-boost'?"}},
    Case{"Attention", kGpt2 + "--set training.attention=flsh", {"--set training.attention", "did you mean 'flash'?"}},
    Case{"Hook", kEight + "--set comm_hook=fp15", {"--set comm_hook", "did you mean 'fp16'?"}},
    Case{"NcclVersion", kEight + "--set nccl_version=2.18", {"unknown NCCL version '2.18'"}},
    Case{"Collective", kH100 + "--op all_redux", {"--op", "did you mean 'all_reduce'?"}},
    Case{"Algorithm", kH100 + "--algorithm rng", {"did you mean 'ring'?"}},
    Case{"Protocol", kH100 + "--protocol LL9", {"unknown protocol 'LL9'"}},
    Case{"Level", kH100 + "--level mesage", {"did you mean 'message'?"}},
    Case{"Backend", kH100 + "--backend nkkl", {"did you mean 'nccl'?"}},
    Case{"Catalog", "catalog modles", {"did you mean 'models'?"}},
    Case{"Shell", "completion tcsh", {"bash, zsh, fish"}}), nameOf);

INSTANTIATE_TEST_SUITE_P(ImpossibleNumber, Refused, testing::Values(
    Case{"ZeroDevices", kGpt2 + "--devices 0", {"--devices", "0 is out of range"}},
    Case{"NegativeDevices", kGpt2 + "--devices -4", {"--devices", "-4 is out of range"}},
    Case{"ATrillionDevices", kGpt2 + "--devices 1000000000000", {"--devices", "1000000000000 is out of range; expected 1 to 1048576"}},
    Case{"ATrillionDevicesAsAPower", kGpt2 + "--devices 1e12", {"1000000000000 is out of range"}},
    Case{"MoreDevicesThanAnIntegerHolds", kGpt2 + "--devices 99999999999999999999999", {"--devices"}},
    Case{"NotANumber", kGpt2 + "--devices nan", {"--devices", "expected a whole number"}},
    Case{"Infinity", kGpt2 + "--devices inf", {"--devices", "expected a whole number"}},
    Case{"AFraction", kGpt2 + "--devices 2.5", {"--devices", "expected a whole number, found 2.5"}},
    Case{"AWord", kGpt2 + "--devices eight", {"--devices", "\"eight\""}},
    Case{"DevicesThatDoNotFillNodes", kGpt2 + "--devices 12", {"12 devices do not fill nodes of 8", "8 or 16"}},
    Case{"MoreDevicesThanANodeHolds", kGpt2 + "--devices 16 --devices-per-node 16", {"--devices-per-node", "holds 8 devices"}},
    Case{"ZeroMicroBatch", kGpt2 + "--micro-batch 0", {"--micro-batch", "out of range"}},
    Case{"NegativeMicroBatch", kGpt2 + "--micro-batch -1", {"--micro-batch", "out of range"}},
    Case{"HugeMicroBatch", kGpt2 + "--micro-batch 1000000000000", {"--micro-batch", "out of range"}},
    Case{"ZeroSeqLen", kGpt2 + "--seq-len 0", {"--seq-len", "out of range"}},
    Case{"SeqLenBeyondThePositionTable", kGpt2 + "--seq-len 4096", {"4096", "position table of 1024", "--seq-len 1024"}},
    Case{"SeqLenOfAnImageModel", "predict --model resnet-50 --device a100-80gb-sxm --seq-len 4", {"--seq-len", "leave it out"}},
    Case{"ZeroGradAccum", kGpt2 + "--grad-accum 0", {"--grad-accum", "out of range"}},
    Case{"GlobalBatchNotDivisible", kEight + "--global-batch 9", {"--global-batch", "global batch of 9 cannot be split evenly over 8", "multiple of 8"}},
    Case{"GlobalBatchNotDivisibleByMicroBatch", kEight + "--global-batch 64 --micro-batch 3", {"64 cannot be split evenly over 24"}},
    // 2 × 2 × 8 = 32, not 64.
    Case{"BatchesThatContradict", kEight + "--global-batch 64 --micro-batch 2 --grad-accum 2", {"= 32"}},
    Case{"ZeroBucket", kEight + "--bucket-mb 0", {"--bucket-mb", "out of range"}},
    Case{"NanBucket", kEight + "--bucket-mb nan", {"--bucket-mb", "expected a number"}},
    Case{"ZeroMemory", kGpt2 + "--set device.memory_gb=0", {"--set device.memory_gb", "out of range"}},
    Case{"ZeroPeak", kGpt2 + "--set device.peak_dense_tflops.bf16=0", {"--set device.peak_dense_tflops.bf16", "out of range"}},
    Case{"ZeroEfficiency", kGpt2 + "--set profile.memory_efficiency=0", {"--set profile.memory_efficiency", "out of range"}},
    Case{"OneRankCollective", "collective --device h100-sxm --devices 1", {"at least two ranks"}},
    Case{"ZeroSize", kH100 + "--sizes 0", {"--sizes", "'0' is not a size"}},
    Case{"SizesBackwards", kH100 + "--sizes 1G:1M", {"--sizes", "smaller size first"}},
    Case{"SizeWithAStrangeUnit", kH100 + "--sizes 1X", {"--sizes", "'1X'"}},
    Case{"SizeTooLarge", kH100 + "--sizes 65T", {"--sizes", "at most 64T"}}), nameOf);

INSTANTIATE_TEST_SUITE_P(Contradiction, Refused, testing::Values(
    Case{"NoModel", "predict --device a100-80gb-sxm", {"no model given", "--model"}},
    Case{"NoHardware", "predict --model gpt2", {"no hardware given", "--device"}},
    Case{"TwoClusters", "predict --model gpt2 --device h100-sxm --cluster dgx-a100-2", {"--device", "cluster"}},
    Case{"TwoDeviceCounts", "predict --model gpt2 --cluster dgx-a100-2 --devices 8", {"--devices", "cluster"}},
    Case{"KnobThatTheStrategyLacks", kEight + "--strategy naive --bucket-mb 25", {"--bucket-mb", "'naive' has no such setting", "no_sync"}},
    Case{"BucketOnOneDevice", kGpt2 + "--bucket-mb 25", {"'single' has no such setting"}},
    Case{"SingleOnEight", kEight + "--strategy single", {"one device"}},
    Case{"DeviceWithoutAPublishedPeak", "predict --model gpt2 --device a10g", {"a10g", "not known", "--set device.peak_dense_tflops.bf16="}},
    Case{"Bf16OnV100", "predict --model gpt2 --device v100-sxm --precision bf16", {"v100-sxm", "bf16", "fp16"}},
    Case{"ProfileOfAnotherDevice", kGpt2 + "--profile b200-boost", {"--profile", "'b200'", "'a100-80gb-sxm'"}},
    Case{"AlgorithmThatCannotRun", kH100 + "--op all_gather --algorithm tree --sizes 1M", {"tree", "it can with"}},
    Case{"MessagesOfAMillionRanks", "collective --device h100-sxm --devices 1048576 --algorithm tree --level message --sizes 1M", {"messages", "closed"}},
    Case{"NodesWithoutANetwork", "predict --model gpt2 --cluster dgx-a100-2 --network none", {"no network"}},
    Case{"UnknownKey", kGpt2 + "--set microbatch=2", {"--set", "did you mean 'micro_batch'?"}},
    Case{"UnknownDeviceFigure", kGpt2 + "--set device.smx=100", {"--set device.smx", "did you mean 'sms'?"}},
    Case{"SetInsideANumber", kEight + "--set devices.x=2", {"--set", "'devices' is not an object"}},
    Case{"FlagThatIsNotBoolean", kGpt2 + "--set gradient_clipping=1", {"expected true or false"}},
    Case{"MissingScenario", "predict nothere.json", {"nothere.json", "cannot open"}},
    Case{"DirectoryAsScenario", "predict .", {"directory"}},
    Case{"MissingConfig", "predict --model ./nothere.json --device a100-80gb-sxm", {"nothere.json", "cannot open"}},
    Case{"MissingCluster", "predict --model gpt2 --cluster nothere.json", {"nothere.json", "cannot open"}},
    Case{"DirectoryWithoutConfig", "predict --model / --device a100-80gb-sxm", {"no config.json"}}), nameOf);

INSTANTIATE_TEST_SUITE_P(Usage, Refused, testing::Values(
    Case{"NoCommand", "", {"no command", "--help"}, 2},
    Case{"UnknownCommand", "predcit --model gpt2", {"unknown command 'predcit'", "did you mean 'predict'?"}, 2},
    Case{"UnknownFlag", kGpt2 + "--micro-bacth 4", {"unknown flag '--micro-bacth'", "did you mean '--micro-batch'?"}, 2},
    Case{"UnknownFormat", kGpt2 + "--format xml", {"--format"}, 2},
    Case{"UnknownColor", kGpt2 + "--color blue", {"--color"}, 2},
    Case{"SetWithoutValue", kGpt2 + "--set dropout", {"--set", "key=value"}, 2},
    Case{"SetWithoutKey", kGpt2 + "--set =2", {"--set", "key=value"}, 2},
    Case{"SetWithAnEmptyPart", kGpt2 + "--set a..b=2", {"--set", "empty part"}, 2},
    Case{"SetWithoutAnything", kGpt2 + "--set", {"--set"}, 2},
    Case{"TwoScenarios", "predict a.json b.json", {"b.json"}, 2},
    Case{"NothingToList", "catalog", {"required"}, 2},
    Case{"TimelineAsJson", kGpt2 + "--json --timeline", {"--timeline", "--json"}, 2}), nameOf);

INSTANTIATE_TEST_SUITE_P(UnwritableOutput, Refused, testing::Values(
    Case{"Output", kGpt2 + "-o nothere/answer.txt", {"nothere/answer.txt", "cannot write"}, 5},
    Case{"Trace", kGpt2 + "--trace nothere/step.json", {"nothere/step.json", "cannot write"}, 5},
    // The trace is written first: when it cannot be, there is no answer either.
    Case{"TraceAndOutput", kGpt2 + "--trace nothere/step.json -o answer.txt", {"nothere/step.json"}, 5},
    Case{"DirectoryAsOutput", kGpt2 + "-o .", {"cannot write"}, 5}), nameOf);

TEST(EmptyValue, IsRefusedBecauseAnUnsetShellVariableIsNotADefault) {
    const WorkDir dir;
    for (const char* flag : {"--devices", "--model", "--trace", "-o", "--cluster"}) {
        const ProgramRun run = dir.ringside({"predict", "--model", "gpt2", "--device", "a100-80gb-sxm", flag, ""});
        EXPECT_EQ(run.exitCode, 2) << flag;
        EXPECT_THAT(run.err, HasSubstr("expected a value")) << flag;
    }
}

struct FileCase {
    std::string name, content;
    std::vector<std::string> says;
};

std::string fileName(const testing::TestParamInfo<FileCase>& info) { return info.param.name; }

class RefusedFile : public testing::TestWithParam<FileCase> {};

TEST_P(RefusedFile, NamesTheFileAndThePlace) {
    const WorkDir dir;
    dir.write("f.json", GetParam().content);
    const ProgramRun run = dir.ringside("predict f.json -o answer.txt");
    EXPECT_EQ(run.exitCode, 3) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr("f.json"));
    for (const std::string& words : GetParam().says) EXPECT_THAT(run.err, HasSubstr(words));
    EXPECT_THAT(dir.files(), testing::ElementsAre("f.json"));
}

std::string repeated(const std::string& text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
}

const std::string kHead = R"({"model": "gpt2", "device": "a100-80gb-sxm", )";

INSTANTIATE_TEST_SUITE_P(Scenario, RefusedFile, testing::Values(
    // Line 3, where the second comma is the 16th character.
    FileCase{"Malformed", "{\n  \"model\": \"gpt2\",\n  \"devices\": 8 ,,\n}", {"f.json:3:17", "not valid JSON"}},
    FileCase{"CutOff", kHead, {"f.json:1:", "unexpected end of input"}},
    FileCase{"Empty", "", {"empty"}},
    FileCase{"Binary", std::string("\x89PNG\r\n\x1a\n\0\0\xff", 11), {"f.json:1:1", "not valid JSON"}},
    FileCase{"DuplicateKey", kHead + "\"devices\": 8, \"devices\": 16}", {"'devices' appears twice"}},
    FileCase{"UnknownKey", kHead + "\"trainig\": {}}", {"unknown key 'trainig'", "did you mean 'training'?"}},
    FileCase{"UnknownInnerKey", kHead + "\"training\": {\"micro_bacth\": 2}}", {"f.json: training", "did you mean 'micro_batch'?"}},
    FileCase{"TextForANumber", kHead + "\"training\": {\"micro_batch\": \"4\"}}", {"training.micro_batch", "expected a whole number, found \"4\""}},
    FileCase{"TextForABoolean", kHead + "\"training\": {\"dropout\": \"yes\"}}", {"training.dropout", "expected true or false"}},
    FileCase{"NumberForAnObject", kHead + "\"training\": 3}", {"training", "expected an object, found 3"}},
    FileCase{"NumberForAStrategy", kHead + "\"strategy\": 3}", {"strategy", "expected an object, found 3"}},
    FileCase{"Array", "[1, 2]", {"expected a JSON object"}},
    FileCase{"AnotherFormat", R"({"format": "ringside-profile"})", {"ringside-scenario", "ringside-profile"}},
    FileCase{"AnotherVersion", kHead + "\"version\": 2}", {"version", "2"}},
    FileCase{"DeeplyNestedValue", kHead + "\"training\": " + repeated("[", 100000) + repeated("]", 100000) + "}", {"nested more than 64 deep"}},
    FileCase{"DeeplyNestedObjects", repeated("{\"model\":", 100000) + "1" + repeated("}", 100000), {"nested more than 64 deep"}},
    FileCase{"HugeNumber", kHead + "\"devices\": 1e400}", {"not valid JSON"}},
    FileCase{"TwoClusters", kHead + "\"cluster\": \"dgx-a100-2\"}", {"device", "leave out \"cluster\""}},
    FileCase{"ResultWithABrokenScenario", R"({"format": "ringside-result", "scenario": 3})", {"scenario", "expected a JSON object"}}),
    fileName);

class RefusedConfig : public testing::TestWithParam<FileCase> {};

TEST_P(RefusedConfig, NamesTheConfigFile) {
    const WorkDir dir;
    dir.write("config.json", GetParam().content);
    const ProgramRun run = dir.ringside("predict --model config.json --device a100-80gb-sxm");
    EXPECT_EQ(run.exitCode, 3) << run.err;
    EXPECT_THAT(run.err, HasSubstr("config.json"));
    for (const std::string& words : GetParam().says) EXPECT_THAT(run.err, HasSubstr(words));
}

std::string llama(const std::string& change) {
    return R"({"model_type": "llama", "num_hidden_layers": 2, "intermediate_size": 200, "vocab_size": 1000, )" + change + "}";
}

INSTANTIATE_TEST_SUITE_P(HuggingFace, RefusedConfig, testing::Values(
    FileCase{"HeadsThatDoNotDivideHidden", llama(R"("hidden_size": 100, "num_attention_heads": 3)"), {"3 attention heads do not divide the hidden size 100"}},
    FileCase{"NegativeHidden", llama(R"("hidden_size": -1, "num_attention_heads": 3)"), {"hidden_size", "-1 is out of range"}},
    FileCase{"UnsupportedType", R"({"model_type": "t5", "d_model": 512})", {"'t5' is not supported", "llama"}},
    FileCase{"NoType", R"({"hidden_size": 512})", {"'model_type' is missing"}},
    FileCase{"Malformed", "{\"model_type\": \"llama\",}", {"config.json:1:", "not valid JSON"}}),
    fileName);

}  // namespace
}  // namespace ringside
