#!/usr/bin/env python3
"""Makes the frozen tables of the collations of several levels, of UCA 5.2.0 and 14.0.0, and of the languages.

    uca_tables.py --keys DIRECTORY --weights DIRECTORY --out src/collation/tables

--keys: `allkeys-5.2.0.txt` and `allkeys-9.0.0.txt` (https://www.unicode.org/Public/UCA/; the wheel of pyuca 1.2 has them).
--weights: what mariadb_weights.sh wrote.

Written are, in the format of a UCA table that collation_tables.py describes (pages that are the same are written once):
    uca_520.bin                         primary weights of UCA 5.2.0, checked against the server
    uca_0900_{secondary,tertiary}.bin   the other levels of UCA 9.0.0
    uca_1400{,_secondary,_tertiary}.bin the levels of UCA 14.0.0, as the server has them
and `tailorings.txt`: what a language's weights differ in. A line `[name]` begins a language, `[name reorder=FROM-TO:AT,... upper]` with
ranges of primary weights that move and with upper case first; the lines below it are characters (code points in hexadecimal; several are a
contraction), and behind each `;` the weights of one level.

Languages of unicode_ci (UCA 4.0.0) and of uca1400 are what the server says of each character of the basic plane (each character at all for
uca1400), and of each pair of 1 100 letters and marks. Those of 0900 are made of the rules of CLDR 30 (cldr_30_rules.txt) as MySQL does it:
a tailored character has the weights of the character that it is put behind, and one element more, whose weights are beyond all others'.

The tables decide the order of keys on disk: a table that ships is never made anew, only added to under another name.
"""
import argparse
import os
import re
import unicodedata

from collation_tables import implicit_400, uca_table

# Of the element that a tailored character has more.
EXTRA = (0x54A4, 0x0114, 0x000A)
UPPER = set(range(0x08, 0x0D)) | {0x0E, 0x11, 0x12, 0x1D}
UPPER_MASK, MIXED_MASK, LOWER_MASK = 0x0100, 0x0200, 0x0300
SYLLABLES = range(0xAC00, 0xD7A4)
# Of weights that move, the first: the Latin letter a. Before it are spaces, punctuation, symbols and digits.
FIRST_LETTER = 0x1C47


def implicit(cp, han, tangut):
    for first, last, base in tangut:
        if first <= cp <= last:
            return (base[0], (cp - base[1]) | 0x8000)
    for first, last, base in han:
        if first <= cp <= last:
            return (base + (cp >> 15), (cp & 0x7FFF) | 0x8000)
    return (0xFBC0 + (cp >> 15), (cp & 0x7FFF) | 0x8000)


def implicit_1400(cp):
    han = [(0x3400, 0x4DBF, 0xFB80), (0x20000, 0x2A6DF, 0xFB80), (0x2A700, 0x2B738, 0xFB80), (0x2B740, 0x2B81D, 0xFB80),
           (0x2B820, 0x2CEA1, 0xFB80), (0x2CEB0, 0x2EBE0, 0xFB80), (0x30000, 0x3134A, 0xFB80), (0x4E00, 0x9FFF, 0xFB40)]
    compatible = [(c, c, 0xFB40) for c in (0xFA0E, 0xFA0F, 0xFA11, 0xFA13, 0xFA14, 0xFA1F, 0xFA21, 0xFA23, 0xFA24, 0xFA27, 0xFA28, 0xFA29)]
    others = [(0x17000, 0x18AFF, (0xFB00, 0x17000)), (0x18D00, 0x18D8F, (0xFB00, 0x17000)), (0x1B170, 0x1B2FF, (0xFB01, 0x1B170)),
              (0x18B00, 0x18CFF, (0xFB02, 0x18B00))]
    return implicit(cp, han + compatible, others)


def weights_of(text):
    return tuple(int(text[i:i + 4], 16) for i in range(0, len(text), 4))


def read_keys(path):
    """Code point to its collation elements; no contractions."""
    elements = {}
    for line in open(path, encoding="utf-8"):
        line = line.split("#")[0].strip()
        if not line or line.startswith("@"):
            continue
        points, keys = line.split(";")
        points = [int(p, 16) for p in points.split()]
        if len(points) == 1:
            found = re.findall(r"\[[.*]([0-9A-F]+)\.([0-9A-F]+)\.([0-9A-F]+)", keys)
            elements[points[0]] = [tuple(int(w, 16) for w in element) for element in found]
    return elements


def level(elements, at):
    return tuple(element[at] for element in elements if element[at])


def write(out, name, weights):
    data = uca_table(weights)
    with open(os.path.join(out, name), "wb") as file:
        file.write(data)
    print(f"{name}: {len(data) / 1024:.0f} KiB")


def lines(path):
    return [line.rstrip("\n").split("\t") for line in open(path)]


