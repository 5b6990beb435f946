// SPDX-License-Identifier: Apache-2.0
// Jobs that are predicted, searched for, shared or run: what is refused of their options.
#include <gmock/gmock.h>

#include "tests/cli/bad_input.hpp"

namespace rehearse {
namespace {

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
                    {"predict --devices 8 --plan pipe=7:microbatches=7 --batch 14", "write pipe=8, or --devices 7"},
                    {"predict --devices 8 --plan pipe=7:microbatches=7:cut=blocks --batch 14",
                     "write pipe=8 where as many stages share the network's blocks evenly, or --devices 7"},
                    {"predict --input alpine --sample 57mb", "--sample: '57mb' is not a size"},
                    {"search --global-batch 8 --deadline 5days", "--deadline: "},
                    {"search --global-batch 8 --memory-limit 5", "--memory-limit: "},
                    {"run --model lenet5 --beta2 0.5", "--beta2: of --optimizer adam or lamb"},
                    {"run --model lenet5 --epsilon 0.1", "--epsilon: of --optimizer adam or lamb"},
                    {"run --model lenet5 --precision bf16 --loss-scale 4", "--loss-scale: of --precision fp16, mixed"},
                    {"run --model lenet5 --target-samples 5", "--target-samples: of --target-loss"},
                    {"run --model lenet5 --gain 1%", "--gain: of --tune-learners"},
                    {"run --model lenet5 --tuning-steps 3", "--tuning-steps: of --tune-learners"},
                    {"run --model lenet5 --order given", "--order: of the samples of a file"},
                    {"run --model gcn-small --data graphs --ignore-label 0", "--ignore-label: of --data FILE.h5"},
                    {"run --model lenet5 --checkpoint-every 7", "--checkpoint-every: of --checkpoint"},
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

}  // namespace
}  // namespace rehearse
