#include "gradwire/plot.h"

#include "plotting/plot.h"

namespace gradwire {

std::vector<std::filesystem::path> plot(const std::vector<std::filesystem::path>& folders,
                                        const std::filesystem::path& out, const PlotOptions& options) {
  PlotRequest request{.folders = folders,
                      .out = out,
                      .width = options.width,
                      .x = options.x,
                      .y = options.y,
                      .panels = options.panels,
                      .band = options.band,
                      .f_star = options.f_star,
                      .embeds = options.embeds,
                      .all = options.all,
                      .keys = {.by = options.by}};
  for (const auto& [folder, text] : options.labels) request.labels.push_back(folder.string() + "=" + text);
  return plot_command(request);
}

}  // namespace gradwire
