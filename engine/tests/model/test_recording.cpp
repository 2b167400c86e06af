#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "model/recording.hpp"
#include "tests/check.hpp"
#include "tests/random_numbers.hpp"

namespace graftboost {
namespace {

using testing::Random;

constexpr std::uint64_t seed = 11;

Loss class_loss(int n_classes) {
  Loss loss;
  loss.kind = n_classes == 2 ? LossKind::logistic : LossKind::softmax;
  loss.n_classes = n_classes;
  return loss;
}

// Rows with random targets, ids and scores.
struct Rows {
  std::vector<std::int32_t> targets;
  std::vector<RowId> ids;
  std::vector<std::vector<double>> scores;  // per tree of an iteration

  Rows(const Loss& loss, std::size_t n, double scale, Random& random)
      : scores(static_cast<std::size_t>(loss.trees_per_iteration())) {
    for (std::size_t r = 0; r < n; ++r) {
      targets.push_back(static_cast<std::int32_t>(
          random.below(static_cast<std::size_t>(std::max(loss.n_classes, 2)))));
      ids.push_back(static_cast<RowId>(r * r) - (random.chance(0.1) ? RowId{1} << 40 : 0));
      for (auto& of_class : scores) of_class.push_back(random.normal() * scale);
    }
  }
  std::vector<double> scores_of(std::size_t r) const {
    std::vector<double> of_row;
    for (const auto& of_class : scores) of_row.push_back(of_class[r]);
    return of_row;
  }
  // The gradients of rows [begin, end), per tree of an iteration.
  std::vector<GradientArray> record(const Loss& loss, std::size_t first_tree, std::size_t begin,
                                    std::size_t end) const {
    std::vector<GradientArray> gradients;
    std::vector<GradientPointer> to;
    std::vector<const double*> from;
    for (const auto& of_class : scores) {
      from.push_back(of_class.data());
      to.push_back(gradients.emplace_back(loss.records_wide(), targets.size()).data());
    }
    RecordScratch scratch(scores.size());
    record_scores(loss, {targets, ids, seed, first_tree}, from, to, begin, end, scratch);
    return gradients;
  }
};

Gradient by_definition(const Loss& loss, const Rows& rows, std::size_t r, std::size_t first_tree,
                       std::size_t k) {
  std::vector<double> slopes(rows.scores.size());
  loss.slopes(rows.targets[r], rows.scores_of(r), slopes.data());
  const dither::Key tree = dither::of_tree(seed, first_tree + k);
  return loss.rounded(slopes[k], dither::of(tree, dither::of_row(rows.ids[r])));
}

TEST_CASE("what rows record is what the definition says, also at the ends of the range") {
  Random random(1);
  for (const int n_classes : {2, 3, 7}) {
    const Loss loss = class_loss(n_classes);
    for (const double scale : {0.0, 1.0, 6.0, 40.0, 3000.0}) {
      const Rows rows(loss, 3000, scale, random);
      for (const std::size_t begin : {0, 5, 2990}) {
        const auto found = rows.record(loss, 12, begin, rows.targets.size());
        for (std::size_t k = 0; k < found.size(); ++k) {
          for (std::size_t r = begin; r < rows.targets.size(); ++r) {
            const Gradient g = found[k][r];
            CHECK_EQ(g, by_definition(loss, rows, r, 12, k));
            CHECK(std::abs(g) <= loss.largest_gradient());
          }
        }
      }
    }
  }
}

TEST_CASE("values next to a boundary of rounding are those of the definition") {
  // Scores that put the exact value, with its dither, within 2^-22 of half a unit: closer than the
  // margin in which rows are computed by definition.
  const Loss loss = class_loss(2);
  Random random(2);
  Rows rows(loss, 1000, 1.0, random);
  for (std::size_t r = 0; r < rows.targets.size(); ++r) {
    rows.targets[r] = 0;
    const double dither = dither::of(dither::of_tree(seed, 3), dither::of_row(rows.ids[r]));
    const double half = std::floor(random.fraction() * 30000) + 100.5 - dither;
    const double p = std::ldexp(half + (random.fraction() - 0.5) * 0x1p-22, -15);
    rows.scores[0][r] = std::log(p / (1 - p));
  }
  const auto found = rows.record(loss, 3, 0, rows.targets.size());
  for (std::size_t r = 0; r < rows.targets.size(); ++r)
    CHECK_EQ(found[0][r], by_definition(loss, rows, r, 3, 0));
}

TEST_CASE("exponentials with an error give what the definition says for the exact scores") {
  Random random(6);
  for (const int n_classes : {2, 3, 7}) {
    const Loss loss = class_loss(n_classes);
    for (const double scale : {0.5, 6.0, 100.0}) {
      Rows rows(loss, 3000, scale, random);
      if (n_classes == 2) {  // close to boundaries of rounding
        for (std::size_t r = 0; r < 1000; ++r) {
          rows.targets[r] = 0;
          const double dither = dither::of(dither::of_tree(seed, 4), dither::of_row(rows.ids[r]));
          const double half = std::floor(random.fraction() * 30000) + 100.5 - dither;
          const double p = std::ldexp(half + (random.fraction() - 0.5) * 0x1p-22, -15);
          rows.scores[0][r] = std::log(p / (1 - p));
        }
      }
      std::vector<std::vector<double>> exponentials = rows.scores;
      for (auto& of_class : exponentials) {
        for (double& x : of_class)
          x = std::exp(n_classes == 2 ? -x : x) * (1 + random.normal() * 0x1p-42);
      }
      struct Exact final : ExactScores {
        explicit Exact(const Rows& of) : rows(of) {}
        void of(std::size_t row, double* scores) const override {
          for (std::size_t k = 0; k < rows.scores.size(); ++k) scores[k] = rows.scores[k][row];
          ++n_asked;
        }
        const Rows& rows;
        mutable int n_asked = 0;
      } exact(rows);
      std::vector<GradientArray> gradients;
      std::vector<GradientPointer> to;
      std::vector<const double*> from;
      for (const auto& of_class : exponentials) {
        from.push_back(of_class.data());
        to.push_back(gradients.emplace_back(false, rows.targets.size()).data());
      }
      RecordScratch scratch(from.size());
      record_exponentials(loss, {rows.targets, rows.ids, seed, 4}, from, to, 0, 3000, exact,
                          scratch);
      for (std::size_t k = 0; k < from.size(); ++k) {
        for (std::size_t r = 0; r < 3000; ++r)
          CHECK_EQ(gradients[k][r], by_definition(loss, rows, r, 4, k));
      }
      CHECK(exact.n_asked < 1100);
      CHECK_EQ(exact.n_asked >= 1000, n_classes == 2);
    }
  }
}

TEST_CASE("what a row records does not depend on the rows around it") {
  const Loss loss = class_loss(4);
  Random random(3);
  const Rows rows(loss, 500, 2.0, random);
  Rows shuffled = rows;
  std::vector<std::size_t> order(rows.targets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = order.size(); i-- > 1;) std::swap(order[i], order[random.below(i + 1)]);
  for (std::size_t i = 0; i < order.size(); ++i) {
    shuffled.targets[i] = rows.targets[order[i]];
    shuffled.ids[i] = rows.ids[order[i]];
    for (std::size_t k = 0; k < 4; ++k) shuffled.scores[k][i] = rows.scores[k][order[i]];
  }
  const auto a = rows.record(loss, 8, 0, order.size());
  const auto b = shuffled.record(loss, 8, 0, order.size());
  const auto other = rows.record(loss, 12, 0, order.size());
  std::size_t n_different = 0;
  for (std::size_t k = 0; k < 4; ++k) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      CHECK_EQ(a[k][order[i]], b[k][i]);
      n_different += a[k][i] != other[k][i];
      CHECK(std::abs(a[k][i] - other[k][i]) <= 1);
    }
  }
  CHECK(n_different > order.size() / 2);  // every tree has its own dithers
}

