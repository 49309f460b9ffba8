#include "fl_server/run_history/run_history_file.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <system_error>

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kApplication = 0x47575247;  // "GWRG"; other programs' databases are not changed
constexpr std::int64_t kSchema = 1;
constexpr int kBusyMs = 100;
constexpr int kReadBusyMs = 2000;
constexpr std::uintmax_t kCheckedBytes = std::uintmax_t{64} << 20;  // larger files are not checked
constexpr int kMostSetAside = 100;

constexpr const char* kTables = R"(
CREATE TABLE IF NOT EXISTS runs(
  run TEXT PRIMARY KEY, name TEXT NOT NULL, algorithm TEXT NOT NULL, clients INTEGER NOT NULL, dim INTEGER,
  folder TEXT NOT NULL, began TEXT NOT NULL, ended TEXT, outcome TEXT, rounds INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS clients(
  run TEXT NOT NULL, client INTEGER NOT NULL, name TEXT NOT NULL, peer TEXT NOT NULL, build TEXT NOT NULL,
  kernels TEXT NOT NULL, samples INTEGER NOT NULL, connected INTEGER NOT NULL, first_joined TEXT NOT NULL,
  last_joined TEXT NOT NULL, last_lost TEXT, why_lost TEXT, times_joined INTEGER NOT NULL,
  times_lost INTEGER NOT NULL, replies_used INTEGER NOT NULL, replies_unused INTEGER NOT NULL,
  PRIMARY KEY(run, client)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rounds(
  run TEXT NOT NULL, round INTEGER NOT NULL, seconds REAL, replies INTEGER, bits_up REAL, bits_down REAL,
  bytes_up INTEGER, bytes_down INTEGER, loss REAL, grad_norm_sq REAL, accuracy REAL,
  PRIMARY KEY(run, round)
) WITHOUT ROWID;
)";

constexpr const char* kWriteRound = R"(
INSERT INTO rounds(run, round, seconds, replies, bits_up, bits_down, bytes_up, bytes_down)
VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT DO UPDATE SET seconds = ?3, replies = ?4, bits_up = ?5, bits_down = ?6, bytes_up = ?7,
  bytes_down = ?8)";
constexpr const char* kWriteEvaluation = R"(
INSERT INTO rounds(run, round, loss, grad_norm_sq, accuracy) VALUES(?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO UPDATE SET loss = ?3, grad_norm_sq = ?4, accuracy = ?5)";
constexpr const char* kWriteClient = R"(
INSERT INTO clients VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, nullif(?11, ''), nullif(?12, ''), ?13,
  ?14, ?15, ?16)
ON CONFLICT DO UPDATE SET name = ?3, peer = ?4, build = ?5, kernels = ?6, samples = ?7, connected = ?8,
  last_joined = ?10, last_lost = coalesce(nullif(?11, ''), last_lost),
  why_lost = coalesce(nullif(?12, ''), why_lost), times_joined = times_joined + ?13,
  times_lost = times_lost + ?14, replies_used = replies_used + ?15, replies_unused = replies_unused + ?16)";
// Counts replies of rounds in the journal but not in the run history, for a client that has not returned yet.
constexpr const char* kCountReplies = R"(
UPDATE clients SET replies_used = replies_used + ?3, replies_unused = replies_unused + ?4
WHERE run = ?1 AND client = ?2)";

SqlValue number(std::uint64_t value) { return static_cast<std::int64_t>(value); }
SqlValue real(const std::optional<double>& value) {
  return value ? SqlValue(*value) : SqlValue(std::monostate());
}

// Returns the name of the main file with the suffix "-wal" or "-shm".
fs::path with_suffix(const fs::path& file, const char* suffix) { return file.string() + suffix; }

}  // namespace

std::string run_history_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = ms / 1000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 32> day{};
  std::strftime(day.data(), day.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  const std::string thousandths = std::to_string(1000 + ms % 1000).substr(1);
  return std::string(day.data()) + "." + thousandths + "Z";
}

std::string run_history_id(std::uint64_t run) {
  std::array<char, 20> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(run));
  return text.data();
}

std::string run_history_folder(const fs::path& state) {
  const fs::path folder = fs::absolute(state).lexically_normal();
  return folder.has_filename() ? folder.string() : folder.parent_path().string();
}

RunHistoryFile::RunHistoryFile(fs::path file, Durability durability, RunHistoryRun run)
    : file_(std::move(file)), durability_(durability), run_(std::move(run)) {}
RunHistoryFile::~RunHistoryFile() = default;

// ---- opening ----

Status RunHistoryFile::failed() {
  locked_ = database_->failure() == Database::SqlFailure::kLocked;
  const std::string words = database_->message();
  database_->clear();
  if (locked_)
    return Error{file_.string() + ": is locked by another program; the run continues, and its rows wait"};
  return Error{file_.string() + ": cannot be written (" + words +
               "); the run continues, and its rows wait until there is space and permission"};
}

