"""Hooks of MkDocs for the site of docs/: what a forge shows by itself and MkDocs does not.

Links that leave docs/ lead to the repository; .ci/documents_check.py has seen that their targets exist.
"""

import logging
import posixpath
import re

log = logging.getLogger("mkdocs.hooks.site")


def on_page_markdown(markdown, page, config, files):
    blocks = re.split(r"(^ *```.*?^ *```)", markdown, flags=re.M | re.S)
    return "".join(
        block if block.lstrip().startswith("```") else prose(block, page, config) for block in blocks
    )


def prose(text, page, config):
    # Python-Markdown takes a list that follows a paragraph at once for a part of it; a forge does not.
    for found in re.finditer(r"^(?![-*#|>\s]|\d+\. ).*\S.*\n(?:- |\d+\. ).*", text, re.M):
        log.warning("%s: no empty line before a list: %r", page.file.src_uri, found.group(0))

    def outside(link):
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), link.group(1)))
        if path.startswith("docs/"):
            return link.group(0)
        return f"]({config.repo_url}/blob/main/{path})"

    return re.sub(r"\]\((\.\./[^)\s]*)\)", outside, text)
