"""Settings of the documentation site; `make docs` runs Sphinx with them (tools/build_site.py)."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from numpydoc.xref import DEFAULT_LINKS
from pygments.lexers.shell import BashLexer, BashSessionLexer
from sphinx import addnodes
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from site_pages import NAMES, PLACES, TYPES, citation_labels, restructured  # noqa: E402

import rankwright  # noqa: E402

project = "Rankwright"
author = "The Rankwright developers"
copyright = author  # noqa: A001
version = release = rankwright.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_copybutton",
]
root_doc = "index"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
suppress_warnings = ["myst.header"]  # a heading that skips a level
nitpicky = False

# --- Markdown ---------------------------------------------------------------------------------

smartquotes = False  # "--help" is no dash
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
highlight_language = "none"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

# --- the API ----------------------------------------------------------------------------------

default_role = "name"
add_module_names = False
maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"
python_use_unqualified_type_names = True
autodoc_typehints = "none"  # the docstring gives the types
autodoc_member_order = "alphabetical"
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_aliases = TYPES
DEFAULT_LINKS.clear()  # they lead to the sites of Python and NumPy
numpydoc_xref_ignore = "all"  # link what numpydoc_xref_aliases names, and nothing else

# --- appearance -------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "Rankwright"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # it is fetched, which browsers refuse on file://
html_sidebars = {"index": [], "tutorial": [], "glossary": []}
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_nav_level": 1,
    "navigation_depth": 2,
    "collapse_navigation": True,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def setup(app: Sphinx) -> None:
    """Add the role of single backticks, equations as MathML, and the docstrings' own markup."""
    app.add_role("name", name_role)
    app.add_lexer("console", Console)
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_inline_math, None), block_renderers=(_block_math, None)
    )
    app.connect("autodoc-process-docstring", _process_docstring, priority=100)
    app.connect("autodoc-process-signature", _process_signature)
    app.connect("autodoc-skip-member", _skip_member)
    app.connect("html-page-context", _parameters_without_list)


# --- commands ---------------------------------------------------------------------------------


class Console(BashSessionLexer):
    """Commands after a prompt with what they print, or commands alone, which can be copied too."""

    def get_tokens_unprocessed(self, text: str) -> Any:
        """Return the tokens: of a script where no line has a prompt."""
        if re.search(r"^\$ ", text, re.MULTILINE):
            return super().get_tokens_unprocessed(text)
        return BashLexer(**self.options).get_tokens_unprocessed(text)


# --- equations: MathML, which browsers draw themselves ------------------------------------------


def _inline_math(writer: Any, node: nodes.math) -> None:
    writer.body.append(_mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _block_math(writer: Any, node: nodes.math_block) -> None:
    body = _mathml(node.astext(), as_block=True)
    writer.body.append(f'<div class="math-block">{body}</div>\n')
    raise nodes.SkipNode


def _mathml(tex: str, as_block: bool) -> str:
    return str(latex2mathml.tex2mathml(tex, as_block=as_block))


# --- single backticks in docstrings: a paper, a public name, or code ----------------------------

_DOTTED = re.compile(r"[A-Za-z_][\w.]*")


def name_role(
    _role: str, _rawtext: str, text: str, _lineno: int, inliner: Any, *_rest: Any, **_more: Any
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Link the key of a paper or a public name; anything else is code."""
    env = inliner.document.settings.env
    labels = citation_labels()
    if text in labels:
        found = addnodes.pending_xref(
            "", refdomain="std", reftype="ref", reftarget=text, refexplicit=True, refwarn=True
        )
        found += nodes.inline("", labels[text])
    else:
        code = nodes.literal("", text)
        if not _DOTTED.fullmatch(text):
            return [code], []
        module = env.ref_context.get("py:module") or "rankwright"
        found = addnodes.pending_xref(
            "", refdomain="py", reftype="obj", reftarget=_public(text, module), refwarn=False
        )
        found["py:module"] = module
        found["py:class"] = env.ref_context.get("py:class")
        found += code
    found["refdoc"] = env.docname
    return [found], []


def _public(text: str, module: str) -> str:
    """Return the full public name that ``text`` stands for within ``module``, or ``text``."""
    if text in PLACES:
        return PLACES[text]
    first, dot, rest = text.partition(".")
    for full in (f"{module}.{first}", f"rankwright.{first}"):
        if full in NAMES:
            return f"{full}{dot}{rest}"
    return text


def _process_docstring(_app: Sphinx, *about: Any) -> None:
    lines = about[-1]
    lines[:] = restructured(lines)


def _skip_member(_app: Sphinx, _what: str, _name: str, obj: Any, *_about: Any) -> bool | None:
    """Leave out what scikit-learn adds to every estimator for its metadata routing."""
    return True if str(getattr(obj, "__module__", "")).startswith("sklearn.") else None


def _process_signature(_app: Sphinx, *about: Any) -> tuple[str, str] | None:
    """Show a function that is a default as dots."""
    *_, signature, returns = about
    if not signature:
        return None
    return re.sub(r"<function [^()=]*?>(?=[,)])", "...", signature), returns


# Sphinx writes the parameters of a long signature as a list of definitions that define nothing,
# which screen readers announce as such.
_PARAMETERS = re.compile(r'(<span class="sig-paren">\(</span>\s*)<dl>(.*?)</dl>', re.DOTALL)


def _parameters_without_list(
    _app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: Any
) -> None:
    """Write parameters of a signature as plain lines."""
    context["body"] = _PARAMETERS.sub(_as_lines, context.get("body", ""))


def _as_lines(found: re.Match[str]) -> str:
    lines = found[2].replace("<dd>", '<span class="sig-line">').replace("</dd>", "</span>")
    return f"{found[1]}{lines}"
