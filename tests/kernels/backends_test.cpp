// SPDX-License-Identifier: Apache-2.0
// What backends refuse, how one is chosen, and that wrong buffers are caught.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "core/error.hpp"
#include "kernels/backend.hpp"
#include "tests/kernels/tensors.hpp"

namespace rehearse::kernels {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

const Conv small_conv{.channels = 2, .height = 4, .width = 4, .filters = 2, .window = {}};

TEST(Backends, EndInTheReferenceAndHaveDifferentNames) {
    ASSERT_FALSE(backends().empty());
    EXPECT_EQ(backends().back()->name(), "reference");
    std::set<std::string> names;
    for (const Backend* backend : backends())
        EXPECT_TRUE(names.insert(full_name(*backend)).second) << full_name(*backend);
}

TEST(Backends, RefuseWithAReasonWhatNobodyCanRun) {
    const std::vector<std::pair<Problem, const char*>> refused{
        {{Unknown{"Einsum", 4, 0, {4}}, Pass::forward, 1, DataType::f32}, "'Einsum' is an unknown operator"},
        {{Input{{3}}, Pass::forward, 1, DataType::f32}, "input has no forward"},
        {{Softmax{3}, Pass::backward_weights, 1, DataType::f32}, "has no backward_weights"},
        {{BatchNorm{}, Pass::backward_weights, 1, DataType::f32}, "has no backward_weights"},
        {{small_conv, Pass::forward, 0, DataType::f32}, "the batch is 0"},
        {{Dropout{{3}, 0.0}, Pass::forward, 1, DataType::f32}, "keep is 0"}};
    for (const Backend* backend : backends()) {
        SCOPED_TRACE(backend->name());
        for (const auto& [problem, reason] : refused) {
            const Support support = backend->supports(problem);
            EXPECT_FALSE(support.yes) << to_string(problem);
            EXPECT_THAT(support.reason, HasSubstr(reason));
            const Problem p = problem;
            EXPECT_THAT([&] { (void)backend->prepare(p); },
                        ThrowsMessage<BackendError>(AllOf(HasSubstr(support.reason), HasSubstr(backend->name()))));
        }
    }
}

TEST(Choose, TakesTheFirstBackendThatRunsEveryPass) {
    const auto runs = [](const Backend* backend) {
        return backend->supports({small_conv, Pass::forward, 2, DataType::f32}).yes;
    };
    EXPECT_EQ(&choose(small_conv, 2, DataType::f32), *std::ranges::find_if(backends(), runs));
    EXPECT_EQ(choose(small_conv, 2, DataType::f32, "reference").name(), "reference");
}

TEST(Choose, SaysWhyOnceWhereAllRefuseForOneReason) {
    const Op dropout = Dropout{{3}, 0.0};
    try {
        (void)choose(dropout, 1, DataType::bf16);
        FAIL() << "a dropout that keeps nothing was accepted";
    } catch (const InputError& error) {
        EXPECT_STREQ(error.what(),
                     ("no backend runs " + to_string(dropout) + " at batch 1: keep is 0, must be above 0 and at most 1")
                         .c_str());
    }
}

TEST(Choose, RefusesAnUnknownNameAndSaysWhyAnAbsentOneIsAbsent) {
    EXPECT_THAT([] { (void)choose(small_conv, 1, DataType::f32, "referense"); },
                ThrowsMessage<InputError>(AllOf(HasSubstr("referense"), HasSubstr("did you mean 'reference'"))));
    for (const Absent& absent : absent_backends()) {
        EXPECT_THAT([&] { (void)choose(small_conv, 1, DataType::f32, absent.name); },
                    ThrowsMessage<InputError>(HasSubstr(std::string{absent.reason})));
    }
}

TEST(Buffers, OfAWrongSizeAreNamed) {
    for (const Backend* backend : backends()) {
        SCOPED_TRACE(full_name(*backend));
        if (!backend->supports({small_conv, Pass::forward, 1, DataType::f32}).yes) continue;
        Tensors t{small_conv, 1, *backend};
        const auto forward = backend->prepare({small_conv, Pass::forward, 1, DataType::f32});
        Buffers b = t.buffers();
        b.dst = b.dst.first(3);
        EXPECT_THAT([&] { forward->run(b); },
                    ThrowsMessage<std::logic_error>(HasSubstr("dst has 3 elements, needs 32")));
        b.dst = {};
        EXPECT_THROW(forward->run(b), std::logic_error);
        b = t.buffers();
        b.src.clear();
        EXPECT_THROW(forward->run(b), std::logic_error);
        const auto backward = backend->prepare({small_conv, Pass::backward_weights, 1, DataType::f32});
        b = t.buffers();
        b.diff_dst = {};
        EXPECT_THAT([&] { backward->run(b); }, ThrowsMessage<std::logic_error>(HasSubstr("diff_dst has 0 elements")));
    }
}

}  // namespace
}  // namespace rehearse::kernels
