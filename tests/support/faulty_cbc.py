"""A stand-in for the executable `cbc` that fails in the way the variable FAULT names."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path


def main(arguments: list[str]) -> None:
    if "--version" in arguments:
        print("Version: 0.0")
        return
    solution = Path(arguments[arguments.index("-solution") + 1])
    words = {word for line in Path(arguments[0]).read_text().splitlines() for word in line.split()}
    columns = sorted(word for word in words if word[0] == "c" and word[1:].isdigit())
    match os.environ["FAULT"]:
        case "crash":
            os.abort()
        case "quit":
            print("ERROR: no licence to solve anything today")
            sys.exit(3)
        case "hang":
            Path("hanging").write_text(str(os.getpid()))
            time.sleep(600)
        case "garbage":
            solution.write_bytes(b"Optimal - objective value 1\n0 cseven \xff\xfe nan\n")
        case "infeasible":
            solution.write_text("Infeasible - objective value 0.0\n")
        case "zeros":
            solution.write_text(
                "Optimal - objective value 0.0\n" + "".join(f"{number} {name} 0 0\n" for number, name in enumerate(columns))
            )
        case "too high":
            print("Lower bound: 1000000")
            solution.write_text("Stopped on time (no integer solution - continuous used) - objective value 1000000\n")
        case fault:
            raise ValueError(fault)


if __name__ == "__main__":
    main(sys.argv[1:])
