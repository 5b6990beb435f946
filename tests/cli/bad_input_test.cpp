// SPDX-License-Identifier: Apache-2.0
// Wrong input ends with exit code 2, nothing on stdout, and a message that says what would be right.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "tests/cli/process.hpp"

namespace rehearse {
namespace {

using testing::HasSubstr;

struct Wrong {
    const char* arguments;
    const char* message;
};

class BadInput : public Program {
protected:
    void expect_refused(const std::vector<Wrong>& cases) const {
        for (const Wrong& wrong : cases) {
            SCOPED_TRACE(wrong.arguments);
            const Output output = run(wrong.arguments);
            EXPECT_EQ(output.code, 2) << output.err;
            EXPECT_EQ(output.out, "");
            EXPECT_THAT(output.err, HasSubstr(wrong.message));
            EXPECT_THAT(output.err, testing::StartsWith("rehearse: "));
            EXPECT_LT(std::count(output.err.begin(), output.err.end(), '\n'), 4) << "one clear message";
        }
    }
};

TEST_F(BadInput, OfCommandsAndOptions) {
    expect_refused({{"", "there are predict, search, cluster, report, run, study, schedule, compare"},
                    {"predit", "did you mean 'predict'"},
                    {"models --frmat json", "did you mean '--format'"},
                    {"models --format yaml", "table, csv, json"},
                    {"compare one.json", "MEASURED"},
                    {"export a.json --to perfetto", "file to write"},
                    {"export a.json b.json --to perfeto", "did you mean 'perfetto'"},
                    {"machines --plot m.svg", "NAME"},
                    {"machines summit --plot m.jpg", "m.jpg"}});
}

TEST_F(BadInput, OfNamesAndFiles) {
    write("bad.json", "{\"traceEvents\": [");
    expect_refused(
        {{"models resnet51", "did you mean 'resnet50'"},
         {"machines sumit", "did you mean 'summit'"},
         {"machines no-such.toml", "no-such.toml"},
         {"compare no-such.json no-such.json", "no-such.json"},
         {"compare bad.json bad.json", "bad.json"},
         {"calibrate --trace bad.json", "--machine-out"},
         {"calibrate --trace bad.json --model mlp,vgg8 --machine cori-haswell --machine-out m.toml", "the one --model"},
         {"calibrate --trace bad.json --model mlp --machine cori-haswell --machine-out m.toml", "cut off at byte 17"},
         {"models --output /no/such/folder/x", "/no/such/folder"},
         {"models --output /proc/x", "cannot be written"},
         {"models --output {}", "directory"}});
}

#if REHEARSE_HAS_SIM
TEST_F(BadInput, OfClusters) {
    write("speeds.csv", "model,devices,batch_per_device,step_s\nnet,1,8,0.5\n");
    write("jobs.csv", "name,model,arrival_s,samples,devices,batch\na,net,0,100,2,8\n");
    write("odd.csv", "name,model,arrival_s,samples,devices,batch\na,net,0,100,2,9\n");
    expect_refused({{"cluster", "give --jobs FILE.csv or --workload"},
                    {"cluster --workload poison:model=net", "did you mean 'poisson'"},
                    {"cluster --workload poisson:model=net --policy elastc", "did you mean 'elastic'"},
                    {"cluster --workload poisson:model=net --interval 5", "unit"},
                    {"cluster --jobs no-such.csv", "no-such.csv"},
                    {"cluster --jobs {}/jobs.csv --speeds {}/speeds.csv", "no speed of net on 2 devices"},
                    {"cluster --jobs {}/speeds.csv", "no column 'name'"},
                    {"cluster --jobs {}/jobs.csv --pilot 3", "--pilot: with --run"},
                    {"cluster --workload poisson:model=net --run {}/new --pilot 3", "--pilot: with --jobs"},
                    {"cluster --jobs {}/jobs.csv --run {} --speeds {}/speeds.csv", "is not empty"},
                    {"cluster --jobs {}/odd.csv --run {}/new", "a batch of 9 on 2 devices"},
                    {"run --model lenet5 --rebatch", "with --resume"},
                    {"run --model lenet5 --patience 1s", "with servers"},
                    {"run --model lenet5 --patience 5", "unit"},
                    {"run --model lenet5 --tune-learners 2", "with a plan of data:learners=N"},
                    {"run --model lenet5 --tune-learners 2 --plan data:learners=3 --batch 3", "no more than that"},
                    {"run --model lenet5 --tune-learners 2 --plan data:learners=2 --batch 3", "share it evenly"},
                    {"run --model lenet5 --tune-learners 2 --gain 2 --plan data:learners=1", "from 0% to 100%"},
                    {"run --model lenet5 --target-loss -1", "--target-loss -1: at least 0"},
                    {"run --model lenet5 --stop-file x --check-gradients", "not with --check-gradients"},
                    {"run --model lenet5 --plan data:local=2 --stop-file x", "states of their own"}});
}

// Each of these was taken and had no effect, or a message did not say of which option it was.
TEST_F(BadInput, OfOptionsThatSayNothingAboutThisJob) {
    expect_refused({{"predict --sizes tokens=3", "--sizes tokens=3: 'resnet50' leaves no size open"},
                    {"predict --model bert-base --sizes tokens=3", "bert-base@128"},
                    {"predict --model llama3-8b@2048 --sizes tokens=64", "'llama3-8b@2048' says its tokens already"},
                    {"predict --devices 8 --batch 32 --global-batch 256", "--batch excludes --global-batch"},
                    {"predict --epochs 3", "--epochs requires --dataset"},
                    {"predict --input alpine --sample 57mb", "--sample: '57mb' is not a size"},
                    {"search --global-batch 8 --deadline 5days", "--deadline: "},
                    {"search --global-batch 8 --memory-limit 5", "--memory-limit: "},
                    {"predict --model {}", "is a directory without a config.json"}});
}

TEST_F(BadInput, OfPilots) {
    write("other.json", R"({"model": "lenet5", "points": [{"devices": 4, "global_batch": 128, "step_s": 0.1}]})");
    write("batch.json", R"({"points": [{"devices": 4, "global_batch": 64, "step_s": 0.1}]})");
    write("none.json", "[1, 2]");
    expect_refused({{"predict --pilot 4=1320", "samples/s or a time, like 4=1320/s or 4=97ms"},
                    {"predict --pilot 97ms", "like 4=1320/s or 4=97ms"},
                    {"predict --pilot four=97ms", "like 4=1320/s or 4=97ms"},
                    {"predict --pilot 4=97furlongs", "like 4=1320/s or 4=97ms"},
                    {"predict --pilot 0=97ms", "0 devices; at least 1"},
                    {"predict --pilot 4=-1/s", "a rate or a time above 0"},
                    {"predict --pilot 4=97ms --pilot 4=1320/s", "two of 4 devices"},
                    {"predict --pilot 99999=97ms", "27648"},
                    {"predict --pilot no-such.json", "no-such.json"},
                    {"predict --pilot {}/none.json", "no points of `rehearse run` or `predict`"},
                    {"predict --pilot {}/other.json", "model lenet5, but resnet50 is predicted"},
                    {"predict --pilot {}/batch.json", "measured with 64 samples a step, the prediction has 128"}});
}

TEST_F(BadInput, OfLearners) {
    expect_refused(
        {{"learners --model resnet32 --plan data:local=2", "leave them out"},
         {"learners --model resnet32 --most 0", "at least 1 learner"},
         {"predict --model resnet32 --assign idle", "plan 'data=1' has none"},
         {"predict --model resnet32 --plan data:learners=2 --batch 32 --learner-paces 2",
          "1 given, but a device has 2"},
         {"predict --model resnet32 --plan data:learners=2 --batch 32 --learner-paces 1,0", "from 1 to 1000"},
         {"learners --model resnet32 --plan pipe=1", "learners need the data axis"},
         {"learners --model resnet32 --batches 0", "at least 1 sample"},
         {"learners --model resnet32 --gain much", "--gain"},
         {"learners --model resnet32 --gain 1.5", "--gain 1.5: from 0 to 1"},
         {"learners --model resnet32 --critical-batch 500", "--dataset"}});
}
#endif

#if REHEARSE_HAS_BENCH && REHEARSE_HAS_MPI
TEST_F(BadInput, OfBenchmarksOfMessages) {
    expect_refused({{"bench allreduce", "two ranks"},
                    {"bench allreduce ring", "takes no problem strings"},
                    {"bench allreduce --type f64", "f32, f16 or bf16"},
                    {"bench allreduce --min 1MiB --max 1KiB", "no less than the minimum"},
                    {"bench allreduce --max 8", "unit"},
                    {"bench allreduce --factor 1", "above 1"},
                    {"bench allreduce --samples no-such.json", "no-such.json"}});
}
#endif

#if REHEARSE_HAS_BENCH
TEST_F(BadInput, OfBenchmarksAndCalibrations) {
    expect_refused({{"bench", "one of conv, gemm, layer"},
                    {"bench cnov", "did you mean 'conv'"},
                    {"bench conv", "nothing to time"},
                    {"bench alreduce", "did you mean 'allreduce'"},
                    {"bench conv conv2d:n1", "conv2d:n1"},
                    {"bench conv --suite resnet51", "did you mean 'resnet50'"},
                    {"bench conv --suite deepbench-trane", "did you mean 'deepbench-train'"},
                    {"bench conv --suite lenet5 --filter '('", "--filter '('"},
                    {"bench conv --suite lenet5 --filter k77", "no problem matches"},
                    {"bench conv --suite lenet5 --roofline a.jpg", ".svg, .png or .pdf"},
                    {"bench gemm --suite lenet5 --winners a.svg", "--winners: not of bench gemm"},
                    {"bench stream --suite lenet5", "takes no problems"},
                    {"bench stream --threads 0", "--threads"},
                    {"bench stream --threads 1 --filter L9", "no level is wanted"},
                    {"bench peak --filter f32", "--filter: not of bench peak"},
                    {"bench conv --suite lenet5 --threads 2", "OMP_NUM_THREADS"},
                    {"bench peak --out a.json", "--out"},
                    {"bench conv --suite lenet5 --backend onednm", "no backend of this build"},
                    {"bench gemm conv2d:n2c4h8w8k4r3s3:pad1:stride1:f32:forward", "nothing to time"},
                    {"bench conv --suite lenet5 --budget -1", "--budget"},
                    {"calibrate --samples no-such.json", "--machine"},
                    {"calibrate --samples no-such.json --machine summit --machine-out a.toml", "no-such.json"},
                    {"calibrate --samples no-such.json --between cores", "nodes, devices"},
                    {"calibrate --plan data=two", "data=two"},
                    {"calibrate --quick --batch 0", "--batch 0"},
                    {"calibrate --quick --model lenet6", "did you mean 'lenet5'"}});
}
#endif

#if REHEARSE_HAS_MPI && REHEARSE_HAS_BENCH
// A hundred million were a segmentation fault, five thousand took minutes.
TEST_F(BadInput, OfMoreThreadsThanAnyHostHas) {
    const char* const set = std::getenv("OMP_NUM_THREADS");
    const std::string usual = set ? set : "1";
    for (const char* threads : {"1025", "100000000"}) {
        setenv("OMP_NUM_THREADS", threads, 1);
        const std::string message = std::string{"asks for "} + threads + " threads of a rank; at most 1024";
        expect_refused({{"run --model lenet5 --batch 2 --steps 1", message.c_str()},
                        {"bench conv --suite lenet5", message.c_str()},
                        {"calibrate --quick", message.c_str()}});
    }
    setenv("OMP_NUM_THREADS", usual.c_str(), 1);
    expect_refused({{"bench stream --threads 1025", "at most 1024"}});
}

TEST_F(BadInput, OfADeviceThatIsNotThere) {
    expect_refused({{"calibrate --device cuda", "--machine-out"},
                    {"bench allreduce --device cuda", "not of a device"},
                    {"bench conv --suite lenet5 --type f64", "f32, f16 or bf16"},
                    {"bench conv --suite lenet5 --device gpu", "there are: cpu, cuda"}});
    expect_refused(
        {{"run --model lenet5 --batch 2 --steps 1 --device gpu", "there are: cpu, cuda"},
         {"run --model lenet5 --batch 2 --steps 1 --learners 2", "--device cuda"},
         {"run --model lenet5 --batch 2 --steps 1 --learners 0", "at least 1"},
         {"run --model lenet5 --batch 2 --steps 1 --momentum 1", "--momentum 1: from 0 to below 1"},
         {"run --model lenet5 --batch 2 --steps 1 --momentum -0.1", "--momentum -0.1: from 0 to below 1"},
         {"run --model lenet5 --batch 2 --steps 1 --assign idle", "and the plan has none"},
         {"run --model lenet5 --batch 2 --steps 1 --unlocked 2 --plan data:local=2", "--momentum 0"},
         {"run --model lenet5 --batch 2 --steps 1 --plan data:learners=2 --trace x.json", "kernels overlap"}});
    for (const char* command : {"run --model lenet5 --batch 2 --steps 1 --device cuda",
                                "calibrate --device cuda --model lenet5 --machine-out gpu.toml",
                                "bench conv --device cuda --suite lenet5", "bench peak --device cuda"}) {
        const Output output = run(command);
        if (output.code == 0) GTEST_SKIP() << "there is a GPU";
        EXPECT_EQ(output.code, 2) << output.err;
        EXPECT_THAT(output.err, HasSubstr("cuda"));
        EXPECT_FALSE(std::filesystem::exists(path("gpu.toml")));
    }
}
#endif

TEST_F(BadInput, NeverOverwritesUnasked) {
    write("mine.txt", "precious");
    expect_refused({{"models --output mine.txt", "--force"}});
    EXPECT_EQ(read("mine.txt"), "precious");
    EXPECT_EQ(run("models --output mine.txt --force").code, 0);
    EXPECT_THAT(read("mine.txt"), HasSubstr("resnet50"));
}

TEST_F(BadInput, OfFilesToWrite) {
    std::filesystem::create_symlink(path("b"), path("a"));
    std::filesystem::create_symlink(path("a"), path("b"));
    const std::string longest(300, 'x');
    expect_refused({{"models --output {}/a", "levels of symbolic links"},
                    {("models --output {}/" + longest).c_str(), "name too long"},
                    {"models {}/a", "levels of symbolic links"},
                    {"schedule --model lenet5 --draw {}/x.svg --output {}/./x.svg", "--output and --draw both name"}});
    EXPECT_EQ(run("models --output /dev/null").code, 0);
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

// What could not be written is no success, of help either.
TEST_F(BadInput, OfAFullDisk) {
    if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
    for (const char* arguments : {"--help", "predict --help", "models", "models --format json"}) {
        SCOPED_TRACE(arguments);
        const Output output = run(std::string{arguments} + " > /dev/full 2> {}/err # and not to");
        EXPECT_EQ(output.code, 3);
        EXPECT_THAT(output.err, HasSubstr("stdout cannot be written"));
    }
}

// A limit of the shell or the batch system, which would end the process by a signal.
TEST_F(BadInput, OfFilesBeyondTheirLimit) {
    write("table.json", "before");
    const rlimit kilobyte{1024, RLIM_INFINITY};
    rlimit usual{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &kilobyte), 0);
    const Output output = run("models --format json --output {}/table.json --force");
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &usual), 0);
    EXPECT_EQ(output.code, 2);
    EXPECT_THAT(output.err, HasSubstr("table.json: cannot be written: File too large"));
    EXPECT_EQ(read("table.json"), "before");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator{path("")}, {}), 3) << "table.json, out and err";
}

