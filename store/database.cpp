// SPDX-License-Identifier: Apache-2.0
#include "store/database.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>

#include "core/error.hpp"

namespace rehearse::store {
namespace {

constexpr int patience_ms = 60'000;  // for other processes; a transaction takes milliseconds

void make_folder(const std::string& path) {
    const std::filesystem::path folder = std::filesystem::path{path}.parent_path();
    if (folder.empty()) return;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw InputError(fmt::format("{}: its folder cannot be made: {}", path, error.message()));
}

}  // namespace

void Database::Close::operator()(sqlite3* database) const { sqlite3_close(database); }
void Statement::Close::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

// Never read-only: after a crash of who wrote, the next reader restores the file from its journal. SQLite itself falls
// back to reading where the file is protected.
Database::Database(const std::string& path, const Kind& kind, bool create) : path_(path), kind_(kind) {
    if (create) make_folder(path);
    sqlite3* raw = nullptr;
    const int code =
        sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0), nullptr);
    database_.reset(raw);
    check(code);
    sqlite3_busy_timeout(raw, patience_ms);
}

void Database::check(int code) const {
    if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return;
    const int primary = code & 0xff;
    const std::string why = database_ ? sqlite3_errmsg(database_.get()) : sqlite3_errstr(code);
    if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB) {
        throw InputError(fmt::format("{}: not a file of {}, or damaged ({}): move it away to begin anew, or {}", path_,
                                     kind_.what, why, kind_.otherwise));
    }
    if (primary == SQLITE_BUSY) {
        throw BackendError(fmt::format("{}: another process holds it for more than {} s", path_, patience_ms / 1000));
    }
    throw BackendError(fmt::format("{}: {} cannot be kept or read there: {}", path_, kind_.what, why));
}

std::int64_t Database::number(const char* sql) const {
    const Statement asked(*this, sql);
    return asked.step() ? asked.integer(0) : 0;
}

bool Database::is_made() const {
    const std::int64_t owner = number("PRAGMA application_id"), written_by = number("PRAGMA user_version");
    const bool empty = number("SELECT count(*) FROM sqlite_master") == 0;
    if (empty && owner == 0) return false;
    if (owner != kind_.application) {
        throw InputError(fmt::format("{}: a database of another program, not of {}", path_, kind_.what));
    }
    if (written_by > kind_.version) {
        throw InputError(fmt::format(
            "{}: written by a later version of Rehearse (format {}, this one reads {}): use that one, or {}", path_,
            written_by, kind_.version, kind_.otherwise));
    }
    return true;
}

void Database::make() const {
    if (!is_made()) {
        run(kind_.schema);
    } else if (kind_.upgrade != nullptr && number("PRAGMA user_version") < kind_.version) {
        run(kind_.upgrade);
    } else {
        return;
    }
    run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kind_.application, kind_.version).c_str());
}

void Database::run(const char* sql) const { check(sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr)); }

int Database::changes() const { return sqlite3_changes(database_.get()); }

Statement::Statement(const Database& database, const char* sql) : database_(database) {
    sqlite3_stmt* raw = nullptr;
    database.check(sqlite3_prepare_v2(database.database_.get(), sql, -1, &raw, nullptr));
    statement_.reset(raw);
}

void Statement::bind(int at, std::string_view text) const {
    database_.check(
        sqlite3_bind_text(statement_.get(), at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT));
}
void Statement::bind(int at, double value) const { database_.check(sqlite3_bind_double(statement_.get(), at, value)); }
void Statement::bind(int at, std::int64_t value) const {
    database_.check(sqlite3_bind_int64(statement_.get(), at, value));
}

bool Statement::step() const {
    const int code = sqlite3_step(statement_.get());
    database_.check(code);
    return code == SQLITE_ROW;
}

void Statement::reset() const { database_.check(sqlite3_reset(statement_.get())); }

std::string Statement::text(int column) const {
    const auto* const value = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
    return value == nullptr ? "" : value;
}
double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }
std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

Transaction::Transaction(const Database& database) : database_(database) { database.run("BEGIN IMMEDIATE"); }
Transaction::~Transaction() {
    if (!done_) sqlite3_exec(database_.database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}
void Transaction::commit() {
    database_.run("COMMIT");
    done_ = true;
}

}  // namespace rehearse::store
