// SPDX-License-Identifier: Apache-2.0
// SQLite with a rollback journal: its locks hold on the network file systems that clusters have their homes on, where
// WAL, which needs shared memory, does not. A write is one transaction that takes its lock at once, so that two
// processes wait for each other and never fail half way.
#include "kernels/tuned/store.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>
#include <memory>

#include "core/error.hpp"

namespace rehearse::kernels::tuned {
namespace {

constexpr int version = 1;
constexpr int application = 0x52687431;  // "Rht1"
constexpr int patience_ms = 60'000;      // for other processes; a transaction takes milliseconds

constexpr const char* schema = R"(
CREATE TABLE IF NOT EXISTS host(id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS winner(
  host INTEGER NOT NULL REFERENCES host(id), problem TEXT NOT NULL, backend TEXT NOT NULL, algorithm TEXT NOT NULL,
  threads INTEGER NOT NULL, median_s REAL NOT NULL, runner_up_s REAL NOT NULL, scratch_bytes REAL NOT NULL,
  scratch_limit_bytes REAL NOT NULL, tried INTEGER NOT NULL, date TEXT NOT NULL,
  PRIMARY KEY(host, problem)) WITHOUT ROWID;
)";

struct Close {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

// An open file; every error of SQLite becomes ours here.
class Database {
public:
    Database(const std::string& path, int flags) : path_(path) {
        sqlite3* raw = nullptr;
        const int code = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
        database_.reset(raw);
        check(code);
        sqlite3_busy_timeout(raw, patience_ms);
    }

    void check(int code) const {
        if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return;
        const int primary = code & 0xff;
        const std::string why = database_ ? sqlite3_errmsg(database_.get()) : sqlite3_errstr(code);
        if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB) {
            throw InputError(
                fmt::format("{}: not a file of tuned kernels, or damaged ({}): move it away to begin anew, "
                            "or go without it with --tune off",
                            path_, why));
        }
        if (primary == SQLITE_BUSY) {
            throw BackendError(
                fmt::format("{}: another process holds it for more than {} s", path_, patience_ms / 1000));
        }
        throw BackendError(fmt::format("{}: tuned kernels cannot be kept or read there: {}", path_, why));
    }

    void run(const char* sql) const { check(sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr)); }
    sqlite3* get() const { return database_.get(); }

