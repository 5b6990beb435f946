// SPDX-License-Identifier: Apache-2.0
// A rollback journal, as its locks hold on clusters' file systems; each write is one statement.
#include "search/store.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <ctime>

#include "core/error.hpp"

namespace rehearse::search {
namespace {

constexpr int application = 0x52687332;  // "Rhs2"
constexpr int patience_ms = 60'000;
constexpr std::int64_t claim_s = 600;

constexpr const char* schema = R"(
CREATE TABLE IF NOT EXISTS plan(
  job TEXT NOT NULL, plan TEXT NOT NULL, devices INTEGER NOT NULL, claimed INTEGER NOT NULL, done INTEGER NOT NULL,
  step_s REAL, low_s REAL, high_s REAL, memory_bytes REAL, refusal TEXT, PRIMARY KEY(job, plan, devices)) WITHOUT ROWID;
)";

struct Close {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

}  // namespace

std::string_view absent_store() { return {}; }

class Store::Database {
public:
    Database(const std::string& path, std::string job) : path_(path), job_(std::move(job)) {
        sqlite3* raw = nullptr;
        const int code = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
        database_.reset(raw);
        check(code);
        sqlite3_busy_timeout(raw, patience_ms);
        const std::int64_t owner = number("PRAGMA application_id");
        if (owner != application && (owner != 0 || number("SELECT count(*) FROM sqlite_master") != 0)) {
            throw InputError(fmt::format("{}: a database of another program, not of searched plans", path));
        }
        check(sqlite3_exec(raw, schema, nullptr, nullptr, nullptr));
        check(sqlite3_exec(raw, fmt::format("PRAGMA application_id = {}", application).c_str(), nullptr, nullptr,
                           nullptr));
    }

    std::optional<Simulated> find(const std::string& plan, std::int64_t devices) {
        const auto asked = prepared(
            "SELECT step_s, low_s, high_s, memory_bytes, refusal FROM plan "
            "WHERE job = ?1 AND plan = ?2 AND devices = ?3 AND done = 1",
            plan, devices);
        if (!step(asked.get())) return std::nullopt;
        const auto real = [&](int column) { return sqlite3_column_double(asked.get(), column); };
        return Simulated{Seconds{real(0)}, Seconds{real(1)}, Seconds{real(2)}, Bytes{real(3)},
                         reinterpret_cast<const char*>(sqlite3_column_text(asked.get(), 4))};
    }

    bool claim(const std::string& plan, std::int64_t devices) {
        const auto asked = prepared(
            "INSERT INTO plan(job, plan, devices, claimed, done) VALUES(?1, ?2, ?3, ?4, 0) "
            "ON CONFLICT DO UPDATE SET claimed = ?4 WHERE done = 0 AND claimed < ?4 - ?5",
            plan, devices);
        check(sqlite3_bind_int64(asked.get(), 4, std::time(nullptr)));
        check(sqlite3_bind_int64(asked.get(), 5, claim_s));
        step(asked.get());
        return sqlite3_changes(database_.get()) == 1;
    }

    void put(const std::string& plan, std::int64_t devices, const Simulated& result) {
        const auto asked =
            prepared("INSERT OR REPLACE INTO plan VALUES(?1, ?2, ?3, ?4, 1, ?5, ?6, ?7, ?8, ?9)", plan, devices);
        check(sqlite3_bind_int64(asked.get(), 4, std::time(nullptr)));
        int at = 5;
        for (const double value : {result.step.value, result.low.value, result.high.value, result.memory.value}) {
            check(sqlite3_bind_double(asked.get(), at++, value));
        }
        bind(asked.get(), at, result.refusal);
        step(asked.get());
    }

private:
    using Statement = std::unique_ptr<sqlite3_stmt, Close>;

    void check(int code) const {
        if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return;
        const std::string why = database_ ? sqlite3_errmsg(database_.get()) : sqlite3_errstr(code);
        if ((code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB) {
            throw InputError(fmt::format(
                "{}: not a file of searched plans, or damaged ({}): move it away to begin anew", path_, why));
        }
        throw BackendError(fmt::format("{}: searched plans cannot be kept or read there: {}", path_, why));
    }
    bool step(sqlite3_stmt* statement) const {
        const int code = sqlite3_step(statement);
        check(code);
        return code == SQLITE_ROW;
    }
    void bind(sqlite3_stmt* statement, int at, const std::string& text) const {
        check(sqlite3_bind_text(statement, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT));
    }
    Statement prepared(const char* sql) const {
        sqlite3_stmt* raw = nullptr;
        check(sqlite3_prepare_v2(database_.get(), sql, -1, &raw, nullptr));
        return Statement{raw};
    }
    /// With the key bound: ?1 to ?3.
    Statement prepared(const char* sql, const std::string& plan, std::int64_t devices) const {
        Statement statement = prepared(sql);
        bind(statement.get(), 1, job_);
        bind(statement.get(), 2, plan);
        check(sqlite3_bind_int64(statement.get(), 3, devices));
        return statement;
    }
    std::int64_t number(const char* sql) const {
        const Statement asked = prepared(sql);
        return step(asked.get()) ? sqlite3_column_int64(asked.get(), 0) : 0;
    }

    std::string path_, job_;
    std::unique_ptr<sqlite3, Close> database_;
};

Store::Store(const std::string& path, std::string job) : database_(std::make_unique<Database>(path, std::move(job))) {}
Store::~Store() = default;

Others Store::others() {
    Database* const database = database_.get();
    return {
        .find = [database](const std::string& plan, std::int64_t devices) { return database->find(plan, devices); },
        .claim = [database](const std::string& plan, std::int64_t devices) { return database->claim(plan, devices); },
        .put = [database](const std::string& plan, std::int64_t devices,
                          const Simulated& result) { database->put(plan, devices, result); }};
}

}  // namespace rehearse::search
