#!/usr/bin/env bash
# A patrol from the command line: records what was seen, asks for it, exports it and validates the file.
# Usage: patrol.sh [FILE]     needs omir in PATH, and an omird that serves
set -euo pipefail
file=${1:-patrol.omir}

# x, y and z in metres, then what was seen there.
while read -r place words; do
    omir remember "$words" --at "$place" --importance 0.6
done <<'SEEN'
0,0,0 the charging dock
4.2,-1,0 door 3 sticks
7.5,2,0 a wet spill on the floor
SEEN

echo "Within three metres of the door:"
omir recall --near 4,-1 --radius 3

# Programs read JSON and exit codes.
spill=$(omir --json recall spill --limit 1 | grep -o '"id": *"[^"]*"' | head -1 | cut -d'"' -f4)
omir forget "MemoryRecord/$spill"

omir export -o "$file"
omir validate --level strict "$file"
