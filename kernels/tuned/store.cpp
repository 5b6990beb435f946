// SPDX-License-Identifier: Apache-2.0
#include "kernels/tuned/store.hpp"

#include <filesystem>

#include "core/error.hpp"
#include "store/database.hpp"

namespace rehearse::kernels::tuned {
namespace {

using store::Database;
using store::Statement;

constexpr const char* schema = R"(
CREATE TABLE IF NOT EXISTS host(id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS winner(
  host INTEGER NOT NULL REFERENCES host(id), problem TEXT NOT NULL, backend TEXT NOT NULL, algorithm TEXT NOT NULL,
  threads INTEGER NOT NULL, median_s REAL NOT NULL, runner_up_s REAL NOT NULL, scratch_bytes REAL NOT NULL,
  scratch_limit_bytes REAL NOT NULL, tried INTEGER NOT NULL, date TEXT NOT NULL,
  PRIMARY KEY(host, problem)) WITHOUT ROWID;
)";

constexpr store::Kind kind{.application = 0x52687431,  // "Rht1"
                           .version = 1,
                           .what = "tuned kernels",
                           .otherwise = "go without it with --tune off",
                           .schema = schema};

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
    const Database database(path, kind, false);
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
    const Database database(path, kind, true);
    store::Transaction transaction(database);
    database.make();
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