TEST_CASE("the errors of rounding cancel, in every tree and over the trees of a row") {
  // Rows with the same score have the same exact gradient, which plain rounding would miss by the
  // same amount in every row.
  const Loss loss = class_loss(2);
  constexpr std::size_t n = 20'000, n_trees = 60;
  Random random(4);
  Rows rows(loss, n, 1.0, random);
  std::iota(rows.ids.begin(), rows.ids.end(), RowId{0});
  std::fill(rows.targets.begin(), rows.targets.end(), 0);
  for (const double p : {0x1p-20, 0x1p-16, 0.3 * 0x1p-15, 10.3 * 0x1p-15, 0.3, 0.5, 0.9}) {
    std::fill(rows.scores[0].begin(), rows.scores[0].end(), std::log(p / (1 - p)));
    const double exact = std::ldexp(p, 15), part = exact - std::floor(exact);
    // The sum of n independent errors has this deviation; five are not exceeded by chance.
    const double deviation = std::sqrt(part * (1 - part));
    std::vector<double> of_rows(n);
    for (std::size_t t = 0; t < n_trees; ++t) {
      const auto found = rows.record(loss, t, 0, n);
      double error = 0;
      for (std::size_t r = 0; r < n; ++r) {
        CHECK(std::abs(found[0][r] - exact) <= 1);
        error += found[0][r] - exact;
        of_rows[r] += found[0][r] - exact;
      }
      CHECK(std::abs(error) <= 5 * deviation * std::sqrt(double{n}) + 0.01);
    }
    double squares = 0;
    for (const double error : of_rows) squares += error * error;
    // Dithers of different trees are independent: variances of a row's errors add up.
    const double expected = deviation * deviation * n_trees;
    CHECK(std::abs(squares / n - expected) <= 0.1 * expected + 0.01);
  }
}

