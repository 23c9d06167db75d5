"""What ``import streamfold`` costs, and what it loads.

    python bench/imports.py

Best of several fresh interpreters, the bare interpreter subtracted. The promise: under 80 ms, msgspec and the standard
library alone, no asyncio.
"""

from __future__ import annotations

import subprocess
import sys
import time

ROUNDS = 15


def milliseconds(code: str) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        best = min(best, time.perf_counter() - begin)
    return best * 1e3


def main() -> None:
    bare = milliseconds("pass")
    for code in ("import msgspec", "import streamfold", "from streamfold import iter_unified, fold"):
        print(f"{code}: {milliseconds(code) - bare:.0f} ms")
    ask = "import sys; before = set(sys.modules); from streamfold import fold; print(*(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout.split()
    tops = {name.partition(".")[0] for name in loaded}
    foreign = sorted(name for name in tops if name not in sys.stdlib_module_names and name != "streamfold")
    print(f"third parties: {', '.join(foreign)}; asyncio: {'asyncio' in loaded}")


if __name__ == "__main__":
    main()
