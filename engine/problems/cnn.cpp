#include "engine/problems/cnn.h"

#include <cmath>
#include <string>

#include "base/config_error.h"

namespace gradwire {

TensorShape Cnn::image(const DataSchema& schema) const {
  const std::size_t features = rows.features(schema);
  TensorShape image = shape.image;
  check_range("channels", image.channels, kMaxChannels);
  const std::size_t pixels = features / image.channels;
  const bool neither = image.height == 0 && image.width == 0;
  if (neither) {
    image.height = image.width =
        static_cast<std::size_t>(std::llround(std::sqrt(static_cast<double>(pixels))));
  } else if (image.height == 0) {
    image.height = pixels / image.width;
  } else if (image.width == 0) {
    image.width = pixels / image.height;
  }
  const std::string is = std::to_string(features) + " features are not ";
  if (neither && image.size() != features) {
    throw DataError(is + "a square image" +
                    (image.channels > 1 ? " of " + std::to_string(image.channels) + " channels" : "") +
                    "; set problem.image_height, problem.image_width and problem.channels");
  }
  if (image.size() != features) {
    throw DataError(is + "an image of " + std::to_string(image.height) + " x " + std::to_string(image.width) +
                    " pixels with problem.channels = " + std::to_string(image.channels) +
                    "; correct these, or set problem.dim");
  }
  check_range("image_height", image.height, kMaxSide);
  check_range("image_width", image.width, kMaxSide);
  return image;
}

LenetShape Cnn::whole_shape(const DataSchema& schema) const {
  LenetShape whole = shape;
  whole.image = image(schema);
  whole.classes = schema.labels.size();
  return whole;
}

void Cnn::check() const {
  rows.check();
  if (shape.filters.empty())
    throw ConfigError("problem.filters", "filters needs at least one convolution, as in filters = [6, 16]");
}

void Cnn::check(const DataSchema& schema) const {
  check_classes(traits.name, schema);
  check_widths("filters", shape.filters);
  check_widths("hidden", shape.hidden);
  check_activation(shape.activation);
  if (shape.filters.empty()) throw DataError("problem.filters is empty; a cnn has at least one convolution");
  const LenetShape whole = whole_shape(schema);
  if (whole.pooled().size() > 0) return;
  throw DataError("images of " + std::to_string(whole.image.height) + " x " +
                  std::to_string(whole.image.width) + " pixels are too small for " +
                  std::to_string(whole.filters.size()) +
                  " convolutions 5 x 5 with pooling 2 x 2; shorten problem.filters");
}

}  // namespace gradwire
