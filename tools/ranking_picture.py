"""Draw what a query id, a grade and NDCG are, for the first pages: docs/ranking.svg."""

from __future__ import annotations

from html import escape
from math import log2

# Product, text match, grade and score. docs/tutorial.md computes the same NDCG with the package.
DOCUMENTS = [("A", "0.9", 2, 0.7), ("B", "0.8", 0, 0.4), ("C", "0.7", 1, 0.9), ("D", "0.1", 0, 0.1)]
WORDS = {2: "very good", 1: "acceptable", 0: "bad"}

STYLE = """
  .card { fill: #ffffff; } .ink { fill: #1d232b; } .soft { fill: #566171; }
  .line { stroke: #d9dfe6; } .mark { fill: #0b5fd0; } .move { stroke: #8a96a5; }
  .g2 { fill: #0b5fd0; } .g1 { fill: #7fb2f0; } .g0 { fill: #dde3ea; }
  .on2 { fill: #ffffff; } .on1 { fill: #10233c; } .on0 { fill: #1d232b; }
  @media (prefers-color-scheme: dark) {
    .card { fill: #1b2027; } .ink { fill: #e6e9ee; } .soft { fill: #a3aebc; }
    .line { stroke: #353e4a; } .mark { fill: #74b4ff; } .move { stroke: #7b8898; }
    .g2 { fill: #74b4ff; } .g1 { fill: #2f5f9c; } .g0 { fill: #353e4a; }
    .on2 { fill: #0d1a2b; } .on1 { fill: #e6e9ee; } .on0 { fill: #e6e9ee; }
  }
  text { font: 15px system-ui, sans-serif; } .small { font-size: 13px; }
  .head { font-weight: 600; } .big { font-size: 17px; font-weight: 600; }
  .number { font-variant-numeric: tabular-nums; } .move { fill: none; stroke-width: 1.6; }
"""


def gain(grade: int) -> int:
    """Return what a document of this grade earns."""
    return 2**grade - 1


def dcg(grades: list[int]) -> float:
    """Return the discounted cumulative gain of grades in rank order."""
    return sum(gain(grade) / log2(rank + 1) for rank, grade in enumerate(grades, start=1))


def ranking_svg() -> str:
    """Return the picture."""
    ranked = sorted(DOCUMENTS, key=lambda document: -document[3])
    grades = [document[2] for document in ranked]
    found, ideal = dcg(grades), dcg(sorted(grades, reverse=True))
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 372" role="img" '
            'aria-labelledby="title">',
            "<title>Documents of one query with their grades, the ranking by score, and its NDCG: "
            f"{found:.4f} / {ideal:.4f} = {found / ideal:.4f}</title>",
            f"<style>{STYLE}</style>",
            '<rect class="card" width="960" height="372" rx="12"/>',
            *_data(),
            *_moves(ranked),
            *_ranking(ranked),
            *_ndcg(grades, found, ideal),
            "</svg>",
            "",
        ]
    )


def _text(x: float, y: float, words: str, kind: str = "ink", anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def _grade(x: float, y: float, grade: int) -> list[str]:
    return [
        f'<rect x="{x}" y="{y - 17}" width="34" height="24" rx="6" class="g{grade}"/>',
        _text(x + 17, y, str(grade), f"head on{grade}", "middle"),
    ]


def _row(number: int) -> int:
    return 118 + 38 * number


def _data() -> list[str]:
    made = [
        _text(28, 40, "Data", "big ink"),
        _text(78, 40, "a row for each document", "small soft"),
        *(
            _text(x, 78, words, "small soft")
            for x, words in ((28, "query id"), (128, "document"), (214, "features"), (326, "grade"))
        ),
        '<line x1="28" x2="420" y1="90" y2="90" class="line"/>',
    ]
    for number, (name, match, grade, _) in enumerate(DOCUMENTS):
        y = _row(number)
        made += [
            _text(28, y, "red shoes"),
            _text(128, y, f"shoe {name}"),
            _text(214, y, f"{match}, …", "number ink"),
            *_grade(326, y, grade),
            _text(368, y, WORDS[grade], "small soft"),
        ]
    return made


def _moves(ranked: list[tuple[str, str, int, float]]) -> list[str]:
    made = [_text(489, 78, "score, sort", "small soft", "middle")]
    for number, document in enumerate(DOCUMENTS):
        y, end = _row(number) - 5, _row(ranked.index(document)) - 5
        made.append(f'<path class="move" d="M448 {y} C 490 {y}, 490 {end}, 530 {end}"/>')
    return made


def _ranking(ranked: list[tuple[str, str, int, float]]) -> list[str]:
    made = [
        _text(548, 40, "Ranking", "big ink"),
        _text(634, 40, "best score first", "small soft"),
        *(
            _text(x, 78, words, "small soft", anchor)
            for x, words, anchor in (
                (548, "rank", "start"),
                (598, "document", "start"),
                (676, "score", "start"),
                (728, "grade", "start"),
                (932, "gain / discount", "end"),
            )
        ),
        '<line x1="548" x2="932" y1="90" y2="90" class="line"/>',
    ]
    for number, (name, _, grade, score) in enumerate(ranked):
        y, rank = _row(number), number + 1
        earned = f"{gain(grade)} / {log2(rank + 1):.2f} = {gain(grade) / log2(rank + 1):.2f}"
        made += [
            _text(548, y, str(rank), "head ink"),
            _text(598, y, f"shoe {name}"),
            _text(676, y, f"{score}", "number ink"),
            *_grade(728, y, grade),
            _text(932, y, earned, "number ink", "end"),
        ]
    return made


def _ndcg(grades: list[int], found: float, ideal: float) -> list[str]:
    best = ", ".join(str(grade) for grade in sorted(grades, reverse=True))
    return [
        '<line x1="28" x2="932" y1="262" y2="262" class="line"/>',
        _text(28, 298, "NDCG", "big mark"),
        _text(104, 298, "what the ranking earns / what the best order earns", "soft"),
        _text(28, 332, f"sum of the last column: {found:.4f}"),
        _text(300, 332, f"the same for the best order ({best}): {ideal:.4f}"),
        _text(932, 332, f"{found:.4f} / {ideal:.4f} = {found / ideal:.4f}", "head mark", "end"),
        _text(28, 356, "1 is perfect. A metric @10 looks at the first ten ranks.", "small soft"),
    ]
