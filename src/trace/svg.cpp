// SPDX-License-Identifier: Apache-2.0
// SVG writer; see svg.h.
#include "trace/svg.h"

#include <fmt/format.h>

#include <algorithm>

namespace deuce::trace {
namespace {

// Scores blue, probabilities yellow, empty grey; QK blue, softmax purple, PV orange, loads green,
// waits hatched and pale.
constexpr std::string_view kStyle = R"(
svg{background:#ffffff;font-family:system-ui,"Segoe UI",Helvetica,Arial,sans-serif}
text{fill:#1d2330}.t{font-size:12px}.s{font-size:11px}.h{font-size:15px;font-weight:600}
.b{font-size:12px;font-weight:600}.c{font-size:11px;text-anchor:middle;fill:#10141d}
.m{font-size:11px;text-anchor:middle}.e{font-size:12px;text-anchor:end}.n{font-size:11px;fill:#5b6475}
.l{stroke:#c9ced8;stroke-width:1}.x{stroke:#7a8394;stroke-width:1}
.S,.qk{fill:#8ab4f8}.P{fill:#fdd663}.empty{fill:#e6e8ec}.sm{fill:#c9a5f2}.pv{fill:#fbb26a}
.load{fill:#86cf96}.fix{fill:#f28b82}.sum{fill:#e3cffa}.wait{fill:url(#hatch)}.other{fill:#cfd5df}
.box{fill:#eef1f6;stroke:#7a8394}.band{fill:#f5f6f9}
.a{fill:none;stroke:#4a5263;stroke-width:1.2;marker-end:url(#tip)}.ak{fill:none;stroke:#1a5fd0;stroke-width:1.2;marker-end:url(#tip)}
.ap{fill:none;stroke:#a15c00;stroke-width:1.2;marker-end:url(#tip)}.ao{fill:none;stroke:#b3261e;stroke-width:1.2;marker-end:url(#tip)}
#hatch rect{fill:#f4f5f8}#hatch path{stroke:#c3c9d4}#tip path{fill:#4a5263}
@media(prefers-color-scheme:dark){svg{background:#14181f}text{fill:#e3e7ee}.n{fill:#9aa4b5}.c{fill:#10141d}
.l{stroke:#363d4a}.x{stroke:#8791a3}.empty{fill:#2b323e}.box{fill:#222936}.band{fill:#1a1f28}.other{fill:#7d8798}
.a{stroke:#b5bdcb}.ak{stroke:#8ab4f8}.ap{stroke:#fdd663}.ao{stroke:#f28b82}
#hatch rect{fill:#1d232d}#hatch path{stroke:#465061}#tip path{fill:#b5bdcb}}
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    switch (letter) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += letter;
    }
  }
  return out;
}

std::string places(const std::vector<Point>& points) {
  std::string text;
  for (const Point& point : points) text += fmt::format("{:.1f},{:.1f} ", point.x, point.y);
  return text;
}

}  // namespace

void Svg::rect(double x, double y, double width, double height, std::string_view kind,
               const std::string& tip) {
  body_ += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}")",
                       x, y, std::max(width, 0.5), height, kind);
  body_ += tip.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", escaped(tip));
}

void Svg::text(double x, double y, std::string_view words, std::string_view kind) {
  body_ += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" class="{}">{}</text>)"
                       "\n",
                       x, y, kind, escaped(words));
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view kind) {
  body_ += fmt::format(R"(<path d="M{:.1f} {:.1f}L{:.1f} {:.1f}" class="{}"/>)"
                       "\n",
                       x1, y1, x2, y2, kind);
}

void Svg::polyline(const std::vector<Point>& points, std::string_view kind) {
  body_ += fmt::format(R"(<polyline points="{}" class="{}"/>)"
                       "\n",
                       places(points), kind);
}

void Svg::polygon(const std::vector<Point>& points, std::string_view kind) {
  body_ += fmt::format(R"(<polygon points="{}" class="{}"/>)"
                       "\n",
                       places(points), kind);
}

void Svg::dot(const Point& centre, double radius, std::string_view kind, const std::string& tip) {
  body_ += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{:.1f}" class="{}")", centre.x,
                       centre.y, radius, kind);
  body_ += tip.empty() ? "/>\n" : fmt::format("><title>{}</title></circle>\n", escaped(tip));
}

void Svg::arrow(double x1, double y1, double x2, double y2, std::string_view kind) {
  const double bend = std::max(6.0, (x2 - x1) / 2);
  body_ += fmt::format(
      R"(<path d="M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}" class="{}"/>)"
      "\n",
      x1, y1, x1 + bend, y1, x2 - bend, y2, x2, y2, kind);
}

void Svg::cell(double x, double y, double width, double height, std::string_view kind,
               std::string_view words, const std::string& tip) {
  rect(x, y, width, height, kind, tip);
  if (!words.empty() && text_width(words) <= width - 2) {
    // Pale fills follow the theme, so their words must too.
    text(x + width / 2, y + height / 2 + 4, words, kind == "wait" ? "m" : "c");
  }
}

std::string Svg::finish(double height) const {
  return fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:.0f} {1:.0f}" width="{0:.0f}" height="{1:.0f}" role="img">
<title>{2}</title><style>{3}{5}</style>
<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6"/><path d="M0 6L6 0" stroke-width="1"/></pattern>
<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>
{4}</svg>
)",
      width_, height, escaped(title_), kStyle, body_, more_style_);
}

}  // namespace deuce::trace
