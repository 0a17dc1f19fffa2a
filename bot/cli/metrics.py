"""`benchbot metrics DIR`: what the readers see in a folder of logs."""

import argparse
import json
import sys
from pathlib import Path

from bot.measure.readers import describe, read_folder

HELP = "show what the readers see in a folder: runs, tags, values, damage"
EXAMPLES = ("benchbot metrics logs/", "benchbot metrics logs/ --json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A folder, and how to print."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder with event files, JSON lines or CSV files")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """0, or 2 when there is no such folder."""
    if not args.folder.is_dir():
        print(f"benchbot metrics: {args.folder} is not a folder", file=sys.stderr)
        return 2
    reading = read_folder(args.folder)
    seen = describe(reading)
    if args.json:
        print(json.dumps(seen, indent=2))
        return 0
    for name, tags in seen["runs"].items():
        print(name)
        for tag, about in tags.items():
            first, last = about["first"], about["last"]
            span = f"step {first['step']} to {last['step']}, {first['value']} to {last['value']}"
            print(f"  {tag}: {about['points']} points, {span}, min {about['min']}, max {about['max']}")
    if not seen["runs"]:
        print("No values found. Readable are TensorBoard event files, *.jsonl and *.csv.")
    health = seen["health"]
    print(f"{health['files']} files, {health['records']} records, {health['bad_records']} damaged")
    for note in reading.notes:
        print(f"note: {note}")
    return 0