    std::int64_t number(const char* pragma) const;
    // The tables of this version are there; false: the file is new. InputError: the file is somebody else's.
    bool is_made() const;

private:
    std::string path_;
    std::unique_ptr<sqlite3, Close> database_;
};

class Statement {
public:
    Statement(const Database& database, const char* sql) : database_(database) {
        sqlite3_stmt* raw = nullptr;
        database.check(sqlite3_prepare_v2(database.get(), sql, -1, &raw, nullptr));
        statement_.reset(raw);
    }
    void bind(int at, std::string_view text) const {
        database_.check(
            sqlite3_bind_text(statement_.get(), at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT));
    }
    void bind(int at, double value) const { database_.check(sqlite3_bind_double(statement_.get(), at, value)); }
    void bind(int at, std::int64_t value) const { database_.check(sqlite3_bind_int64(statement_.get(), at, value)); }
    /// Whether there is a row.
    bool step() const {
        const int code = sqlite3_step(statement_.get());
        database_.check(code);
        return code == SQLITE_ROW;
    }
    void reset() const { database_.check(sqlite3_reset(statement_.get())); }
    std::string text(int column) const {
        const auto* const value = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
        return value == nullptr ? "" : value;
    }
    double real(int column) const { return sqlite3_column_double(statement_.get(), column); }
    std::int64_t integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

private:
    const Database& database_;
    std::unique_ptr<sqlite3_stmt, Close> statement_;
};

std::int64_t Database::number(const char* pragma) const {
    const Statement asked(*this, pragma);
    return asked.step() ? asked.integer(0) : 0;
}

bool Database::is_made() const {
    const std::int64_t owner = number("PRAGMA application_id"), written_by = number("PRAGMA user_version");
    const bool empty = number("SELECT count(*) FROM sqlite_master") == 0;
    if (empty && owner == 0) return false;
    if (owner != application) {
        throw InputError(fmt::format("{}: a database of another program, not of tuned kernels", path_));
    }
    if (written_by > version) {
        throw InputError(
            fmt::format("{}: written by a later version of Rehearse (format {}, this one reads {}): use "
                        "that one, or another REHEARSE_HOME",
                        path_, written_by, version));
    }
    return true;
}

// Nothing is written unless commit() is reached.
class Transaction {
public:
    explicit Transaction(const Database& database) : database_(database) { database.run("BEGIN IMMEDIATE"); }
    ~Transaction() {
        if (!done_) sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    }
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    void commit() {
        database_.run("COMMIT");
        done_ = true;
    }

private:
    const Database& database_;
    bool done_ = false;
};

void make_folder(const std::string& path) {
    const std::filesystem::path folder = std::filesystem::path{path}.parent_path();
    if (folder.empty()) return;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw InputError(fmt::format("{}: its folder cannot be made: {}", path, error.message()));
}

std::int64_t host_id(const Database& database, std::string_view fingerprint) {
    const Statement add(database, "INSERT INTO host(fingerprint) VALUES(?) ON CONFLICT DO NOTHING");
    add.bind(1, fingerprint);
    add.step();
    const Statement find(database, "SELECT id FROM host WHERE fingerprint = ?");
    find.bind(1, fingerprint);
    require(find.step(), "the host was just added");
    return find.integer(0);
}

Stored read(const Statement& row) {
    return {row.text(0),
            {.problem = row.text(1),
             .backend = row.text(2),
             .algorithm = row.text(3),
             .threads = static_cast<int>(row.integer(4)),
             .median = Seconds{row.real(5)},
             .runner_up = Seconds{row.real(6)},
             .scratch = Bytes{row.real(7)},
             .scratch_limit = Bytes{row.real(8)},
             .tried = row.integer(9),
             .date = row.text(10)}};
}

}  // namespace

std::string_view absent() { return {}; }

std::vector<Stored> stored(const std::string& path) {
    if (!std::filesystem::exists(path)) return {};
    // Not read-only: after a crash of who wrote, the next reader restores the file from its journal. SQLite itself
    // falls back to reading where the file is protected.
    const Database database(path, SQLITE_OPEN_READWRITE);
    if (!database.is_made()) return {};
    const Statement rows(
        database,
        "SELECT fingerprint, problem, backend, algorithm, threads, median_s, runner_up_s, "
        "scratch_bytes, scratch_limit_bytes, tried, date FROM winner JOIN host ON host.id = winner.host "
        "ORDER BY fingerprint, problem");
    std::vector<Stored> found;
    while (rows.step()) found.push_back(read(rows));
    return found;
}

std::vector<Winner> load(const std::string& path, std::string_view fingerprint) {
    std::vector<Winner> found;
    for (Stored& each : stored(path)) {
        if (each.fingerprint == fingerprint) found.push_back(std::move(each.winner));
    }
    return found;
}

void save(const std::string& path, std::string_view fingerprint, const std::vector<Winner>& winners) {
    if (winners.empty()) return;
    make_folder(path);
    const Database database(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    Transaction transaction(database);
    if (!database.is_made()) {
        database.run(schema);
        database.run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", application, version).c_str());
    }
    const std::int64_t host = host_id(database, fingerprint);
    const Statement add(database, "INSERT OR REPLACE INTO winner VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (const Winner& w : winners) {
        add.bind(1, host);
        add.bind(2, w.problem);
        add.bind(3, w.backend);
        add.bind(4, w.algorithm);
        add.bind(5, std::int64_t{w.threads});
        add.bind(6, w.median.value);
        add.bind(7, w.runner_up.value);
        add.bind(8, w.scratch.value);
        add.bind(9, w.scratch_limit.value);
        add.bind(10, w.tried);
        add.bind(11, w.date);
        add.step();
        add.reset();
    }
    transaction.commit();
}

}  // namespace rehearse::kernels::tuned
