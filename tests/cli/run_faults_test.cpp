// ringside run when something goes wrong: it ends in time, says which rank and which task, leaves no process and no half-written file.
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/background_program.h"
#include "tests/cli/run_program.h"
#include "tests/cli/tiny_model.h"

namespace ringside {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kEndless = "run --model tiny.json --local-ranks 2 --strategy ddp --steps 100000 ";

/// Waits: a process whose parent was killed is ended by the kernel a moment later.
void expectGone(const std::vector<pid_t>& pids) {
    for (const pid_t pid : pids)
        while (isAlive(pid)) std::this_thread::yield();
}

TEST(RunFaults, AKilledRankEndsTheRunNamingTheRankAndItsLastTask) {
    const WorkDirWithTinyModel dir;
    BackgroundProgram program(dir, kEndless);
    const std::vector<pid_t> ranks = program.ranksAtWork(2);
    ASSERT_EQ(ranks.size(), 2U) << program.wait().err;
    kill(ranks[1], SIGKILL);
    const ProgramRun run = program.wait();
    EXPECT_EQ(run.exitCode, 5);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr("rank 1 was killed by signal 9"));
    EXPECT_THAT(run.err, ContainsRegex("its last task was '.+'"));
    EXPECT_THAT(run.err, HasSubstr("ran out of memory"));  // what it usually is when nobody did it
    EXPECT_FALSE(isAlive(ranks[0]));
    EXPECT_FALSE(isAlive(ranks[1]));
}

TEST(RunFaults, AStoppedRankEndsTheRunWithinItsTimeOutNamingTheRank) {
    const WorkDirWithTinyModel dir;
    BackgroundProgram program(dir, kEndless + "--timeout 1");
    const std::vector<pid_t> ranks = program.ranksAtWork(2);
    ASSERT_EQ(ranks.size(), 2U) << program.wait().err;
    kill(ranks[1], SIGSTOP);
    const ProgramRun run = program.wait();
    EXPECT_EQ(run.exitCode, 5);
    // Whether the watcher saw it, or its neighbour's collective gave up first, at the same time-out.
    EXPECT_THAT(run.err, HasSubstr("rank 1 is stopped"));
    EXPECT_THAT(run.err, ContainsRegex("its last task was '.+'"));
    expectGone(ranks);
}

TEST(RunFaults, CtrlCEndsAllRanks) {
    for (const int signal : {SIGINT, SIGTERM}) {
        const WorkDirWithTinyModel dir;
        BackgroundProgram program(dir, kEndless);
        const std::vector<pid_t> ranks = program.ranksAtWork(2);
        ASSERT_EQ(ranks.size(), 2U) << program.wait().err;
        kill(program.pid(), signal);
        const ProgramRun run = program.wait();
        EXPECT_EQ(run.exitCode, 5);
        EXPECT_THAT(run.err, HasSubstr("all ranks were ended"));
        EXPECT_FALSE(isAlive(ranks[0]));
        EXPECT_FALSE(isAlive(ranks[1]));
    }
}

TEST(RunFaults, NoRankOutlivesAProgramThatIsKilled) {
    const WorkDirWithTinyModel dir;
    BackgroundProgram program(dir, kEndless);
    const std::vector<pid_t> ranks = program.ranksAtWork(2);
    ASSERT_EQ(ranks.size(), 2U) << program.wait().err;
    kill(program.pid(), SIGKILL);
    program.wait();
    expectGone(ranks);
}

TEST(RunFaults, APortInUseIsNamedWithWhatToDo) {
    const WorkDirWithTinyModel dir;
    const int taken = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    ASSERT_EQ(bind(taken, reinterpret_cast<sockaddr*>(&address), length), 0);
    ASSERT_EQ(listen(taken, 1), 0);
    ASSERT_EQ(getsockname(taken, reinterpret_cast<sockaddr*>(&address), &length), 0);
    const std::string port = std::to_string(ntohs(address.sin_port));
    const ProgramRun run = dir.ringside("run --model tiny.json --local-ranks 2 --port " + port);
    EXPECT_EQ(run.exitCode, 5);
    EXPECT_THAT(run.err, HasSubstr("port " + port + " is in use"));
    EXPECT_THAT(run.err, HasSubstr("--port"));
    close(taken);
}

std::map<std::string, std::string> torchrun(int rank, int size, int port) {
    return {{"RANK", std::to_string(rank)}, {"LOCAL_RANK", std::to_string(rank)}, {"WORLD_SIZE", std::to_string(size)}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}};
}

