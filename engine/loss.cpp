#include "loss.hpp"

#include <array>

namespace graftboost {
namespace {

constexpr double probability_one = 1 << Loss::probability_bits;
constexpr double largest_gradient = probability_one - 1;

Gradient probability_gradient(double p, bool is_class) {
  const double g = round_to_even((p - (is_class ? 1.0 : 0.0)) * probability_one);
  return static_cast<Gradient>(std::clamp(g, -largest_gradient, largest_gradient));
}

void record_logistic(const std::int32_t* target, const double* score, Gradient* out,
                     std::size_t begin, std::size_t end) {
  for (std::size_t r = begin; r < end; ++r) {
    out[r] = probability_gradient(1.0 / (1.0 + std::exp(-score[r])), target[r] == 1);
  }
}

// In stretches of rows, class by class, so that all but exp itself is a loop over neighbours.
void record_softmax(const std::int32_t* target, const std::vector<double*>& scores,
                    const std::vector<Gradient*>& out, std::size_t begin, std::size_t end) {
  constexpr std::size_t stretch = 64;
  const std::size_t n_classes = scores.size();
  std::vector<std::array<double, stretch>> parts(n_classes);
  for (std::size_t from = begin; from < end; from += stretch) {
    const std::size_t n = std::min(stretch, end - from);
    std::array<double, stretch> top, sum{};
    std::copy_n(scores[0] + from, n, top.begin());
    for (std::size_t k = 1; k < n_classes; ++k) {
      for (std::size_t i = 0; i < n; ++i) top[i] = std::max(top[i], scores[k][from + i]);
    }
    for (std::size_t k = 0; k < n_classes; ++k) {
      for (std::size_t i = 0; i < n; ++i) parts[k][i] = std::exp(scores[k][from + i] - top[i]);
      for (std::size_t i = 0; i < n; ++i) sum[i] += parts[k][i];
    }
    for (std::size_t k = 0; k < n_classes; ++k) {
      const auto label = static_cast<std::int32_t>(k);
      for (std::size_t i = 0; i < n; ++i) {
        out[k][from + i] = probability_gradient(parts[k][i] / sum[i], target[from + i] == label);
      }
    }
  }
}

void record_squared(const std::int32_t* target, const double* score, Gradient* out,
                    std::size_t begin, std::size_t end) {
  constexpr double least = std::numeric_limits<Gradient>::min() + 1.0;
  constexpr double most = std::numeric_limits<Gradient>::max();
  for (std::size_t r = begin; r < end; ++r) {
    const double g = round_to_even(score[r] / Loss::target_grid) - target[r];
    out[r] = static_cast<Gradient>(std::clamp(g, least, most));
  }
}

}  // namespace

double Loss::leaf_value(const Totals& sums, double learning_rate, double l2) const {
  const double g = static_cast<double>(sums.g) * gradient_unit();
  const double h = static_cast<double>(sums.h) * hessian_unit() + l2;
  if (!(h > 0)) return 0;
  const double step = std::clamp(-(g / h), -largest_step(), largest_step());
  return on_leaf_grid(step * (learning_rate * class_factor()));
}

std::vector<double> Loss::base_scores(std::span<const std::int32_t> targets,
                                      std::span<const Weight> weights) const {
  const auto weight = [&](std::size_t r) { return weights.empty() ? Weight{1} : weights[r]; };
  if (kind == LossKind::squared) {
    __int128 sum = 0, total = 0;
    for (std::size_t r = 0; r < targets.size(); ++r) {
      sum += static_cast<__int128>(targets[r]) * weight(r);
      total += weight(r);
    }
    return {on_leaf_grid(static_cast<double>(sum) / static_cast<double>(total) * target_grid)};
  }
  std::vector<std::int64_t> counts(static_cast<std::size_t>(n_classes));
  for (std::size_t r = 0; r < targets.size(); ++r) {
    counts[static_cast<std::size_t>(targets[r])] += weight(r);
  }
  // Half a unit where a class has no rows: its probability is small, not nothing.
  const auto share = [&](int k) {
    return std::max(static_cast<double>(counts[static_cast<std::size_t>(k)]), 0.5);
  };
  if (kind == LossKind::logistic) return {on_leaf_grid(std::log(share(1) / share(0)))};
  double total = 0;
  for (int k = 0; k < n_classes; ++k) total += share(k);
  std::vector<double> scores;
  for (int k = 0; k < n_classes; ++k) scores.push_back(on_leaf_grid(std::log(share(k) / total)));
  return scores;
}

void Loss::record(std::span<const std::int32_t> targets, const std::vector<double*>& scores,
                  const std::vector<Gradient*>& gradients, std::size_t begin,
                  std::size_t end) const {
  switch (kind) {
    case LossKind::logistic:
      return record_logistic(targets.data(), scores[0], gradients[0], begin, end);
    case LossKind::softmax:
      return record_softmax(targets.data(), scores, gradients, begin, end);
    case LossKind::squared:
      return record_squared(targets.data(), scores[0], gradients[0], begin, end);
  }
}

double Loss::of_row(std::int32_t target, std::span<const double> scores) const {
  switch (kind) {
    case LossKind::logistic: {
      const double margin = target == 1 ? scores[0] : -scores[0];
      return margin > 0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
    }
    case LossKind::softmax: {
      const double top = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (const double s : scores) sum += std::exp(s - top);
      return std::log(sum) + top - scores[static_cast<std::size_t>(target)];
    }
    case LossKind::squared:
      break;
  }
  const double residual = scores[0] - target * target_grid;
  return residual * residual / 2;
}

}  // namespace graftboost
