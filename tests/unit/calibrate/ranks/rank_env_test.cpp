#include "calibrate/ranks/rank_env.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringside {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Variables = std::map<std::string, std::string, std::less<>>;

Result<std::optional<RankEnv>> rankEnvWith(const Variables& variables) {
    return rankEnvFrom([&](std::string_view name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        if (found == variables.end()) return std::nullopt;
        return found->second;
    });
}

struct Case {
    const char* what;
    Variables variables;
    int rank, size, localRank;
    std::string address;
    int port;
    std::string launcher;
};

TEST(RankEnv, IsReadFromWhatLaunchersSet) {
    const std::vector<Case> cases = {
        {"torchrun", {{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29400"}}, 3, 8, 1, "node0", 29400, "torchrun"},
        {"torchrun whose agent listens at its port",
         {{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "38869"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}}, 3, 8, 1, "node0", 18869, "torchrun"},
        {"the same at a low port",
         {{"RANK", "0"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "12345"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}}, 0, 8, 0, "node0", 22345, "torchrun"},
        {"torchrun without a port", {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node0"}}, 0, 2, 0, "node0", 29500, "torchrun"},
        {"one rank needs no master", {{"RANK", "0"}, {"WORLD_SIZE", "1"}}, 0, 1, 0, "127.0.0.1", 29500, "torchrun"},
        {"torchrun that srun started",
         {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "a"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}, 5, 8, 1, "a", 29500, "torchrun"},
        {"SLURM",
         {{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "1"}, {"SLURM_JOB_NODELIST", "gpu[07-08,11]"}, {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.9"}},
         5, 8, 1, "gpu07", 29500, "SLURM"},
        {"a SLURM job has a port of its own",
         {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_JOB_ID", "1234567"}, {"SLURM_STEP_ID", "0"}, {"SLURM_JOB_NODELIST", "n1,n2"}}, 1, 2, 0, "n1", 24567, "SLURM"},
        {"SLURM without a host list", {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.9"}}, 1, 2, 0, "10.0.0.9", 29500, "SLURM"},
        {"SLURM with a master of the user's",
         {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_JOB_NODELIST", "n1,n2"}, {"MASTER_ADDR", "n1-ib"}, {"MASTER_PORT", "4000"}}, 1, 2, 0, "n1-ib", 4000, "SLURM"},
        {"the step's hosts win over the job's",
         {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_JOB_NODELIST", "n[1-4]"}, {"SLURM_STEP_NODELIST", "n[3-4]"}}, 0, 2, 0, "n3", 29500, "SLURM"},
        {"Open MPI on one machine",
         {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}, 1, 2, 1, "127.0.0.1",
         29500, "Open MPI"},
        {"Open MPI inside SLURM, whose own variables are those of its daemon",
         {{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"MASTER_ADDR", "n1"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_ID", "1"}}, 3, 4, 0,
         "n1", 29500, "Open MPI"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.what);
        const auto env = rankEnvWith(c.variables);
        ASSERT_TRUE(env.has_value()) << env.error().toString();
        ASSERT_TRUE(env->has_value());
        EXPECT_EQ((*env)->rank, c.rank);
        EXPECT_EQ((*env)->size, c.size);
        EXPECT_EQ((*env)->localRank, c.localRank);
        EXPECT_EQ((*env)->masterAddress, c.address);
        EXPECT_EQ((*env)->masterPort, c.port);
        EXPECT_EQ((*env)->launcher, c.launcher);
    }
}

TEST(RankEnv, KnowsHowManyRanksTheMachineHasWhereTheLauncherSaysSo) {
    const std::vector<std::tuple<Variables, int>> cases = {
        {{{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}}, 4},
        {{{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "a"}}, 0},
        {{{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}}, 0},  // but which of them this one is, it does not say
        {{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}, 2},
        // Nodes 0 and 1 have three tasks each, node 2 has one: rank 6 is alone there.
        {{{"SLURM_PROCID", "6"}, {"SLURM_NTASKS", "7"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "2"}, {"SLURM_STEP_TASKS_PER_NODE", "3(x2),1"}, {"MASTER_ADDR", "a"}}, 1},
        {{{"SLURM_PROCID", "6"}, {"SLURM_NTASKS", "7"}, {"SLURM_LOCALID", "0"}, {"SLURM_STEP_TASKS_PER_NODE", "3(x2),1"}, {"MASTER_ADDR", "a"}}, 0},
    };
    for (const auto& [variables, localSize] : cases) {
        const auto env = rankEnvWith(variables);
        ASSERT_TRUE(env.has_value()) << env.error().toString();
        EXPECT_EQ((*env)->localSize, localSize);
    }
}

TEST(TasksPerNode, AreRunsOfEqualNumbers) {
    EXPECT_EQ(*tasksOfNode("4", 0), 4);
    EXPECT_EQ(*tasksOfNode("4(x2),1", 1), 4);
    EXPECT_EQ(*tasksOfNode("4(x2),1", 2), 1);
    EXPECT_EQ(*tasksOfNode("2,3(x10),4", 10), 3);
    for (const char* bad : {"", "x", "4(2)", "4(x", "4(x0)", "0", "-1", "4;4"}) EXPECT_FALSE(tasksOfNode(bad, 1).has_value()) << bad;
    EXPECT_FALSE(tasksOfNode("4(x2),1", 3).has_value());
}

TEST(RankEnv, IsNothingWithoutALauncher) {
    for (const Variables& variables : {Variables{}, Variables{{"MASTER_ADDR", "n1"}}, Variables{{"RANK", ""}},
                                       // A batch script is one process, whatever the job was given.
                                       Variables{{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_NODELIST", "n[1-2]"}},
                                       Variables{{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "8"}}}) {
        const auto env = rankEnvWith(variables);
        ASSERT_TRUE(env.has_value()) << env.error().toString();
        EXPECT_FALSE(env->has_value());
    }
}

TEST(RankEnv, ThatIsHalfSetOrContradictoryIsRefusedWithWhatToDo) {
    const std::vector<std::tuple<Variables, std::string, std::string>> cases = {
        {{{"RANK", "1"}}, "WORLD_SIZE", "RANK=1"},
        {{{"WORLD_SIZE", "2"}}, "RANK", "torchrun"},
        {{{"RANK", "1"}, {"WORLD_SIZE", "2"}}, "MASTER_ADDR", "machine of rank 0"},
        {{{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}, "RANK", "0 to 1"},
        {{{"RANK", "one"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}, "RANK", "'one'"},
        {{{"RANK", "-1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}, "RANK", "'-1'"},
        {{{"RANK", "0"}, {"WORLD_SIZE", "0"}, {"MASTER_ADDR", "a"}}, "WORLD_SIZE", "'0'"},
        {{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "2"}, {"MASTER_ADDR", "a"}}, "LOCAL_RANK", "never above"},
        {{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "70000"}}, "MASTER_PORT", "65535"},
        {{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "80x"}}, "MASTER_PORT", "'80x'"},
        {{{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}, "LOCAL_RANK", "has 2 ranks"},
        {{{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_LOCALID", "1"}, {"SLURM_NODEID", "0"}, {"SLURM_STEP_TASKS_PER_NODE", "two"}}, "SLURM_STEP_TASKS_PER_NODE", "'two'"},
        {{{"SLURM_PROCID", "1"}}, "SLURM_NTASKS", "srun"},
        {{{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}, "SLURM_JOB_NODELIST", "MASTER_ADDR"},
        {{{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_JOB_NODELIST", "n[1-2"}}, "SLURM_JOB_NODELIST", "closed brackets"},
        {{{"OMPI_COMM_WORLD_RANK", "1"}}, "OMPI_COMM_WORLD_SIZE", "mpirun"},
        {{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}}, "MASTER_ADDR", "mpirun -x MASTER_ADDR"},
    };
    for (const auto& [variables, place, says] : cases) {
        const auto env = rankEnvWith(variables);
        ASSERT_FALSE(env.has_value()) << place << ": " << says;
        EXPECT_EQ(env.error().code, ErrorCode::BadInput);
        EXPECT_EQ(env.error().place, place);
        EXPECT_THAT(env.error().message, HasSubstr(says));
    }
}

TEST(HostList, BeginsWithItsFirstHost) {
    EXPECT_EQ(*firstHostOf("login1"), "login1");
    EXPECT_EQ(*firstHostOf("a,b"), "a");
    EXPECT_EQ(*firstHostOf("gpu[07-09,12],login1"), "gpu07");
    EXPECT_EQ(*firstHostOf("gpu[3]"), "gpu3");
    EXPECT_EQ(*firstHostOf("rack[0-1]node[2,4-5].cluster"), "rack0node2.cluster");
    for (const char* bad : {"", ",a", "a[1", "a[", "a[]"}) EXPECT_FALSE(firstHostOf(bad).has_value()) << bad;
}

}  // namespace
}  // namespace ringside
