// clients.csv: loss and accuracy of each client at an evaluation (docs/reference/results.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "config/sections.h"
#include "rounds/evaluation.h"
#include "storage/disk.h"

namespace gradwire {

inline constexpr const char* kClientsFile = "clients.csv";

class ClientsFile {
 public:
  // With kAll, keeps the lines that an earlier process wrote for rounds before `first_round`; otherwise
  // removes the file. `samples` has the number of training samples of each client, shape (n). Throws
  // std::runtime_error. REQUIRES: `metrics` is not kAuto.
  ClientsFile(const std::filesystem::path& file, ClientMetrics metrics, std::uint32_t first_round,
              std::vector<std::uint64_t> samples);
  // Sets the function that names clients. By default clients have no names.
  void name(std::function<std::string(std::uint32_t client)> name_of) { name_of_ = std::move(name_of); }
  // Returns the function for LoopHooks::on_clients. Empty if the file needs no replies.
  std::function<void(std::uint32_t round, std::span<const ClientEvaluation>)> writer();
  // With kLast, writes the replies of the last evaluation.
  void finish();

 private:
  std::string lines(std::uint32_t round, std::span<const ClientEvaluation> answers) const;

  const std::shared_ptr<Disk> disk_;
  const std::string name_;
  const ClientMetrics metrics_;
  const std::vector<std::uint64_t> samples_;
  std::function<std::string(std::uint32_t client)> name_of_;
  std::uint32_t last_round_ = 0;
  std::vector<ClientEvaluation> last_;  // with kLast
};

}  // namespace gradwire
