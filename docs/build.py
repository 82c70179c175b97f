"""Builds the documentation: the Markdown pages of docs/ and the reference of all operations, as plain HTML.

    python docs/build.py --out build/docs

Strict: a link that leads nowhere, or an operation without documentation, stops the build.
"""

from __future__ import annotations

import argparse
import html
import re
import shutil
from pathlib import Path

import markdown

from rushlight.ops._lookup import all_records
from rushlight.ops._record import Operation

ROOT = Path(__file__).resolve().parents[1]
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title} - Rushlight</title><style>
body {{ max-width: 50rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 sans-serif; color: #222; }}
code, pre {{ font-family: monospace; background: #f4f4f4; }} pre {{ padding: .7rem; overflow-x: auto; }}
table {{ border-collapse: collapse; }} th, td {{ border: 1px solid #ccc; padding: .3rem .6rem; vertical-align: top; }}
a {{ color: #05c; }} nav {{ margin-bottom: 2rem; }}
</style></head><body>
<nav><a href="{root}docs/index.html">Rushlight</a> | <a href="{root}operations.html">operations</a></nav>
{body}</body></html>
"""


def pages() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])


def convert(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        if "://" not in target and not (path.parent / target).exists():
            raise SystemExit(f"docs: {path.relative_to(ROOT)} links to {target}, which does not exist")
    body = markdown.markdown(text, extensions=["tables", "fenced_code", "toc"])
    return re.sub(r'href="([^":]+)\.md(#[^"]*)?"', r'href="\1.html\2"', body)


def operations() -> str:
    """One section an operation, with every overload's signature, sentence and formula."""
    groups: dict[str, list[Operation]] = {}
    for record in all_records().values():
        if not record.name.startswith("_"):
            groups.setdefault(record.name, []).append(record)
    missing = [name for name, records in groups.items() if not any(record.doc for record in records)]
    if missing:
        raise SystemExit(f"docs: operations without documentation: {', '.join(missing)}")
    sections = [f'<h2 id="{name}">{name}</h2>\n' + "\n".join(map(section, groups[name])) for name in sorted(groups)]
    index = " ".join(f'<a href="#{name}">{name}</a>' for name in sorted(groups))
    return f"<h1>Operations</h1>\n<p>{len(groups)} operations: {index}</p>\n" + "\n".join(sections)


def section(record: Operation) -> str:
    parts = [f"<pre>{html.escape(record.schema)}</pre>"]
    if record.doc:
        parts.append(f"<p>{html.escape(record.doc.strip())}</p>")
    if record.formula:
        parts.append(f"<p><code>{html.escape(record.formula)}</code></p>")
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    if out.exists():
        shutil.rmtree(out)
    written = [Path("operations.html")]
    out.mkdir(parents=True)
    (out / "operations.html").write_text(PAGE.format(title="Operations", root="", body=operations()), encoding="utf-8")
    for path in pages():
        name = path.relative_to(ROOT).with_suffix(".html")
        target = out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(
            PAGE.format(title=path.stem, root="../" * len(name.parent.parts), body=convert(path)), encoding="utf-8"
        )
        written.append(name)
    for path in ("LICENSE",):
        shutil.copy(ROOT / path, out / path)
    (out / "docs" / "design").mkdir(exist_ok=True)
    design = sorted((ROOT / "docs" / "design").glob("*.md"))
    listing = "".join(f'<li><a href="{p.stem}.html">{p.stem}</a></li>' for p in design)
    (out / "docs" / "design" / "index.html").write_text(
        PAGE.format(title="Design notes", root="../../", body=f"<h1>Design notes</h1><ul>{listing}</ul>"),
        encoding="utf-8",
    )
    print(f"wrote {len(written) + 1} pages to {out}")


if __name__ == "__main__":
    main()
