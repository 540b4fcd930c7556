"""Splits text into words and reduces them to stems: M. F. Porter, "An algorithm for suffix stripping", 1980.

The validator and the baseline compare questions and memories by these stems. The daemon stems with its own code.
"""

import re

STOP = frozenset(
    """a about after again all also am an and any anybody anyone anything are as at back be because been before being both but by
    can could did do does doing don down during each either else ever every for from get give go got had has have having
    he her here hers him his how i if in into is it its itself just let me more most much many my myself no nobody none nor
    not nothing now of off often on once one only or other our out over own same she should so some somebody someone something
    such tell than that the their them then there these they thing this those through to too under until up us very was
    we were what when where which while who whom whose why will with would yes yet you your""".split()
)
WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")


def words(text):
    """Words in lower case, without a possessive ending."""
    found = (word.split("'")[0] for word in WORD.findall(text.lower().replace("\u2019", "'")))
    return [word for word in found if word]


def content_stems(text):
    """Stems of all words that are not stop words."""
    return {stem(word) for word in words(text) if word not in STOP and len(word) > 1}


def _consonant(word, at):
    if word[at] in "aeiou":
        return False
    return word[at] != "y" or at == 0 or not _consonant(word, at - 1)


def _measure(word):
    """The number of times that a vowel is followed by a consonant."""
    forms = "".join("c" if _consonant(word, at) else "v" for at in range(len(word)))
    return len(re.findall("vc", forms))


def _vowel(word):
    return any(not _consonant(word, at) for at in range(len(word)))


def _double(word):
    return len(word) > 1 and word[-1] == word[-2] and _consonant(word, len(word) - 1)


def _cvc(word):
    end = len(word) - 1
    if end < 2 or not _consonant(word, end) or _consonant(word, end - 1) or not _consonant(word, end - 2):
        return False
    return word[-1] not in "wxy"


STEP_2 = (
    "ational:ate tional:tion enci:ence anci:ance izer:ize abli:able alli:al entli:ent eli:e ousli:ous ization:ize ation:ate "
    "ator:ate alism:al iveness:ive fulness:ful ousness:ous aliti:al iviti:ive biliti:ble"
)
STEP_3 = "icate:ic ative: alize:al iciti:ic ical:ic ful: ness:"
STEP_4 = "ement ance ence able ible ment ant ent ism ate iti ous ive ize ion al er ic ou"


def _replace(word, rules):
    pairs = sorted((rule.split(":") for rule in rules.split()), key=lambda pair: -len(pair[0]))
    for ending, other in pairs:
        if word.endswith(ending):
            root = word[: -len(ending)]
            return root + other if _measure(root) > 0 else word
    return word


def _step_1(word):
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in "ed", "ing":
        root = word[: -len(ending)]
        if word.endswith(ending) and _vowel(root):
            if root.endswith(("at", "bl", "iz")):
                return root + "e"
            if _double(root) and root[-1] not in "lsz":
                return root[:-1]
            return root + "e" if _measure(root) == 1 and _cvc(root) else root
    return word


def _step_4(word):
    for ending in STEP_4.split():
        if word.endswith(ending):
            root = word[: -len(ending)]
            if _measure(root) > 1 and (ending != "ion" or root.endswith(("s", "t"))):
                return root
            return word
    return word


def stem(word):
    """The stem of a word in lower case."""
    if len(word) <= 2 or not word.isalpha():
        return word
    word = _step_1(word)
    if word.endswith("y") and _vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _step_4(_replace(_replace(word, STEP_2), STEP_3))
    if word.endswith("e"):
        root = word[:-1]
        if _measure(root) > 1 or (_measure(root) == 1 and not _cvc(root)):
            word = root
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word
