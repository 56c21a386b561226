"""The page about a click log: it opens by itself, and its figures are those of the log."""

import re

import numpy as np
import pytest
from browser import opened, serious_violations
from click_sessions import random_log

import rankwright as rw
from rankwright import clicks
from rankwright.clicks.report import (
    Line,
    _is_known,
    _ticks,
    click_models,
    first_sessions,
    log_content,
    plot_lines,
    write_log_report,
)
from rankwright.data.propensity import Propensity


@pytest.fixture(scope="module")
def log():
    data = rw.synthetic("mq2008", queries=30, seed=2)
    return clicks.simulate(data, 41, eta=1, sessions=20, positions=5, temperature=1.0)


@pytest.fixture(scope="module")
def page(log, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "clicks.html"
    linear = rw.Ranker(loss="dual_softmax", model=rw.models.Linear(l2=1.0))
    write_log_report(log, path, ranker=linear, title="Clicks of <shop>")
    return path


def test_it_opens_without_errors_or_network(page):
    with opened(page) as shown:
        assert shown.locator("h1").inner_text() == "Clicks of <shop>"
        assert shown.errors == []
        assert shown.asked == [page.absolute().as_uri()]
        shown.locator("#theme").click()
        assert shown.locator("html").get_attribute("data-theme") == "light"
        light = shown.evaluate("getComputedStyle(document.querySelector('.line0')).stroke")
        shown.locator("#theme").click()
        dark = shown.evaluate("getComputedStyle(document.querySelector('.line0')).stroke")
        assert light != dark
        assert serious_violations(shown) == []
        assert shown.errors == []


def test_it_fits_a_phone(page):
    with opened(page, viewport={"width": 360, "height": 800}) as shown:
        assert shown.evaluate("document.documentElement.scrollWidth") <= 360
        texts = shown.locator(".plot svg[role=img] text").all()
        assert min(text.bounding_box()["height"] for text in texts) > 9


def test_its_figures_are_those_of_the_log(page, log):
    text = page.read_text()
    profile = clicks.inspect_log(log)
    for one in profile.positions:
        assert f"<td>{one.rate:.4f}<small>{one.low:.4f} – {one.high:.4f}</small></td>" in text
    known = clicks.estimate_propensity(log, "dual", groups=10)
    for value, low, high in zip(known.examination, known.low, known.high, strict=True):
        assert f"<td>{value:.3f}<small>{low:.3f} – {high:.3f}</small></td>" in text
    held_out = np.arange(log.n_sessions) % 4 == 3
    fitted = clicks.model("pbm", max_iter=50).fit(log.select(np.flatnonzero(~held_out)))
    scores = fitted.evaluate(log.select(np.flatnonzero(held_out)))
    cells = f"<td>{scores.log_likelihood:.4f}</td><td>{scores.perplexity:.4f}</td>"
    assert f'<th scope="row">pbm</th>{cells}' in text
    assert "Positions explain clicks" in text or "Positions are not seen to explain" in text


def test_a_log_without_features_says_what_is_missing(tmp_path):
    content = log_content(random_log())
    assert "--features" in content["no_gain"]
    assert set(content["missing"]) >= {"dual"}
    still = clicks.ClickLog.from_arrays(
        np.repeat([0, 1], 40), [0, 1, 2] * 80, [1, 0, 0] * 80, session_sizes=[3] * 80
    )
    content = log_content(still)
    assert not content["bias"]
    assert "cannot be said" in content["conclusion"][0]
    write_log_report(still, tmp_path / "still.html")
    text = (tmp_path / "still.html").read_text()
    assert 'class="warning"' in text
    assert "Position-based model is missing" in text


def test_sessions_for_fitting_are_the_first_of_all_parts():
    log = random_log()
    parts = [log.select(np.arange(lo, lo + 10)) for lo in (0, 10, 20)]
    assert first_sessions(parts, 10).n_sessions == 10
    found = first_sessions(parts, 15)
    assert found.n_sessions == 15
    assert found.click.tolist() == log.select(np.arange(15)).click.tolist()
    assert first_sessions(log, 10**6).n_sessions == log.n_sessions


def test_click_models_are_judged_on_sessions_held_out_and_sorted():
    scores, judged = click_models(random_log())
    assert judged == random_log().n_sessions // 4
    found = [one.log_likelihood for one in scores]
    assert found == sorted(found, reverse=True)
    assert "cascade" not in [one.name for one in scores]  # which has no second click
    assert click_models(random_log().select(np.arange(2))) == ([], 0)


def test_estimates_that_say_nothing_are_left_out():
    wide = Propensity([1.0, 0.5, 0.2], low=[1.0, 1e-9, 1e-9], high=[1.0, 1e3, 1e3])
    assert not _is_known(wide)
    assert _is_known(Propensity([1.0, 0.5]))
    assert _is_known(Propensity([1.0, 0.5, 0.2], low=[1.0, 0.4, 0.1], high=[1.0, 0.6, 0.4]))


def test_lines_are_drawn_where_their_values_are():
    svg = str(
        plot_lines(
            [Line("<up>", np.array([0.0, 0.5, 1.0])), Line("flat", np.array([0.5, np.nan, 0.5]))],
            "two lines",
        )
    )
    points = [
        [tuple(map(float, point.split(","))) for point in found.split()]
        for found in re.findall(r'<polyline points="([^"]*)"', svg)
    ]
    up, flat = points[0], points[1]
    assert up[0][1] > up[1][1] > up[2][1]  # the origin is on top
    assert up[1][1] == pytest.approx((up[0][1] + up[2][1]) / 2, abs=0.11)
    assert len(flat) == 2
    assert flat[0][1] == up[1][1]
    assert "&lt;up&gt;" in svg
    assert "<up>" not in svg
    assert plot_lines([Line("none", np.full(3, np.nan))], "nothing") is None


def test_ticks_hold_the_values_in_round_numbers():
    for low, high in ((0.0, 0.26), (0.03, 1.0), (1.05, 1.8), (-2.0, 31.0)):
        ticks = _ticks(low, high, False)
        assert ticks[0] <= low
        assert ticks[-1] >= high
        assert 3 <= len(ticks) <= 9
    assert _ticks(0.04, 1.0, True) == pytest.approx([0.02, 0.05, 0.1, 0.2, 0.5, 1.0])
    assert _ticks(1e-6, 1.0, True) == pytest.approx([10.0**e for e in range(-6, 1)])
