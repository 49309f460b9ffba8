// A disk in memory that loses power, tears writes, and fills up.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "storage/disk.h"

namespace gradwire {

// Thrown in the middle of a call in which the process or the machine dies.
struct SimulatedCrash {};

class SimulatedDisk final : public Disk {
 public:
  // A planted bug that tests must find.
  bool forgets_folder_syncs = false;
  std::size_t capacity = SIZE_MAX;      // in bytes; a write beyond it writes a part and fails
  std::uint64_t crash_at = UINT64_MAX;  // number of the call, counted from 0, in which the crash comes

  explicit SimulatedDisk(std::uint64_t seed = 1) : random_(seed, "disk") {}

  std::uint64_t calls() const { return calls_; }
  std::string& contents(const std::string& name) { return now_.at(name)->bytes; }

  // Prepares the disk for the next process.
  void lose_process() { crash_at = UINT64_MAX; }
  // Keeps a part of the unsynchronized bytes, and some of the renames and removals.
  void lose_power() {
    crash_at = UINT64_MAX;
    for (const auto& [name, file] : now_)
      if (random_.below(2) == 0) durable_[name] = file;
    for (auto it = durable_.begin(); it != durable_.end();)
      it = now_.count(it->first) == 0 && random_.below(2) == 0 ? durable_.erase(it) : std::next(it);
    for (auto& [name, file] : durable_) {
      std::string& bytes = file->bytes;
      if (bytes.size() > file->synced)
        bytes.resize(file->synced + random_.below(bytes.size() - file->synced + 1));
      // Damages an unsynchronized byte, like a torn write.
      if (bytes.size() > file->synced && random_.below(2) == 0) bytes[file->synced] ^= 1;
      file->synced = bytes.size();
    }
    now_ = durable_;
  }

  Result<std::vector<std::string>> list() override {
    std::vector<std::string> names;
    for (const auto& [name, file] : now_) names.push_back(name);
    return names;
  }
  Result<std::string> read(const std::string& name) override {
    const auto file = now_.find(name);
    if (file == now_.end()) return Error{name + ": is not there"};
    return file->second->bytes;
  }
  Status write(const std::string& name, Segments segments) override {
    now_[name] = std::make_shared<File>();
    return add(*now_[name], segments);
  }
  Status append(const std::string& name, Segments segments) override {
    if (now_.count(name) == 0) now_[name] = std::make_shared<File>();
    return add(*now_[name], segments);
  }
  Status sync(const std::string& name) override {
    step();
    File& file = *now_.at(name);
    file.synced = file.bytes.size();
    return Unit{};
  }
  Status sync_folder() override {
    step();
    if (!forgets_folder_syncs) durable_ = now_;
    return Unit{};
  }
  Status rename(const std::string& from, const std::string& to) override {
    step();
    const auto file = now_.find(from);
    if (file == now_.end()) return Error{from + ": is not there"};
    now_[to] = file->second;
    now_.erase(from);
    return Unit{};
  }
  Status remove(const std::string& name) override {
    step();
    now_.erase(name);
    return Unit{};
  }

 private:
  struct File {
    std::string bytes;
    std::size_t synced = 0;
  };

  void step() {
    if (calls_++ == crash_at) throw SimulatedCrash{};
  }
  Status add(File& file, Segments segments) {
    std::string all;
    for (const std::string_view segment : segments) all += segment;
    std::size_t used = 0;
    for (const auto& [name, other] : now_) used += other->bytes.size();
    const std::size_t room = capacity - std::min(capacity, used);
    if (calls_++ == crash_at) {
      file.bytes += all.substr(0, random_.below(all.size() + 1));
      throw SimulatedCrash{};
    }
    file.bytes += all.substr(0, room);
    if (all.size() > room) return Error{"No space left on device"};
    return Unit{};
  }

  std::map<std::string, std::shared_ptr<File>> now_, durable_;
  Random random_;
  std::uint64_t calls_ = 0;
};

}  // namespace gradwire
