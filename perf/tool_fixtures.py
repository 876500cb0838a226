"""Outputs of real models against our parser and our grammar: read as expected, however they are cut, and writable.

One JSON line for each format. `cut`: fixtures whose reading depends on where they are cut (every place is tried unless
`--step` is larger). `valid`: outputs whose calls are valid for their tools; `accepted`: those of them that the grammar
of `tool_choice: auto` lets through token by token as they are written. Those it does not are spelled otherwise than our
grammar writes: `refused` tells where each leaves it.
"""

from __future__ import annotations

import argparse
import json
import sys

from guided_grammar.formats import FORMATS
from tool_calls.acceptance import Acceptance
from tool_calls.fixtures import canitoolcall, llama_cpp


def main() -> int:
    """Writes the lines; exit status 1 where a reading depends on the cut."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step", type=int, default=1)
    asked = parser.parse_args()
    fixtures = [*llama_cpp(), *canitoolcall()]
    is_sound = True
    for row in FORMATS.values():
        own = [fixture for fixture in fixtures if fixture.row == row]
        if not own:
            continue
        acceptance = Acceptance(row)
        places = {f.id: acceptance.refused_at(f) for f in own if f.has_valid_calls}
        refused = {name: place for name, place in places.items() if place is not None}
        line = {
            "format": row.name,
            "fixtures": len(own),
            "different": [fixture.id for fixture in own if not fixture.is_as_expected],
            "cut": [fixture.id for fixture in own if fixture.differs_when_cut(asked.step)],
            "valid": len(places),
            "accepted": len(places) - len(refused),
            "refused": refused,
        }
        is_sound &= not line["cut"]
        print(json.dumps(line, ensure_ascii=False), flush=True)
    return 0 if is_sound else 1


if __name__ == "__main__":
    sys.exit(main())
