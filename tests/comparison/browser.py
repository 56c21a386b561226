"""A page in headless Chromium that remembers what went wrong in it."""

import shutil
from contextlib import contextmanager

import pytest


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
