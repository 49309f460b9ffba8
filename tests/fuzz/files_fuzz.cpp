// Targets for what users and their programs write: experiments, data sets, files of numbers, and words of the
// command line.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <unistd.h>

#include "base/config_error.h"
#include "compressors/compressor.h"
#include "config/client_latency.h"
#include "config/experiment_file.h"
#include "config/settings.h"
#include "config/toml_reader.h"
#include "engine/data/readers/csv.h"
#include "engine/data/readers/decompressor.h"
#include "engine/data/readers/idx.h"
#include "engine/data/readers/libsvm.h"
#include "engine/data/readers/npy.h"
#include "engine/files/number_file.h"
#include "proto/wire/address.h"
#include "proto/wire/codec.h"
#include "storage/model_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/compressed.h"
#include "tests/support/numpy_files.h"

namespace gradwire::fuzz {
namespace {

// Returns a folder of this process, in memory if the machine supports that.
const std::filesystem::path& scratch_folder() {
  struct Folder {
    std::filesystem::path path;
    Folder() {
      const std::filesystem::path memory = "/dev/shm";
      std::error_code none;
      path = (std::filesystem::is_directory(memory, none) ? memory : std::filesystem::temp_directory_path()) /
             ("gradwire-fuzz-" + std::to_string(::getpid()));
      std::filesystem::create_directories(path);
    }
    ~Folder() {
      std::error_code none;
      std::filesystem::remove_all(path, none);
    }
  };
  static const Folder folder;
  return folder.path;
}
std::filesystem::path write_scratch(const std::string& name, Input bytes) {
  const auto path = scratch_folder() / name;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path;
}

// Checks an error for a user: one line that begins with the name of the file.
void check_words(const std::exception& error, std::string_view begins) {
  const std::string_view what = error.what();
  check(what.starts_with(begins), "the error does not begin with the name of the file");
  check(what.find('\n') == std::string_view::npos, "the error has several lines");
}

void check_rows(const Dataset& data) {
  check(data.rows() > 0 && data.row_start.size() == data.rows() + 1, "data without rows");
  for (std::size_t r = 0; r < data.rows(); ++r) {
    check(std::isfinite(data.label[r]), "a label that is not a number");
    std::uint64_t least = 0;
    for (const std::uint32_t column : data.row_columns(r)) {
      check(column >= least && column < data.columns, "a feature out of order or range");
      least = std::uint64_t{column} + 1;
    }
    for (const double value : data.row_values(r))
      check(std::isfinite(value), "a feature that is not a number");
  }
}

// Returns whether the input was accepted as the file `name`. Checks that an error of of_text() begins with
// the name, and that a stream of the same bytes gives the same rows. A stream that begins like a compressed
// file is inflated instead.
template <class OfText, class OfStream>
bool read_rows(Input input, std::string_view name, OfText of_text, OfStream of_stream) {
  const auto path = write_scratch("rows", input);
  const auto attempt = [&](auto read) -> std::optional<Dataset> {
    try {
      Dataset data = read();
      check_rows(data);
      return data;
    } catch (const DataError& error) {
      check_words(error, "");
      return std::nullopt;
    }
  };
  const auto whole = attempt([&]() -> Dataset {
    try {
      return of_text(text_of(input));
    } catch (const DataError& error) {
      check_words(error, name);
      throw;
    }
  });
  const auto streamed = attempt([&] { return of_stream([&] { return stream_file_bytes(path); }); });
  if (make_decompressor(text_of(input)) != nullptr) {
    try {
      (void)inflate_prefix(text_of(input), "f.gz", 1 << 16);
    } catch (const DataError& error) {
      check_words(error, "f.gz");
    }
    return streamed.has_value();
  }
  check(read_file_bytes(path, 1 << 20) == text_of(input), "a file has other bytes than were written");
  check(whole.has_value() == streamed.has_value(),
        "a stream is taken where text is not, or the other way round");
  check(!whole || (whole->label == streamed->label && whole->value == streamed->value &&
                   whole->column == streamed->column && whole->row_start == streamed->row_start),
        "other rows come from a stream");
  return whole.has_value();
}

// Reads the times of two clients, one line each.
void read_as_traces(const std::string& name) {
  ClientLatency seconds;
  seconds.trace = name;
  try {
    read_traces(seconds, scratch_folder(), 2);
    for (const auto& line : seconds.traces)
      for (const double time : line) check(time > 0, "work of no time");
  } catch (const ConfigError&) {
  }
}

}  // namespace

bool run_experiment(Input input) {
  bool taken = unpack_experiment(text_of(input)).has_value();
  try {
    const LoadedExperiment loaded = parse_experiment(text_of(input), "f.toml");
    const std::string again = to_toml(loaded.experiment);
    const LoadedExperiment twice = parse_experiment(again, "f.toml");
    check(settings_of(twice.experiment) == settings_of(loaded.experiment), "another experiment was written");
    check(first_difference(twice.experiment, loaded.experiment).empty(), "an experiment differs from itself");
    ExperimentSpec copy = twice.experiment;
    copy_what_may_change(loaded.experiment, copy);
    check(settings_of(copy) == settings_of(loaded.experiment), "a copy of the same settings changed some");
    const LoadedExperiment from_file = load_experiment(write_scratch("f.toml", input));
    check(settings_of(from_file.experiment) == settings_of(loaded.experiment),
          "a file holds another experiment");
    const auto unpacked = unpack_experiment(pack_experiment(loaded.experiment));
    check(unpacked && settings_of(*unpacked) == settings_of(loaded.experiment),
          "another experiment travelled");
    taken = true;
  } catch (const ExperimentError& error) {
    check_words(error, "f.toml");
  }
  try {
    (void)read_toml(text_of(input));
    taken = !read_toml_sweep(text_of(input), "sweep", "grid").keys.empty() || taken;
  } catch (const TomlError&) {
  }
  return taken;
}
std::vector<Bytes> experiment_seeds() {
  return {
      bytes_of("[problem]\nkind = \"logistic\"\ndata = \"libsvm:a9a\"\nregularizer = \"l2\"\nlambda = 1e-3\n"
               "[clients]\ncount = 20\npartition = \"iid\"\n[algorithm]\nname = \"ef21\"\ncompressor = "
               "\"topk:k=1%\"\nstep_size = \"theory\"\n[run]\nrounds = 100\n"),
      bytes_of(
          "[problem]\nkind = \"mlp\"\ndata = \"pets.csv\"\nlabel = 3\ncolumns = \"age, 1-2\"\n"
          "missing = \"mean\"\nnormalize = \"minmax\"\n[clients]\ncount = 2\n[algorithm]\nname = \"gd\"\n"),
      bytes_of("[problem]\nkind = \"quadratic\"\ndim = 10\n[clients]\ncount = 3\n[algorithm]\nname = "
               "\"marina\"\ncompressor = \"randk:k=2\"\np = 0.5\n[run]\nrounds = 3\n[sweep]\n"
               "algorithm.step_size = [\"theory\", 0.1]\n[[sweep.grid]]\nalgorithm.p = [0.1]\n")};
}

bool run_libsvm(Input input) {
  return read_rows(
      input, "f.txt", [](std::string_view text) { return parse_libsvm(text, "f.txt", 40); },
      [](const auto& open) { return parse_libsvm(*open(), "f.txt", 40, {}); });
}
std::vector<Bytes> libsvm_seeds() {
  return {bytes_of("1 2:1e-400 3:-1e-999\n"),
          bytes_of("-1 3:1 11:0.5 # a comment\n+1 1:-2e-3 2:4\n\n1 5:7\n"),
          bytes_of(bzip2("1 2:3\n") + bzip2("2 1:1\n")),
          bytes_of(xz("1 2:3\n") + std::string(4, '\0') + xz("2 1:1\n"))};
}

// Reads some rows of a table, and the table as its own test data.
void read_in_parts(const Dataset& whole, const auto& open, const TableOptions& options) {
  for (const TableEncoding* given : {static_cast<const TableEncoding*>(nullptr), whole.encoding.get()}) {
    const Dataset some = parse_csv(
        open, "f.csv", [](std::size_t row) { return row % 2 == 0; }, options, given);
    check(some.label == whole.label && some.columns == whole.columns, "other labels come with some rows");
    for (std::size_t r = 0; r < whole.rows(); ++r)
      check(std::ranges::equal(some.row_values(r),
                               r % 2 == 0 ? whole.row_values(r) : whole.row_values(r).first(0)),
            "a row that is kept has other values");
  }
  const Dataset test = parse_csv(open, "f.csv", {}, options, whole.encoding.get());
  check(test.label == whole.label && test.value == whole.value && test.column == whole.column,
        "a table has other rows as its own test data");
}

bool run_csv(Input input) {
  read_as_traces(write_scratch("traces", input).filename());
  const auto path = write_scratch("table", input);
  const auto open = [&] { return stream_file_bytes(path); };
  bool taken = false;
  for (const TableOptions& options :
       {TableOptions{}, TableOptions{.missing = MissingValues::kDrop},
        TableOptions{.missing = MissingValues::kMean}, TableOptions{.label = "1", .columns = "2-3,b"}}) {
    try {
      const Dataset whole = parse_csv(open, "f.csv", {}, options);
      check_rows(whole);
      read_in_parts(whole, open, options);
      taken = true;
    } catch (const DataError& error) {
      check_words(error, "");
    }
  }
  return read_rows(
             input, "f.csv", [](std::string_view text) { return parse_csv(text, "f.csv"); },
             [](const auto& open_rows) { return parse_csv(open_rows, "f.csv", {}); }) ||
         taken;
}
std::vector<Bytes> csv_seeds() {
  return {bytes_of("a,b,label\n0.5,2,-1\n3,4e2,1\n"),
          bytes_of("1, 0.5\r\n\r\n2,7\r\n"),
          bytes_of("0.5,2\n3,7\n"),
          bytes_of("name;\"a \"\"b\"\"\";b;y\n\"x;1\";1,5;;ja\nz;1.000,25;-;nein\nz;?;3;ja\n"),
          bytes_of(",age,job,label\n0,18,\tnone,cat\n1,NA,clerk,dog\n2,7,clerk,cat\n"),
          bytes_of("a\tb\tc\t\n1\t\t5more\t\n2\t1e5\t3\t\n2\tnan\t5more\t\n"),
          bytes_of("1|2|\"a\"\n-1|.5|b\n"),
          bytes_of("sep=;\na;b;y\nTrue;1,5;0\nFalse;2;1\n")};
}

// Reads an archive of arrays, and a file that is both arrays of samples.
bool run_arrays(Input input) {
  const auto attempt = [](auto read) {
    try {
      check_rows(read());
      return true;
    } catch (const DataError& error) {
      check_words(error, "f.np");
      return false;
    }
  };
  const std::string_view bytes = text_of(input);
  const bool is_archive = attempt([&] { return samples_of_npz(bytes, "f.npz"); });
  return attempt([&] { return samples_of_arrays(bytes, "f.npy", bytes, "f.npy"); }) || is_archive;
}
std::vector<Bytes> arrays_seeds() {
  const std::string x = npy<float>("<f4", "(2, 2)", {1, 0, 2, 3}),
                    y = npy<std::int8_t>("|i1", "(2,)", {1, -1});
  return {bytes_of(npz({{"X.npy", x}, {"y.npy", y}})),
          bytes_of(npz({{"x_train.npy", x}, {"y_train.npy", y}}, true)),
          bytes_of(npy<std::uint16_t>(">f2", "(1, 1)", {1})),
          bytes_of(npy<std::int64_t>("<i8", "(2, 1)", {7, -8}, "True"))};
}

// Reads two files from the input: the images, after their length (u16), and the labels.
bool run_idx(Input input) {
  Cursor cursor(input);
  const Input images = cursor.bytes(cursor.u16());
  write_scratch("train-images-idx3-ubyte", images);
  write_scratch("train-labels-idx1-ubyte", cursor.rest());
  try {
    check_rows(read_idx(scratch_folder()));
    return true;
  } catch (const DataError& error) {
    check_words(error, scratch_folder().string());
    return false;
  }
}
std::vector<Bytes> idx_seeds() {
  Bytes images, labels, seed;
  const auto put_u32 = [](Bytes& to, unsigned value) {  // big-endian
    for (int shift = 24; shift >= 0; shift -= 8) put_u8(to, value >> shift & 0xff);
  };
  for (const unsigned field : {0x803u, 2u, 2u, 3u}) put_u32(images, field);
  for (unsigned pixel = 0; pixel < 12; ++pixel) put_u8(images, 20 * pixel);
  for (const unsigned field : {0x801u, 2u}) put_u32(labels, field);
  for (const unsigned label : {3u, 7u}) put_u8(labels, label);
  put_sized(seed, images);
  seed.insert(seed.end(), labels.begin(), labels.end());
  return {seed};
}

bool run_numbers(Input input) {
  const auto file = write_scratch("numbers", input);
  Vec<double> doubles(3, 5.0);
  const Status whole = load_numbers<double>(file, doubles);
  if (!whole) {
    check(whole.error().message.starts_with(file.string()),
          "the error does not begin with the name of the file");
    for (const double x : doubles) check(x == 5, "a file that is refused changed numbers");
  }
  Vec<float> floats(2);
  bool taken = load_numbers<float>(file, floats).has_value() || whole;
  (void)load_raw_numbers<double>(file, doubles);
  try {
    (void)read_model(file);
    taken = true;
  } catch (const std::runtime_error& error) {
    check_words(error, file.string());
  }
  return taken;
}
std::vector<Bytes> numbers_seeds() {
  const Vec<double> x{1, -2, 0.5};
  const Vec<float> y{1, 2};
  std::vector<Bytes> seeds;
  const auto file = scratch_folder() / "seed";
  const auto add = [&] {
    std::ifstream in(file, std::ios::binary);
    seeds.push_back(bytes_of(std::string(std::istreambuf_iterator<char>(in), {})));
  };
  check(save_numbers<double>(file, x).has_value(), "numbers cannot be saved");
  add();
  write_model<double>(file, Vec<double>(600, 0.5));  // long enough to be mapped into memory
  add();
  check(save_npy<float>(file, y).has_value(), "numbers cannot be saved");
  add();
  write_model<double>(file, x);
  add();
  std::filesystem::remove(file);
  return seeds;
}

// Parses a word; the first byte of an input selects the parser.
bool run_words(Input input) {
  Cursor cursor(input);
  const std::uint8_t whose = cursor.u8();
  const std::string word(text_of(cursor.rest()));
  try {
    switch (whose % 5) {
      case 0: {
        bool taken = false;
        for (const AddressUse use : {AddressUse::kToConnect, AddressUse::kToListen})
          if (const auto address = parse_address(word, use)) {
            check(!address->port.empty() && address->port.size() <= 5, "a port of other length");
            (void)is_loopback(*address);
            taken = true;
          }
        return taken;
      }
      case 1: {
        const Compressor c = parse_compressor(word, 100, 4);
        check(to_spec(parse_compressor(to_spec(c), 100, 4)) == to_spec(c), "another compressor was written");
        return true;
      }
      case 2: return parse_zstd_mode(word).has_value();
      case 3: {
        const ClientLatency seconds = parse_client_latency(word);
        if (seconds.trace.empty()) check(seconds.of(1, 3, 7) >= 0, "work of less than no time");
        return true;
      }
      default: {
        const std::string quadratic =
            "[problem]\nkind = \"quadratic\"\ndim = 5\n[clients]\ncount = 3\n[algorithm]\nname = "
            "\"gd\"\nstep_size = 0.1\n";
        (void)parse_experiment(quadratic, "f.toml", std::span(&word, 1));
        return true;
      }
    }
  } catch (const ExperimentError& error) {  // the word is also tried as a single TOML value
    check_words(error, "");
    return read_toml_value(word).has_value();
  } catch (const ConfigError&) {
    return false;
  }
}
std::vector<Bytes> words_seeds() {
  std::vector<Bytes> seeds;
  const auto add = [&](unsigned whose, std::string_view word) {
    Bytes seed;
    put_u8(seed, whose);
    const Bytes text = bytes_of(word);
    seed.insert(seed.end(), text.begin(), text.end());
    seeds.push_back(std::move(seed));
  };
  for (const char* address : {"127.0.0.1:7000", "[::1]:80", ":7000", "localhost:1"}) add(0, address);
  for (const char* spec : {"induced(topk:k=1%,randk:k=5)", "natural_dithering:s=8,p=inf", "permk"})
    add(1, spec);
  add(2, "19");
  add(3, "0.1*sqrt*pareto:1.5+fail:0.1");
  add(4, "[1, 2.5, \"a\"]");
  add(4, "run.rounds=7");
  return seeds;
}

}  // namespace gradwire::fuzz
