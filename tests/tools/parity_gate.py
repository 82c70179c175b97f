"""Runs PyTorch's own databases against rushlight and compares with the floor in tests/parity_floor.json.

    python tests/tools/parity_gate.py --parity ../shared/parity/parity.py     what must pass, and the score
    python tests/tools/parity_gate.py --parity ... --quick                    only what must pass
    python tests/tools/parity_gate.py --parity ... --update                   raise the floor to what passes now

The floor lists, by suite, the entries that must pass completely, and the number of entries that must pass in all. Some
samples of the databases are drawn anew in every process, so an entry enters the floor only when it passed in each of
several runs (--runs). "rounded" lists entries whose last bits follow the processor, in PyTorch too (see
tests/tools/processor_bits.py): every tensor of theirs must lie within 1e-6. The exit code is 0 when the floor holds, 1
when an entry has fallen below it, 2 when nothing could be measured.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def run_suite(parity: Path, suite: str, entries: list[str] | None, options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, str(parity), "--impl", "rushlight", "--suite", suite, "--json", str(result)]
        command += ["--jobs", str(options.jobs), "--timeout-per-op", str(options.timeout_per_op)]
        if entries is not None:
            command += ["--select", "^(" + "|".join(map(re.escape, entries)) + ")$"]
        subprocess.run(command, cwd=ROOT, check=False, stdout=sys.stderr)
        if not result.exists():
            raise SystemExit(2)
        found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    if found["imports_torch"]:
        print("parity_gate: rushlight imports torch, so its score means nothing")
        raise SystemExit(2)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parity", type=Path, required=True, help="the path of parity.py")
    parser.add_argument("--floor", type=Path, default=ROOT / "tests" / "parity_floor.json")
    parser.add_argument("--quick", action="store_true", help="run only the entries that must pass")
    parser.add_argument("--update", action="store_true", help="write the floor anew; it may only rise")
    parser.add_argument("--allow-lower", action="store_true", help="with --update: let entries leave the floor")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5, help="with --update: runs that an entry must pass, all of them")
    parser.add_argument("--timeout-per-op", type=int, default=120)
    options = parser.parse_args()

    floor = json.loads(options.floor.read_text(encoding="utf-8"))
    broken: list[str] = []
    for suite, state in floor["suites"].items():
        start = time.monotonic()
        required = state["entries"]
        if options.quick and not required:
            continue
        document = run_suite(options.parity.resolve(), suite, required if options.quick else None, options)
        results = {entry["name"]: entry for entry in document["results"] if entry["suite"] == suite}
        passing = passing_entries(results)
        counted = sum(entry["status"] != "unsampled" for entry in results.values())
        rounded = state.get("rounded", [])
        fallen = [name for name in required if results.get(name, {}).get("status") != "pass"]
        held = len(required) - len(fallen)
        if not options.quick:
            fallen += [name for name in rounded if not within_rounding(results.get(name))]
        print(
            f"parity {suite}: {len(passing)} of {counted} entries pass; of the floor's {len(required)}, {held} hold "
            f"[{time.monotonic() - start:.0f} s]"
        )
        for name in fallen:
            entry = results.get(name)
            broken.append(f"{suite} {name}")
            print(f"  fell: {name}: {describe(entry)}")
        if not options.quick and len(passing) < state["passing"]:
            broken.append(f"{suite} score")
            print(f"  fell: {len(passing)} entries pass in all; expected at least {state['passing']}")
        above = [name for name in passing if name not in required]
        if above and not options.update:
            print(f"  above the floor: {', '.join(above[:20])}{' ...' if len(above) > 20 else ''}")
        if options.update:
            for _ in range(options.runs - 1):
                again = run_suite(options.parity.resolve(), suite, None, options)
                once = passing_entries({entry["name"]: entry for entry in again["results"] if entry["suite"] == suite})
                print(f"  passed before, not now: {', '.join(sorted({*passing} - {*once})) or 'none'}")
                passing = sorted({*passing} & {*once})
            kept = sorted(({*passing} if options.allow_lower else {*passing, *required}) - {*rounded})
            state |= {"passing": len(kept), "entries": kept}
    if options.update and (options.allow_lower or not broken):
        options.floor.write_text(json.dumps(floor, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {options.floor}")
        return 0
    if broken:
        print(f"parity floor broken: {', '.join(broken)}")
        return 1
    print("parity floor holds")
    return 0


def passing_entries(results: dict[str, dict[str, Any]]) -> list[str]:
    return sorted(name for name, entry in results.items() if entry["status"] == "pass")


def within_rounding(entry: dict[str, Any] | None) -> bool:
    return (
        entry is not None
        and {*entry["reasons"]} <= {"value"}
        and entry["counts"]["within_1e-6"] == entry["counts"]["tensors"]
    )


def describe(entry: dict[str, Any] | None) -> str:
    if entry is None:
        return "not run"
    reasons = ", ".join(f"{reason} ({count})" for reason, count in entry["reasons"].items())
    first = next((str(failure) for failure in entry["failures"]), "")
    return f"{entry['status']}: {reasons}; first: {first[:300]}"


if __name__ == "__main__":
    raise SystemExit(main())
