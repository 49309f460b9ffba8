#include "experiments/support/metrics_reader.h"

#include <charconv>
#include <fstream>
#include <stdexcept>
#include <string>

#include "proto/report/metrics_file.h"

namespace gradwire {
namespace {

// The cells of one line, one after the other.
class Cells {
 public:
  explicit Cells(std::string_view line) : rest_(line) {}

  template <class T>
  void read(T& out) {
    const std::string_view cell = next();
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), out);
    ok_ = ok_ && error == std::errc() && end == cell.data() + cell.size();
  }
  void read(std::optional<double>& out) {
    if (!rest_.empty() && rest_.front() == ',') {
      next();
      out = std::nullopt;
    } else {
      read(out.emplace());
    }
  }
  bool at_end() const { return rest_.empty(); }
  bool ok() const { return ok_; }

 private:
  std::string_view next() {
    const std::size_t comma = rest_.find(',');
    const std::string_view cell = rest_.substr(0, comma);
    rest_.remove_prefix(comma == std::string_view::npos ? rest_.size() : comma + 1);
    return cell;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace

std::optional<RoundRecord> parse_metrics_line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  RoundRecord r;
  Cells cells(line);
  cells.read(r.round);
  cells.read(r.loss);
  cells.read(r.grad_norm_sq);
  cells.read(r.accuracy);
  cells.read(r.bits_up);
  cells.read(r.bits_down);
  cells.read(r.bytes_up);
  cells.read(r.bytes_down);
  cells.read(r.grad_calls);
  cells.read(r.replies);
  cells.read(r.seconds);
  if (!cells.at_end()) {  // older files end here
    cells.read(r.bits_up_paper);
    cells.read(r.bits_down_paper);
  }
  if (!cells.ok()) return std::nullopt;
  return r;
}

std::vector<RoundRecord> read_metrics(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string name = file.string();
  if (!in) throw std::runtime_error(name + ": cannot be read; a folder of results has a metrics.csv");
  std::string line;
  std::getline(in, line);
  if (line.ends_with('\r')) line.pop_back();
  // Columns were appended; a file of an older version has fewer, but the same first ones.
  constexpr std::string_view kOldHeader = kMetricsHeader.substr(0, kMetricsHeader.find(",bits_up_paper"));
  if (line != kOldHeader && !line.starts_with(kMetricsHeader))
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
