#include "report/metrics_reader.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "report/columns.h"

namespace gradwire {
std::vector<RoundRecord> read_metrics(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string name = file.string();
  if (!in)
    throw std::runtime_error(name + ": cannot be read: " + std::strerror(errno) +
                             "; a folder of results has a metrics.csv");
  std::string line;
  std::getline(in, line);
  if (line.ends_with('\r')) line.pop_back();
  // New columns are always appended, so a file of an older version has a prefix of the current header.
  const std::string& header = metrics_header();
  const std::string_view old_header = std::string_view(header).substr(0, header.find(",bits_up_paper"));
  const bool is_older = line.size() >= old_header.size() && (header + ",").starts_with(line + ",");
  if (!is_older && !line.starts_with(header))
    throw std::runtime_error(name + ":1: not the header of a metrics.csv of gradwire");
  std::vector<RoundRecord> records;
  for (std::size_t number = 2; std::getline(in, line) && !in.eof(); ++number) {
    const auto record = parse_metrics_line(line);
    if (!record)
      throw std::runtime_error(name + ":" + std::to_string(number) +
                               ": not a line of numbers: delete it, or run again");
    records.push_back(*record);
  }
  return records;
}

}  // namespace gradwire
