#include "engine/data/readers/libsvm.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "base/text_lines.h"
#include "engine/data/readers/lines.h"

namespace gradwire {
namespace {

constexpr std::uint64_t kMaxIndex = 0xfffffffe;  // 2^32-2

// Upper bounds of the entries and rows of a text: each pair has a colon. They are proportional to its size.
struct TextSize {
  std::size_t pairs = 0, lines = 1;

  void add(std::string_view text) {
    pairs += static_cast<std::size_t>(std::count(text.begin(), text.end(), ':'));
    lines += static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
};

// Parses lines into a Dataset.
class LibsvmParser {
 public:
  LibsvmParser(std::string_view text, const std::string& file, std::size_t dim)
      : lines_(text), file_(file), dim_(dim) {
    TextSize size;
    size.add(text);
    reserve(size);
  }
  LibsvmParser(ByteStream& text, const std::string& file, std::size_t dim, KeepRow keep)
      : lines_(text), file_(file), dim_(dim), keep_(std::move(keep)) {}

  void reserve(const TextSize& size) {
    data_.column.reserve(size.pairs);
    data_.value.reserve(size.pairs);
    data_.label.reserve(size.lines);
    data_.row_start.reserve(size.lines + 1);
  }

  Dataset parse() {
    while (const auto line = lines_.next()) {
      const std::string_view sample = trim(line->substr(0, line->find('#')));
      if (!sample.empty()) parse_sample(sample);
    }
    if (data_.rows() == 0) throw DataError(file_ + ": holds no samples; each line is LABEL INDEX:VALUE ...");
    if (dim_ == 0) check_largest_index();
    data_.columns = dim_ > 0 ? dim_ : largest_index_;
    return std::move(data_);
  }

 private:
  void parse_sample(std::string_view line) {
    const std::string_view label = take_word(line);
    data_.label.push_back(finite(label, "label"));
    if (line.starts_with("qid:")) skip_query(line);
    std::uint64_t previous = 0;
    if (keep_ && !keep_(data_.label.size() - 1)) {
      previous = last_index(line);
      values_ += static_cast<std::size_t>(std::count(line.begin(), line.end(), ':'));
    } else {
      while (!line.empty()) {
        previous = parse_pair(line, previous);
        ++values_;
      }
    }
    if (previous > largest_index_) {
      largest_index_ = previous;
      largest_index_line_ = lines_.number();
    }
    data_.row_start.push_back(data_.column.size());
  }

  // Removes the number of a query from the front of `line`. Rankings have it.
  void skip_query(std::string_view& line) {
    std::string_view rest = line;
    const std::string_view word = take_word(rest);
    if (word.size() == 4 || word.find_first_not_of("0123456789", 4) != std::string_view::npos) return;
    line = rest;
    if (data_.warnings.empty())
      data_.warnings.push_back(file_ + ": qid: is skipped; the samples are not grouped by query");
  }

  // Returns the index of the last pair, or 0 if it cannot be read. Rows that are kept report such errors.
  static std::uint64_t last_index(std::string_view line) {
    line = line.substr(0, std::min(line.rfind(':'), line.size()));
    line.remove_prefix(std::min(line.find_last_of(" \t") + 1, line.size()));
    std::uint64_t index = 0;
    const auto parsed = std::from_chars(line.data(), line.data() + line.size(), index);
    return parsed.ec == std::errc() && index <= kMaxIndex ? index : 0;
  }

  // Refuses a number of columns that comes from a wrong index, before memory is allocated for each column.
  void check_largest_index() const {
    if (largest_index_ <= kUnquestionedColumns || largest_index_ / kColumnsPerValue <= values_) return;
    const std::string index = std::to_string(largest_index_);
    throw error_at(file_, largest_index_line_,
                   "index " + index + " would make a model of " + index + " coordinates, but the file has " +
                       std::to_string(values_) +
                       " values in all; correct the index, or, if it is right, set problem.dim = " + index +
                       ": models are dense, so that each vector of the run then takes " +
                       std::to_string((largest_index_ * sizeof(double)) >> 20) + " MiB");
  }

