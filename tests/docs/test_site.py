"""The documentation site builds without a warning, opens from a folder, and shows what code is."""

import re
import shutil
import subprocess
import sys
import tomllib
from html import unescape
from html.parser import HTMLParser
from inspect import signature

import pytest
from browser import serious_violations
from code_blocks import ROOT

import rankwright
from rankwright import registry

FETCHED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(https?:[^\"]*)\""
    r"|<link\b[^>]*\brel=\"(?:stylesheet|preload|preconnect)\"[^>]*\bhref=\"(https?:[^\"]*)\""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [sys.executable, ROOT / "tools/build_site.py", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def browser():
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


class Text(HTMLParser):
    """The text of a page, without its tags."""

    def __init__(self, page):
        super().__init__()
        self.parts = []
        self.feed(page.read_text(encoding="utf-8"))
        self.text = re.sub(r"\s+", " ", " ".join(self.parts))

    def handle_data(self, data):
        self.parts.append(data)


# --- algorithms --------------------------------------------------------------------------------


def test_every_ranker_has_a_page_with_equations_example_and_parameters(site):
    for name in registry.RANKERS:
        text = (site / "algorithms" / f"{name}.html").read_text()
        for heading in ("when-to-use-it", "example", "parameters", "definition-of-the-"):
            assert f'<section id="{heading}' in text, (name, heading)
        assert '<div class="math-block"><math' in text, name


def test_the_equations_of_a_page_are_drawn_as_a_reader_writes_them(site):
    text = (site / "algorithms/rankboost.html").read_text()
    found = re.search(r'<div class="math-block">(.*?)</div>', text, re.DOTALL)[1]
    assert "<msup>" in found
    assert "<merror" not in found
    assert re.sub(r"<[^>]*>|\s", "", found).startswith("L(s)=∑")


def test_defaults_on_a_page_are_those_of_the_class(site):
    text = Text(site / "algorithms/intervalrank.html").text
    for name, parameter in signature(rankwright.IntervalRank.__init__).parameters.items():
        if name != "self":
            assert f"{name}={parameter.default!r}" in text, name


def test_measured_figures_stand_on_the_page_of_their_ranker(site):
    assert "DORM for NDCG@10" in Text(site / "algorithms/dorm.html").text


def test_the_paper_of_a_ranker_stands_on_its_page(site):
    text = Text(site / "algorithms/listnet.html").text
    assert "Learning to rank: from pairwise approach to listwise approach" in text


def test_when_to_use_and_equations_speak_of_every_ranker_and_no_other():
    text = (ROOT / "docs/when-to-use.toml").read_text(encoding="utf-8")
    assert set(tomllib.loads(text)) == set(registry.RANKERS)
    needed = {"losses": set(), "models": set()}
    for name in registry.RANKERS:
        ranker = registry.resolve("rankers", name)
        if ranker.loss_class:
            needed["losses"].add(ranker.loss_class)
        else:
            needed["models"].add(ranker().model_name)
    text = (ROOT / "docs/equations.toml").read_text(encoding="utf-8")
    assert {kind: set(found) for kind, found in tomllib.loads(text).items()} == needed


# --- the API -----------------------------------------------------------------------------------


def test_every_public_name_is_documented_once_and_indexed(site):
    anchors = re.findall(
        r'<dt class="sig[^>]*\bid="(rankwright[\w.]*)"',
        "".join(page.read_text() for page in (site / "api").rglob("*.html")),
    )
    assert len(anchors) == len(set(anchors))
    for module in ("rankwright", *(f"rankwright.{name}" for name in rankwright._SUBMODULES)):
        index = Text(site / "api" / module.rpartition(".")[2] / "index.html").text.split()
        names = set(__import__(module, fromlist=["_"]).__all__) - {*rankwright._SUBMODULES}
        assert names <= set(index), (module, names - set(index))
    assert {f"rankwright.{name}" for name in rankwright._PUBLIC} <= set(anchors)


@pytest.mark.parametrize("name", ["auto", "compare", "evaluate", "LambdaMART"])
def test_signatures_have_the_defaults_of_the_code(site, name):
    text = (site / f"api/rankwright/{name}.html").read_text()
    shown = re.search(rf'<dt class="sig[^>]*\bid="rankwright\.{name}".*?</dt>', text, re.DOTALL)[0]
    words = unescape(re.sub(r"<[^>]*>|\s", "", shown))
    for one in signature(getattr(rankwright, name)).parameters.values():
        if one.default is not one.empty:
            default = "..." if callable(one.default) else repr(one.default).replace(" ", "")
            assert f"{one.name}={default}" in words, one.name


def test_parameters_that_share_a_description_stand_together(site):
    text = Text(site / "api/rankwright/auto.html").text
    assert "X, y, qid, group_sizes, eval_set As in" in text
    assert text.count("dealt to folds with those of X") == 1


def test_names_in_docstrings_are_links(site):
    text = (site / "api/rankwright/auto.html").read_text()
    assert re.search(r'href="Ranker\.html#rankwright\.Ranker\.fit"', text)
    text = (site / "api/rankwright/LambdaMART.html").read_text()
    assert 'href="../losses/LambdaRank.html#rankwright.losses.LambdaRank"' in text
    assert 'href="../../references.html#burges2010overview"' in text


def test_a_ranker_lists_what_it_inherits_and_has_its_own_methods(site):
    text = (site / "api/rankwright/LambdaMART.html").read_text()
    assert 'href="Ranker.html#rankwright.Ranker.predict"' in text
    assert "model_defaults" not in text
    assert 'id="rankwright.Ranker.fit"' in (site / "api/rankwright/Ranker.html").read_text()


# --- the whole ---------------------------------------------------------------------------------


def test_no_page_fetches_anything_from_elsewhere(site):
    for page in site.rglob("*.html"):
        assert not FETCHED.findall(page.read_text()), page.name


def test_search_and_copy_buttons_work_from_a_folder(site, browser):
    page = browser.new_page()
    problems = []
    page.on("requestfailed", lambda request: problems.append(request.url))
    page.goto(f"{(site / 'search.html').as_uri()}?q=LambdaMART")
    page.wait_for_selector("#search-results li a")
    links = page.eval_on_selector_all("#search-results li a", "found => found.map(a => a.href)")
    assert any("algorithms/lambdamart.html" in link for link in links)
    page.goto((site / "tutorial.html").as_uri())
    assert page.locator("button.copybtn").count() > 5
    assert problems == []
    page.close()


def test_equations_and_formulas_are_not_cut_off(site, browser):
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    cut = []
    for name in sorted(registry.RANKERS):
        page.goto((site / f"algorithms/{name}.html").as_uri())
        wide = "found => found.filter(e => e.scrollWidth > e.clientWidth + 1).length"
        if page.eval_on_selector_all(".math-block, .highlight-text pre", wide):
            cut.append(name)
    assert cut == []
    page.close()


def test_the_page_is_dark_where_the_reader_asks_for_it(site, browser):
    shades = {}
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto((site / "index.html").as_uri())
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        shades[scheme] = sum(int(n) for n in re.findall(r"\d+", colour)[:3])
        context.close()
    assert shades["light"] > 600
    assert shades["dark"] < 200


READ = ("index", "how-to/serve", "api/rankwright/auto")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible_and_fit_a_phone(site, browser, scheme):
    context = browser.new_context(color_scheme=scheme, viewport={"width": 390, "height": 844})
    page = context.new_page()
    found = {}
    for name in READ:
        page.goto((site / f"{name}.html").as_uri())
        wide = page.evaluate("document.documentElement.scrollWidth")
        if problems := [*serious_violations(page), *([f"{wide} px"] if wide > 390 else [])]:
            found[name] = problems
    context.close()
    assert found == {}


def test_commands_without_a_prompt_are_copied_whole(site):
    text = (site / "how-to/serve.html").read_text()
    blocks = re.findall(r'<div class="highlight-console.*?</pre>', text, re.DOTALL)
    assert len(blocks) > 5
    for block in blocks:  # class "go" is output, which the copy button leaves out
        assert 'class="go"' not in block or 'class="gp"' in block, block
