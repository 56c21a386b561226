"""The page at /docs: it loads nothing from elsewhere, sends requests, and asks for a key."""

import json
import re
import subprocess
from importlib.resources import files

import pytest
from browser import opened, serious_violations
from served import NAMES, save_model
from server_process import serving


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    save_model(folder / "web.rw")
    (folder / "keys").write_text("secret\n")
    return folder


@pytest.fixture(scope="module")
def server(folder):
    with serving(folder / "web.rw") as server:
        yield f"http://127.0.0.1:{server.port}"


def test_the_page_names_no_other_server():
    page = files("rankwright.serve").joinpath("docs.html").read_text("utf-8")
    assert re.findall(r"(?:https?:)?//[a-z0-9.]+\.[a-z]+", page) == []
    loaded = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\S+", page)
    assert loaded == ['<link rel="icon" href="data:,">']


def test_the_page_asks_its_own_server_alone_and_ranks(server):
    with opened(f"{server}/docs") as page:
        rank = page.locator("details", has=page.get_by_text("/v1/models/{name}/rank", exact=True))
        rank.locator("textarea").wait_for(state="attached")
        assert rank.get_attribute("open") is not None
        rank.get_by_role("button", name="Send").click()
        shown = rank.get_by_label("answer", exact=True)
        shown.wait_for()
        answer = json.loads(shown.inner_text())
        assert [place["rank"] for place in answer["ranking"]] == [1, 2]
        asked = json.loads(rank.locator("textarea").input_value())
        assert tuple(asked["documents"][0]["features"]) == NAMES
        line = rank.get_by_label("curl command").inner_text()
        assert page.errors == []
        assert {url.split("/")[2] for url in page.asked if not url.startswith("data:")} == {
            server.removeprefix("http://")
        }
    payload = subprocess.run(["sh", "-c", line], capture_output=True, check=True)
    assert json.loads(payload.stdout) == answer


def test_a_request_that_is_refused_is_shown_with_its_sentence(server):
    with opened(f"{server}/docs") as page:
        rank = page.locator("details[open]")
        rank.locator("textarea").fill('{"documents": [{"features": [1]}]}')
        rank.get_by_role("button", name="Send").click()
        shown = rank.get_by_label("answer", exact=True)
        shown.wait_for()
        assert "documents[0] has 1 features, the model has 6" in shown.inner_text()
        assert "422" in rank.locator("h3", has_text="Answer").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible_and_fits_a_phone(server, scheme):
    viewport = {"width": 360, "height": 800}
    with opened(f"{server}/docs", color_scheme=scheme, viewport=viewport, bypass_csp=True) as page:
        page.locator("details[open]").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert serious_violations(page) == []


def test_a_server_with_keys_shows_its_models_after_the_key_only(folder):
    with (
        serving(folder / "web.rw", "--api-keys", folder / "keys") as server,
        opened(f"http://127.0.0.1:{server.port}/docs") as page,
    ):
        page.get_by_text("requires an API key").wait_for()
        assert page.locator("details").count() == 0
        page.fill("#key", "wrong")
        page.click("#key-use")
        page.get_by_text("This API key is not valid").wait_for()
        page.fill("#key", "secret")
        page.click("#key-use")
        page.locator("details[open]").wait_for()
        assert page.locator("#model option").all_inner_texts() == ["web", "web@default"]


def test_the_page_of_an_experiment_interleaves(folder, tmp_path):
    save_model(folder / "other.rw", seed=1)
    shown = tmp_path / "shown.jsonl"
    options = ("--interleave", "team_draft", "--impressions", shown)
    with (
        serving(folder / "web.rw", folder / "other.rw", *options) as server,
        opened(f"http://127.0.0.1:{server.port}/docs") as page,
    ):
        title = page.get_by_text("/v1/interleave/rank", exact=True)
        rank = page.locator("details", has=title)
        rank.locator("summary").click()
        rank.get_by_role("button", name="Send").click()
        answer = rank.get_by_label("answer", exact=True)
        answer.wait_for()
        assert len(json.loads(answer.inner_text())["ranking"]) == 3
        assert "may also be application/vnd.apache.arrow.stream" in rank.inner_text()
        assert page.errors == []
