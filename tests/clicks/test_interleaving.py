"""Interleaving: lists against exact distributions, credit against its definition, and fairness."""

from itertools import combinations

import numpy as np
import pytest
from cases import case, each
from interleaved_lists import (
    METHODS,
    PAIRS,
    SHORT,
    SHORT_TRIPLES,
    TRIPLE,
    Coded,
    credit_rows,
    drawn_distribution,
    lists_of,
    log_of,
    programme,
    rows_of_lists,
)
from reference import interleaving as twin
from reference.hashing import mixed

from rankwright import clicks
from rankwright.clicks import interleaving
from rankwright.core.parallel import documents_per_range
from rankwright.data.ranking_data import RankingData
from rankwright.errors import DataError, UsageError


@each("rankings", [*PAIRS, TRIPLE])
def test_team_draft_has_the_distribution_of_the_draft(rankings):
    assert drawn_distribution("team_draft", rankings, 4) == twin.distribution(
        twin.team_draft, rankings, 4
    )


@each("rankings", [*PAIRS, TRIPLE])
def test_probabilistic_lists_invert_the_distribution_of_ranks(rankings):
    coded, rng = Coded(rankings), np.random.default_rng(0)
    for u in rng.random((300, 8)):
        shown, teams = [], []
        for i in range(min(4, len(coded.ids))):
            able = [j for j, one in enumerate(rankings) if set(one) - set(shown)]
            teams.append(able[int(u[2 * i] * len(able))])
            left = twin.drawn_from(rankings[teams[-1]], shown, 3.0)
            at = np.searchsorted(np.cumsum(list(left.values())), u[2 * i + 1], side="right")
            shown.append(list(left)[at])
        assert coded.list_of("probabilistic", u, 4) == (tuple(shown), tuple(teams))


def test_long_probabilistic_lists_keep_their_precision():
    order = [f"d{i}" for i in range(200)]
    back = order[::-1]
    shown = clicks.interleave_rankings([order, back], clicks.Probabilistic(k=60, tau=12.0))
    assert len(set(shown.documents)) == 60
    np.testing.assert_allclose(
        shown.credit, twin.shares([order, back], shown.documents, 12.0), rtol=1e-9
    )


@each("rankings", PAIRS)
def test_optimised_lists_are_allowed_and_their_programme_is_solved(rankings):
    coded = Coded(rankings)
    made = programme(rankings, 4)
    lists = {tuple(coded.ids[d] for d in one) for one in made.lists}
    assert lists == twin.allowed(rankings, 4)
    assert made.probability.sum() == pytest.approx(1.0)
    shortest = min(map(len, rankings))
    assert made.fair.tolist() == [i < shortest for i in range(4)]
    gap = rows_of_lists(made).T[:shortest]
    assert np.abs(gap @ made.probability).max() < 1e-9
    best = made.sensitivity @ made.probability
    assert best == pytest.approx(least_of_corners(made.sensitivity, gap))


def least_of_corners(value, gap):
    """Return the least mean value over the corners of p >= 0, sum p = 1, gap p = 0."""
    rows = np.vstack([np.ones(len(value)), gap])
    goal = np.append(1.0, np.zeros(len(gap)))
    least = np.inf
    for size in range(1, len(rows) + 1):
        for used in map(list, combinations(range(len(value)), size)):
            p = np.linalg.lstsq(rows[:, used], goal, rcond=None)[0]
            if p.min() > -1e-9 and np.abs(rows[:, used] @ p - goal).max() < 1e-9:
                least = min(least, value[used] @ p)
    return least


def test_more_lists_than_asked_for_are_sampled():
    rng = np.random.default_rng(0)
    rankings = [rng.permutation(30).tolist() for _ in range(2)]
    made = programme(rankings, 14, max_lists=500)
    assert 300 < len(made.lists) <= 500
    assert made.fair.all()
    best = {one[0] for one in rankings}
    assert {Coded(rankings).ids[one[0]] for one in made.lists} == best