class Tailoring:
    """The rules of CLDR 30 applied to UCA 9.0.0 as MySQL 8 applies them."""

    def __init__(self, base, upper):
        self.base, self.upper, self.changed = base, upper, {}

    def elements(self, text):
        found = []
        while text:
            for length in range(len(text), 0, -1):
                if text[:length] in self.changed:
                    found += self.changed[text[:length]]
                    break
                if length == 1:
                    found += self.base.get(ord(text[0]), [])
            text = text[length:]
        return found

    def case_first(self, current, elements, before, difference):
        """[caseFirst upper] within tailored elements: marks above their tertiary weights."""
        elements = [list(e) for e in elements]

        def spread(mask):
            for e in elements:
                if e[2] > UPPER_MASK:
                    mask = e[2] & 0xFF00
                elif e[2]:
                    e[2] |= mask

        tailored = 0
        for e in elements:
            if e[2] > UPPER_MASK:
                spread(0)
                return elements
            tailored += e[0] != 0
        if before == 1 or difference[0]:
            tailored -= 1
        own = [e for c in current for e in self.base.get(ord(c), []) if e[0]]
        copies = len(own) if len(own) <= tailored else tailored - 1
        upper = lower = mask = 0
        at = 0
        for index, e in enumerate(own):
            high = e[2] in UPPER
            if index >= copies:
                upper, lower = upper + high, lower + (not high)
                continue
            mask = UPPER_MASK if high else LOWER_MASK
            while elements[at][0] == 0:
                at += 1
            elements[at][2] |= mask
            at += 1
        if len(own) <= tailored:
            for e in elements[at:at + tailored - len(own)]:
                if e[0] and e[0] < EXTRA[0]:
                    e[2] = 0
        else:
            mask = MIXED_MASK if upper and lower else UPPER_MASK if upper else LOWER_MASK
            skipped = False
            for e in reversed(elements):
                if e[0] and e[0] < EXTRA[0]:
                    if (before == 1 or difference[0]) and not skipped:
                        skipped = True
                        continue
                    e[2] |= mask
                    break
        spread(mask)
        return elements

    def apply(self, base, current, difference, before):
        elements = [list(e) for e in self.elements(base)]
        if any(difference):
            elements.append([EXTRA[i] if difference[i] else 0 for i in range(3)])
        if self.upper:
            elements = self.case_first(current, elements, before, difference)
        if any(difference):
            elements[-1] = [elements[-1][i] + difference[i] for i in range(3)]
        if before:
            for e in reversed(elements[:-1]):
                if e[before - 1]:
                    e[before - 1] -= 1
                    break
        self.changed[current] = [tuple(e) for e in elements]


def parse_rules(text):
    """Lists of (base, character or contraction, differences of the levels, level of [before n])."""
    rules = []
    for part in text.split("&")[1:]:
        before = 0
        found = re.match(r"\[before (\d)\]", part)
        if found:
            before, part = int(found[1]), part[found.end():]
        pieces = re.split(r"(<<<|<<|<|=)", part)
        base, difference = pieces[0], [0, 0, 0]
        for operator, current in zip(pieces[1::2], pieces[2::2]):
            if operator != "=":
                at = len(operator) - 1
                difference = difference[:at] + [difference[at] + 1] + [0] * (2 - at)
            current, _, more = current.partition("/")
            rules.append((base + more, current, tuple(difference), before))
    return rules


def decompositions():
    """Characters and what they canonically decompose to, in the order of code points; those that Unicode 9 has."""
    found = {}
    for cp in range(0x110000):
        c = chr(cp)
        if 0xD800 <= cp < 0xE000 or cp in SYLLABLES:
            continue
        d = unicodedata.normalize("NFD", c)
        if d != c:
            found[c] = d
    return found


def inherits(origin, other):
    """The marks that `other` has beyond `origin`, if they do not stand in the way of those that both have; else None."""
    if origin[0] != other[0]:
        return None
    more, i, j = "", 1, 1
    while i < len(origin) and j < len(other):
        if origin[i] == other[j]:
            i, j = i + 1, j + 1
        elif unicodedata.combining(origin[i]) == unicodedata.combining(other[j]):
            return None
        else:
            more, j = more + other[j], j + 1
    return more + other[j:] if i == len(origin) else None


def with_inherited(rules, decomposed, marks):
    singles = {current for _, current, _, _ in rules if len(current) == 1}
    original = list(rules)
    added = set()
    for _, current, _, _ in original:
        if len(current) > 1:
            continue
        origin = decomposed.get(current, current)
        for c, parts in decomposed.items():
            if c in added or c in singles:
                continue
            more = inherits(origin, parts)
            if more is not None:
                rules.append((current + more, c, (0, 0, 0), 0))
                singles.add(c)
                added.add(c)
    if marks:
        heads = {current[0] for _, current, _, _ in rules}
        for c, parts in decomposed.items():
            if c not in singles and any(mark in heads for mark in parts[1:]):
                rules.append((parts, c, (0, 0, 0), 0))
    return rules


