#include "loss.hpp"

namespace graftboost {
namespace {

constexpr double probability_one = 1 << Loss::probability_bits;
constexpr double largest_gradient = probability_one - 1;

Gradient probability_gradient(double p, bool is_class) {
  const double g = std::nearbyint((p - (is_class ? 1.0 : 0.0)) * probability_one);
  return static_cast<Gradient>(std::clamp(g, -largest_gradient, largest_gradient));
}

void record_logistic(const std::int32_t* target, const double* score, Gradient* out,
                     std::size_t begin, std::size_t end) {
  for (std::size_t r = begin; r < end; ++r) {
    out[r] = probability_gradient(1.0 / (1.0 + std::exp(-score[r])), target[r] == 1);
  }
}

void record_softmax(const std::int32_t* target, const std::vector<double*>& scores,
                    const std::vector<Gradient*>& out, std::size_t begin, std::size_t end) {
  const std::size_t n_classes = scores.size();
  std::vector<double> p(n_classes);
  for (std::size_t r = begin; r < end; ++r) {
    double top = scores[0][r];
    for (std::size_t k = 1; k < n_classes; ++k) top = std::max(top, scores[k][r]);
    double sum = 0;
    for (std::size_t k = 0; k < n_classes; ++k) sum += p[k] = std::exp(scores[k][r] - top);
    for (std::size_t k = 0; k < n_classes; ++k) {
      out[k][r] = probability_gradient(p[k] / sum, static_cast<std::size_t>(target[r]) == k);
    }
  }
}

void record_squared(const std::int32_t* target, const double* score, Gradient* out,
                    std::size_t begin, std::size_t end) {
  constexpr double least = std::numeric_limits<Gradient>::min() + 1.0;
  constexpr double most = std::numeric_limits<Gradient>::max();
  for (std::size_t r = begin; r < end; ++r) {
    const double g = std::nearbyint(score[r] / Loss::target_grid) - target[r];
    out[r] = static_cast<Gradient>(std::clamp(g, least, most));
  }
}

}  // namespace

double Loss::leaf_value(const Totals& sums, double learning_rate, double l2) const {
  const double g = static_cast<double>(sums.g) * gradient_unit();
  const double h = static_cast<double>(sums.h) * hessian_unit() + l2;
  if (!(h > 0)) return 0;
  return on_leaf_grid(-(g / h) * (learning_rate * class_factor()));
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