def test_of_the_lists_that_are_allowed_only_those_that_are_shown_are_kept():
    """As many as the programme has equations, at most; a server holds many programmes."""
    rng = np.random.default_rng(0)
    rankings = rng.permuted(np.tile(np.arange(30, dtype=np.int32), (2, 1)), axis=1)
    shown = interleaving._shown_lists(tuple(ranking.tobytes() for ranking in rankings), 10, 2048)
    whole = interleaving.solve_programme(rankings.tolist(), 10, 2048)
    assert len(shown.lists) <= 11 < len(whole.lists)
    assert shown.probability.sum() == pytest.approx(1.0)
    assert shown.probability @ shown.sensitivity == pytest.approx(
        whole.probability @ whole.sensitivity
    )


# --- credit ----------------------------------------------------------------------------------


@each("name", METHODS)
def test_what_is_logged_is_what_credit_is_computed_from(name):
    for rankings in PAIRS:
        with case(rankings):
            shown = clicks.interleave_rankings(rankings, name, session=5)
            if name != "team_draft":
                expected = credit_rows(name, rankings, shown.documents)
                np.testing.assert_allclose(shown.credit, expected, rtol=1e-12)


@each("name", ["probabilistic", "optimised"])
def test_credit_is_what_the_definition_says(name):
    for rankings in [*PAIRS, *([] if name == "optimised" else [TRIPLE])]:
        lists = sorted({
            tuple(clicks.interleave_rankings(rankings, name, session=s).documents)
            for s in range(12)
        })  # fmt: skip
        method = interleaving.METHODS[name]()
        for clicked in twin.every_click(len(lists[0])):
            log = log_of(name, rankings, lists, clicked)
            found = method.credits(log)
            for shown, row in zip(lists, found, strict=True):
                with case(rankings, shown, clicked):
                    assert row == pytest.approx(definition(name, rankings, shown, clicked))


def definition(name, rankings, shown, clicked):
    if name == "optimised":
        rows = credit_rows(name, rankings, shown)
        return [sum(rows[c][j] for c in clicked) for j in range(len(rankings))]
    found = np.zeros(len(rankings))
    clicked = [c for c in clicked if c < min(map(len, rankings))]
    for who, p in twin.assignments(rankings, shown, clicked):
        found += p * np.bincount(np.array(who, int), minlength=len(rankings))
    return found


@each("rankings", [*PAIRS, TRIPLE])
def test_probabilistic_outcomes_sum_over_who_gave_what(rankings):
    shown = clicks.interleave_rankings(rankings, "probabilistic", session=1).documents
    for clicked in twin.every_click(len(shown)):
        log = log_of("probabilistic", rankings, [shown], clicked)
        credited = [c for c in clicked if c < min(map(len, rankings))]
        expected = sum(
            p * np.sign(who.count(0) - who.count(1))
            for who, p in twin.assignments(rankings, shown, credited)
        )
        found = clicks.Probabilistic().outcomes(log, np.zeros((1, len(rankings))), 0, 1)
        assert found[0] == pytest.approx(expected, abs=1e-12)


# --- fairness --------------------------------------------------------------------------------


FAIR = [(name, one) for name in METHODS for one in [*PAIRS, *SHORT]]
FAIR += [(name, one) for name in METHODS[1:] for one in [TRIPLE, *SHORT_TRIPLES]]


@each(("name", "rankings"), FAIR)
def test_clicks_on_positions_alone_prefer_no_ranker(name, rankings):
    """With every set of clicked positions, also of lists that outlast a ranking."""
    k = min(4, len({d for one in rankings for d in one}))
    lists, teams, p = zip(*lists_of(name, rankings, k), strict=True)
    method = interleaving.METHODS[name]()
    for clicked in twin.every_click(k):
        log = log_of(name, rankings, lists, clicked, None if teams[0] is None else teams)
        earned = method.credits(log)
        for i, j in ((0, 1), (0, len(rankings) - 1)):
            outcome = method.outcomes(log, earned, i, j)
            assert np.abs(outcome).max() <= 1.0 + 1e-12
            assert np.dot(p, outcome) == pytest.approx(0.0, abs=1e-9)
            assert np.dot(p, earned[:, i] - earned[:, j]) == pytest.approx(0.0, abs=1e-9)


