#include "report/clients_file.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/value.h"
#include "storage/atomic_file.h"

namespace gradwire {
namespace {

constexpr std::string_view kHeader = "round,client,name,samples,loss,accuracy\n";

// Returns the whole lines of `text` for rounds before `first_round`, after the header.
std::string kept_lines(std::string_view text, std::uint32_t first_round) {
  std::string kept(kHeader);
  if (!text.starts_with(kHeader)) return kept;
  text.remove_prefix(kHeader.size());
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    std::uint32_t round = 0;
    const auto [after, error] = std::from_chars(text.data(), text.data() + end, round);
    if (error != std::errc() || *after != ',' || round >= first_round) break;
    kept += text.substr(0, end + 1);
    text.remove_prefix(end + 1);
  }
  return kept;
}

bool is_there(Disk& disk, const std::string& name) {
  const Result<std::vector<std::string>> names = disk.list();
  return names && std::find(names->begin(), names->end(), name) != names->end();
}

}  // namespace

ClientsFile::ClientsFile(const std::filesystem::path& file, ClientMetrics metrics, std::uint32_t first_round,
                         Describe describe)
    : disk_(disk_of(file)),
      name_(file.filename().string()),
      metrics_(metrics),
      describe_(std::move(describe)) {
  const bool is_old = is_there(*disk_, name_);
  if (metrics_ == ClientMetrics::kAll) {
    const Result<std::string> before = is_old && first_round > 0 ? disk_->read(name_) : std::string();
    write_whole(*disk_, name_, kept_lines(before ? *before : std::string(), first_round));
  } else if (is_old) {
    throw_if_failed(disk_->remove(name_));
  }
}

std::function<void(std::uint32_t, std::span<const ClientEvaluation>)> ClientsFile::writer() {
  if (metrics_ == ClientMetrics::kNone) return {};
  return [this](std::uint32_t round, std::span<const ClientEvaluation> answers) {
    if (metrics_ == ClientMetrics::kLast) {
      last_round_ = round;
      last_.assign(answers.begin(), answers.end());
      return;
    }
    const std::string text = lines(round, answers);
    const std::string_view segment = text;
    throw_if_failed(disk_->append(name_, std::span(&segment, 1)));
  };
}

void ClientsFile::finish() {
  if (metrics_ == ClientMetrics::kLast && !last_.empty())
    write_whole(*disk_, name_, std::string(kHeader) + lines(last_round_, last_));
}

std::string ClientsFile::lines(std::uint32_t round, std::span<const ClientEvaluation> answers) const {
  std::string text;
  for (std::uint32_t client = 0; client < answers.size(); ++client) {
    const ClientEvaluation& answer = answers[client];
    if (!answer.answered) continue;
    const DescribedClient described = describe_(client);
    text += std::to_string(round) + ',' + std::to_string(client) + ',' + described.name + ',' +
            std::to_string(described.samples) + ',' + number_text(answer.loss) + ',';
    if (answer.tested > 0)
      text += number_text(static_cast<double>(answer.correct) / static_cast<double>(answer.tested));
    text += '\n';
  }
  return text;
}

}  // namespace gradwire