TEST(RunFaults, ARendezvousThatNeverCompletesNamesTheMissingRank) {
    const WorkDirWithTinyModel dir;
    const std::string line = "run --model tiny.json --strategy ddp --timeout 1";
    BackgroundProgram first(dir, line, torchrun(0, 3, freePort()), "first");
    const ProgramRun alone = first.wait();
    EXPECT_EQ(alone.exitCode, 5);
    EXPECT_THAT(alone.err, HasSubstr("2 of 3 ranks have not come: 1, 2"));
    EXPECT_THAT(alone.err, HasSubstr("--timeout"));
    BackgroundProgram second(dir, line, torchrun(1, 3, freePort()), "second");
    const ProgramRun withoutFirst = second.wait();
    EXPECT_EQ(withoutFirst.exitCode, 5);
    EXPECT_THAT(withoutFirst.err, HasSubstr("rank 0 does not answer"));
    EXPECT_THAT(withoutFirst.err, HasSubstr("MASTER_ADDR"));
}

TEST(RunFaults, ALaunchersRankThatDiesIsMissedByTheFirst) {
    const WorkDirWithTinyModel dir;
    const std::string line = "run --model tiny.json --strategy ddp --steps 100000 --timeout 20 --trace step.json";
    const int port = freePort();
    BackgroundProgram first(dir, line, torchrun(0, 2, port), "first"), second(dir, line, torchrun(1, 2, port), "second");
    while (!first.isAtWork() && !first.hasEnded()) std::this_thread::yield();
    ASSERT_FALSE(first.hasEnded()) << first.wait().err;
    kill(second.pid(), SIGKILL);
    const ProgramRun run = first.wait();
    EXPECT_EQ(run.exitCode, 5);
    EXPECT_THAT(run.err, HasSubstr("rank 0 failed"));
    EXPECT_THAT(run.err, ContainsRegex("its last task was '.+'"));
    EXPECT_THAT(run.err, HasSubstr("no word came from rank 1"));
    EXPECT_FALSE(std::filesystem::exists(dir.path() / "step.json"));
}

TEST(RunFaults, AFullDiskIsSaidAndTheOldFileStays) {
    const WorkDirWithTinyModel dir;
    for (const std::string flag : {"--trace /dev/full", "--json -o /dev/full"}) {
        const ProgramRun run = dir.ringside("run --model tiny.json --local-ranks 2 --steps 1 " + flag);
        EXPECT_EQ(run.exitCode, 5) << run.err;
        EXPECT_THAT(run.err, HasSubstr("No space left on device"));
    }
    dir.write("step.json", "old");
    // A file may grow to 4 KiB, which a trace does not fit in.
    const ProgramRun run = dir.shell("ulimit -f 4; trap '' XFSZ; ringside run --model tiny.json --local-ranks 2 --steps 1 --trace step.json");
    EXPECT_EQ(run.exitCode, 5) << run.err;
    EXPECT_THAT(run.err, HasSubstr("step.json: cannot write the file"));
    EXPECT_EQ(dir.read("step.json"), "old");
    EXPECT_THAT(dir.files(), ElementsAre("step.json", "tiny.json"));
}

TEST(RunFaults, NotEnoughMemorySaysHowMuchWasAskedForAndWhatToDo) {
    const WorkDirWithTinyModel dir;
    const ProgramRun run = dir.ringside("run --model tiny.json --local-ranks 2 --memory-limit 1M");
    EXPECT_EQ(run.exitCode, 5);
    EXPECT_THAT(run.err, ContainsRegex("rank [01] failed: [0-9.]+ MiB were asked for"));
    EXPECT_THAT(run.err, HasSubstr("there are 1.00 MiB"));
    EXPECT_THAT(run.err, HasSubstr("use a smaller batch or model"));
}

TEST(RunFaults, WithoutTheCudaModuleItSaysSo) {
    const WorkDirWithTinyModel dir;
    BackgroundProgram program(dir, "run --model tiny.json --local-ranks 2 --run-on cuda", {{"RINGSIDE_CUDA_MODULE", "/nowhere/ringside-cuda.so"}});
    const ProgramRun run = program.wait();
    EXPECT_EQ(run.exitCode, 4);
    EXPECT_THAT(run.err, HasSubstr("CUDA"));
    EXPECT_THAT(run.err, HasSubstr("/nowhere/ringside-cuda.so"));
    EXPECT_THAT(run.err, Not(HasSubstr("rank")));  // it is so on all of them
}

