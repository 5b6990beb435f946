// SPDX-License-Identifier: Apache-2.0
#include "cli/reference.hpp"

#include <fmt/format.h>

#include <array>

#include "models/frameworks.hpp"
#include "models/machine_keys.hpp"
#include "schedule/plan.hpp"

namespace rehearse::cli {

namespace {

constexpr std::array codes{
    Meaning{"0", "good"},
    Meaning{"1",
            "a check failed: `compare --fail-over`, `validate --fail-over`, `bench` against the reference; `calibrate` "
            "measured a host "
            "that was busy, and says so"},
    Meaning{"2", "wrong input: an option, or `file:line`, with what would be right"},
    Meaning{"3", "a library or device refused, or the operating system did: no memory, no disk"},
    Meaning{"4", "the plan is well formed but does not fit in memory"},
    Meaning{"5", "a bug of ours; the message asks for a report"},
    Meaning{"130", "ended by Ctrl-C (SIGINT); what was reached by then is printed, marked as partial"},
    Meaning{"143", "likewise by SIGTERM, as batch systems send it"},
};

constexpr std::array variables{
    Meaning{"REHEARSE_HOME",
            "folder of what `calibrate` measured of this host and of tuned kernels; without it a folder "
            "`rehearse` in XDG_DATA_HOME"},
    Meaning{"XDG_DATA_HOME", "as the XDG specification has it; without it `~/.local/share`"},
    Meaning{"HOME", "the home folder, of `~`"},
    Meaning{"COLUMNS",
            "width of help and tables, 60 to 100 characters; without it that of the terminal, 100 in files and pipes"},
    Meaning{"NO_COLOR", "obeyed: nothing that the program prints is coloured"},
    Meaning{"OMP_NUM_THREADS",
            "threads of a rank's kernels; without it the cores, shared out among the ranks of this host"},
    Meaning{"OMPI_COMM_WORLD_SIZE", "set by Open MPI's mpirun: the number of ranks; PMI_SIZE is MPICH's"},
    Meaning{"PMI_SIZE", "set by MPICH's mpirun: the number of ranks"},
    Meaning{"OMPI_COMM_WORLD_RANK", "set by Open MPI's mpirun: rank 0 alone prints"},
    Meaning{"PMI_RANK", "likewise by MPICH's"},
    Meaning{"PMIX_RANK", "likewise by srun --mpi=pmix"},
    Meaning{"OMPI_COMM_WORLD_LOCAL_RANK", "set by Open MPI's mpirun: which GPU of the host a rank takes"},
    Meaning{"MPI_LOCALRANKID", "likewise by MPICH's"},
    Meaning{"SLURM_LOCALID", "likewise by srun"},
};

constexpr std::string_view written =
    "\n<!-- Written by `rehearse manual --reference`; scripts/reference_pages.py holds "
    "it to the program. -->\n";

// Between the bars of a table.
std::string cell(std::string_view text) {
    std::string result;
    for (const char c : text) {
        if (c == '|') result += '\\';
        if (c == '<') {
            result += "&lt;";
        } else {
            result += c;
        }
    }
    return result;
}

std::string code(std::string_view text) { return text.empty() ? "" : fmt::format("`{}`", text); }

std::string table_of(std::span<const Meaning> rows, std::string_view head) {
    std::string text = fmt::format("\n| {} | meaning |\n|---|---|\n", head);
    for (const Meaning& row : rows) text += fmt::format("| `{}` | {} |\n", row.word, cell(row.meaning));
    return text;
}

std::string plans_page() {
    std::string text =
        "# Words of plans\n\nA plan is `AXIS[=SIZE][:OPTION=VALUE...][,AXIS...]`; one axis may leave its size to be "
        "inferred. What the axes do:\n[plans](../plans.md); what goes with what: "
        "[compatibility](../compatibility.md).\n";
    text += written;
    std::string_view axis;
    for (const schedule::PlanWord& word : schedule::plan_words()) {
        if (word.axis.empty()) {
            axis = word.name;
            text += fmt::format("\n## {}\n\n`{}={}`: {}\n", axis, axis, word.values, word.summary);
            continue;
        }
        if (!text.ends_with("|\n")) text += "\n| option | values | meaning |\n|---|---|---|\n";
        text += fmt::format("| `{}` | {} | {} |\n", word.name, cell(code(word.values)), cell(word.summary));
    }
    return text;
}

// Two pages: tables before that of a node, and from there on.
std::string machines_page(std::string_view title, std::string_view about, bool of_nodes) {
    std::string text = fmt::format("# {}\n\n{}\n{}", title, about, written);
    bool after = false;
    for (const models::MachineTable& table : models::machine_tables()) {
        after = after || table.name == "[[node]]";
        if (after != of_nodes) continue;
        text += fmt::format("\n## {}\n\n{}\n\n| key | value | meaning |\n|---|---|---|\n",
                            table.name == "top" ? "At the top" : code(table.name), table.about);
        for (const models::MachineKey& key : table.keys)
            text += fmt::format("| `{}` | {} | {} |\n", key.name, cell(key.value), cell(key.meaning));
    }
    return text;
}

std::string frameworks_page() {
    std::string text =
        "# Frameworks\n\nWhat a framework does beside its kernels, as `predict --framework NAME` takes it. "
        "`rehearse frameworks NAME` prints each\nsetting with its source; a file of your own is taken by its path.\n";
    text += written;
    text += "\n| name | what it is |\n|---|---|\n";
    for (const models::FrameworkProfile& each : models::frameworks())
        text += fmt::format("| `{}` | {} |\n", each.name, cell(each.summary));
    text +=
        "\n## Settings of a file\n\nA file has a `summary` and a `[[setting]]` for each of these, with `name`, "
        "`value` and `source`.\n\n| name | meaning |\n|---|---|\n";
    for (const models::FrameworkWord& word : models::framework_words())
        text += fmt::format("| `{}` | {} |\n", word.name, cell(word.meaning));
    return text;
}

}  // namespace

std::span<const Meaning> exit_codes() { return codes; }
std::span<const Meaning> environment_variables() { return variables; }

std::vector<std::pair<std::string, std::string>> reference_pages() {
    const auto page = [](std::string_view title, std::string_view about, std::string_view table) {
        return fmt::format("# {}\n\n{}\n{}{}", title, about, written, table);
    };
    return {{"plan-words.md", plans_page()},
            {"machine-files.md",
             machines_page("Keys of machine files: devices and software",
                           "A machine is a TOML file. Figures carry their unit in a string (`\"25GBps\"`) and their "
                           "source; an example and how to make your own: [machine files](../machines.md). Unknown keys "
                           "are errors. Nodes, links and storage have [a page of their own](machine-files-nodes.md).",
                           false)},
            {"machine-files-nodes.md",
             machines_page("Keys of machine files: nodes, links, storage, charge",
                           "What a [machine file](../machines.md) says of what lies between its devices; these and its "
                           "software are on [another page](machine-files.md).",
                           true)},
            {"frameworks.md", frameworks_page()},
            {"exit-codes.md", page("Exit codes", "With which `rehearse` ends, for scripts.", table_of(codes, "code"))},
            {"environment.md", page("Environment variables", "What `rehearse` reads of its environment.",
                                    table_of(variables, "variable"))}};
}

}  // namespace rehearse::cli
