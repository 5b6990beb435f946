// SPDX-License-Identifier: Apache-2.0
// Batch scripts: what they ask for, by the examples of the sites' own documentation, and that a shell takes them as
// meant.
#include "search/script.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "search/charge.hpp"

namespace rehearse::search {

void PrintTo(Scheduler scheduler, std::ostream* out) {
    *out << (scheduler == Scheduler::slurm ? "slurm" : scheduler == Scheduler::lsf ? "lsf" : "pbs");
}

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

const BatchJob job{.name = "gpt",
                   .command = "python train.py",
                   .ranks = 24,
                   .nodes = 6,
                   .ranks_per_node = 4,
                   .gpus = true,
                   .limit = Seconds{3601},
                   .account = "m1234_g"};

std::string output_of(const std::string& command) {
    std::string text;
    FILE* pipe = popen(command.c_str(), "r");
    std::array<char, 256> part{};
    while (fgets(part.data(), part.size(), pipe) != nullptr) text += part.data();
    pclose(pipe);
    return text;
}

/// A folder with a script, and launchers that only say with which arguments they were started.
class Folder {
public:
    explicit Folder(const std::string& script) {
        std::string name = (std::filesystem::temp_directory_path() / "rehearse_script_XXXXXX").string();
        path_ = mkdtemp(name.data());
        std::ofstream{path_ / "job.sh"} << script;
        for (const char* launcher : {"srun", "jsrun", "mpiexec"}) {
            std::ofstream{path_ / launcher} << "#!/bin/bash\nwhile [ \"$1\" != bash ]; do shift; done\n\"$@\"\n";
            std::filesystem::permissions(path_ / launcher, std::filesystem::perms::owner_all);
        }
        std::ofstream{path_ / "hosts"} << "batch01\nnode7\nnode8\n";
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    bool parses() const { return std::system(("bash -n '" + (path_ / "job.sh").string() + "'").c_str()) == 0; }
    std::string run() const {
        return output_of(
            "cd '" + path_.string() +
            "' && PATH=.:$PATH SLURM_PROCID=5 SLURM_LOCALID=1 OMPI_COMM_WORLD_RANK=5 "
            "OMPI_COMM_WORLD_LOCAL_RANK=1 PMI_RANK=5 PMI_LOCAL_RANK=1 LSB_DJOB_HOSTFILE=hosts PBS_NODEFILE=hosts "
            "PBS_O_WORKDIR=. bash job.sh 2>&1");
    }
    bool has(const char* file) const { return std::filesystem::exists(path_ / file); }

private:
    std::filesystem::path path_;
};

// https://docs.nersc.gov/systems/perlmutter/running-jobs/
TEST(Script, AsksSlurmAsNerscsExamplesDo) {
    EXPECT_THAT(batch_script(Scheduler::slurm, site_of("perlmutter"), job),
                AllOf(HasSubstr("#SBATCH --nodes=6\n"), HasSubstr("#SBATCH --ntasks=24\n"),
                      HasSubstr("#SBATCH --ntasks-per-node=4\n"), HasSubstr("#SBATCH --time=01:01:00\n"),
                      HasSubstr("#SBATCH --gpus-per-node=4\n"), HasSubstr("#SBATCH --gpu-bind=none\n"),
                      HasSubstr("#SBATCH --constraint=gpu\n"), HasSubstr("#SBATCH --qos=regular\n"),
                      HasSubstr("#SBATCH --cpus-per-task=32\n"), HasSubstr("#SBATCH --account=m1234_g\n"),
                      HasSubstr("SLURM_CPU_BIND=cores"), HasSubstr("srun --distribution=block,Pack ")));
    BatchJob other = job;
    other.constraint = "gpu&hbm80g";
    other.queue = "debug";
    other.account.clear();
    EXPECT_THAT(batch_script(Scheduler::slurm, site_of("perlmutter"), other),
                AllOf(HasSubstr("#SBATCH --constraint=gpu&hbm80g\n"), HasSubstr("#SBATCH --qos=debug\n"),
                      HasSubstr("##SBATCH --account=YOUR_ACCOUNT\n"), Not(HasSubstr("regular"))));
}

// https://apps.fz-juelich.de/jsc/hps/juwels/batchsystem.html
TEST(Script, AsksSlurmAsJuelichsExamplesDo) {
    EXPECT_THAT(batch_script(Scheduler::slurm, site_of("juwels-booster"), job),
                AllOf(HasSubstr("#SBATCH --gres=gpu:4\n"), HasSubstr("#SBATCH --partition=booster\n")));
}

// https://docs.olcf.ornl.gov/systems/summit_user_guide.html: jsrun -n24 -a1 -c7 -g1 -r6 -b packed:7 -d packed
TEST(Script, AsksLsfAsOlcfsExamplesDo) {
    BatchJob six = job;
    six.nodes = 4;
    six.ranks_per_node = 6;
    const Site& summit = site_of("summit");
    EXPECT_EQ(summit.scheduler, Scheduler::lsf);
    EXPECT_THAT(
        batch_script(Scheduler::lsf, summit, six),
        AllOf(HasSubstr("#BSUB -nnodes 4\n"), HasSubstr("#BSUB -W 01:01\n"), HasSubstr("#BSUB -P m1234_g\n"),
              HasSubstr("jsrun --nrs 24 --tasks_per_rs 1 --cpu_per_rs 7 --bind packed:7 --gpu_per_rs 1 --rs_per_host 6 "
                        "--launch_distribution packed")));
}

// https://docs.alcf.anl.gov/polaris/running-jobs/
TEST(Script, AsksPbsAsAlcfsExamplesDo) {
    BatchJob queued = job;
    queued.queue = "prod";
    queued.constraint = "system=polaris";
    EXPECT_THAT(
        batch_script(Scheduler::pbs, site_of("no such place"), queued),
        AllOf(HasSubstr("#PBS -l select=6:mpiprocs=4:ngpus=4:system=polaris\n"), HasSubstr("#PBS -l place=scatter\n"),
              HasSubstr("#PBS -l walltime=01:01:00\n"), HasSubstr("#PBS -q prod\n"), HasSubstr("#PBS -A m1234_g\n"),
              HasSubstr("mpiexec -n 24 --ppn 4"), HasSubstr("--cpu-bind depth")));
}

TEST(Script, KnowsThatAlcfsMachinesHavePbs) {
    for (const char* machine : {"polaris", "aurora"}) EXPECT_EQ(site_of(machine).scheduler, Scheduler::pbs) << machine;
}

class Shell : public testing::TestWithParam<Scheduler> {};

TEST_P(Shell, TakesTheScriptAndGivesTheCommandItsRank) {
    BatchJob shown = job;
    shown.command = "echo \"$RANK $LOCAL_RANK $WORLD_SIZE\" it\\'s && echo ${MASTER_ADDR:+there}";
    const Folder folder{batch_script(GetParam(), site_of("summit"), shown)};
    EXPECT_TRUE(folder.parses());
    EXPECT_EQ(folder.run(), "5 1 24 it's\nthere\n");
}

TEST_P(Shell, RunsNothingThatANameSays) {
    BatchJob named = job;
    named.name = "net$(touch ran)`touch ran`\n touch ran.onnx";
    named.command = "printf %s " + shell_word("net$(touch ran)`touch ran`;touch ran'\"'.onnx");
    const Folder folder{batch_script(GetParam(), site_of("summit"), named)};
    EXPECT_TRUE(folder.parses());
    EXPECT_EQ(folder.run(), "net$(touch ran)`touch ran`;touch ran'\"'.onnx");
    EXPECT_FALSE(folder.has("ran"));
}

INSTANTIATE_TEST_SUITE_P(Schedulers, Shell, testing::Values(Scheduler::slurm, Scheduler::lsf, Scheduler::pbs),
                         testing::PrintToStringParamName());

TEST(Script, RefusesWhatADirectiveCannotHold) {
    BatchJob bad = job;
    bad.account = "a b\n#SBATCH --nodes=999";
    EXPECT_THAT([&] { batch_script(Scheduler::slurm, {}, bad); }, ThrowsMessage<InputError>(HasSubstr("--account")));
    bad = job;
    bad.command = "python a.py\npython b.py";
    EXPECT_THAT([&] { batch_script(Scheduler::slurm, {}, bad); }, ThrowsMessage<InputError>(HasSubstr("--command")));
}

// 1000 samples three times, 64 at a time: 46 whole steps and a part of one. A tenth more than 47 steps of 2 s, or of
// the 3 s that they may take.
TEST(Charge, IsThatOfAllStepsAtTheirLongest) {
    const predict::Training training{.dataset = 1000, .epochs = 3};
    EXPECT_EQ(steps_of(training, 64), 47);
    EXPECT_EQ(steps_of({}, 64), 100);
    EXPECT_DOUBLE_EQ(wall_limit(47, Seconds{2}, Seconds{3}).value, 155.1);
    EXPECT_DOUBLE_EQ(wall_limit(47, Seconds{2}, Seconds{}).value, 103.4);
    EXPECT_DOUBLE_EQ(kilowatt_hours(12, 1500), 18);
}

}  // namespace
}  // namespace rehearse::search
