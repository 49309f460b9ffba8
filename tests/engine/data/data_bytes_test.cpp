// Bytes of data files: plain, compressed, damaged, and too many.
#include <gtest/gtest.h>
#include <string>
#include <tuple>

#include "engine/data/readers/bytes.h"
#include "engine/data/readers/decompressor.h"
#include "engine/data/readers/source.h"
#include "tests/support/compressed.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

struct Format {
  const char* name;
  std::string (*pack)(std::string_view bytes);
};
constexpr Format kFormats[] = {{"gzip", gzip}, {"bzip2", bzip2}, {"xz", xz}};

TEST(Bytes, AreReadFromCompressedAndConcatenatedFiles) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 50000; ++i) text += std::to_string(i) + "\n";
  EXPECT_EQ(read_file_bytes(folder.write("plain", text)), text);
  EXPECT_EQ(read_file_bytes(folder.write("empty", "")), "");
  for (const auto& [name, pack] : kFormats) {
    SCOPED_TRACE(name);
    EXPECT_EQ(read_file_bytes(folder.write("one", pack(text))), text);
    EXPECT_EQ(read_file_bytes(folder.write("two", pack(text) + pack("more"))), text + "more");
    EXPECT_EQ(read_file_bytes(folder.write("empty", pack(""))), "");
    EXPECT_EQ(read_file_bytes(folder.write("empty", pack("") + pack("x"))), "x");
    EXPECT_EQ(read_file_prefix(folder.path() / "one", 3), "0\n1");
    folder.write("a", pack("1 2:3\n"));
    EXPECT_EQ(read_source("libsvm:a", folder.path(), {}).columns, 2u);
  }
  const std::string padding(8, '\0');
  EXPECT_EQ(read_file_bytes(folder.write("padded", xz("a") + padding + xz("b") + padding)), "ab");
}

TEST(Bytes, AreRefusedFromDamagedAndCutFiles) {
  const TemporaryFolder folder;
  for (const auto& [name, pack] : kFormats) {
    const std::string whole = pack("some text that is long enough to be cut");
    for (std::size_t size = kFormatBytes; size < whole.size(); ++size) {
      const auto path = folder.write("cut", whole.substr(0, size));
      EXPECT_EQ(data_error([&] { read_file_bytes(path); }),
                path.string() + ": damaged or cut " + name + " data; fetch the file again")
          << size;
    }
    std::string wrong_sum = whole;
    wrong_sum[whole.size() - (std::string(name) == "bzip2" ? 2 : 6)] ^= 1;
    for (const std::string& bytes :
         {wrong_sum, whole + "x", whole + pack("x").substr(0, 14), whole + gzip("x") + xz("x")}) {
      const auto path = folder.write("bad", bytes);
      EXPECT_NE(data_error([&] { read_file_bytes(path); }), "no error") << name;
    }
    // No change of one byte crashes the reader, or is read as another text.
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string changed = whole;
      changed[at] ^= 0x21;
      const auto path = folder.write("changed", changed);
      std::string text;
      const std::string error = data_error([&] { text = read_file_bytes(path); });
      EXPECT_TRUE(error != "no error" || text == changed || text == "some text that is long enough to be cut")
          << name << " " << at;
    }
  }
  for (std::size_t size = 2; size < kFormatBytes; ++size) {
    const auto path = folder.write("cut", gzip("text").substr(0, size));
    EXPECT_NE(data_error([&] { read_file_bytes(path); }).find("damaged or cut gzip"), std::string::npos);
  }
}

TEST(Bytes, StopAtTheLimitOfInflatedSize) {
  const TemporaryFolder folder;
  for (const auto& [name, pack] : kFormats) {
    const auto bomb = folder.write("bomb", pack(std::string(20'000'000, '\0')));
    EXPECT_LT(std::filesystem::file_size(bomb), 30'000u) << name;
    EXPECT_NE(data_error([&] { read_file_bytes(bomb, 1000); }).find("holds more than 1000 bytes"),
              std::string::npos)
        << name;
  }
  const auto plain = folder.write("plain", std::string(1001, 'a'));
  EXPECT_NE(data_error([&] { read_file_bytes(plain, 1000); }).find("holds more than 1000 bytes"),
            std::string::npos);
  EXPECT_EQ(read_file_bytes(plain, 1001).size(), 1001u);
}

// A file of xz says how much memory its reader needs.
TEST(Bytes, AreNotUnpackedIfThatNeedsMuchMemory) {
  const TemporaryFolder folder;
  constexpr int kOfXz9 = 26;  // 64 MiB
  EXPECT_EQ(read_file_bytes(folder.write("nine.xz", xz_with_memory("text", kOfXz9))), "text");
  const auto path = folder.write("large.xz", xz_with_memory("text", 30));
  EXPECT_EQ(data_error([&] { read_file_bytes(path); }),
            path.string() + ": needs more than 128 MiB of memory to unpack; unpack it with `unxz " +
                path.string() + "`");
}

TEST(Bytes, ComeInTheSameOrderForEveryReadSize) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 50000; ++i) text += std::to_string(i * 7) + "\n";
  const auto check = [&](const std::filesystem::path& path) {
    for (const std::size_t most : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20}) {
      const auto stream = stream_file_bytes(path);
      std::string all, piece(most, ' ');
      while (const std::size_t got = stream->read(piece)) all.append(piece, 0, got);
      EXPECT_EQ(all, text) << path << " " << most;
      EXPECT_EQ(stream->read(piece), 0u);
    }
  };
  check(folder.write("plain", text));
  for (const auto& [name, pack] : kFormats) {
    check(folder.write(std::string("one.") + name, pack(text)));
    check(folder.write(std::string("two.") + name, pack(text.substr(0, 1000)) + pack(text.substr(1000))));
  }
  const auto stream = stream_file_bytes(folder.path() / "one.gzip", 10'000);
  std::string piece(7'000, ' ');
  stream->read(piece);
  EXPECT_NE(data_error([&] { stream->read(piece); }).find("holds more than 10000 bytes"), std::string::npos);
}

TEST(Bytes, NameAFileThatCannotBeRead) {
  const TemporaryFolder folder;
  EXPECT_NE(data_error([&] { read_file_bytes(folder.path()); }).find("is a folder"), std::string::npos);
  EXPECT_NE(data_error([&] { read_file_bytes(folder.path() / "none"); }).find("cannot be opened"),
            std::string::npos);
}

TEST(Bytes, NameAnUnsupportedCompressorAndItsCommand) {
  const TemporaryFolder folder;
  const std::string name = (folder.path() / "f").string();
  for (const auto& [bytes, format, command] :
       {std::tuple{std::string("\x28\xb5\x2f\xfd..."), "zstd", "unzstd"},
        {std::string("PK\x03\x04..."), "zip", "unzip"}}) {
    folder.write("f", bytes);
    const std::string error = name + ": is compressed with " + format +
                              ", but only gzip, bzip2 and xz are read; unpack it with `" + command + " " +
                              name + "`";
    for (const char* source : {"libsvm:f", "csv:f"})
      EXPECT_EQ(data_error([&] { read_source(source, folder.path(), {}); }), error);
    EXPECT_EQ(data_error([&] { read_text("text:f", folder.path(), {TextForm::kRunning, 1}); }), error);
  }
  // A text that begins like a file of bzip2 is a text.
  folder.write("f", "BZh9 is a word\n");
  EXPECT_EQ(read_file_bytes(folder.path() / "f"), "BZh9 is a word\n");
}

}  // namespace
}  // namespace gradwire