@each(("name", "rankings"), FAIR)
def test_positions_below_the_shortest_ranking_give_no_credit(name, rankings):
    """The lists and teams are those of which fairness was enumerated."""
    shortest, drafted = min(map(len, rankings)), set()
    if name == "team_draft":
        drafted = {(shown, team) for shown, team, _ in lists_of(name, rankings, 4)}
    method = interleaving.METHODS[name](k=4)
    for session in range(60):
        one = clicks.interleave_rankings(rankings, method, session=session)
        assert (one.team[shortest:] == -1).all()
        assert (one.credit[shortest:] == 0.0).all()
        shown, team = tuple(one.documents), tuple(one.team.tolist())
        if name == "team_draft":
            assert (shown, team) in drafted
        else:
            np.testing.assert_allclose(one.credit, credit_rows(name, rankings, shown), rtol=1e-12)
        if name == "probabilistic":
            assert (one.team[:shortest] >= 0).all()


@each(("name", "rankings"), [(name, one) for name in METHODS for one in SHORT[:2]])
def test_a_log_of_short_rankings_names_no_winner_by_positions(name, rankings):
    """Fifteen logs of 2,000 sessions; clicks depend on the position only."""
    documents = sorted({d for one in rankings for d in one})
    scores = [[-one.index(d) if d in one else np.nan for d in documents] for one in rankings]
    n = len(documents)
    data = RankingData.from_arrays(np.zeros((n, 1)), np.zeros(n), group_sizes=[n])
    rate, winners = np.array([0.3, 0.6, 0.9, 0.5]), 0
    for seed in range(15):
        lists = clicks.interleave(
            data, np.array(scores, float), name, k=4, sessions=2000, random_state=seed
        )
        click = np.random.default_rng(seed).random(lists.n_impressions) < rate[lists.position - 1]
        winners += clicks.score_interleaving(lists._replace(click=click)).winner is not None
    assert winners <= 2


@each("name", METHODS)
def test_positions_without_credit_are_kept_in_files(name, tmp_path):
    ids = ["a", "b", "c"]
    data = RankingData.from_arrays(np.zeros((3, 1)), np.zeros(3), group_sizes=[3], doc_id=ids)
    scores = {"one": [2.0, 1.0, np.nan], "two": [np.nan, 2.0, 1.0]}
    lists = clicks.interleave(data, scores, name, k=3, sessions=5)
    assert (lists.team.reshape(5, 3)[:, 2] == -1).all()
    log = lists._replace(click=np.ones(15, bool))
    found = clicks.score_interleaving(log)
    above = lists._replace(click=lists.position < 3)
    assert clicks.score_interleaving(above).to_dict() == found.to_dict()
    for ending in ("jsonl", "csv", "parquet"):
        path = tmp_path / f"log.{ending}"
        clicks.save_log(log, path)
        again = clicks.load_log(path)
        assert again.team.tolist() == log.team.tolist()
        assert clicks.score_interleaving(again).to_dict() == found.to_dict()
    shown = clicks.interleave_scores(list(scores.values()), name, session=3)
    assert shown.to_json("q", ids)["teams"][2] == -1


def test_a_team_of_minus_one_gives_no_credit_whatever_the_shares():
    lists = clicks.interleave(some_data(), [1, 2], "probabilistic", k=4)
    log = lists._replace(click=np.ones(lists.n_impressions, bool))
    none = log._replace(team=np.full_like(log.team, -1))
    assert (clicks.score_interleaving(none).credit == 0.0).all()
    assert clicks.score_interleaving(none).pairs[0].ties == none.n_sessions


@each("name", METHODS)
def test_equal_rankings_differ_by_chance_alone(name):
    rankings = (("a", "b", "c"),) * 2
    lists, teams, p = zip(*lists_of(name, rankings, 3), strict=True)
    method = interleaving.METHODS[name]()
    for clicked in ("a",), ("b", "c"):
        mean = 0.0
        for shown, team, share in zip(lists, teams, p, strict=True):
            places = [shown.index(d) for d in clicked]
            log = log_of(name, rankings, [shown], places, None if team is None else [team])
            mean += share * method.outcomes(log, method.credits(log), 0, 1)[0]
        assert mean == pytest.approx(0.0, abs=1e-12)


# --- API -------------------------------------------------------------------------------------


def some_data(n_queries=30, seed=0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 25, n_queries)
    sizes[3] = 0
    y = rng.integers(0, 3, sizes.sum())
    X = np.column_stack(
        [y + rng.normal(size=len(y)), y + rng.normal(size=len(y)), rng.random(len(y))]
    )
    return RankingData.from_arrays(X, y, group_sizes=sizes)


