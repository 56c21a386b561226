"""Export a ranker to two systems, and check that it returns the same scores there."""

import rankwright as rw
from rankwright.export import export_model, verify_export


def main() -> None:
    """Export LambdaMART to Elasticsearch's plug-in and to Vespa."""
    train = rw.load("digits/train", queries=30, documents=30)
    ranker = rw.LambdaMART(n_estimators=30, num_leaves=7).fit(train)
    for target in ("elasticsearch", "vespa"):
        export_model(ranker, target, f"exported-{target}")
        print(verify_export(f"exported-{target}"))


if __name__ == "__main__":
    main()