TEST_CASE("dithers are spread evenly, for ids of any kind") {
  const auto next = [](RowId id, int kind) {
    return kind == 0 ? id + 1 : kind == 1 ? id + (RowId{1} << 32) : kind == 2 ? id - 1024 : id + 7;
  };
  for (int kind = 0; kind < 4; ++kind) {
    for (std::size_t t = 0; t < 20; ++t) {
      constexpr int n_parts = 16, n = 16'000;
      std::vector<int> counts(n_parts);
      RowId id = 0;
      double before = 0, products = 0;
      for (int i = 0; i < n; ++i, id = next(id, kind)) {
        const double dither = dither::of(dither::of_tree(seed, t), dither::of_row(id));
        CHECK(dither >= -0.5 && dither < 0.5);
        ++counts[static_cast<std::size_t>((dither + 0.5) * n_parts)];
        products += before * dither;
        before = dither;
      }
      double chi = 0;
      for (const int count : counts) chi += std::pow(count - n / n_parts, 2) / (n / n_parts);
      CHECK(chi < 50);                                              // 15 degrees of freedom
      CHECK(std::abs(products) < 5 * std::sqrt(double{n}) / 12.0);  // neighbours are independent
    }
  }
}

TEST_CASE("squared error is recorded without a dither") {
  Loss loss;
  Random random(5);
  Rows rows(loss, 300, 1.0, random);
  const auto a = rows.record(loss, 0, 0, 300), b = rows.record(loss, 7, 0, 300);
  for (std::size_t r = 0; r < 300; ++r) {
    CHECK_EQ(a[0][r], b[0][r]);
    CHECK_EQ(a[0][r], by_definition(loss, rows, r, 0, 0));
    CHECK_EQ(a[0][r],
             static_cast<Gradient>(std::nearbyint(rows.scores[0][r] * 0x1p24)) - rows.targets[r]);
  }
}

TEST_CASE("the hessian of a class gradient is p (1 - p) and fits packed sums") {
  for (Gradient g = -32768; g <= 32767; ++g) {
    const double p = std::abs(std::ldexp(g, -15)),
                 h = std::ldexp(Loss::probability_hessian(g), -20);
    CHECK(h <= p * (1 - p) && h > p * (1 - p) - 0x1p-20);
    CHECK(Loss::probability_hessian(g) >= 0 &&
          Loss::probability_hessian(g) <= PackedSums::most_hessian_of_row);
  }
}

}  // namespace
}  // namespace graftboost
