// SPDX-License-Identifier: Apache-2.0
#include "search/store.hpp"

#include <ctime>
#include <optional>
#include <utility>

#include "store/database.hpp"
#include "store/process.hpp"

namespace rehearse::search {
namespace {

// Of searches on other hosts, whose end is not seen. Who is slower loses nothing: both simulate the plan.
constexpr std::int64_t claim_s = 120;

constexpr const char* schema = R"(
CREATE TABLE IF NOT EXISTS plan(
  job TEXT NOT NULL, plan TEXT NOT NULL, devices INTEGER NOT NULL, claimed INTEGER NOT NULL, done INTEGER NOT NULL,
  step_s REAL, low_s REAL, high_s REAL, memory_bytes REAL, refusal TEXT, owner TEXT,
  PRIMARY KEY(job, plan, devices)) WITHOUT ROWID;
)";

constexpr store::Kind kind{.application = 0x52687332,  // "Rhs2"
                           .version = 2,
                           .what = "searched plans",
                           .otherwise = "go without --store",
                           .schema = schema,
                           .upgrade = "ALTER TABLE plan ADD COLUMN owner TEXT"};

}  // namespace

std::string_view absent_store() { return {}; }

class Store::Plans {
public:
    Plans(const std::string& path, std::string job) : job_(std::move(job)), database_(path, kind, true) {
        store::Transaction transaction(database_);
        database_.make();
        transaction.commit();
    }

    std::optional<Simulated> find(const std::string& plan, std::int64_t devices) const {
        const store::Statement asked =
            of("SELECT step_s, low_s, high_s, memory_bytes, refusal FROM plan "
               "WHERE job = ?1 AND plan = ?2 AND devices = ?3 AND done = 1",
               plan, devices);
        if (!asked.step()) return std::nullopt;
        return Simulated{Seconds{asked.real(0)}, Seconds{asked.real(1)}, Seconds{asked.real(2)}, Bytes{asked.real(3)},
                         asked.text(4)};
    }

    bool claim(const std::string& plan, std::int64_t devices) const {
        store::Transaction transaction(database_);
        if (!is_free(plan, devices)) return false;
        const store::Statement taken =
            of("INSERT OR REPLACE INTO plan(job, plan, devices, claimed, done, owner) VALUES(?1, ?2, ?3, ?4, 0, ?5)",
               plan, devices);
        taken.bind(4, std::int64_t{std::time(nullptr)});
        taken.bind(5, process_);
        taken.step();
        transaction.commit();
        return true;
    }

    void put(const std::string& plan, std::int64_t devices, const Simulated& result) const {
        const store::Statement asked =
            of("INSERT OR REPLACE INTO plan(job, plan, devices, claimed, done, step_s, low_s, high_s, memory_bytes, "
               "refusal) VALUES(?1, ?2, ?3, ?4, 1, ?5, ?6, ?7, ?8, ?9)",
               plan, devices);
        asked.bind(4, std::int64_t{std::time(nullptr)});
        asked.bind(5, result.step.value);
        asked.bind(6, result.low.value);
        asked.bind(7, result.high.value);
        asked.bind(8, result.memory.value);
        asked.bind(9, result.refusal);
        asked.step();
    }

private:
    /// Nobody is at it: it was never taken, or by one that has ended or was not heard of for long.
    bool is_free(const std::string& plan, std::int64_t devices) const {
        const store::Statement asked =
            of("SELECT done, claimed, owner FROM plan WHERE job = ?1 AND plan = ?2 AND devices = ?3", plan, devices);
        if (!asked.step()) return true;
        if (asked.integer(0) != 0) return false;
        const std::int64_t age = std::int64_t{std::time(nullptr)} - asked.integer(1);
        return age > claim_s || age < 0 || store::has_ended(asked.text(2));  // below 0: by a clock that was wrong
    }

    /// With the key bound: ?1 to ?3.
    store::Statement of(const char* sql, const std::string& plan, std::int64_t devices) const {
        store::Statement statement(database_, sql);
        statement.bind(1, job_);
        statement.bind(2, plan);
        statement.bind(3, devices);
        return statement;
    }

    std::string job_;
    std::string process_ = store::this_process();
    store::Database database_;
};

Store::Store(const std::string& path, std::string job) : plans_(std::make_unique<Plans>(path, std::move(job))) {}
Store::~Store() = default;

Others Store::others() {
    const Plans* const plans = plans_.get();
    return {.find = [plans](const std::string& plan, std::int64_t devices) { return plans->find(plan, devices); },
            .claim = [plans](const std::string& plan, std::int64_t devices) { return plans->claim(plan, devices); },
            .put = [plans](const std::string& plan, std::int64_t devices,
                           const Simulated& result) { plans->put(plan, devices, result); }};
}

}  // namespace rehearse::search
