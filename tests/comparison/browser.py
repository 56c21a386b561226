"""A page in headless Chromium that remembers what went wrong in it."""

import shutil
from contextlib import contextmanager
from pathlib import Path

import axe_core_python
import pytest

AXE = Path(axe_core_python.__file__).with_name("axe.min.js")


def chromium():
    """Return where Chromium is, or skip with the reason."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("no chromium: apt-get install chromium")
    return found


@contextmanager
def opened(path, **how):
    """Open a file or an address; yield the page, with its ``errors`` and what it ``asked`` for."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page(**{"viewport": {"width": 1100, "height": 900}, **how})
        page.errors, page.asked = [], []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("console", lambda line: line.type == "error" and page.errors.append(line.text))
        page.on("request", lambda sent: page.asked.append(sent.url))
        page.goto(path if isinstance(path, str) else path.absolute().as_uri())
        try:
            yield page
        finally:
            browser.close()


def serious_violations(page):
    """Return what a reader who cannot see or use a mouse would trip over, by axe's rules.

    Landmarks of the same name count too: one cannot tell them apart in a list of landmarks.
    """
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run()")
    serious = [
        v
        for v in found["violations"]
        if v["impact"] in ("serious", "critical") or v["id"] == "landmark-unique"
    ]
    return [(v["id"], [n["html"][:90] for n in v["nodes"][:3]]) for v in serious]
