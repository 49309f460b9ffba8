#include "plotting/plot_files.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>
#include <utility>

#include "plotting/convert_svg.h"
#include "plotting/plot_script.h"
#include "plotting/plot_svg.h"
#include "plotting/plot_table.h"
#include "plotting/plot_tikz.h"
#include "report/results_dir.h"
#include "storage/atomic_file.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

// Throws unless gradwire wrote the file. Such a file says so in its first or last bytes, or is a table of
// draw_table(). A script of the user may import gradwire, so its head must have more than the name.
void check_overwrite(const fs::path& file) {
  constexpr std::size_t kPart = 400;
  std::error_code ignored;
  const auto size = fs::file_size(file, ignored);
  if (ignored) return;
  std::string text(2 * kPart, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(text.data(), kPart);
  in.clear();
  in.seekg(static_cast<std::streamoff>(size - std::min<std::uintmax_t>(size, kPart)));
  in.read(text.data() + kPart, kPart);
  const std::string_view mark = file.extension() == ".py" ? kScriptMark : "gradwire";
  if (text.find(mark) == std::string::npos && !text.starts_with(kTableHeader))
    throw UsageError(file.string() +
                     ": exists and was not written by gradwire; name another file with --out");
}

void write_drawing(const fs::path& file, const std::string& text) {
  const std::string_view bytes = text;
  if (const Status status = disk_of(file)->write(file.filename().string(), std::span(&bytes, 1)); !status)
    throw UsageError(status.error().message);
}

}  // namespace

void check_format(const std::string& option, const fs::path& file) {
  for (const char* format : {".svg", ".pdf", ".png", ".tex", ".csv", ".py"})
    if (file.extension() == format) return;
  throw UsageError(option + " " + file.string() +
                   ": the name must end in .svg, .pdf, .png, .tex, .csv or .py");
}

std::vector<fs::path> write_figure(const Figure& figure, const fs::path& out, bool tikz, bool csv) {
  const std::string format = out.extension().string();
  const auto with_extension = [&](const char* extension) {
    return fs::path(out).replace_extension(extension);
  };
  const bool converts = format == ".pdf" || format == ".png";
  std::vector<std::pair<fs::path, std::string>> drawings;
  if (converts || format == ".svg") drawings.emplace_back(out, draw_svg(figure));
  if (format == ".svg" || format == ".py")
    drawings.emplace_back(with_extension(".py"), draw_script(figure, fs::absolute(out).parent_path()));
  if (tikz || format == ".tex") {
    const TikzFigure page = draw_tikz(figure, with_extension(".dat").filename().string());
    drawings.emplace_back(with_extension(".tex"), page.tex);
    drawings.emplace_back(with_extension(".dat"), page.dat);
  }
  if (csv || format == ".csv") drawings.emplace_back(with_extension(".csv"), draw_table(figure));
  std::vector<fs::path> files;
  for (const auto& [file, text] : drawings) check_overwrite(file);
  for (const auto& [file, text] : drawings) {
    if (converts && file == out)
      convert_svg(text, file);
    else
      write_drawing(file, text);
    files.push_back(file);
  }
  return files;
}

}  // namespace gradwire
