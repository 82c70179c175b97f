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

from rushlight.ops._documentation import documentation, facts, lacking, overloads, signature_line
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
<nav><a href="{root}docs/index.html">Rushlight</a> | <a href="{root}index_of_operations.html">index</a>
| <a href="{root}operations.html">operations</a></nav>
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


def shown(record: Operation) -> list[str]:
    """The public names of a record: with their namespace, methods as Tensor.name."""
    names = [name if "." in name else f"rushlight.{name}" for name in record.public]
    names = [f"rushlight.{name}" if not name.startswith(("rushlight.", "Tensor.")) else name for name in names]
    if record.method:
        names.append(f"Tensor.{record.name}")
    twins = [f"{name}_" for name in names if record.inplace and not name.endswith("_")]
    return [*names, *twins]


def operations() -> tuple[str, str]:
    """The index by namespace, and one section an operation: its names, and every overload with its documentation."""
    groups: dict[str, list[Operation]] = {}
    names: dict[str, set[str]] = {}
    for record in all_records().values():
        for name in shown(record):
            names.setdefault(name, set()).add(record.name)
            groups.setdefault(record.name, [])
        if record.name in groups:
            groups[record.name].append(record)
    missing = [f"{name}: {', '.join(parts)}" for name, records in groups.items() if (parts := lacking(records))]
    if missing:
        raise SystemExit("docs: what the documentation of operations lacks:\n" + "\n".join(missing))
    spaces: dict[str, list[str]] = {}
    for name in sorted(names):
        spaces.setdefault(name.rpartition(".")[0], []).append(name)
    index = []
    for space, inside in sorted(spaces.items()):
        links = " ".join(
            f'<a href="operations.html#{sorted(names[name])[0]}">{name.rpartition(".")[2]}</a>' for name in inside
        )
        index.append(f'<h2 id="{space}">{space}</h2>\n<p>{len(inside)} names</p>\n<p>{links}</p>')
    sections = []
    for group in sorted(groups, key=lambda g: g.lstrip("_")):
        found = sorted({name for record in groups[group] for name in shown(record)})
        title = f'<h2 id="{group}">{found[0]}</h2>\n'
        also = f"<p>Also {', '.join(found[1:])}.</p>\n" if found[1:] else ""
        sections.append(title + also + "\n".join(map(section, overloads(groups[group]))))
    count = f"<p>{len(names)} names of {len(groups)} operations.</p>\n"
    return (
        f"<h1>Index of operations</h1>\n{count}" + "\n".join(index),
        f"<h1>Operations</h1>\n{count}" + "\n".join(sections),
    )


def section(overloads: list[Operation]) -> str:
    """Overloads that share their documentation, which is the first one's."""
    record = overloads[0]
    doc = documentation(record)
    parts = [f"<pre>{html.escape(chr(10).join(map(signature_line, overloads)))}</pre>"]
    parts += [f"<p>{html.escape(paragraph)}</p>" for paragraph in doc.paragraphs[:1]]
    if doc.formula:
        parts.append(f"<pre>{html.escape(doc.formula)}</pre>")
    parts += [f"<p>{html.escape(paragraph)}</p>" for paragraph in [*doc.paragraphs[1:], *doc.shapes]]
    if doc.example:
        parts.append(f"<pre>{html.escape(doc.example)}</pre>")
    parts.append(f"<p><small>{html.escape(facts(overloads))} rushlight/ops/{record.module}.py</small></p>")
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    if out.exists():
        shutil.rmtree(out)
    written = [Path("index_of_operations.html"), Path("operations.html")]
    out.mkdir(parents=True)
    for path, title, body in zip(written, ("Index of operations", "Operations"), operations(), strict=True):
        (out / path).write_text(PAGE.format(title=title, root="", body=body), encoding="utf-8")
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
