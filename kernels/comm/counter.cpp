// SPDX-License-Identifier: Apache-2.0
#include "kernels/comm/counter.hpp"

#include <exception>

#include "kernels/comm/communicator_impl.hpp"

namespace rehearse::kernels {

struct Counter::Impl {
    const Communicator* ranks = nullptr;
    MPI_Win window = MPI_WIN_NULL;
    std::int64_t* value = nullptr;
};

Counter::Counter(Communicator& ranks) : impl_(std::make_unique<Impl>()) {
    impl_->ranks = &ranks;
    const MPI_Aint bytes = ranks.rank() == 0 ? MPI_Aint{sizeof(std::int64_t)} : 0;
    check(
        MPI_Win_allocate(bytes, sizeof(std::int64_t), MPI_INFO_NULL, ranks.impl().comm, &impl_->value, &impl_->window),
        "MPI_Win_allocate");
    check(MPI_Win_lock_all(0, impl_->window), "MPI_Win_lock_all");
    restart();
}

Counter::~Counter() {
    if (std::uncaught_exceptions() > 0) return;
    MPI_Win_unlock_all(impl_->window);
    MPI_Win_free(&impl_->window);
}

std::int64_t Counter::take() {
    const std::int64_t one = 1;
    std::int64_t before = 0;
    check(MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 0, MPI_SUM, impl_->window), "MPI_Fetch_and_op");
    check(MPI_Win_flush(0, impl_->window), "MPI_Win_flush");
    return before;
}

void Counter::restart() {
    impl_->ranks->barrier();
    if (impl_->ranks->rank() == 0) {
        const std::int64_t none = 0;
        std::int64_t before = 0;
        check(MPI_Fetch_and_op(&none, &before, MPI_INT64_T, 0, 0, MPI_REPLACE, impl_->window), "MPI_Fetch_and_op");
        check(MPI_Win_flush(0, impl_->window), "MPI_Win_flush");
    }
    impl_->ranks->barrier();
}

}  // namespace rehearse::kernels
