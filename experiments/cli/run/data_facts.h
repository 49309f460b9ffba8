// The facts about the user's data from which gradwire new makes an experiment.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace gradwire {

struct DataFacts {
  std::size_t samples = 0, features = 0;
  std::size_t left_out = 0;              // lines of a table that lack a value
  std::vector<double> labels;            // distinct
  std::vector<std::string> label_texts;  // the same if the labels are texts
  // The rest is empty unless the data are a table.
  std::string label;                   // as problem.label has it
  std::vector<std::string> columns;    // the names of all columns, or "column 3"
  std::string kept;                    // as problem.columns has them, if some columns are left out
  std::vector<std::string> numbering;  // the columns that are left out, because they number or name the lines

  bool has_classes() const;
  // Returns the labels for people, as in "cat, dog; 2 classes".
  std::string labels_text() const;
};

// Returns the source as problem.data has it in a file in `folder`. `data` is a source, or a path in the
// working directory; the ending or the first line of the file decides its kind. Throws DataError.
std::string source_of(const std::string& data, const std::filesystem::path& folder);

// Reads all samples of a source that is not text, for the experiment `file`. `sets` are overrides of
// [problem] that say how to read it. Without problem.missing, lines that lack a value are left out. Throws
// DataError, ExperimentError.
DataFacts look_at(const std::string& source, const std::filesystem::path& file,
                  const std::vector<std::string>& sets);

}  // namespace gradwire
