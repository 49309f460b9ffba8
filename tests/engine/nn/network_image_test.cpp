// Convolution and pooling compared with the twin.
#include <cstddef>
#include <gtest/gtest.h>
#include <string>

#include "tests/engine/nn/network_checks.h"
#include "tests/engine/nn/network_zoo.h"

namespace gradwire {
namespace {

// Returns an image that takes a gradient.
Tensor some_image(Network& net, const TensorShape& shape) {
  return convolve(net.convolution(1, shape.channels, 1),
                  net.features(TensorShape{1, shape.height, shape.width}));
}

TEST(NetworkImages, ConvolutionsMatchTwin) {
  for (const auto& [height, width] :
       {std::pair(5, 5), std::pair(5, 8), std::pair(12, 9), std::pair(7, 4), std::pair(6, 16)})
    for (const std::size_t size : {1, 2, 3, 4})
      for (std::size_t padding = 0; padding < size && padding < 3; ++padding)
        for (const auto& [in, out] : {std::pair(1, 1), std::pair(2, 3), std::pair(3, 5)}) {
          SCOPED_TRACE(std::to_string(height) + " x " + std::to_string(width) + ", filter " +
                       std::to_string(size) + ", padding " + std::to_string(padding) + ", channels " +
                       std::to_string(in) + " to " + std::to_string(out));
          Network net;
          const Tensor image =
              some_image(net, TensorShape{static_cast<std::size_t>(in), static_cast<std::size_t>(height),
                                          static_cast<std::size_t>(width)});
          custom_loss(convolve(net.convolution(in, out, size, padding), image), log_cosh_loss);
          expect_agrees(net, {.counts = {1, 3}, .micro_batches = {1, 2, 0}});
        }
}

TEST(NetworkImages, ConvolutionsOfFeaturesMatchTwin) {
  for (const std::size_t channels : {1, 2, 3})
    for (const std::size_t padding : {0, 1}) {
      Network net;
      const Tensor image = net.features(TensorShape{channels, 6, 5});
      cross_entropy(convolve(net.convolution(channels, 2, 3, padding), image));
      expect_agrees(net, {.counts = {1, 5, 16, 17}, .micro_batches = {1, 4, 16, 0}});
    }
}

TEST(NetworkImages, ConvolutionsToOneNumberMatchTwin) {
  Network net;
  const Tensor x = convolve(net.convolution(1, 4, 5), net.features(TensorShape{1, 5, 5}));
  EXPECT_EQ(x.shape(), (TensorShape{4, 1, 1}));
  cross_entropy(affine(net.linear(4, 3), tanh(x)));
  expect_agrees(net);
}

TEST(NetworkImages, SeveralPositionsMatchTwin) {
  for (const std::size_t positions : {2, 3, 8}) {
    Network net(positions);
    const Tensor x = convolve(net.convolution(1, 3, 3, 2), net.features(TensorShape{1, 5, 4}));
    const Tensor y = average_pool(max_pool(x, 2), 3);
    cross_entropy(affine(net.linear(y.shape().size(), 3), mean_over_positions(y) + y));
    expect_agrees(net);
  }
}

TEST(NetworkImages, PoolingMatchesTwin) {
  for (const auto& [height, width] :
       {std::pair(5, 5), std::pair(3, 7), std::pair(12, 9), std::pair(6, 4), std::pair(8, 16)})
    for (const std::size_t size : {1, 2, 3})
      for (const std::size_t channels : {1, 2, 5})
        for (const bool maximum : {true, false}) {
          SCOPED_TRACE((maximum ? "max " : "average ") + std::to_string(height) + " x " +
                       std::to_string(width) + ", " + std::to_string(size));
          Network net;
          const Tensor image = some_image(
              net, TensorShape{channels, static_cast<std::size_t>(height), static_cast<std::size_t>(width)});
          custom_loss(maximum ? max_pool(image, size) : average_pool(image, size), log_cosh_loss);
          expect_agrees(net, {.counts = {1, 3}, .micro_batches = {1, 2, 0}});
        }
}

TEST(NetworkImages, PoolingOfSharedTensorsMatchesTwin) {
  Network net;
  const Tensor image = some_image(net, TensorShape{2, 6, 6}), most = max_pool(image, 2),
               mean = average_pool(image, 2);
  const Tensor part = affine(net.linear(72, 18), image * image);
  custom_loss(affine(net.linear(18, 18), most * mean) + part, log_cosh_loss);
  expect_agrees(net);
}

// relu leaves many equal zeros in a square. No gradient passes the relu below, whichever zero is chosen.
TEST(NetworkImages, MaxPoolingOfEqualNumbersMatchesTwin) {
  Network net;
  const Tensor x = relu(convolve(net.convolution(1, 3, 3, 1), net.features(TensorShape{1, 6, 6})));
  custom_loss(max_pool(x, 3), log_cosh_loss);
  expect_agrees(net);
}

// All numbers of a square are equal and positive. One of them takes the whole gradient.
TEST(NetworkImages, MaxPoolingOfConstantPassesGradientOnce) {
  Network net;
  const Tensor x = convolve(net.convolution(1, 1, 1), net.features(TensorShape{1, 4, 4}));
  mean_squared_error(max_pool(x, 2));
  const std::vector<double> point = {2, 1}, features(16, 3.0), targets(4, 0.0);
  Example<double> example;
  example.features = features, example.targets = targets;
  std::vector<double> gradient(2);
  Executor<double> executor(net);
  EXPECT_NEAR(executor.loss_and_gradient(
                  point, 1, [&](std::size_t) { return example; }, gradient),
              49, 1e-12);
  EXPECT_NEAR(gradient[0], 2 * 7 * 3, 1e-12);
  EXPECT_NEAR(gradient[1], 2 * 7, 1e-12);
}

TEST(NetworkImages, NormAndSumsOfImagesMatchTwin) {
  Network net;
  const Tensor image = some_image(net, TensorShape{2, 4, 3});
  const Tensor x = norm(net.layer_norm(24, 1e-2), image) + image;
  const Tensor y = convolve(net.convolution(2, 2, 3, 1), x) * x;
  cross_entropy(affine(net.linear(24, 3), y + image));
  expect_agrees(net);
}

TEST(NetworkImages, LeNetMatchesTwin) {
  Network net;
  Tensor x = net.features(TensorShape{1, 12, 12});
  x = max_pool(relu(convolve(net.convolution(1, 4, 5, 2), x)), 2);
  x = max_pool(relu(convolve(net.convolution(4, 6, 3), x)), 2);
  x = relu(affine(net.linear(x.shape().size(), 20), x));
  cross_entropy(affine(net.linear(20, 10), x));
  expect_agrees(net, {.counts = {1, 4, 17}, .micro_batches = {1, 4, 16, 0}});
}

}  // namespace
}  // namespace gradwire
