// An SQLite database with errors as values. After the first failure, calls do nothing until clear(), so a
// transaction needs no check on each line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <variant>

struct sqlite3;
struct sqlite3_stmt;

namespace gradwire {

using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;

// A row of a result. Columns count from 0. Valid only inside the callback.
class SqlRow {
 public:
  explicit SqlRow(sqlite3_stmt* statement) : statement_(statement) {}
  std::int64_t integer(int column) const;  // 0 if NULL
  std::string text(int column) const;      // empty if NULL
  bool null(int column) const;

 private:
  sqlite3_stmt* statement_;
};

class Database {
 public:
  enum class Access : std::uint8_t {
    kWrite,      // creates the file if it does not exist
    kRead,       // also while another program writes
    kReadAlone,  // a file that no program writes; works in read-only folders
  };
  enum class SqlFailure : std::uint8_t { kNone, kLocked, kDamaged, kOther };

  // busy_ms: the time to wait for another program's lock.
  Database(const std::filesystem::path& file, Access access, int busy_ms);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  SqlFailure failure() const;
  std::string message() const { return message_; }  // SQLite's message of the first failure
  void clear();                                     // also rolls back the open transaction

  void run(const char* statements);
  // Runs a statement. `sql` must be a literal; it is kept prepared under its address.
  void run(const char* sql, std::initializer_list<SqlValue> values);
  void ask(const char* sql, std::initializer_list<SqlValue> values,
           const std::function<void(const SqlRow&)>& row);
  // Returns the first column of the first row.
  std::int64_t number(const char* sql);

 private:
  void check(int code);
  sqlite3_stmt* prepare(const char* sql, std::initializer_list<SqlValue> values);

  sqlite3* database_ = nullptr;
  std::map<const char*, sqlite3_stmt*> prepared_;
  int code_ = 0;
  std::string message_;
};

}  // namespace gradwire
