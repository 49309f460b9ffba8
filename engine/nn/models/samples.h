// The samples of a client in the form that networks read.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/sparse_rows.h"
#include "engine/data/text.h"
#include "engine/nn/example.h"

namespace gradwire {

// Returns the class of each sample: the index of its label in `labels`, which must ascend. Throws DataError
// if `labels` lacks a label of `data`.
std::vector<Token> class_numbers(const Dataset& data, std::span<const double> labels);

// Samples whose features are mostly 0, each with its class. For networks that read affine(FeatureLinear).
template <class Real>
class SparseSamples final : public Examples<Real> {
 public:
  // Throws DataError if a feature number is not below `columns`, or a label is not among `labels`.
  SparseSamples(Dataset data, std::size_t columns, std::span<const double> labels)
      : class_(class_numbers(data, labels)), rows_(std::move(data), columns) {}

  std::size_t size() const override { return class_.size(); }
  Example<Real> operator[](std::size_t sample) const override {
    Example<Real> example;
    example.index = rows_.row_columns(sample);
    example.value = rows_.row_values(sample);
    example.labels = {&class_[sample], 1};
    return example;
  }

 private:
  std::vector<Token> class_;
  SparseRows<Real> rows_;
};

// Samples of `columns` features each, including zeros, each with its class. For networks that read
// Network::features.
template <class Real>
class DenseSamples final : public Examples<Real> {
 public:
  // Throws DataError for the same reasons as SparseSamples.
  DenseSamples(const Dataset& data, std::size_t columns, std::span<const double> labels)
      : columns_(columns), value_(data.rows() * columns), class_(class_numbers(data, labels)) {
    const SparseRows<Real> rows(data, columns);
    for (std::size_t r = 0; r < rows.rows(); ++r) rows.add_scaled(r, Real(1), value_.data() + r * columns);
  }

  std::size_t size() const override { return class_.size(); }
  Example<Real> operator[](std::size_t sample) const override {
    Example<Real> example;
    example.features = {value_.data() + sample * columns_, columns_};
    example.labels = {&class_[sample], 1};
    return example;
  }

 private:
  std::size_t columns_;
  std::vector<Real> value_;  // shape (rows, columns)
  std::vector<Token> class_;
};

// Windows of text, each with the letters that come next. For networks that read Network::embed.
template <class Real>
class TextSamples final : public Examples<Real> {
 public:
  explicit TextSamples(Windows windows) : windows_(std::move(windows)) {}

  std::size_t size() const override { return windows_.size(); }
  Example<Real> operator[](std::size_t sample) const override {
    Example<Real> example;
    example.tokens = windows_.tokens(sample);
    example.labels = windows_.labels(sample);
    return example;
  }

 private:
  Windows windows_;
};

}  // namespace gradwire