// CLI11 would read the first as 8 and the second as 16, take the third for 0 and the fourth for the largest there is.
TEST_F(BadInput, OfNumbers) {
    for (const char* number : {"010", "0x10", "''", "100000000000000000000000", "1e3", "+5", "' 5'", "5.0"}) {
        SCOPED_TRACE(number);
        const Output output = run(std::string{"models resnet50 --depth "} + number);
        EXPECT_EQ(output.code, 2);
        EXPECT_THAT(output.err, HasSubstr("a whole number, in decimal digits"));
    }
    expect_refused({{"schedule --batch 010", "a whole number, in decimal digits"},
                    {"schedule --devices 0x2", "a whole number, in decimal digits"},
                    {"schedule --batch -8", "at least 1"},
                    {"schedule --batch 1000000001", "at most 1000000000"}});
    EXPECT_EQ(run("schedule --model lenet5 --batch 8").code, 0);
}

// Bytes that turn a terminal's screen over, of a name or a file.
TEST_F(BadInput, NeverReachesATerminalAsItIs) {
    const Output output = run("models \"$(printf 'a\\033[2J\\377')\"");
    EXPECT_EQ(output.code, 2);
    EXPECT_THAT(output.err, HasSubstr("a\\x1b[2J\\xff"));
}

// docs/limits.md: one more is refused with the limit; the limit itself is not, and what is said is of the network.
TEST_F(BadInput, BeyondTheLimitsOfOptions) {
    struct Limit {
        std::string command, option;
        std::int64_t most = 0;
    };
    std::vector<Limit> limits{{"schedule", "batch", 1'000'000'000}, {"schedule", "global-batch", 1'000'000'000}};
#if REHEARSE_HAS_SIM
    limits.insert(limits.end(), {{"predict", "steps", 10'000},
                                 {"predict", "samples", 100'000},
                                 {"predict", "data-servers", 1'000'000},
                                 {"search", "top", 10'000},
                                 {"search", "max-tensor", 65'536},
                                 {"search", "max-pipe", 65'536},
                                 {"search", "max-expert", 65'536},
                                 {"search", "max-chunks", 1'024},
                                 {"learners", "most", 1'000}});
    expect_refused({{"cluster --devices 1000001", "at most 1000000"}});
#endif
#if REHEARSE_HAS_MPI
    limits.insert(limits.end(), {{"run", "steps", 1'000'000'000}, {"run", "learners", 1'000}});
#endif
    for (const Limit& limit : limits) {
        const std::string before = fmt::format("{} --model no-such-network --{} ", limit.command, limit.option);
        const std::string beyond = before + std::to_string(limit.most + 1), at = before + std::to_string(limit.most);
        expect_refused({{beyond.c_str(), fmt::format("at most {}", limit.most).c_str()},
                        {at.c_str(), "unknown network 'no-such-network'"}});
    }
}

#if REHEARSE_HAS_SIM
TEST_F(BadInput, OfPredictions) {
    write("mine.json", "precious");
    expect_refused({{"predict --devices 0", "0"},
                    {"predict --quorum 1.5", "--quorum 1.5: a share of the ranks above 0, at most 1"},
                    {"predict --quorum 0", "--quorum 0: a share of the ranks above 0, at most 1"},
                    {"predict --devices -3", "-3"},
                    {"predict --devices abc", "abc"},
                    {"predict --devices 6 --batch -1", "-1"},
                    {"predict --devices 6 --batch 0", "batch"},
                    {"predict --devices 6 --global-batch 100", "100"},
                    {"predict --devices 27649", "27648"},
                    {"predict --devices 8 --plan data=4", "8"},
                    {"predict --devices 8 --plan dat", "did you mean 'data'"},
                    {"predict --devices 8 --plan data:allreduce=rnig", "did you mean 'ring'"},
                    {"predict --devices 8 --plan data:bucket=25", "unit"},
                    {"predict --devices 8 --plan data:tables=shared:shares=balanced", "shares does not go with tables"},
                    {"predict --devices 8 --plan data:kfac=1:shares=balanced", "shares does not go with kfac"},
                    {"predict --devices 8 --plan data:tables=shared", "has no tables of embeddings"},
                    {"predict --devices 8 --plan data:kfac=2:microbatches=2", "kfac does not go with microbatches"},
                    {"predict --devices 8 --plan data:damping=0.1", "damping needs kfac"},
                    {"predict --devices 8 --plan 'data:allreduce=hierarchical(ring,ring)'", "6"},
                    {"predict --devices 8 --mode fold", "did you mean 'folded'"},
                    {"predict --devices 8 --noise 2", "from 0 to 1"},
                    {"predict --devices 8 --noise 5% --samples 0", "at least 1"},
                    {"predict --devices 8 --noise measured", "never measured on a device of 'summit'"},
                    {"predict --devices 8 --slow 3", "NODE=TIMES"},
                    {"predict --devices 8 --slow 5000=2", "nodes 0 to 4607"},
                    {"predict --devices 8 --degrade node9999:nic0:up=50%", "no link"},
                    {"predict --devices 8 --degrade node0:nic0:up=150%", "from 0 (it has failed) to 1"},
                    {"predict --devices 8 --degrade node0:nic*=0", "to any NIC"},
                    {"predict --devices 8 --quorum 0", "above 0"},
                    {"predict --devices 8 --backup 8", "0 to 7"},
                    {"predict --devices 8 --input nvem", "did you mean 'nvme'"},
                    {"predict --devices 8 --stage alpine", "--input"},
                    {"predict --devices 8 --loader inlin", "did you mean 'inline'"},
                    {"predict --devices 8 --loader inline:stack=6", "unit"},
                    {"predict --devices 8 --loader inline:copy=0GBps", "not above 0"},
                    {"predict --devices 8 --loader inline:pin=on", "none of stack=RATE, copy=RATE and read=ahead"},
                    {"predict --devices 8 --data-servers 2", "--cache"},
                    {"predict --devices 8 --data-servers 2 --cache 60GB", "--dataset"},
                    {"predict --devices 8 --data-servers 2 --cache 60GB --dataset 1000000", "--input"},
                    {"predict --devices 8 --plan expert", "has no experts"},
                    {"predict --devices 2 --plan pipe=2:cut=999", "so that a stage ends after 1 to"},
                    {"predict --devices 2 --plan pipe=2:cut=3+4", "3 parts of the network, but 2 stages: name 1"},
                    {"predict --devices 2 --model lenet5 --plan pipe=2:cut=pol1", "did you mean 'pool1'"},
                    {"predict --devices 8 --model gpt-h8-a2-l1-v9-e4@4 --plan expert", "cannot share evenly"},
                    {"predict --devices 8 --checkpoint nvme", "--checkpoint-every"},
                    {"predict --devices 8 --machine summit --checkpoint disk --checkpoint-every 9", "disk"},
                    {"predict --devices 8 --input nvme --sample 100", "unit"},
                    {"predict --devices 8 --input nvme --stage alpine", "--dataset"},
                    {"predict --devices 8 --precision fp9", "fp8"},
                    {"predict --devices 8 --machine selene --precision fp8 --model gpt-h64-a4-l1", "no peak for fp8"},
                    {"predict --devices 8 --machine eos --precision fp8 --model resnet50", "bf16"},
                    {"predict --devices 6 --trace out.xyz", ".pftrace"},
                    {"predict --devices 6 --trace /no/such/folder/t.json", "/no/such/folder"},
                    {"predict --devices 6 --trace mine.json", "--force"},
                    {"predict --devices 6 --steps 0", "--steps"},
                    {"predict --devices 6 --fuse conv-rely", "did you mean 'conv-relu'"},
                    {"predict --machine this-host --devices 1", "calibrate"}});
    EXPECT_EQ(read("mine.json"), "precious");
}

TEST_F(BadInput, OfAUsersMachine) {
    write("syntax.toml", "name = \"mine\"\nsummary = \n");
    write(
        "unit.toml",
        "name = \"mine\"\nsummary = \"x\"\n[[device]]\nname = \"gpu\"\nmemory = { value = \"16\", source = \"me\" }\n");
    expect_refused(
        {{"predict --machine syntax.toml", "syntax.toml:2"}, {"predict --machine unit.toml", "unit.toml:5"}});
}
#endif

#if REHEARSE_HAS_ONNX
TEST_F(BadInput, OfATruncatedEmptyOrMissingNetwork) {
    std::ifstream file{std::string{REHEARSE_TEST_DATA} + "/onnx/light_squeezenet.onnx", std::ios::binary};
    std::ostringstream whole;
    whole << file.rdbuf();
    ASSERT_GT(whole.str().size(), 1000U);
    write("cut.onnx", whole.str().substr(0, whole.str().size() / 2));
    write("empty.onnx", "");
    expect_refused({{"models cut.onnx", "cut.onnx"},
                    {"models empty.onnx", "empty.onnx"},
                    {"models no-such.onnx", "no-such.onnx"},
                    {"models {}", "directory"}});
}
#endif

}  // namespace
}  // namespace rehearse
