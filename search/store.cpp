// SPDX-License-Identifier: Apache-2.0
#include "search/store.hpp"

#include <ctime>
#include <optional>
#include <utility>

#include "store/database.hpp"

namespace rehearse::search {
namespace {

constexpr std::int64_t claim_s = 600;

constexpr const char* schema = R"(
CREATE TABLE IF NOT EXISTS plan(
  job TEXT NOT NULL, plan TEXT NOT NULL, devices INTEGER NOT NULL, claimed INTEGER NOT NULL, done INTEGER NOT NULL,
  step_s REAL, low_s REAL, high_s REAL, memory_bytes REAL, refusal TEXT, PRIMARY KEY(job, plan, devices)) WITHOUT ROWID;
)";

constexpr store::Kind kind{.application = 0x52687332,  // "Rhs2"
                           .version = 1,
                           .what = "searched plans",
                           .otherwise = "go without --store",
                           .schema = schema};

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
        const store::Statement asked =
            of("INSERT INTO plan(job, plan, devices, claimed, done) VALUES(?1, ?2, ?3, ?4, 0) "
               "ON CONFLICT DO UPDATE SET claimed = ?4 WHERE done = 0 AND claimed < ?4 - ?5",
               plan, devices);
        asked.bind(4, std::int64_t{std::time(nullptr)});
        asked.bind(5, claim_s);
        asked.step();
        return database_.changes() == 1;
    }

    void put(const std::string& plan, std::int64_t devices, const Simulated& result) const {
        const store::Statement asked =
            of("INSERT OR REPLACE INTO plan VALUES(?1, ?2, ?3, ?4, 1, ?5, ?6, ?7, ?8, ?9)", plan, devices);
        asked.bind(4, std::int64_t{std::time(nullptr)});
        asked.bind(5, result.step.value);
        asked.bind(6, result.low.value);
        asked.bind(7, result.high.value);
        asked.bind(8, result.memory.value);
        asked.bind(9, result.refusal);
        asked.step();
    }

private:
    /// With the key bound: ?1 to ?3.
    store::Statement of(const char* sql, const std::string& plan, std::int64_t devices) const {
        store::Statement statement(database_, sql);
        statement.bind(1, job_);
        statement.bind(2, plan);
        statement.bind(3, devices);
        return statement;
    }

    std::string job_;
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
