// A database of SQLite with errors as values: after the first failure every call does nothing until clear(),
// so the code of a transaction needs no check on each line.
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

// A row of an answer; columns count from 0. Valid inside the call that it is handed to.
class SqlRow {
 public:
  explicit SqlRow(sqlite3_stmt* statement) : statement_(statement) {}
  std::int64_t integer(int column) const;  // 0 where there is none
  std::string text(int column) const;      // empty where there is none
  bool null(int column) const;

 private:
  sqlite3_stmt* statement_;
};

class Database {
 public:
  enum class Access : std::uint8_t {
    kWrite,      // makes the file if there is none
    kRead,       // also while another program writes
    kReadAlone,  // a file that nobody writes; also where no file can be made beside it
  };
  enum class SqlFailure : std::uint8_t { kNone, kLocked, kDamaged, kOther };

  // busy_ms: how long a call waits for another program's lock.
  Database(const std::filesystem::path& file, Access access, int busy_ms);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  SqlFailure failure() const;
  std::string message() const { return message_; }  // of the first failure, in SQLite's words
  void clear();                                     // also rolls back the open transaction

  void run(const char* statements);
  // `sql`: a literal, kept prepared under its address.
  void run(const char* sql, std::initializer_list<SqlValue> values);
  void ask(const char* sql, std::initializer_list<SqlValue> values,
           const std::function<void(const SqlRow&)>& row);
  // The first column of the first row.
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
