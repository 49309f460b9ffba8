#include "report/metrics_table.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "report/columns.h"

namespace gradwire {
namespace {

constexpr std::size_t kBlock = 1 << 20, kLongestLine = 64 << 10, kMostColumns = 1000;

// Reads a file line by line, in memory that does not grow with the file.
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& file) : in_(file, std::ios::binary), name_(file.string()) {
    if (!in_)
      throw std::runtime_error(name_ + ": cannot be read: " + std::strerror(errno) +
                               "; a folder of results has a metrics.csv");
    if (std::filesystem::is_directory(file))
      throw std::runtime_error(name_ + ": is a folder; a folder of results has a metrics.csv");
  }

  // Sets `line` to the next line without its newline; the view is valid until the next call. Returns false if
  // no whole line is left.
  bool next(std::string_view& line) {
    ++number_;
    std::size_t end = buffer_.find('\n', at_);
    while (end == std::string::npos) {
      check_length(buffer_.size());
      buffer_.erase(0, at_);
      at_ = 0;
      const std::size_t left = buffer_.size();
      buffer_.resize(left + kBlock);
      in_.read(buffer_.data() + left, static_cast<std::streamsize>(kBlock));
      buffer_.resize(left + static_cast<std::size_t>(in_.gcount()));
      if (in_.bad()) throw std::runtime_error(name_ + ": cannot be read to its end");
      if (buffer_.size() == left) return false;
      end = buffer_.find('\n', left);
    }
    check_length(end);
    line = std::string_view(buffer_).substr(at_, end - at_);
    if (line.ends_with('\r')) line.remove_suffix(1);
    at_ = end + 1;
    return true;
  }

  std::runtime_error trouble(const std::string& what) const {
    return std::runtime_error(name_ + ":" + std::to_string(number_) + ": " + what);
  }

 private:
  void check_length(std::size_t end) const {
    if (end - at_ > kLongestLine) throw trouble("a line of more than 64 KB: not a metrics.csv");
  }

  std::ifstream in_;
  std::string name_, buffer_;
  std::size_t at_ = 0, number_ = 0;
};

// Returns the names in the header, or an empty list if the line is not a header.
std::vector<std::string> split_header(std::string_view line) {
  std::vector<std::string> names;
  const std::string_view known(metrics_header());
  if (!line.starts_with(known.substr(0, known.find(",bits_up_paper")))) return names;
  for (std::size_t at = 0; at <= line.size() && names.size() < kMostColumns;) {
    const std::size_t comma = std::min(line.find(',', at), line.size());
    names.emplace_back(line.substr(at, comma - at));
    at = comma + 1;
  }
  return names;
}

bool read_cell(const char* begin, const char* end, double& value) {
  value = std::numeric_limits<double>::quiet_NaN();
  if (begin == end) return true;
  const auto [rest, error] = std::from_chars(begin, end, value);
  return error == std::errc() && rest == end;
}

}  // namespace

const std::vector<double>* MetricsTable::column(std::string_view name) const {
  const auto at = std::find(read.begin(), read.end(), name);
  return at == read.end() ? nullptr : &columns[static_cast<std::size_t>(at - read.begin())];
}

bool MetricsTable::has(std::string_view name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

MetricsTable read_metrics_table(const std::filesystem::path& file, std::span<const std::string> wanted) {
  LineReader lines(file);
  std::string_view line;
  MetricsTable table;
  if (lines.next(line)) table.names = split_header(line);
  if (table.names.empty())
    throw std::runtime_error(file.string() + ":1: not the header of a metrics.csv of gradwire");
  constexpr std::size_t kSkipped = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> place(table.names.size(), kSkipped);  // in table.columns
  for (std::size_t c = 0; c < table.names.size(); ++c) {
    if (std::find(wanted.begin(), wanted.end(), table.names[c]) == wanted.end() ||
        table.column(table.names[c]))
      continue;
    place[c] = table.columns.size();
    table.read.push_back(table.names[c]);
    table.columns.emplace_back();
  }
  while (lines.next(line)) {
    const char *at = line.data(), *const end = at + line.size();
    for (std::size_t c = 0; c < place.size(); ++c) {
      const char* const comma = std::find(at, end, ',');
      double value = 0;
      const bool last = c + 1 == place.size();
      if ((place[c] != kSkipped && !read_cell(at, comma, value)) || (comma == end) != last)
        throw lines.trouble("not a line of numbers: delete it, or run again");
      if (place[c] != kSkipped) table.columns[place[c]].push_back(value);
      at = last ? end : comma + 1;
    }
    ++table.rows;
  }
  return table;
}

}  // namespace gradwire
