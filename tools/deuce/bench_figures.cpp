// SPDX-License-Identifier: Apache-2.0
// Simulates, measures or reads, prints the numbers and draws.
#include "bench_figures.h"

#include "bench_report.h"
#include "bench_run.h"
#include "figure_picture.h"
#include "interrupt.h"
#include "options.h"
#include "output_file.h"
#include "units.h"

namespace deuce::cli {
namespace {

struct FigureOptions {
  Figure figure = Figure::kv_len;
  std::string out = ".", measured;
  int32_t batch = 32;
  BenchSettings settings;
};

std::string name_of_figure(Figure figure) {
  return fmt::format("figure{}", static_cast<int>(figure));
}

std::vector<BenchShape> shapes_of(const FigureOptions& options) {
  std::vector<BenchShape> shapes;
  for (const FigureLayer& layer : kFigureLayers) {
    for (const FigurePoint& point : figure_points(options.figure)) {
      BenchShape shape;
      shape.preset = fmt::format("{}:{} x {}", layer.heads.q, layer.heads.kv, layer.head_dim);
      shape.q_heads = layer.heads.q;
      shape.kv_heads = layer.heads.kv;
      shape.head_dim = layer.head_dim;
      shape.page_size = 0;
      shape.q_len = point.q_len;
      shape.kv_lens.assign(static_cast<std::size_t>(options.batch),
                           static_cast<int32_t>(point.kv_len));
      shapes.push_back(std::move(shape));
    }
  }
  return shapes;
}

/// Measures on the device and leaves the result beside the picture.
Status measure(const FigureOptions& options, Device& device, FigureData& data) {
  MachineFacts machine = machine_facts();
  machine.gpu = device.gpu();
  catch_interrupt();
  fmt::print("{}", bench_header(machine));
  BenchRun run;
  const Status status =
      measure_all(shapes_of(options), options.settings, device, run, [](const BenchPoint& point) {
        fmt::print("{}", bench_row(point));
        std::fflush(stdout);
      });
  if (!status.ok() && run.points.empty()) return status;
  data.wrong = run.wrong();
  const std::string name = name_of_figure(options.figure) + ".json";
  Status saved =
      save_in(options.out, name, bench_json(machine, options.settings, run.points, interrupted()));
  if (!saved.ok()) return saved;
  fmt::print("{}/{}\n", options.out, name);
  auto file = read_result(options.out + "/" + name);
  if (!file.ok()) return file.status();
  data.measured = std::move(file.value());
  return status;
}

/// Reads the result that was given, or measures where there is a device.
Status find_measured(const FigureOptions& options, FigureData& data) {
  if (!options.measured.empty()) {
    auto file = read_result(options.measured);
    if (!file.ok()) return file.status();
    data.measured = std::move(file.value());
    const std::string why = why_none_belongs(data);
    if (why.empty()) return {};
    return invalid("measured", "no point of {} belongs to this figure: {}", options.measured, why);
  }
  Result<std::unique_ptr<Device>> device = open_device(Backend::hopper);
  if (device.ok()) return measure(options, *device.value(), data);
  if (device.status().code() != DEUCE_NO_DEVICE) return device.status();
  data.absent = device.status().sentence();
  return {};
}

void print_layer(const FigureData& data, const ModelLayer& model) {
  const FigureLayer& layer = model.layer;
  fmt::print("\n{}:{} heads, head dim {}, batch {}; published gain: up to {:.1f} %\n",
             layer.heads.q, layer.heads.kv, layer.head_dim, data.batch, layer.published_percent);
  fmt::print("{:>8} {:>5}  {:>22} {:>22} {:>22}  {:>13} {:>5}\n", "keys", "q_len",
             "simulated base, TB/s", "ping-pong", "gain, %", "measured base", "roof");
  const std::vector<FigurePoint> points = figure_points(data.figure);
  const std::vector<const ResultPoint*> measured = measured_points(data);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto rate = [i](const ModelCurve& curve) {
      const emulator::BandOf& band = curve.bytes_per_s[i];
      return fmt::format("{:.2f} ({:.2f} to {:.2f})", band[1] * 1e-12, band[2] * 1e-12,
                         band[0] * 1e-12);
    };
    const ResultPoint* found = measured_point(measured, layer, points[i]);
    const GainBand gain = model.gain(i);
    const bool roof = found != nullptr && found->roof_bytes_per_s > 0;
    fmt::print(
        "{:>8} {:>5}  {:>22} {:>22} {:>22}  {:>13} {:>5}\n", points[i].kv_len, points[i].q_len,
        rate(model.base), rate(model.ping_pong),
        fmt::format("{:+.1f} ({:+.1f} to {:+.1f})", gain.best, gain.low, gain.high),
        found == nullptr ? "-" : fmt::format("{:.2f}", found->bytes_per_s() * 1e-12),
        roof ? fmt::format("{:.0f}%", 100 * found->bytes_per_s() / found->roof_bytes_per_s) : "-");
  }
}

Result<ExitCode> draw(const FigureOptions& options) {
  FigureData data;
  data.figure = options.figure;
  data.batch = options.batch;
  auto model = simulate(options.figure, options.batch);
  if (!model.ok()) return model.status();
  data.model = std::move(model.value());
  if (Status status = find_measured(options, data); !status.ok()) return status;
  fmt::print("simulated: a B200 by the timing model, best (high to low costs); never run on one\n");
  fmt::print("measured:  {}\n", data.measured
                                    ? fmt::format("{}, {}", data.measured->device, kBaseOnly)
                                    : "absent: " + data.absent);
  fmt::print("published: {}\n", kPublished);
  for (const ModelLayer& layer : data.model) print_layer(data, layer);
  const std::string name = name_of_figure(options.figure) + ".svg";
  if (Status status = save_in(options.out, name, figure_svg(data)); !status.ok()) return status;
  fmt::print("\n{}/{}\n", options.out, name);
  if (data.wrong) return ExitCode::check_failed;
  return interrupted() ? ExitCode::interrupted : ExitCode::ok;
}

void add_figure(CLI::App& bench, Action& action, Figure figure, const char* about) {
  CLI::App& command = *bench.add_subcommand(name_of_figure(figure), about);
  auto options = std::make_shared<FigureOptions>();
  options->figure = figure;
  options->settings.execution.backend = Backend::hopper;
  command.add_option("--out", options->out, "folder of picture and result (default .)")
      ->type_name("DIR");
  command
      .add_option("--measured", options->measured,
                  "result of an earlier run to show, instead of measuring")
      ->type_name("FILE");
  integer_option(command, "--batch", options->batch, 1, "requests (default 32)", 4096);
  add_sampling_options(command, options->settings);
  for (const char* measuring : {"--seconds", "--noise", "--seed"})
    command.get_option("--measured")->excludes(command.get_option(measuring));
  command.footer(
      "Simulated for a B200 with the band of the timing model (deuce check --timing), measured on "
      "a\n"
      "Hopper GPU where there is one; the published gains stand beside. Without a GPU and without\n"
      "--measured the measured charts say that they are absent.");
  command.callback([options, &action] { action = [options] { return draw(*options); }; });
}

}  // namespace

void add_bench_figures(CLI::App& bench, Action& action) {
  add_figure(bench, action, Figure::kv_len,
             "Draw the article's figure 9: bandwidth over cache length");
  add_figure(bench, action, Figure::q_len, "Draw the article's figure 10: bandwidth over q_len");
}

}  // namespace deuce::cli