TEST(RunFaults, AShapedLinkWithoutTheRightToMakeOneIsAMissingCapability) {
    const WorkDirWithTinyModel dir;
    if (geteuid() == 0 && dir.shell("setpriv --bounding-set=-all true").exitCode != 0) GTEST_SKIP() << "root, and no setpriv to drop its rights with";
    const std::string drop = geteuid() == 0 ? "setpriv --bounding-set=-all --inh-caps=-all " : "";
    const ProgramRun run = dir.shell(drop + RINGSIDE_PROGRAM + " run --model tiny.json --local-ranks 2 --link 200mbit");
    EXPECT_EQ(run.exitCode, 4) << run.err;
    EXPECT_THAT(run.err, StartsWith("ringside: "));
    EXPECT_THAT(run.err, HasSubstr("root"));
}

struct Case {
    std::string name, arguments;
    int exitCode;
    std::vector<std::string> says;
};
std::string nameOf(const testing::TestParamInfo<Case>& info) { return info.param.name; }

class RunRefuses : public testing::TestWithParam<Case> {};

TEST_P(RunRefuses, BeforeAnyRankWorks) {
    const WorkDirWithTinyModel dir;
    const bool asksForLlama = GetParam().arguments.find("llama.json") != std::string::npos;
    if (asksForLlama) dir.write("llama.json", R"({"model_type": "llama", "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 64, "intermediate_size": 128, "vocab_size": 256, "max_position_embeddings": 64})");
    const ProgramRun run = dir.ringside("run " + GetParam().arguments);
    EXPECT_EQ(run.exitCode, GetParam().exitCode) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, StartsWith("ringside: "));
    for (const std::string& words : GetParam().says) EXPECT_THAT(run.err, HasSubstr(words));
    EXPECT_THAT(run.err, Not(HasSubstr("had not begun its first task")));
    if (asksForLlama) EXPECT_THAT(dir.files(), ElementsAre("llama.json", "tiny.json"));
    else EXPECT_THAT(dir.files(), ElementsAre("tiny.json"));
}

const std::string kTiny = "--model tiny.json ", kTwo = "--model tiny.json --local-ranks 2 ";

INSTANTIATE_TEST_SUITE_P(Contradiction, RunRefuses, testing::Values(
    Case{"OtherDevicesThanRanks", kTwo + "--devices 4", 2, {"--devices", "4 devices", "2 ranks"}},
    Case{"PacedAndChecked", kTwo + "--check-against-single --paced", 2, {"--check-against-single", "paced"}},
    Case{"PacedWithoutAProfile", kTwo + "--paced", 2, {"--paced", "--profile", "ringside calibrate"}},
    Case{"NoSteps", kTwo + "--steps 0", 2, {"--steps", "1 to 100000", "'0'"}},
    Case{"NoRanks", kTiny + "--local-ranks 0", 2, {"--local-ranks"}},
    Case{"NegativeTimeOut", kTwo + "--timeout -1", 2, {"--timeout"}},
    Case{"LinkOfOneProcess", kTiny + "--link 200mbit", 2, {"--link", "--local-ranks"}},
    Case{"LinkWithoutAUnit", kTwo + "--link fast", 2, {"--link", "'fast'", "200mbit"}},
    Case{"LearningRate", kTwo + "--learning-rate 0", 2, {"--learning-rate"}},
    Case{"MemoryLimit", kTwo + "--memory-limit lots", 2, {"--memory-limit", "'lots'", "512M"}},
    Case{"UnknownStrategy", kTwo + "--strategy ddq", 3, {"--strategy", "did you mean 'ddp'?"}},
    Case{"UnknownProfile", kTwo + "--profile nothere.json", 3, {"nothere.json", "cannot open"}},
    Case{"LatentAttentionCannotRun", "--model deepseek-v2-lite --seq-len 64 --local-ranks 2", 4, {"latent-heads", "cannot be run for real", "MLPs"}},
    Case{"ExpertsCannotRun", "--model mixtral-8x7b --local-ranks 2", 4, {"router", "cannot be run for real", "MLPs"}},
    Case{"GroupedConvolutionsCannotRun", "--model resnext-50-32x4d --local-ranks 2", 4, {"conv2", "grouped convolution", "cannot be run for real"}},
    Case{"DepthwiseConvolutionsCannotRun", "--model efficientnet-b0 --local-ranks 2", 4, {"grouped convolution", "cannot be run for real"}},
    Case{"BertCannotRun", "--model bert-large --local-ranks 2", 4, {"cannot be run for real"}},
    Case{"Bf16CannotRun", kTwo + "--precision bf16", 4, {"training.precision", "bf16", "use fp32"}}),
    nameOf);

