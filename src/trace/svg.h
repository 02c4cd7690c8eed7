// SPDX-License-Identifier: Apache-2.0
// A small writer of self-contained SVG pictures: shapes by class, colours and fonts inside, light
// and dark. Used by the figures and the static timeline.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace deuce::trace {

struct Point {
  double x, y;
};

class Svg {
 public:
  /// `more_style`: rules beside the common ones.
  Svg(double width, std::string title, std::string_view more_style = {})
      : width_(width), title_(std::move(title)), more_style_(more_style) {}

  /// `kind` is a class of the style sheet, `tip` shows on hover.
  void rect(double x, double y, double width, double height, std::string_view kind,
            const std::string& tip = {});
  void text(double x, double y, std::string_view words, std::string_view kind = "t");
  void line(double x1, double y1, double x2, double y2, std::string_view kind = "l");
  void polyline(const std::vector<Point>& points, std::string_view kind);
  void polygon(const std::vector<Point>& points, std::string_view kind);
  void dot(const Point& centre, double radius, std::string_view kind, const std::string& tip = {});
  /// An arrow along a soft curve.
  void arrow(double x1, double y1, double x2, double y2, std::string_view kind);
  /// A rect with words in the middle, if they fit.
  void cell(double x, double y, double width, double height, std::string_view kind,
            std::string_view words, const std::string& tip = {});
  std::string finish(double height) const;

 private:
  double width_;
  std::string title_, more_style_, body_;
};

/// Width of words in the small font of cells, generously.
constexpr double text_width(std::string_view words) {
  return 6.4 * static_cast<double>(words.size());
}

}  // namespace deuce::trace
