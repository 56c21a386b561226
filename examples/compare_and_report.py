"""Compare three rankers on the same folds, with significance tests, and write an HTML report."""

import rankwright as rw
from rankwright.comparison.report import write_report


def main() -> None:
    """Compare a linear ranker, regression trees and LambdaMART."""
    data = rw.synthetic("mq2008", queries=60)
    rankers = {
        "linear": rw.MEMR(),
        "regression trees": rw.GBDT(n_estimators=50),
        "lambdamart": rw.LambdaMART(n_estimators=50),
    }
    comparison = rw.compare(data, rankers, metrics=["ndcg@10", "map"], folds=3)
    print(comparison)
    test = comparison.test("lambdamart", "ndcg@10")
    print(f"lambdamart - linear: {test.difference:+.3f}, adjusted p = {test.adjusted:.3f}")
    write_report(comparison, "report.html")
    print("wrote report.html")


if __name__ == "__main__":
    main()
