"""The words of a run of RankLib, and the figures that it prints."""


def words(files, *more):
    named = zip(("-train", "-validate", "-test"), ("train", "vali", "test"), strict=True)
    given = [word for flag, name in named for word in (flag, str(files / f"{name}.txt"))]
    return [*given, "-metric2t", "NDCG@10", *more]


def figure(text, what):
    (line,) = [line for line in text.splitlines() if f" on {what} data: " in line]
    return float(line.rpartition(" ")[2])


QUICK = {
    0: ["-tree", "5"],
    2: ["-round", "5"],
    3: ["-round", "5"],
    4: ["-r", "1"],
    6: ["-tree", "5"],
    7: ["-epoch", "20"],
    8: ["-bag", "3", "-leaf", "4"],
    9: [],
}