// What the executor does not have, setting by setting: refused by name, not run as something else.
const std::string kLlama = "--model llama.json --local-ranks 2 ", kOne = "--model tiny.json --local-ranks 1 --strategy single --set training.";
INSTANTIATE_TEST_SUITE_P(Setting, RunRefuses, testing::Values(
    Case{"GradientClipping", kTwo + "--set training.gradient_clipping=true", 4, {"training.gradient_clipping", "leave it off"}},
    Case{"KeptGradients", kOne + "zero_grad_set_to_none=false", 4, {"training.zero_grad_set_to_none", "leave it on"}},
    Case{"OptimizerInBackward", kOne + "optimizer_in_backward=true", 4, {"training.optimizer_in_backward", "leave it off"}},
    Case{"OffloadedActivations", kTwo + "--set training.recompute=full --set training.offload_activations=true", 4, {"training.offload_activations", "leave it off"}},
    Case{"Dropout", kTwo + "--set training.dropout=true", 4, {"dropout", "cannot be run for real"}},
    Case{"MathAttention", kTwo + "--set training.attention=math", 4, {"scores", "flash attention"}},
    Case{"FusedSoftmax", kTwo + "--set training.attention=fused-softmax", 4, {"scores", "flash attention"}},
    Case{"Compiled", kTwo + "--set training.compile=true --set training.loss=eager", 4, {"training.compile", "leave it off"}},
    Case{"TransformerEngine", kLlama + "--strategy megatron --set strategy.transformer_impl=transformer_engine", 4, {"strategy.transformer_impl", "leave it at local"}},
    Case{"FusedLoss", kTwo + "--set training.loss=fused", 4, {"a fused loss"}},
    Case{"FusedLinearLoss", kTwo + "--set training.loss=fused-linear", 4, {"a fused loss"}},
    Case{"LossMetrics", kTwo + "--set training.loss_metrics=2", 4, {"a metric beside the loss"}},
    Case{"RepeatedHeads", kLlama + "--set training.repeat_kv=true", 4, {"k.repeated", "repeat-heads"}},
    Case{"EagerNorms", kLlama + "--set training.rms_norm=eager", 4, {"an RMS norm of several kernels", "rms_norm"}},
    Case{"FusedGates", kLlama + "--set training.gated_activation=fused", 4, {"a gated activation in one kernel"}},
    Case{"Adafactor", kTwo + "--set training.optimizer=adafactor", 4, {"training.optimizer", "adafactor", "adamw"}},
    Case{"EightBitAdam", kTwo + "--set training.optimizer=adam-8bit", 4, {"training.optimizer", "adam-8bit"}},
    Case{"StateOnTheHost", kTwo + "--strategy zero1 --set strategy.offload_optimizer=cpu", 4, {"'zero1' with state on the host"}},
    Case{"PowerSgd", kTwo + "--strategy ddp --set strategy.comm_hook=powersgd", 4, {"ddp", "can only be predicted"}},
    Case{"TensorParallel", kTwo + "--tp 2", 4, {"strategy.tp", "cut over ranks", "leave it at 1"}},
    Case{"Pipeline", kTwo + "--pp 2", 4, {"strategy.pp", "cut over ranks"}},
    Case{"ContextParallel", kLlama + "--cp 2", 4, {"strategy.cp", "cut over ranks"}}),
    nameOf);

TEST(RunFaults, LocalRanksUnderALauncherAreAContradiction) {
    const WorkDirWithTinyModel dir;
    BackgroundProgram program(dir, "run --model tiny.json --local-ranks 2", torchrun(0, 2, freePort()));
    const ProgramRun run = program.wait();
    EXPECT_EQ(run.exitCode, 2);
    EXPECT_THAT(run.err, HasSubstr("torchrun has started 2 ranks already"));
    BackgroundProgram half(dir, "run --model tiny.json", {{"RANK", "1"}}, "half");
    const ProgramRun halfRun = half.wait();
    EXPECT_EQ(halfRun.exitCode, 3);
    EXPECT_THAT(halfRun.err, HasSubstr("WORLD_SIZE"));
}

}  // namespace
}  // namespace ringside
