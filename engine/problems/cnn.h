#pragma once

#include <memory>

#include "engine/nn/models/lenet.h"
#include "engine/problems/network_problem.h"

namespace gradwire {

struct Cnn : NetworkProblem<Cnn> {
  static constexpr ProblemTraits traits{
      .name = "cnn",
      .summary = "LeNet on images: convolutions 5 x 5 with max pooling, then fully connected layers",
      .has_classes = true,
      .is_network = true};
  static constexpr double kMaxSide = 4096, kMaxChannels = 1024;
  RowsData rows;
  LenetShape shape{.image = {1, 0, 0}};  // image() sets height and width if 0; the classes come from the data
  ActivationSettings activations;

  static void fields(auto& self, auto&& visit) {
    RowsData::fields<Cnn>(self.rows, visit);
    visit("hidden", self.shape.hidden, "widths of the fully connected layers", {.low = 1, .high = kMaxWidth});
    visit("activation", self.shape.activation, "activation function between layers");
    ActivationSettings::fields(self.activations, visit);
    visit("filters", self.shape.filters,
          "channels after each 5 x 5 convolution; max pooling 2 x 2 follows each",
          {.low = 1, .high = kMaxWidth});
    visit("channels", self.shape.image.channels,
          "numbers per pixel; the features are the image channel by channel, row by row",
          {.low = 1, .high = kMaxChannels});
    visit("image_height", self.shape.image.height, "rows of pixels; 0: from image_width, or a square",
          {.high = kMaxSide});
    visit("image_width", self.shape.image.width, "pixels of a row; 0: from image_height, or a square",
          {.high = kMaxSide});
  }
  void check() const;
  void check(const DataSchema& schema) const;
  Network network(const DataSchema& schema) const { return lenet(whole_shape(schema)); }
  template <class Real>
  std::unique_ptr<const Examples<Real>> samples(const DataSchema& schema, Dataset&& data) const {
    return std::make_unique<DenseSamples<Real>>(data, rows.features(schema), schema.labels);
  }

 private:
  // Returns the shape of an image, channels x height x width, with computed values for missing sizes. Throws
  // DataError if the number of features is not that of the shape.
  TensorShape image(const DataSchema& schema) const;
  LenetShape whole_shape(const DataSchema& schema) const;
};

}  // namespace gradwire