Status RunHistoryFile::set_aside(const std::string& why) {
  database_.reset();
  if (std::exchange(was_set_aside_, true))
    return Error{file_.string() + ": is damaged again (" + why + "); this process no longer writes to it"};
  fs::path kept = file_.string() + ".corrupt";
  for (int k = 2; fs::exists(kept) && k < kMostSetAside; ++k)
    kept = file_.string() + ".corrupt." + std::to_string(k);
  std::error_code error, ignored;
  fs::rename(file_, kept, error);
  if (error) return Error{file_.string() + ": is damaged (" + why + ") and cannot be renamed; delete it"};
  for (const char* suffix : {"-wal", "-shm"})
    fs::rename(with_suffix(file_, suffix), with_suffix(kept, suffix), ignored);
  note_ = file_.string() + ": is damaged (" + why + "); it is now " + kept.filename().string() +
          ", and a new file is used: its rows are missing, but no round is lost";
  return Unit{};
}

void RunHistoryFile::make_tables() {
  Database& db = *database_;
  db.run("BEGIN IMMEDIATE");
  db.run(kTables);
  db.run(("PRAGMA application_id = " + std::to_string(kApplication)).c_str());
  db.run(("PRAGMA user_version = " + std::to_string(kSchema)).c_str());
  db.run("COMMIT");
}

