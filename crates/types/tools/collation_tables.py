#!/usr/bin/env python3
"""Makes the frozen weight tables of the collations, and the golden samples that the tests compare with.

    collation_tables.py --allkeys allkeys-9.0.0.txt --weights weights.tsv --out src/collation/tables

allkeys-9.0.0.txt: https://www.unicode.org/Public/UCA/9.0.0/allkeys.txt (also in the wheel of pyuca 1.2).
weights.tsv: what a MariaDB 10.11 server says of every code point of the basic plane but the surrogates, one a line,
tab-separated: code point (decimal), then in hexadecimal WEIGHT_STRING under utf8mb4_general_ci, and under utf8mb4_unicode_ci:

    SELECT seq, HEX(WEIGHT_STRING(c COLLATE utf8mb4_general_ci)), HEX(WEIGHT_STRING(c COLLATE utf8mb4_unicode_ci)) FROM characters ORDER BY seq

The tables decide the order of keys on disk: a table that ships is never made anew, only added to under another name.

Format of a UCA table, little-endian 16-bit words:
    pages P, sequences S
    for each code point / 256 up to 0x10FF: 0 (all implicit) or 1 + the number of its page
    P pages of 256 entries: 0 ignorable, below 0xE000 the one weight, 0xE000 + s sequence s, 0xFFFF implicit
    S + 1 offsets into the weights that follow, so that sequence s is weights[offsets[s] .. offsets[s + 1]]
Format of the general_ci table: for each code point / 256 up to 0xFF: 0 (every character weighs itself) or 1 + the number of
its page; then the pages of 256 weights.
"""
import argparse
import random
import re
import struct

IMPLICIT = 0xFFFF
FIRST_SEQUENCE = 0xE000


def implicit_400(cp):
    """Implicit weights as UCA 4.0.0 has them (and MySQL's utf8mb4_unicode_ci)."""
    if 0x3400 <= cp <= 0x4DB5:
        base = 0xFB80
    elif 0x4E00 <= cp <= 0x9FA5:
        base = 0xFB40
    else:
        base = 0xFBC0
    return (base + (cp >> 15), (cp & 0x7FFF) | 0x8000)


def words(numbers):
    return struct.pack("<%dH" % len(numbers), *numbers)


def uca_table(weights):
    """`weights`: code point to tuple of weights; those not in it are implicit."""
    sequences, numbers = [], {}
    pages, index, seen = [], [0] * 0x1100, {}
    for block in range(0x1100):
        page = [IMPLICIT] * 256
        for low in range(256):
            sequence = weights.get(block * 256 + low)
            if sequence is None:
                continue
            if len(sequence) == 0:
                page[low] = 0
            elif len(sequence) == 1 and sequence[0] < FIRST_SEQUENCE:
                page[low] = sequence[0]
            else:
                if sequence not in numbers:
                    numbers[sequence] = len(sequences)
                    sequences.append(sequence)
                page[low] = FIRST_SEQUENCE + numbers[sequence]
        if any(entry != IMPLICIT for entry in page):
            if tuple(page) not in seen:
                pages.append(page)
                seen[tuple(page)] = len(pages)
            index[block] = seen[tuple(page)]
    assert FIRST_SEQUENCE + len(sequences) < IMPLICIT
    out = [len(pages), len(sequences)] + index
    for page in pages:
        out += page
    offset, flat = 0, []
    for sequence in sequences:
        out.append(len(flat))
        flat += sequence
    out.append(len(flat))
    assert len(flat) < 65536
    return words(out + flat)


def read_allkeys(path):
    weights = {}
    for line in open(path, encoding="utf-8"):
        line = line.split("#")[0].strip()
        if not line or line.startswith("@"):
            continue
        points, elements = line.split(";")
        points = [int(p, 16) for p in points.split()]
        if len(points) > 1:
            continue  # MySQL's utf8mb4_0900_ai_ci has no contractions (its bug 111828)
        primaries = [int(p, 16) for p in re.findall(r"\[[.*]([0-9A-F]+)\.", elements)]
        weights[points[0]] = tuple(p for p in primaries if p)
    return weights


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--allkeys", required=True)
    arguments.add_argument("--weights", required=True)
    arguments.add_argument("--out", required=True)
    arguments = arguments.parse_args()

    with open(arguments.out + "/uca_0900.bin", "wb") as out:
        out.write(uca_table(read_allkeys(arguments.allkeys)))

    general, unicode = list(range(65536)), {}
    for line in open(arguments.weights):
        fields = line.rstrip("\n").split("\t")
        cp = int(fields[0])
        general[cp] = int(fields[1], 16)
        sequence = tuple(int(fields[2][i : i + 4], 16) for i in range(0, len(fields[2]), 4))
        if sequence != implicit_400(cp):
            unicode[cp] = sequence
    with open(arguments.out + "/unicode_ci.bin", "wb") as out:
        out.write(uca_table(unicode))

    pages, index = [], [0] * 256
    for block in range(256):
        page = general[block * 256 : block * 256 + 256]
        if page != list(range(block * 256, block * 256 + 256)):
            pages.append(page)
            index[block] = len(pages)
    with open(arguments.out + "/general_ci.bin", "wb") as out:
        out.write(words(index + [weight for page in pages for weight in page]))

    # Golden samples straight from the server's answers: a fixed draw, denser where scripts have case.
    draw = random.Random(10_11)
    lines = open(arguments.weights).read().splitlines()
    dense = [line for line in lines if int(line.split("\t")[0]) < 0x600 or 0x1E00 <= int(line.split("\t")[0]) < 0x2200]
    sample = set(draw.sample(dense, 1500)) | set(draw.sample(lines, 2500))
    with open(arguments.out + "/mariadb_10_11_samples.tsv", "w") as out:
        for line in sorted(sample, key=lambda line: int(line.split("\t")[0])):
            out.write("\t".join(line.split("\t")[:3]) + "\n")


if __name__ == "__main__":
    main()
