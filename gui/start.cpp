// SPDX-License-Identifier: Apache-2.0
#include "gui/start.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "picture/stacks.hpp"
#include "picture/text.hpp"

namespace rehearse::gui {

namespace {

constexpr picture::Color blue{0, 114, 178}, green{0, 158, 115};

std::vector<picture::Card> beginnings() {
    return {{"Open", "A file", "timelines, predictions, benchmarks", blue, "open: Ctrl+O"},
            {"Describe", "An experiment", "network, machine, plan, batch", blue, "editor: Alt+3"},
            {"Plan", "A pipeline", "stages, micro-batches, bubbles", blue, "pipeline: Alt+5"},
            {"Look at", "A machine", "Summit, Selene, Cori, Frontier, ...", blue, "topology: Alt+7"}};
}

std::vector<picture::Card> cards_of_examples() {
    std::vector<picture::Card> cards;
    for (const Example& each : examples())
        cards.push_back({"Example", each.name, each.detail, green, std::string{"example: "} + each.name});
    return cards;
}

}  // namespace

std::span<const Example> examples() {
    static const std::array<Example, 4> all{
        {{"ResNet-50 on Summit", "6 to 27,648 V100, data parallel", Experiment{}},
         {"GPT-3 on Selene",
          "1,024 to 4,096 A100, three axes",
          {"gpt3-175b", "selene", "pipe=16:schedule=interleaved:microbatches=96,data,tensor=8:sequence=on", "mixed",
           "adam", "1024,2048,4096", 96}},
         {"BERT as a pipeline",
          "four stages, 1F1B, on Summit",
          {"bert-large", "summit", "pipe=4:schedule=1f1b:microbatches=12,data", "mixed", "adam", "12,48,192", 12}},
         {"VGG-16 on Cori KNL",
          "1 to 8,192 Xeon Phi, data parallel",
          {"vgg16", "cori-knl", "data", "fp32", "sgd", "1,64,1024,8192", 16}}}};
    return all;
}

picture::Picture start_picture(const std::vector<std::string>& recent, picture::Size size, picture::Theme theme) {
    const picture::Palette& colors = palette(theme);
    picture::Picture picture = canvas(size, colors, "Rehearse");
    double top = 24;
    const auto heading = [&](const char* title, const char* subtitle) {
        top += draw_heading(picture, {24, top, size.width - 48, 0}, title, subtitle, colors) + 12;
    };
    const auto cards = [&](const std::vector<picture::Card>& of) {
        top += draw_cards(picture, {24, top, size.width - 48, 0}, of, colors, 240) + 20;
    };
    heading("Rehearse a training run before you ask for the machine",
            "click where to begin, or drop a file here; ? shows the keys");
    cards(beginnings());
    heading("Examples", "experiments to begin with: each opens in the editor, where it can be changed and predicted");
    cards(cards_of_examples());
    if (!recent.empty()) heading("Opened last", "");
    for (std::size_t i = 0; i < std::min<std::size_t>(recent.size(), 8); ++i) {
        const std::filesystem::path path = recent[i];
        const picture::Text name{{24, top + 11}, path.filename().string(), 12};
        const double beside = 24 + picture::text_width(name.text, name.size) + 12;
        const picture::Text folder{{beside, top + 11}, path.parent_path().string(), 11};
        picture.marks.push_back({name, colors.series[0], {}, "recent: " + recent[i]});
        picture.marks.push_back({folder, colors.faint_text, {}, "recent: " + recent[i]});
        top += 22;
    }
    picture.height = std::max(top + 10, size.height);
    std::get<picture::Rectangle>(picture.marks.front().shape).height = picture.height;
    return picture;
}

}  // namespace rehearse::gui
