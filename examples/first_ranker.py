"""Train a ranker on a CSV file, evaluate it, save it, and rank the documents of a query.

Each row of the file is a document; the columns ``query`` and ``grade`` are its query and label.

    python examples/first_ranker.py products.csv

Without a file, the example writes one with the data that is included in Rankwright.
"""

import sys
from pathlib import Path

import pandas as pd

import rankwright as rw


def main(path: Path) -> None:
    """Train on most queries of the file, and evaluate on the others."""
    if not path.exists():
        write_products(path)
    frame = pd.read_csv(path)
    data = rw.RankingData.from_arrays(
        frame.drop(columns=["query", "grade"]), frame["grade"], qid=frame["query"]
    )
    train, valid, test = rw.train_valid_test_split(data, random_state=0)

    ranker = rw.LambdaMART(metric="ndcg@10").fit(train, eval_set=valid)
    print(rw.evaluate(test, ranker.predict(test), ["ndcg@10", "map"]))

    ranker.save("ranker.rw")
    query = test.select([0])  # as a service would: a saved model and the documents of one query
    ranking = rw.load_model("ranker.rw").rank(query, top=5)
    print("best rows of query", query.qid[0], ranking.order.tolist())


def write_products(path: Path) -> None:
    """Write a CSV file with made-up web search data."""
    data = rw.synthetic("mq2008", queries=60)
    names = [f"feature{number}" for number in range(1, data.n_features + 1)]
    frame = pd.DataFrame(data.X, columns=names)
    frame.insert(0, "query", data.qid[data.query_of_row()])
    frame.insert(1, "grade", data.y)
    frame.to_csv(path, index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "products.csv"))