def script_range(elements, prefix):
    """The primary weights of the letters of a script."""
    weights = [w for cp, es in elements.items() for w in level(es, 0)[:1]
               if unicodedata.name(chr(cp), "").startswith(prefix) and unicodedata.category(chr(cp))[0] == "L"
               and FIRST_LETTER <= w < EXTRA[0]]
    return min(weights), max(weights)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--keys", required=True)
    arguments.add_argument("--weights", required=True)
    arguments.add_argument("--out", required=True)
    arguments = arguments.parse_args()
    weights_file = lambda name: lines(os.path.join(arguments.weights, name))

    # UCA 5.2.0
    keys = read_keys(os.path.join(arguments.keys, "allkeys-5.2.0.txt"))
    primary = {cp: level(es, 0) for cp, es in keys.items()}
    differences = 0
    for cp, said in weights_file("w_520.tsv"):
        cp, said = int(cp), weights_of(said)
        expected = primary.get(cp, implicit_400(cp))  # as the older collation has them, Hangul syllables too
        if expected != said:
            differences += 1
            print(f"5.2.0: U+{cp:04X} {expected} {said}") if differences < 20 else None
            primary[cp] = said
    print(f"5.2.0: {differences} differences from the server")
    write(arguments.out, "uca_520.bin", primary)

    # UCA 9.0.0: the other levels
    base = read_keys(os.path.join(arguments.keys, "allkeys-9.0.0.txt"))
    for at, name in (1, "secondary"), (2, "tertiary"):
        write(arguments.out, f"uca_0900_{name}.bin", {cp: level(es, at) for cp, es in base.items()})

    # UCA 14.0.0
    levels = [{}, {}, {}]
    for cp, *said in weights_file("w_1400.tsv"):
        cp, said = int(cp), [weights_of(s) for s in said]
        for at in range(3):
            if said[at] != [implicit_1400(cp), (0x20,), (2,)][at] or cp < 0x80:
                levels[at][cp] = said[at]
    for at, name in enumerate(["", "_secondary", "_tertiary"]):
        write(arguments.out, f"uca_1400{name}.bin", levels[at])

    text = []
    line = lambda points, ls: " ".join(f"{p:04X}" for p in points) + "".join(";" + " ".join(f"{w:04X}" for w in l) for l in ls)
    text.append("[uca1400]")
    for a, b, d, *said in weights_file("k_1400.tsv"):
        points = [int(a), int(b)] + ([] if d == "NULL" else [int(d)])
        said = [weights_of(s) for s in said]
        text.append(line(points, said))
    common = set(text)
    languages = sorted(name[2:-4] for name in os.listdir(arguments.weights) if name.startswith("d_"))
    for language in languages:
        text.append(f"[unicode_{language.replace('_mysql561', '')}]")
        text += [line([int(cp)], [weights_of(said)]) for cp, said in weights_file(f"d_{language}.tsv")]
        text += [line([int(a), int(b)], [weights_of(said)]) for a, b, said in weights_file(f"p_{language}.tsv")]
    for language in sorted(name[2:-4] for name in os.listdir(arguments.weights) if name.startswith("e_")):
        text.append(f"[uca1400_{language}]")
        text += [line([int(cp)], [weights_of(s) for s in said]) for cp, *said in weights_file(f"e_{language}.tsv")]
        for a, b, *said in weights_file(f"q_{language}.tsv"):
            written = line([int(a), int(b)], [weights_of(s) for s in said])
            text += [] if written in common else [written]

    # Languages of 0900
    decomposed = decompositions()
    for rule_line in open(os.path.join(os.path.dirname(__file__), "cldr_30_rules.txt"), encoding="utf-8"):
        if rule_line.startswith("#"):
            continue
        head, rules = rule_line.strip().split(":", 1)
        name, *settings = head.split()
        tailoring = Tailoring(base, "upper" in settings)
        for rule in with_inherited(parse_rules(rules.strip()), decomposed, "marks" in settings):
            tailoring.apply(*rule)
        shown = "0900_" + name
        for setting in settings:
            if setting.startswith("reorder="):
                moves, to, ranges = [], FIRST_LETTER, []
                for script in setting[8:].split(","):
                    first, last = script_range(base, script.upper())
                    ranges.append((first, last))
                    moves.append((first, last, to))
                    to += last - first + 1
                at = FIRST_LETTER
                for first, last in sorted(ranges):
                    if at < first:
                        moves.append((at, first - 1, to))
                        to += first - at
                    at = last + 1
                shown += " reorder=" + ",".join(f"{f:04X}-{l:04X}:{t:04X}" for f, l, t in moves if f != t)
            elif setting == "upper":
                shown += " upper"
        text.append(f"[{shown}]")
        for current in sorted(tailoring.changed):
            es = tailoring.changed[current]
            text.append(line([ord(c) for c in current], [level(es, at) for at in range(3)]))
    with open(os.path.join(arguments.out, "tailorings.txt"), "w") as file:
        file.write("\n".join(text) + "\n")
    print(f"tailorings.txt: {len(text)} lines, {sum(map(len, text)) / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