  // Removes the next pair from `line` and returns its index.
  std::uint64_t parse_pair(std::string_view& line, std::uint64_t previous) {
    const std::string_view pair = take_word(line);
    std::uint64_t index = 0;
    const char* const end = pair.data() + pair.size();
    const auto parsed = std::from_chars(pair.data(), end, index);
    if (parsed.ec == std::errc::invalid_argument || (parsed.ptr != end && *parsed.ptr != ':')) {
      throw error("expected INDEX:VALUE, found " + quoted(pair));
    }
    if (parsed.ptr == end)
      throw error("the pair " + quoted(pair) + " has no ':VALUE'; complete or remove it");
    if (parsed.ec == std::errc::result_out_of_range || index > kMaxIndex) {
      throw error("index in " + quoted(pair) + " is above 4294967294, the largest supported index");
    }
    if (index == 0) throw error("index 0 in " + quoted(pair) + "; indices start at 1: add 1 to each");
    if (index == previous)
      throw error("index " + std::to_string(index) + " is repeated; keep one of the two");
    if (index < previous) {
      throw error("index " + std::to_string(index) + " after " + std::to_string(previous) +
                  "; sort the indices of each line");
    }
    if (dim_ > 0 && index > dim_) {
      throw error("index " + std::to_string(index) + " is above the given dim " + std::to_string(dim_) +
                  "; raise dim or check the file");
    }
    std::string_view number = pair.substr(static_cast<std::size_t>(parsed.ptr - pair.data()) + 1);
    // Allows "63: .50", which occurs in the public data set protein.
    if (const std::string_view next = line.substr(0, line.find_first_of(" \t"));
        number.empty() && next.find(':') == std::string_view::npos)
      number = take_word(line);
    if (number.empty()) throw error("the pair " + quoted(pair) + " has no value; complete or remove it");
    const double value = finite(number, "value");
    if (value != 0) {
      data_.column.push_back(static_cast<std::uint32_t>(index - 1));
      data_.value.push_back(value);
    }
    return index;
  }

  double finite(std::string_view text, const char* what) const {
    const auto number = parse_number(text);
    if (!number)
      throw error(std::string("the ") + what + " " + quoted(text) + " is not a number; correct it");
    if (!std::isfinite(*number)) {
      throw error(std::string("the ") + what + " " + quoted(text) + " is not finite; remove or replace it");
    }
    return *number;
  }

  // Removes the first word and the blanks after it from `line`, and returns the word.
  static std::string_view take_word(std::string_view& line) {
    std::size_t end = 0;
    while (end < line.size() && !is_blank(line[end])) ++end;
    const std::string_view word = line.substr(0, end);
    while (end < line.size() && is_blank(line[end])) ++end;
    line.remove_prefix(end);
    return word;
  }

  DataError error(const std::string& what) const { return error_at(file_, lines_.number(), what); }

  Lines lines_;
  const std::string& file_;
  const std::size_t dim_;
  const KeepRow keep_;
  std::uint64_t largest_index_ = 0;
  std::size_t largest_index_line_ = 0, values_ = 0;
  Dataset data_;
};

}  // namespace

Dataset parse_libsvm(std::string_view text, const std::string& file, std::size_t dim) {
  return LibsvmParser(text, file, dim).parse();
}

Dataset parse_libsvm(ByteStream& text, const std::string& file, std::size_t dim, const KeepRow& keep) {
  return LibsvmParser(text, file, dim, keep).parse();
}

Dataset parse_libsvm(const std::function<std::unique_ptr<ByteStream>()>& open, const std::string& file,
                     std::size_t dim) {
  TextSize size;
  {
    constexpr std::size_t kAtOnce = std::size_t{1} << 13;
    std::vector<char> block(kAtOnce);
    const std::unique_ptr<ByteStream> text = open();
    while (const std::size_t got = text->read(block)) size.add({block.data(), got});
  }
  const std::unique_ptr<ByteStream> text = open();
  LibsvmParser parser(*text, file, dim, {});
  parser.reserve(size);
  return parser.parse();
}

bool looks_like_libsvm(std::string_view text) {
  Lines lines(text);
  while (const auto line = lines.next()) {
    const std::string_view sample = trim(line->substr(0, line->find('#')));
    if (sample.empty()) continue;
    const std::size_t end = std::min(sample.find_first_of(" \t"), sample.size());
    if (!parse_number(sample.substr(0, end))) return false;
    const std::string_view pair = trim(sample.substr(end));
    const std::size_t colon = pair.find_first_not_of("0123456789");
    return pair.empty() || pair.starts_with("qid:") ||
           (colon != 0 && pair.substr(std::min(colon, pair.size())).starts_with(':'));
  }
  return false;
}

}  // namespace gradwire
