"""Pages: the style and script that all share, with those of a package."""

from rankwright.pages import write_page


def test_a_page_has_the_shared_style_and_script_and_its_own(tmp_path, monkeypatch):
    package = tmp_path / "some_pages" / "templates"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "letter.html").write_text("<style>{{ style|safe }}</style>{{ script|safe }}{{ to }}")
    (package / "letter.css").write_text(".of-letters {}")
    monkeypatch.syspath_prepend(tmp_path)
    write_page(tmp_path / "page.html", "some_pages", "letter", to="<Ann>")
    text = (tmp_path / "page.html").read_text()
    assert text.index("--") < text.index(".of-letters {}</style>")  # ours, then its own
    assert "function startTheme" in text
    assert text.endswith("&lt;Ann&gt;")
