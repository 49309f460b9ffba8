#include "report/metrics_file.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <utility>

#include "report/columns.h"
#include "storage/atomic_file.h"

namespace gradwire {
namespace {

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t comma = line.find(','); comma != std::string_view::npos; comma = line.find(',')) {
    cells.push_back(line.substr(0, comma));
    line.remove_prefix(comma + 1);
  }
  cells.push_back(line);
  return cells;
}

const std::vector<std::string_view>& our_columns() {
  static const std::vector<std::string_view> names = cells_of(metrics_header());
  return names;
}

// Returns, for each current column, its place in the lines of a file with this header. The place is past the
// end if the file lacks the column.
std::vector<std::size_t> places_of_columns(std::string_view header) {
  const std::vector<std::string_view> theirs = cells_of(header);
  std::vector<std::size_t> places;
  for (const std::string_view name : our_columns())
    places.push_back(
        static_cast<std::size_t>(std::find(theirs.begin(), theirs.end(), name) - theirs.begin()));
  return places;
}

bool may_be_empty(std::string_view column) {
  return column == "grad_norm_sq" || column == "accuracy" || column == "sim_seconds" ||
         column.starts_with("lyapunov");
}

// Converts a line to the current columns. A missing cell becomes empty if the column allows it, else 0.
std::string in_our_columns(std::string_view line, const std::vector<std::size_t>& places) {
  const std::vector<std::string_view> cells = cells_of(line);
  std::string text;
  for (std::size_t k = 0; k < places.size(); ++k) {
    if (k > 0) text += ',';
    text += places[k] < cells.size() ? cells[places[k]] : may_be_empty(our_columns()[k]) ? "" : "0";
  }
  return text;
}

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

// Returns the header and the lines of earlier rounds, up to the first line that is incomplete or will be
// written again.
std::string lines_before(std::string_view text, std::uint32_t first_round) {
  std::string kept = metrics_header() + '\n';
  const std::string_view header = first_line(text);
  if (header.size() == text.size() || !header.starts_with("round,")) return kept;
  const std::vector<std::size_t> places = places_of_columns(header);
  text.remove_prefix(header.size() + 1);
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    std::uint32_t round = 0;
    const auto [after, error] = std::from_chars(text.data(), text.data() + end, round);
    if (error != std::errc() || *after != ',' || round >= first_round) break;
    const std::string_view line = text.substr(0, end);
    kept += header == metrics_header() ? std::string(line) : in_our_columns(line, places);
    kept += '\n';
    text.remove_prefix(end + 1);
  }
  return kept;
}

// REQUIRES: `lines` comes from lines_before().
std::optional<double> loss_of_row_0(std::string_view lines) {
  constexpr std::string_view kRow0 = "0,";
  lines.remove_prefix(metrics_header().size() + 1);
  double loss = 0;
  if (!lines.starts_with(kRow0) ||
      std::from_chars(lines.data() + kRow0.size(), lines.data() + lines.size(), loss).ec != std::errc())
    return std::nullopt;
  return loss;
}

// REQUIRES: `lines` comes from lines_before().
std::optional<RoundRecord> last_row(std::string_view lines) {
  lines.remove_suffix(1);
  const std::size_t newline = lines.rfind('\n');
  if (newline == std::string_view::npos) return std::nullopt;  // there is only the header
  return parse_metrics_line(lines.substr(newline + 1));
}

// REQUIRES: `lines` comes from lines_before().
Plateau plateau_of(std::string_view lines) {
  Plateau plateau;
  lines.remove_prefix(metrics_header().size() + 1);
  for (; !lines.empty(); lines.remove_prefix(lines.find('\n') + 1))
    if (const auto row = parse_metrics_line(first_line(lines))) plateau.see(row->loss);
  return plateau;
}

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& file, std::uint32_t first_round, Durability durability)
    : MetricsFile(disk_of(file), file.filename().string(), first_round, durability) {}

MetricsFile::MetricsFile(std::shared_ptr<Disk> disk, std::string name, std::uint32_t first_round,
                         Durability durability)
    : disk_(std::move(disk)), name_(std::move(name)), durability_(durability) {
  const Result<std::string> before = first_round > 0 ? disk_->read(name_) : std::string();
  const std::string_view text = before ? std::string_view(*before) : std::string_view();
  if (text.find('\n') != std::string_view::npos && first_line(text) != metrics_header()) {
    set_aside_ = name_ + ".before";
    write_whole(*disk_, set_aside_, text);
  }
  const std::string kept = lines_before(text, first_round);
  write_whole(*disk_, name_, kept);
  loss_at_start_ = loss_of_row_0(kept);
  last_ = last_row(kept);
  plateau_ = plateau_of(kept);
}

void MetricsFile::write(const RoundRecord& record) {
  if (record.round == 0) loss_at_start_ = record.loss;
  last_ = record;
  // One write per line, so that a reader never sees half a line.
  const std::string line = metrics_line(record) + '\n';
  const std::string_view segment = line;
  throw_if_failed(disk_->append(name_, std::span(&segment, 1)));
  if (durability_ == Durability::kPower) throw_if_failed(disk_->sync(name_));
}

std::optional<std::uint32_t> last_round_of_metrics(const std::filesystem::path& file) {
  constexpr std::streamoff kLongestLine = 4096;
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return std::nullopt;
  const std::streamoff size = in.tellg(), from = std::max<std::streamoff>(0, size - 2 * kLongestLine);
  std::string text(static_cast<std::size_t>(size - from), '\0');
  if (!in.seekg(from).read(text.data(), size - from)) return std::nullopt;
  text.resize(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n'));
  const std::size_t start = text.rfind('\n');
  if (start == std::string::npos) return std::nullopt;  // the only line is the header
  std::uint32_t round = 0;
  const auto [end, error] = std::from_chars(text.data() + start + 1, text.data() + text.size(), round);
  return error == std::errc() && *end == ',' ? std::optional(round) : std::nullopt;
}

}  // namespace gradwire