@each("name", METHODS)
def test_threads_and_ranges_give_the_same_lists(name):
    data = some_data()
    rankers = {"one": 1, "two": 2} if name == "optimised" else [1, 2, 3]
    found = [
        clicks.interleave(data, rankers, name, k=6, sessions=70, random_state=3, n_jobs=jobs)
        for jobs in (1, 2, 5)
    ]
    for other in found[1:]:
        for field in ("document", "team", "indptr", "credit"):
            first, second = getattr(found[0], field), getattr(other, field)
            assert (first is None and second is None) or first.tobytes() == second.tobytes()
    assert (found[0].sizes <= 6).all()
    assert found[0].n_sessions == 29 * 70


def test_sessions_are_numbers_of_any_kind_or_texts():
    scores = np.random.default_rng(0).normal(size=(2, 20))
    for session in (np.int64(3), np.uint8(3)):
        again = clicks.interleave_scores(scores, session=session)
        assert again.order.tolist() == clicks.interleave_scores(scores, session=3).order.tolist()
    assert len(clicks.interleave_scores(scores, session="\ud800").order) == 10


def test_random_numbers_are_those_of_the_hash_of_losses():
    """So that a seed gives the lists that it gave in earlier versions."""
    state = 0
    for word in (7, 3, 2**64 - 1):
        state = mixed(state, word)
    numbers = interleaving._random_numbers(7, 3, -1)
    assert [next(numbers) for _ in range(5)] == [(mixed(state, i) >> 11) / 2**53 for i in range(5)]


@each("name", METHODS)
def test_no_documents_make_an_empty_list(name):
    for scores in ([[], []], [[np.nan], [np.nan]]):
        shown = clicks.interleave_scores(scores, name)
        assert len(shown.order) == len(shown.team) == len(shown.credit) == 0
    assert clicks.interleave_scores([[np.nan], [1.0]], name).team.tolist() == [-1]


def test_a_list_depends_on_seed_query_and_session_alone():
    data = some_data()
    whole = clicks.interleave(data, [1, 2], sessions=5)
    fewer = clicks.interleave(data, [1, 2], sessions=2)
    kept = whole.select(np.flatnonzero(whole.time < 2))
    assert kept.document.tolist() == fewer.document.tolist()
    other = clicks.interleave(data, [1, 2], sessions=5, random_state=1)
    assert other.document.tolist() != whole.document.tolist()
    with documents_per_range(7):
        again = clicks.interleave(data, [1, 2], sessions=5)
    assert again.document.tolist() == whole.document.tolist()


@each("name", METHODS)
def test_sessions_are_sampled_from_the_distribution(name):
    """20,000 lists, each as frequent as it should be within five deviations."""
    rankings, n = (("a", "b", "c", "d"), ("b", "d", "a", "c")), 20_000
    scores = [-np.array([one.index(d) for d in "abcd"], float) for one in rankings]
    data = RankingData.from_arrays(np.zeros((4, 1)), np.zeros(4), group_sizes=[4])
    log = clicks.interleave(data, scores, name, k=4, sessions=n)
    lists = log.document.reshape(n, 4)
    number = lists @ 4 ** np.arange(4)
    for shown in {one for one, _, _ in lists_of(name, rankings, 4)}:
        p = sum(float(q) for one, _, q in lists_of(name, rankings, 4) if one == shown)
        code = sum("abcd".index(d) * 4**i for i, d in enumerate(shown))
        found = (number == code).mean()
        with case(name, shown):
            assert abs(found - p) <= 5 * np.sqrt(p * (1 - p) / n) + 1e-12
    repeats = (number[1:] == number[:-1]).mean()  # no memory from one session to the next
    expected = (np.bincount(number) / n) @ (np.bincount(number) / n)
    assert abs(repeats - expected) <= 5 * np.sqrt(expected / n)


def test_a_request_and_its_log():
    scores = [np.array([0.1, 0.9, 0.5, np.nan]), np.array([0.3, 0.1, 0.2, 0.9])]
    lines = []
    for name in ("team_draft", "probabilistic"):
        shown = clicks.interleave_scores(scores, name, session="request-17", random_state=4)
        assert sorted(shown.order.tolist()) == [0, 1, 2, 3]
        again = clicks.interleave_scores(scores, name, session="request-17", random_state=4)
        assert again.order.tolist() == shown.order.tolist()
        line = shown.to_json("q", ["d0", "d1", "d2", "d3"], ("new", "old"))
        assert line["documents"] == [f"d{i}" for i in shown.order]
        how = {"method": name, "rankers": ["new", "old"], **shown.method.get_params()}
        assert line["interleaving"] == how
        lines.append(line)
    assert "credits" not in lines[0]
    assert len(lines[1]["credits"][0]) == 2
    drafted = {clicks.interleave_scores(scores, session=s).team[0] for s in range(20)}
    assert drafted == {0, 1}


