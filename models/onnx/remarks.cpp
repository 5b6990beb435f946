// SPDX-License-Identifier: Apache-2.0
// What an import leaves out, and what it says of a network besides.
#include <algorithm>

#include <fmt/format.h>

#include "models/onnx/importer.hpp"

namespace rehearse::models {

void leave_out(Import& import, const onnx::NodeProto& node) {
    if (!import.options.allow_unknown) {
        try {
            import.graph.fail(node,
                              "what it makes depends on data, so that a step's work is not known before it; "
                              "--allow-unknown leaves out all that follows from it");
        } catch (const InputError& error) {
            throw DependsOnData(error.what());
        }
    }
    if (import.left_out_since.empty()) import.left_out_since = describe(node);
    import.left_out.insert(node.output().begin(), node.output().end());
}

bool follows_from_data(Import& import, const onnx::NodeProto& node) {
    if (import.left_out.empty() ||
        std::ranges::none_of(node.input(), [&](const auto& input) { return import.left_out.contains(input); }))
        return false;
    leave_out(import, node);
    return true;
}

void say_what_was_seen(Import& import, Network& network) {
    if (import.folded > 0 && !import.options.unfold) {
        network.notes.push_back(
            fmt::format("{} convolutions seem to hold a batch normalization that was folded into them when the network "
                        "was exported "
                        "for inference: training has it. --unfold puts it back; better, export with "
                        "training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False",
                        import.folded));
    }
    if (import.with_lengths > 0) {
        network.notes.push_back(
            fmt::format("the weights of {} layers were computed while the network was exported for inference: {}",
                        import.with_lengths,
                        import.options.unfold ? "they are taken for weight_norm's, whose lengths are added"
                                              : "what they were computed of is not seen; export it for training"));
    }
    if (!import.left_out.empty())
        network.notes.push_back(
            fmt::format("without {} values that follow from the {}: how much is computed there depends on data",
                        import.left_out.size(), import.left_out_since));
    import.notes.insert(import.graph.notes().begin(), import.graph.notes().end());
    for (const auto& [note, count] : import.notes)
        network.notes.push_back(count == 1 ? note : fmt::format("{} ({} times)", note, count));
}

}  // namespace rehearse::models
