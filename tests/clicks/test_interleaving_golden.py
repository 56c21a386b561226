"""Interleaving against exact distributions, and against credits of mpkato/interleaving.

``golden/clicks/interleaving.json`` has the numbers and says how they were made. Its lists are as
long as the shortest ranking or shorter, so that every position gives credit and the numbers agree.
Lists that outlast a ranking are in test_interleaving.py: credit there favours the longer ranking.
"""

import json

import numpy as np
import pytest
from cases import case
from interleaved_lists import drawn_distribution, lists_of, log_of, programme
from reference import interleaving as twin

from rankwright.clicks.interleaving import METHODS


@pytest.fixture(scope="module")
def golden(golden_dir):
    held = json.loads((golden_dir / "clicks" / "interleaving.json").read_text())
    return {one["name"]: one for one in held["examples"]}


def tuples(one):
    return [tuple(ranking) for ranking in one["rankings"]], one["length"]


def pairs(golden):
    return [one for name, one in golden.items() if name != "three_way4"]


def positions(one):
    return [c - 1 for c in one["clicked_positions"]]


def test_team_draft_has_the_golden_distribution(golden):
    for one in golden.values():
        rankings, k = tuples(one)
        with case(one["name"]):
            expected = {
                (tuple(o["list"]), tuple(o["team"])): o["p"]
                for o in one["methods"]["team_draft"]["outcomes"]
            }
            found = drawn_distribution("team_draft", rankings, k)
            assert found.keys() == expected.keys()
            assert all(float(found[key]) == pytest.approx(p) for key, p in expected.items())


def test_probabilistic_lists_have_the_golden_distribution(golden):
    for name in ("same5", "identical5", "long8_top5"):
        rankings, k = tuples(golden[name])
        held = golden[name]["methods"]["probabilistic"]
        found = {s: p for (s, _), p in twin.distribution(twin.probabilistic, rankings, k).items()}
        with case(name):
            assert len(found) == held["lists_with_positive_probability"]
            for o in held["top_outcomes"]:
                assert found[tuple(o["list"])] == pytest.approx(o["p"])
            for place, marginal in enumerate(held["position_marginals"]):
                for document, p in marginal.items():
                    at = sum(q for shown, q in found.items() if shown[place] == document)
                    assert at == pytest.approx(p)


def test_optimised_programmes_have_the_golden_optimum(golden):
    for one in pairs(golden):
        rankings, k = tuples(one)
        held, made = one["methods"]["optimized"], programme(rankings, k)
        with case(one["name"]):
            assert twin.allowed(rankings, k) == {tuple(o["list"]) for o in held["allowed_lists"]}
            assert len(made.lists) == len(held["allowed_lists"])
            assert made.sensitivity @ made.probability == pytest.approx(
                held["lp_objective"], abs=1e-9
            )
            assert made.fair.all()


def test_winners_and_mean_credit_are_the_golden_ones(golden):
    """Over the distribution of lists, of clicks at positions and of clicks on documents."""
    for one in pairs(golden):
        rankings, k = tuples(one)
        lists, teams, p = zip(*lists_of("team_draft", rankings, k), strict=True)
        method, p = METHODS["team_draft"](), np.array(p)
        for held in one["methods"]["team_draft"]["clicks"]:
            with case(one["name"], held):
                earned = np.concatenate([
                    method.credits(
                        log_of("team_draft", rankings, [shown], clicked_in(held, shown), [team])
                    )
                    for shown, team in zip(lists, teams, strict=True)
                ])  # fmt: skip
                assert p @ earned == pytest.approx(held["expected_scores"])
                ahead = earned[:, 0] - earned[:, 1]
                assert p @ (ahead > 0) == pytest.approx(held["P_first_wins"])
                assert p @ (ahead < 0) == pytest.approx(held["P_second_wins"])


def clicked_in(held, shown):
    if "clicked_positions" in held:
        return positions(held)
    return [shown.index(d) for d in held["clicked_documents_when_shown"] if d in shown]


def test_three_rankers_earn_the_golden_credit(golden):
    one = golden["three_way4"]
    rankings, k = tuples(one)
    lists, teams, p = zip(*lists_of("team_draft", rankings, k), strict=True)
    for held in one["methods"]["team_draft"]["clicks"]:
        earned = [
            METHODS["team_draft"]().credits(
                log_of("team_draft", rankings, [shown], clicked_in(held, shown), [team])
            )[0]
            for shown, team in zip(lists, teams, strict=True)
        ]
        assert np.array(p) @ np.array(earned) == pytest.approx(held["expected_scores"])
    found = {s: q for (s, _), q in twin.distribution(twin.probabilistic, rankings, k).items()}
    for held in one["methods"]["probabilistic"]["credit"]:
        shown = tuple(held["list"])
        log = log_of("probabilistic", rankings, [shown], positions(held))
        assert found[shown] == pytest.approx(held["p"])
        assert METHODS["probabilistic"]().credits(log)[0] == pytest.approx(
            held["expected_credited_clicks"]
        )


def test_probabilistic_credit_is_the_golden_one(golden):
    method = METHODS["probabilistic"]()
    for one in pairs(golden):
        rankings, _k = tuples(one)
        for held in one["methods"]["probabilistic"]["marginalised_credit"]:
            log = log_of("probabilistic", rankings, [tuple(held["list"])], positions(held))
            earned = method.credits(log)
            with case(one["name"], held):
                assert earned[0] == pytest.approx(held["expected_credited_clicks"])
                assert method.outcomes(log, earned, 0, 1)[0] == pytest.approx(
                    held["P_first_wins"] - held["P_second_wins"], abs=1e-12
                )
