"""Pages: the style and script that all share, with those of a package."""

from rankwright.comparison.pages import write_page


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


def test_lines_of_a_template_that_only_decide_leave_nothing_behind(tmp_path, monkeypatch):
    package = tmp_path / "other_pages" / "templates"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    lines = ["{% for one in all %}", "  {% if one %}", "{{ one }}", "  {% endif %}", "{% endfor %}"]
    (package / "list.html").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    write_page(tmp_path / "page.html", "other_pages", "list", all=["a", "", "b"])
    assert (tmp_path / "page.html").read_text() == "a\nb\n"
