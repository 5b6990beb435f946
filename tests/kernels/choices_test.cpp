// SPDX-License-Identifier: Apache-2.0
// Which implementation runs which pass, and what each takes of memory.
#include "kernels/choices.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "kernels/reference/backend.hpp"
#include "kernels/threads.hpp"
#include "tests/kernels/tensors.hpp"

namespace rehearse::kernels {
namespace {

using testing::HasSubstr;

constexpr std::array conv_passes{Pass::forward, Pass::backward_data, Pass::backward_weights};
const Window same{.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
const Conv conv{12, 40, 30, 20, same, 1, true};

const Backend* backend_named(std::string_view name) {
    for (const Backend* backend : backends()) {
        if (full_name(*backend) == name) return backend;
    }
    return nullptr;
}

// Whole numbers: the sums are exact, so every implementation that does not transform its input gives the same.
void expect_same_as_reference(const Backend& backend, Bytes limit) {
    Tensors expected{conv, 2, reference::backend()};
    expected.run_forward_and_backward(reference::backend());
    Tensors actual{conv, 2, backend};
    for (const Pass pass : conv_passes) {
        backend.prepare_within({conv, pass, 2, DataType::f32}, limit)->run(actual.buffers());
    }
    EXPECT_EQ(actual.dst, expected.dst);
    EXPECT_EQ(actual.diff_src, expected.diff_src);
    EXPECT_EQ(actual.diff_weights, expected.diff_weights);
}

TEST(Scratch, IsWhatThePreparedKernelTakes) {
    for (const Backend* backend : backends()) {
        for (const Pass pass : conv_passes) {
            const Problem problem{conv, pass, 2, DataType::f32};
            if (!backend->supports(problem).yes) continue;
            SCOPED_TRACE(full_name(*backend) + " " + to_string(problem));
            for (const Bytes limit : {any_scratch, Bytes{100e3}}) {
                EXPECT_EQ(backend->prepare_within(problem, limit)->scratch(), backend->scratch(problem, limit));
            }
        }
    }
}

TEST(Scratch, BeyondTheLimitIsRefusedWithWhatWouldBeNeeded) {
    for (const Backend* backend : backends()) {
        const Problem problem{conv, Pass::forward, 2, DataType::f32};
        if (!backend->supports(problem).yes) continue;
        SCOPED_TRACE(full_name(*backend));
        const Bytes needed = backend->scratch(problem, Bytes{});
        const Support none = supports_within(*backend, problem, Bytes{});
        EXPECT_EQ(none.yes, needed == Bytes{});
        if (!none.yes) {
            EXPECT_THAT(none.reason, HasSubstr("needs " + to_string(needed) + " of scratch memory"));
        }
        EXPECT_TRUE(supports_within(*backend, problem, needed).yes);
    }
    EXPECT_EQ(choose(conv, 2, DataType::f32, "", "", Bytes{}).name(), "reference");  // loops need nothing
    if (backends().front()->name() == "onednn") {
        EXPECT_THAT([] { (void)choose(conv, 2, DataType::f32, "onednn", "", Bytes{1}); },
                    testing::ThrowsMessage<InputError>(HasSubstr("of scratch memory, allowed are 1 B")));
    }
}

// Its column matrix is made in strips: of one panel of pixels where there is no more memory.
TEST(Scratch, Im2colWorksInSmallerStrips) {
    const Backend* const im2col = backend_named("cpu im2col");
    if (im2col == nullptr) GTEST_SKIP() << "this build has no algorithms of ours";
    for (const Pass pass : conv_passes) {
        const Problem problem{conv, pass, 2, DataType::f32};
        const Bytes least = im2col->scratch(problem, Bytes{}), most = im2col->scratch(problem, any_scratch);
        EXPECT_LT(2 * least, most);
        const Bytes between{(least.value + most.value) / 2};
        EXPECT_LE(im2col->scratch(problem, between), between);
        EXPECT_GT(im2col->scratch(problem, between), least);
    }
    for (const double limit : {0.0, 60e3, 200e3, 1e9}) {
        SCOPED_TRACE(limit);
        expect_same_as_reference(*im2col, Bytes{limit});
    }
}

TEST(ChoosePasses, FollowsWhatWasMeasuredPassByPass) {
    const Backend* const untuned = &choose(conv, 2, DataType::f32);
    KernelSelection selection;
    selection.tuned[to_string(Problem{conv, Pass::backward_data, 2, DataType::f32})] = {&reference::backend(), 1};
    const PassChoices choices = choose_passes(conv, 2, DataType::f32, selection);
    EXPECT_EQ(of(choices, Pass::forward), (Choice{untuned, 0}));
    EXPECT_EQ(of(choices, Pass::backward_data), (Choice{&reference::backend(), 1}));
    EXPECT_EQ(of(choices, Pass::backward_weights), (Choice{untuned, 0}));
    EXPECT_EQ(count_tuned(conv, 2, DataType::f32, selection, choices), 1);
    // Another batch is another problem.
    EXPECT_EQ(of(choose_passes(conv, 3, DataType::f32, selection), Pass::backward_data).backend, untuned);
}

TEST(ChoosePasses, WhatIsAskedForGoesBeforeWhatWasMeasured) {
    KernelSelection selection;
    selection.backend = "reference";
    const Backend* const other = backends().front();
    for (const Pass pass : conv_passes) selection.tuned[to_string(Problem{conv, pass, 2, DataType::f32})] = {other, 0};
    for (const Pass pass : conv_passes) {
        EXPECT_EQ(of(choose_passes(conv, 2, DataType::f32, selection), pass).backend, &reference::backend());
    }
}

TEST(ChoosePasses, DoNotFollowWhoNeedsTooMuchMemory) {
    const Backend* const direct = backend_named("cpu direct");
    if (direct == nullptr) GTEST_SKIP() << "this build has no algorithms of ours";
    const Problem problem{conv, Pass::forward, 2, DataType::f32};
    KernelSelection selection;
    selection.tuned[to_string(problem)] = {direct, 0};
    EXPECT_EQ(of(choose_passes(conv, 2, DataType::f32, selection), Pass::forward).backend, direct);
    selection.scratch_limit = direct->scratch(problem, any_scratch) - Bytes{1};
    EXPECT_NE(of(choose_passes(conv, 2, DataType::f32, selection), Pass::forward).backend, direct);
}

// What one backend keeps for its backward pass means nothing to another one.
TEST(ChoosePasses, DoNotMixBackendsThatKeepAWorkspace) {
    const Op attention = Attention{.heads = 2, .queries = 8, .keys = 8, .head_size = 4};
    const Backend& untuned = choose(attention, 2, DataType::f32);
    if (&untuned == &reference::backend()) GTEST_SKIP() << "this build has one attention";
    ASSERT_GT(untuned.workspace(attention, 2), 0);
    KernelSelection selection;
    selection.tuned[to_string(Problem{attention, Pass::forward, 2, DataType::f32})] = {&reference::backend(), 0};
    EXPECT_EQ(of(choose_passes(attention, 2, DataType::f32, selection), Pass::forward).backend, &untuned);
    selection.tuned[to_string(Problem{attention, Pass::backward_data, 2, DataType::f32})] = {&reference::backend(), 0};
    EXPECT_EQ(of(choose_passes(attention, 2, DataType::f32, selection), Pass::forward).backend, &reference::backend());
}

TEST(Implementations, ListEachOnceAndTheReferenceOnlyAlone) {
    std::string refusals;
    const Problem problem{conv, Pass::forward, 2, DataType::f32};
    const auto all = implementations(problem, any_scratch, &refusals);
    for (const Backend* backend : all) {
        EXPECT_TRUE(backend->supports(problem).yes);
        if (backend->algorithm().empty()) {
            EXPECT_EQ(std::ranges::count(all, backend->name(), &Backend::name), 1) << full_name(*backend);
        }
    }
    if (all.size() > 1) {
        EXPECT_EQ(std::ranges::count(all, "reference", &Backend::name), 0);
    }
    EXPECT_EQ(implementations(problem, Bytes{}, &refusals), std::vector<const Backend*>{&reference::backend()});
    if (backends().size() > 1) {
        EXPECT_THAT(refusals, HasSubstr("of scratch memory"));
    }
}

TEST(Prepare, GivesAKernelItsThreadsAndTakesThemBack) {
    const int before = threads_now();
    const auto kernel = prepare(Choice{&choose(conv, 2, DataType::f32), 3}, {conv, Pass::forward, 2}, any_scratch);
    Tensors actual{conv, 2, reference::backend()}, expected{conv, 2, reference::backend()};
    kernel->run(actual.buffers());
    expected.run(reference::backend(), Pass::forward);
    EXPECT_EQ(actual.dst, expected.dst);
    EXPECT_EQ(threads_now(), before);
}

}  // namespace
}  // namespace rehearse::kernels
