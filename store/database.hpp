// SPDX-License-Identifier: Apache-2.0
// A SQLite file of ours. Several processes may read and write at once: they wait for each other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace rehearse::store {

/// What tells files of one kind from all others.
struct Kind {
    std::int64_t application;  // SQLite's application_id
    std::int64_t version;      // user_version: of the tables
    std::string_view what;     // "tuned kernels": in messages
    std::string_view
        otherwise;       // what a user may do instead of mending a damaged file: "go without it with --tune off"
    const char* schema;  // CREATE TABLE ...
    const char* upgrade = nullptr;  // what makes tables of the version before those of this one
};

/// An open file. InputError: not of this kind, damaged, or of a later version (it is left as it is); BackendError: it
/// cannot be read or written, or another process holds it for longer than a minute.
class Database {
public:
    /// `create`: where there is none. InputError when its folder cannot be made.
    Database(const std::string& path, const Kind& kind, bool create);

    /// Whether the tables are there; false: the file is new.
    bool is_made() const;
    /// Makes the tables where they are missing, or of the version before; inside the caller's transaction, if there is
    /// one.
    void make() const;
    void run(const char* sql) const;
    /// Rows that the last statement changed.
    int changes() const;

private:
    friend class Statement;
    friend class Transaction;
    struct Close {
        void operator()(sqlite3* database) const;
    };
    void check(int code) const;
    std::int64_t number(const char* sql) const;

    std::string path_;
    Kind kind_;
    std::unique_ptr<sqlite3, Close> database_;
};

class Statement {
public:
    Statement(const Database& database, const char* sql);
    void bind(int at, std::string_view text) const;
    void bind(int at, double value) const;
    void bind(int at, std::int64_t value) const;
    /// Whether there is a row.
    bool step() const;
    void reset() const;
    std::string text(int column) const;
    double real(int column) const;
    std::int64_t integer(int column) const;

private:
    struct Close {
        void operator()(sqlite3_stmt* statement) const;
    };
    const Database& database_;
    std::unique_ptr<sqlite3_stmt, Close> statement_;
};

/// Takes the lock at once, so that two processes wait for each other and never fail half way. Nothing is written unless
/// commit() is reached.
class Transaction {
public:
    explicit Transaction(const Database& database);
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    void commit();

private:
    const Database& database_;
    bool done_ = false;
};

}  // namespace rehearse::store