Status RunHistoryFile::try_open() {
  std::error_code ignored;
  const std::uintmax_t bytes = fs::file_size(file_, ignored);
  database_ = std::make_unique<Database>(file_, Database::Access::kWrite, kBusyMs);
  Database& db = *database_;
  const bool empty = db.number("SELECT count(*) FROM sqlite_master") == 0;
  const std::int64_t application = db.number("PRAGMA application_id"),
                     schema = db.number("PRAGMA user_version");
  if (db.failure() == Database::SqlFailure::kNone && !(empty && application == 0 && schema == 0)) {
    const std::string none = "; this process does not write to it; choose another file with --registry";
    if (application != kApplication) return Error{file_.string() + ": belongs to another program" + none};
    if (schema > kSchema) return Error{file_.string() + ": was made by a newer gradwire" + none};
  }
  db.run("PRAGMA journal_mode = WAL");
  db.run("PRAGMA cache_size = -256");  // KiB: rounds are appended and not read again
  db.run(durability_ == Durability::kPower ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
  if (!empty && (bytes <= kCheckedBytes || suspect_)) {
    db.ask("PRAGMA quick_check(1)", {}, [&](const SqlRow& row) {
      if (row.text(0) != "ok") damage_ = row.text(0);
    });
  }
  if (empty) make_tables();
  if (db.failure() == Database::SqlFailure::kDamaged) damage_ = db.message();
  return db.failure() == Database::SqlFailure::kNone ? Status(Unit{}) : failed();
}

Status RunHistoryFile::open() {
  if (database_) return Unit{};
  locked_ = false;
  damage_.clear();
  Status status = try_open();
  if (!damage_.empty()) {
    status = set_aside(std::exchange(damage_, {}));
    if (status) status = try_open();
  }
  suspect_ = false;
  if (!status) database_.reset();
  return status;
}

Result<std::uint32_t> RunHistoryFile::rounds() {
  if (Status status = open(); !status) return status.error();
  std::uint32_t rounds = 0;
  database_->ask("SELECT rounds FROM runs WHERE run = ?1", {run_.id},
                 [&](const SqlRow& row) { rounds = static_cast<std::uint32_t>(row.integer(0)); });
  if (database_->failure() != Database::SqlFailure::kNone) return failed().error();
  return rounds;
}

// ---- writing ----

void RunHistoryFile::write_run(const RunHistoryBatch& batch) {
  Database& db = *database_;
  const std::string now = run_history_time();
  // A folder holds one run at a time: older runs end here, and those that never began are deleted.
  db.run(
      "DELETE FROM clients WHERE run IN "
      "(SELECT run FROM runs WHERE folder = ?1 AND run <> ?2 AND dim IS NULL)",
      {run_.folder, run_.id});
  db.run("DELETE FROM runs WHERE folder = ?1 AND run <> ?2 AND dim IS NULL", {run_.folder, run_.id});
  db.run("UPDATE runs SET ended = ?3, outcome = 'replaced' WHERE folder = ?1 AND run <> ?2 AND ended IS NULL",
         {run_.folder, run_.id, now});
  db.run(
      "INSERT INTO runs(run, name, algorithm, clients, folder, began) VALUES(?1, ?2, ?3, ?4, ?5, ?6) "
      "ON CONFLICT DO UPDATE SET folder = ?5",
      {run_.id, run_.name, run_.algorithm, number(run_.clients), run_.folder, now});
  if (batch.dim) db.run("UPDATE runs SET dim = ?2 WHERE run = ?1", {run_.id, number(*batch.dim)});
  if (!batch.resumed_after) return;
  db.run("UPDATE runs SET ended = NULL, outcome = NULL WHERE run = ?1", {run_.id});
  db.run("UPDATE clients SET connected = 0 WHERE run = ?1", {run_.id});
  db.run("DELETE FROM rounds WHERE run = ?1 AND round > ?2", {run_.id, number(*batch.resumed_after)});
}

void RunHistoryFile::write_end(const RunHistoryBatch& batch) {
  Database& db = *database_;
  if (batch.round) db.run("UPDATE runs SET rounds = ?2 WHERE run = ?1", {run_.id, number(*batch.round)});
  if (batch.outcome.empty()) return;
  db.run("UPDATE runs SET ended = ?2, outcome = ?3 WHERE run = ?1",
         {run_.id, run_history_time(), batch.outcome});
  db.run("UPDATE clients SET connected = 0 WHERE run = ?1", {run_.id});
}

void RunHistoryFile::write_rows(const RunHistoryBatch& batch) {
  Database& db = *database_;
  for (const RunHistoryClient& c : batch.clients) {
    if (c.last_joined.empty()) {
      db.run(kCountReplies, {run_.id, number(c.number), number(c.replies_used), number(c.replies_unused)});
      continue;
    }
    db.run(kWriteClient,
           {run_.id, number(c.number), c.name, c.peer, c.build, c.kernels, number(c.samples),
            number(c.connected), c.first_joined, c.last_joined, c.last_lost, c.why_lost,
            number(c.times_joined), number(c.times_lost), number(c.replies_used), number(c.replies_unused)});
  }
  for (const RunHistoryRound& r : batch.rounds) {
    if (r.evaluation) {
      db.run(kWriteEvaluation, {run_.id, number(r.round), r.loss, real(r.grad_norm_sq), real(r.accuracy)});
    } else {
      db.run(kWriteRound, {run_.id, number(r.round), r.seconds, number(r.replies), r.bits_up, r.bits_down,
                           number(r.bytes_up), number(r.bytes_down)});
    }
  }
}

Status RunHistoryFile::write(const RunHistoryBatch& batch) {
  for (bool again : {false, true}) {
    if (Status status = open(); !status) return status;
    database_->run("BEGIN IMMEDIATE");
    write_run(batch);
    write_rows(batch);
    write_end(batch);
    database_->run("COMMIT");
    if (database_->failure() == Database::SqlFailure::kNone) return Unit{};
    if (database_->failure() != Database::SqlFailure::kDamaged || again) break;
    // Another server of this site may have set the file aside: reopen the file of that name.
    suspect_ = true;
    database_.reset();
  }
  return failed();
}

// ---- reading ----

namespace {

RunHistoryClient client_of(const SqlRow& row) {
  const auto count = [&](int column) { return static_cast<std::uint64_t>(row.integer(column)); };
  RunHistoryClient c;
  c.number = static_cast<ClientId>(row.integer(0));
  c.name = row.text(1);
  c.peer = row.text(2);
  c.build = row.text(3);
  c.kernels = row.text(4);
  c.samples = count(5);
  c.connected = row.integer(6) != 0;
  c.first_joined = row.text(7);
  c.last_joined = row.text(8);
  c.last_lost = row.text(9);
  c.why_lost = row.text(10);
  c.times_joined = count(11);
  c.times_lost = count(12);
  c.replies_used = count(13);
  c.replies_unused = count(14);
  return c;
}

}  // namespace

Result<std::optional<RunHistoryContent>> read_run_history(const fs::path& file, const std::string& id,
                                                          const std::string& folder) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return Error{file.string() + ": does not exist"};
  // Without a log file no process writes the database, and reading it must not create one.
  const auto access =
      fs::exists(with_suffix(file, "-wal"), ignored) ? Database::Access::kRead : Database::Access::kReadAlone;
  Database db(file, access, kReadBusyMs);
  const bool ours = db.number("PRAGMA application_id") == kApplication;
  const bool newer = db.number("PRAGMA user_version") > kSchema;
  if (db.failure() == Database::SqlFailure::kNone && (!ours || newer))
    return Error{file.string() +
                 (ours ? ": was made by a newer gradwire" : ": is not a registry of gradwire")};
  std::optional<RunHistoryContent> seen;
  db.ask(
      "SELECT run, began, ended, outcome FROM runs WHERE run = ?1 OR (?1 = '' AND folder = ?2) "
      "ORDER BY began DESC LIMIT 1",
      {id, folder}, [&](const SqlRow& row) {
        seen = RunHistoryContent{row.text(0), row.text(1), row.text(2), row.text(3), {}};
      });
  if (seen)
    db.ask(
        "SELECT client, name, peer, build, kernels, samples, connected, first_joined, last_joined, "
        "last_lost, "
        "why_lost, times_joined, times_lost, replies_used, replies_unused FROM clients WHERE run = ?1 "
        "ORDER BY client",
        {seen->id}, [&](const SqlRow& row) { seen->clients.push_back(client_of(row)); });
  if (db.failure() != Database::SqlFailure::kNone)
    return Error{file.string() + ": cannot be read (" + db.message() + ")"};
  return seen;
}

}  // namespace gradwire
