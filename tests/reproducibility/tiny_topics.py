"""A topics experiment so small that it runs in a moment."""

TOPICS = """
title = "Tiny, Table 5"
paper = "author2010"
kind = "topics"
baseline = "sparse"

[printed]
columns = ["map", "zero_weights"]
[printed.rows]
Oracle = [0.9, 80.0]
sparse = [0.7, 90.0]

[[rows]]
name = "sparse"
ranker = "domination"
fixed = { steps = 4, least = 0.05, margin = "linear", min_zero = 0.5 }
grid = { margin_scale = [0.0, 2.0] }

[[rows]]
name = "dense"
ranker = "linear"
fixed = { l2 = [0.1, 0.01] }

[[rows]]
name = "pairs"
ranker = "pamir"
fixed = { C = [0.1], n_steps = 400, rounds = 2 }

[[studies]]
name = "random"
topics = { reuters = "Reuters21578", split = "random", min_train = 5 }
select = "map"
[[studies.columns]]
metrics = "map,p@10,pair_error,zero_weights"

[[studies]]
name = "clicks"
select = "pair_error"
[studies.topics]
clicks = 400
queries = 3
features = 200
row = 12
themes = 8
words = 6
relevant = 0.1
noise = 0.2
[[studies.columns]]
metrics = "map,domination_error,zero_weights"
name = "clicks {metric}"
"""