def test_a_ranker_that_has_nothing_left_lets_the_others_pick():
    shown = clicks.interleave_rankings([["a"], ["a", "b", "c", "d"]], "team_draft")
    assert shown.documents == ["a", "b", "c", "d"]
    assert shown.team.tolist()[1:] == [-1, -1, -1]


def test_bad_arguments_are_refused():
    data = some_data()
    with pytest.raises(UsageError, match=r"'best'.*team_draft"):
        clicks.interleave(data, [1, 2], "best")
    with pytest.raises(UsageError, match="optimised interleaves two rankers, not 3"):
        clicks.interleave(data, [1, 2, 3], "optimised")
    with pytest.raises(UsageError, match="nothing to interleave"):
        clicks.interleave(data, [1])
    with pytest.raises(UsageError, match="no parameter 'tau'"):
        clicks.interleave(data, [1, 2], "team_draft", tau=3)
    with pytest.raises(UsageError, match="leave out k"):
        clicks.interleave(data, [1, 2], clicks.TeamDraft(), k=3)
    with pytest.raises(UsageError, match="k must be 1 or more"):
        clicks.interleave(data, [1, 2], k=0)
    with pytest.raises(UsageError, match="tau must be 0 or more"):
        clicks.interleave(data, [1, 2], "probabilistic", tau=-1.0)
    with pytest.raises(UsageError, match="tau must be 250 or less for lists of 10"):
        clicks.interleave(data, [1, 2], "probabilistic", tau=2000.0)
    with pytest.raises(UsageError, match="no interleaving method"):
        clicks.interleave(data, [1, 2], ["team_draft"])
    with pytest.raises(UsageError, match="shapes"):
        clicks.interleave_scores([[1.0], [1.0, 2.0]])
    with pytest.raises(DataError, match="scores must be numbers; row 1"):
        clicks.interleave_scores([[1.0, "x"], [1.0, 2.0]])
    with pytest.raises(UsageError, match="session is a whole number or a text, not NoneType"):
        clicks.interleave_scores([[1.0], [2.0]], session=None)
    for method in ("team_draft", "probabilistic"):
        shown = clicks.interleave_rankings([["a", "b", "c"], ["b", "c", "a"], ["c", "a"]], method)
        with pytest.raises(UsageError, match="not of 2 rankers; give rankers"):
            shown.to_json("q")
        assert shown.to_json("q", rankers=("A", "B", "C"))["documents"] == shown.documents
    with pytest.raises(UsageError, match="ids of all documents"):
        clicks.interleave_scores([[1.0], [2.0]]).to_json("q")
    with pytest.raises(DataError, match="ranking 1 has a document twice"):
        clicks.interleave_rankings([["a"], ["b", "b"]])
    with pytest.raises(UsageError, match="two or more"):
        clicks.interleave(data, "ab")


def test_logs_without_what_credit_needs_are_refused():
    data = some_data()
    log = clicks.interleave(data, [1, 2], "probabilistic")
    bare = clicks.ClickLog.from_arrays([1], ["a"], [1], session_sizes=[1])
    with pytest.raises(DataError, match="interleaving method"):
        interleaving.method_of(bare)
    with pytest.raises(DataError, match="needs 2 numbers"):
        clicks.Probabilistic().credits(log._replace(credit=None))
    for name, row in (
        ("probabilistic", [0.5, 0.6]),
        ("probabilistic", [-0.5, 1.5]),
        ("optimised", [0.0, 0.5]),
        ("optimised", [0.5, 2.0]),
    ):
        damaged = log._replace(credit=np.tile(np.array(row), (log.n_impressions, 1)))
        with case(name, row), pytest.raises(DataError, match="impression 0; the log is damaged"):
            interleaving.METHODS[name]().credits(damaged)
    with pytest.raises(DataError, match="has no teams"):
        clicks.TeamDraft().credits(log._replace(team=None))
