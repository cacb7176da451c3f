"""Sphinx's settings for the site. `make docs` builds it; docs/contribute/project.md says how the parts fit together."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs" / "_ext"))
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "benchmarks"))

import reference  # noqa: E402 - the paths come first

import gridwise_py as gw  # noqa: E402

project = "gridwise_py"
author = "The gridwise_py authors"
copyright = f"2026, {author}"
version = release = gw.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "hooks",
]
exclude_patterns = ["_ext", "_templates", "benchmarks/made", "contribute/made", "start/made", "**/.ipynb_checkpoints"]
# Warnings are errors: `make docs` builds with -W.
nitpicky = False
# Words of a type in a docstring, such as items, may be names of two classes' fields; then none is linked.
suppress_warnings = ["ref.python"]

# ---- Markdown and notebooks

# The first is that of the pages which autosummary makes.
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}
myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
# As GitHub makes them, so that a link to a heading works in both places.
myst_heading_anchors = 4
# Notebooks run while the site is built, on whatever adapter is here; what they print is kept until their text changes.
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "notebooks")
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
# A folder of IPython for this build alone, in which kernels do not warn that they talk by TCP on this machine.
IPYTHON = ROOT / "build" / "ipython"
(IPYTHON / "profile_default").mkdir(parents=True, exist_ok=True)
(IPYTHON / "profile_default" / "ipython_kernel_config.py").write_text("get_config().IPKernelApp.log_level = 40\n")
os.environ["IPYTHONDIR"] = str(IPYTHON)
os.environ.setdefault("PYTHONWARNINGS", "ignore:no GPU was found")  # pages say what they ran on
smartquotes_action = "D"  # of a docstring's " -- ", which Sphinx puts behind each parameter; quotes stay as typed

# ---- reference, from the docstrings

autodoc_typehints = "none"  # the docstrings have the types
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
templates_path = ["_templates"]
autosummary_context = reference.template_data()
# Not all systems tell ``profile`` from ``Profile``.
autosummary_filename_map = {f"gridwise_py.{name}": name for name in gw.__all__}
autosummary_filename_map |= {f"gridwise_py.{name}": f"{name}-class" for name in ("Capabilities", "Profile")}
rst_epilog = f"""
.. |datatypes| replace:: {", ".join(gw.DATATYPES)}
.. |storage_datatypes| replace:: {", ".join(gw.STORAGE_DATATYPES)}
"""
default_role = "py:obj"
add_module_names = False
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 100
python_trailing_comma_in_multi_line_signatures = False

# ---- the look

html_theme = "pydata_sphinx_theme"
html_title = f"gridwise_py {release}"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["site.css"]
html_js_files = ["made-keywords.js", "questions.js"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "gridwise_py"},
    "navbar_align": "left",
    "header_links_before_dropdown": 5,  # the others are under "More", those for contributors last
    "show_prev_next": True,
    "navigation_depth": 3,
    "show_nav_level": 1,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "search_bar_text": "Search, or ask a question",
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
copybutton_exclude = ".linenos, .gp, .go"
