"""Reads the golden CBOR files with cbor2 and compares them with the JSON beside them.

The JSON is read with exact numbers. Beside each number's value, its kind is compared: an integer in
JSON text is an integer in CBOR, and a number with a fraction or an exponent is none.
"""

import decimal
import json
import math
import pathlib
import sys

import cbor2

# As many digits and as large an exponent as OMIR holds, exactly.
EXACT = decimal.Context(prec=2000, Emax=10**6, Emin=-(10**6), traps=[decimal.Inexact])
DATA = pathlib.Path(__file__).parent.parent / "core-nostd" / "tests" / "data"


def parsed(path):
    sys.set_int_max_str_digits(2000)
    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_float=EXACT.create_decimal)


def compare(ours, theirs, at):
    """`ours` is from JSON, `theirs` from CBOR."""
    if isinstance(ours, dict):
        assert isinstance(theirs, dict) and ours.keys() == theirs.keys(), at
        for key in ours:
            compare(ours[key], theirs[key], f"{at}/{key}")
    elif isinstance(ours, list):
        assert isinstance(theirs, list) and len(ours) == len(theirs), at
        for index, (a, b) in enumerate(zip(ours, theirs)):
            compare(a, b, f"{at}/{index}")
    elif isinstance(ours, decimal.Decimal):
        assert isinstance(theirs, (float, decimal.Decimal)), (at, ours, theirs)
        # A float stands for its shortest text.
        exact = EXACT.create_decimal(repr(theirs)) if isinstance(theirs, float) else theirs
        assert exact == ours and math.copysign(1, exact) == math.copysign(1, ours), (at, ours, theirs)
    else:
        assert type(ours) is type(theirs) and ours == theirs, (at, ours, theirs)


def main():
    names = sorted(path.stem for path in DATA.glob("*.omirb"))
    assert names, f"no golden files in {DATA}"
    for name in names:
        with open(DATA / f"{name}.omirb", "rb") as file:
            theirs = cbor2.load(file)
            assert not file.read(1), f"{name}: bytes behind the document"
        compare(parsed(DATA / f"{name}.omir"), theirs, name)
        compare(parsed(DATA / f"{name}.compact.omir"), theirs, name)
    print(f"cbor2 reads {', '.join(names)}")


main()
