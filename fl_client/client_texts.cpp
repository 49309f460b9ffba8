#include "fl_client/client_texts.h"

#include <cstddef>

#include "proto/wire/control_frame.h"

namespace gradwire {
namespace {

constexpr std::size_t kMostColumnsLogged = 200;

}  // namespace

std::string columns_text(const TableEncoding& table) {
  std::string text = "the columns of its table: ";
  std::size_t count = 0;
  for (const TableEncoding::Column& column : table.features) {
    if (++count > kMostColumnsLogged) continue;
    text += (count > 1 ? ", " : "") + (column.name.empty() ? std::to_string(count) : one_line(column.name));
  }
  if (count > kMostColumnsLogged) text += " and " + std::to_string(count - kMostColumnsLogged) + " more";
  return text + "; label: " + (table.label.name.empty() ? "without a name" : one_line(table.label.name));
}

std::string with_place_of_keys(const std::string& error) {
  for (const char* section : {"problem.", "clients.", "run."})
    if (error.find(section) != error.npos) return error + " (such keys are in the server's experiment file)";
  return error;
}

Error connection_lost(const std::string& why) {
  return Error{"the connection to the server is lost: " + why};
}

}  // namespace gradwire
