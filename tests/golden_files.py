"""What the folder with real outputs of other tools holds."""

RANKERS = (
    "adarank",
    "coordinate_ascent",
    "lambdamart",
    "lambdarank",
    "linear_regression",
    "listnet",
    "mart",
    "random_forests",
    "rankboost",
    "ranknet",
)
"""RankLib's rankers, as its outputs are named."""
