#!/usr/bin/env python3
"""Makes the tables of the character sets with codes of one byte, and of their collations, of what mariadb_charsets.sh wrote.

    charset_tables.py DIRECTORY

src/charset/tables/single_byte.bin: for each set of SETS the characters of the codes 80 to FF, 16 bits each, little-endian; 0: none.
src/collation/tables/single_byte.bin: for each collation of ORDERS the weight of each code, 256 bytes; behind them the second weights of
latin1_german2_ci, 0 where a code has one.
src/charset/tables/big5.bin, gb2312.bin: the characters of all codes of two bytes, in their order, 16 bits each, little-endian; 0: none.
src/charset/tables/ujis.bin, eucjpms.bin: the characters of the codes A1A1 to F4FE, and of the codes of three bytes 8FA1A1 to 8FF4FE, in the
same form.
src/collation/tables/SET_chinese.bin: the weights of the codes that big5, gb2312 and gbk have, in their order, 16 bits each, little-endian.
"""
import sys
from pathlib import Path

SETS = """armscii8 cp1250 cp1251 cp1256 cp1257 cp850 cp852 cp866 dec8 geostd8 greek hebrew hp8 keybcs2 koi8r koi8u latin1 latin2 latin5 latin7
macce macroman""".split()
ORDERS = """armscii8_general_ci ascii_general_ci cp1250_croatian_ci cp1250_general_ci cp1250_polish_ci cp1251_bulgarian_ci cp1251_general_ci
cp1251_general_cs cp1251_ukrainian_ci cp1256_general_ci cp1257_general_ci cp1257_lithuanian_ci cp850_general_ci cp852_general_ci
cp866_general_ci dec8_swedish_ci geostd8_general_ci greek_general_ci hebrew_general_ci hp8_english_ci keybcs2_general_ci koi8r_general_ci
koi8u_general_ci latin1_danish_ci latin1_general_ci latin1_general_cs latin1_german1_ci latin1_german2_ci latin1_spanish_ci
latin1_swedish_ci latin2_croatian_ci latin2_general_ci latin2_hungarian_ci latin5_turkish_ci latin7_estonian_cs latin7_general_ci
latin7_general_cs macce_general_ci macroman_general_ci""".split()

# The first and second bytes of codes of two.
DOUBLE = {
    "big5": (range(0xA1, 0xFA), [*range(0x40, 0x7F), *range(0xA1, 0xFF)]),
    "gb2312": (range(0xA1, 0xF8), range(0xA1, 0xFF)),
}


def said(directory, name):
    with open(f"{directory}/{name}.tsv") as lines:
        return {int(key): value for key, value in (line.rstrip("\n").split("\t") for line in lines)}


def words(numbers):
    return b"".join(number.to_bytes(2, "little") for number in numbers)


def main(directory):
    source = Path(__file__).parent.parent / "src"
    characters = b""
    for name in SETS:
        decoded = {code: int(character, 16) for code, character in said(directory, f"dec_{name}").items()}
        assert all(decoded[code] == code for code in range(128)), name
        characters += words(0 if decoded[code] == 0x3F else decoded[code] for code in range(128, 256))
    (source / "charset/tables/single_byte.bin").write_bytes(characters)
    orders, seconds = b"", bytes(256)
    for name in ORDERS:
        weights = said(directory, f"w_{name}")
        orders += bytes(int(weights[code][:2], 16) for code in range(256))
        if any(len(weight) > 2 for weight in weights.values()):
            assert name == "latin1_german2_ci", name
            seconds = bytes(int(weights[code][2:] or "0", 16) for code in range(256))
    (source / "collation/tables/single_byte.bin").write_bytes(orders + seconds)
    for name, (leads, trails) in DOUBLE.items():
        decoded = {code: int(character, 16) for code, character in said(directory, f"dec2_{name}").items() if len(character) == 8}
        characters = words(
            0 if decoded[code] == 0x3F else decoded[code] for code in (lead << 8 | trail for lead in leads for trail in trails)
        )
        (source / f"charset/tables/{name}.bin").write_bytes(characters)
    # From F5 on are the private characters, in their order.
    codes = [lead << 8 | trail for lead in range(0xA1, 0xF5) for trail in range(0xA1, 0xFF)]
    for name in ["ujis", "eucjpms"]:
        two, three = said(directory, f"dec2_{name}"), said(directory, f"dec3_{name}")
        both = [two[code] for code in codes] + [three[0x8F0000 | code] for code in codes]
        characters = [int(character, 16) if len(character) == 8 else 0 for character in both]
        # A1C0 is what is written for the full-width one: see the essay of the module.
        characters = [0 if character == 0x3F else 0xFF3C if character == 0x5C else character for character in characters]
        (source / f"charset/tables/{name}.bin").write_bytes(words(characters))
    for name in ["big5", "gb2312", "gbk"]:
        codes = {int(code, 16): character for character, code in said(directory, f"enc_{name}").items()}
        weights = said(directory, f"w_{name}_chinese_ci")
        by_code = words(int(weights[codes[code]], 16) for code in sorted(codes))
        (source / f"collation/tables/{name}_chinese.bin").write_bytes(by_code)


main(*sys.argv[1:])
