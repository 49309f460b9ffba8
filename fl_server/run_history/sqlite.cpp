#include "fl_server/run_history/sqlite.h"

#include <sqlite3.h>
#include <string_view>

namespace gradwire {
namespace {

// Returns the file's name as a URI for SQLite.
std::string uri_of(const std::filesystem::path& file) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string uri = "file:";
  for (const char c : file.string()) {
    if (c == '%' || c == '?' || c == '#') {
      const auto byte = static_cast<unsigned char>(c);
      uri += {'%', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      uri += c;
    }
  }
  return uri;
}

int bind(sqlite3_stmt* statement, int place, const SqlValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value))
    return sqlite3_bind_int64(statement, place, *integer);
  if (const auto* real = std::get_if<double>(&value)) return sqlite3_bind_double(statement, place, *real);
  if (const auto* text = std::get_if<std::string>(&value))
    return sqlite3_bind_text(statement, place, text->data(), static_cast<int>(text->size()),
                             SQLITE_TRANSIENT);
  return sqlite3_bind_null(statement, place);
}

}  // namespace

std::int64_t SqlRow::integer(int column) const { return sqlite3_column_int64(statement_, column); }
bool SqlRow::null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
std::string SqlRow::text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_, column);
  return text == nullptr ? "" : reinterpret_cast<const char*>(text);
}

Database::Database(const std::filesystem::path& file, Access access, int busy_ms) {
  const std::string name = uri_of(file) + (access == Access::kReadAlone ? "?immutable=1" : "");
  const int mode =
      access == Access::kWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  check(sqlite3_open_v2(name.c_str(), &database_, mode | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr));
  if (database_ != nullptr) sqlite3_busy_timeout(database_, busy_ms);
}

Database::~Database() {
  for (const auto& [sql, statement] : prepared_) sqlite3_finalize(statement);
  sqlite3_close(database_);
}

void Database::check(int code) {
  if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW || code_ != SQLITE_OK) return;
  code_ = code;
  message_ = database_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database_);
}

Database::SqlFailure Database::failure() const {
  switch (code_ & 0xff) {  // the upper bits are details
    case SQLITE_OK: return SqlFailure::kNone;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return SqlFailure::kLocked;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return SqlFailure::kDamaged;
    default: return SqlFailure::kOther;
  }
}

void Database::clear() {
  if (database_ != nullptr && sqlite3_get_autocommit(database_) == 0)
    sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
  code_ = SQLITE_OK;
  message_.clear();
}

void Database::run(const char* statements) {
  if (code_ == SQLITE_OK) check(sqlite3_exec(database_, statements, nullptr, nullptr, nullptr));
}

sqlite3_stmt* Database::prepare(const char* sql, std::initializer_list<SqlValue> values) {
  if (code_ != SQLITE_OK) return nullptr;
  sqlite3_stmt*& statement = prepared_[sql];
  if (statement == nullptr) check(sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr));
  int place = 0;
  for (const SqlValue& value : values)
    if (code_ == SQLITE_OK) check(bind(statement, ++place, value));
  return code_ == SQLITE_OK ? statement : nullptr;
}

void Database::run(const char* sql, std::initializer_list<SqlValue> values) {
  ask(sql, values, [](const SqlRow&) {});
}

void Database::ask(const char* sql, std::initializer_list<SqlValue> values,
                   const std::function<void(const SqlRow&)>& row) {
  sqlite3_stmt* statement = prepare(sql, values);
  if (statement == nullptr) return;
  int code = sqlite3_step(statement);
  for (; code == SQLITE_ROW; code = sqlite3_step(statement)) row(SqlRow(statement));
  check(code);
  sqlite3_reset(statement);
}

std::int64_t Database::number(const char* sql) {
  std::int64_t first = 0;
  bool any = false;
  ask(sql, {}, [&](const SqlRow& row) {
    if (!any) first = row.integer(0);
    any = true;
  });
  return first;
}

}  // namespace gradwire
