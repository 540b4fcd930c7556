"""Makes the models beside this file, and `golden.json`: the vectors that the Python library gives for some texts.

The models are made up: a few hundred tokens with random vectors. They have the files and forms of real ones.

    python3 -m venv /tmp/m2v && /tmp/m2v/bin/pip install model2vec==0.8.1
    /tmp/m2v/bin/python daemon/embedding/tests/models/make.py
"""

import json
import pathlib
import string

import numpy as np
from model2vec import StaticModel
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

HERE = pathlib.Path(__file__).resolve().parent
WORDS = """the a an of on in at to and is was were where what when who mug cup kettle bottle white red blue green chipped handle counter table
shelf kitchen hall room door corridor charger dock battery robot arm gripper wheel lidar camera map floor wet spill glass broken open closed
stuck jam lift stair person nurse child dog cat box pallet crate tool wrench screw bolt pump valve pipe leak pressure gauge red alarm noise
smoke smell oil water sand field row tree leaf weed tractor cow gate fence path north south east west left right near far under over behind
before after morning evening night yesterday today monday friday hour minute second metre slow fast full empty heavy light hot cold cafe uber
strasse naive resume 12 3 7 2026 cm kg m s""".split()
PIECES = ["##s", "##ed", "##ing", "##er", "##ly", "##y", "##e", "##n", "##t", "##ness", "##able", "##ful", "##less", "##ian", "##um"]
TEXTS = [
    "A white mug with a chipped handle stands on the counter beside the kettle.",
    "Where is the cup?",
    "the DOOR, the door: the Door!",
    "Café, ÜBER straße; naïve résumé",
    "charger chargers charged charging unchargeable",
    "mug\tmug\nmug\u00a0mug\u2003mug\u200bmug\u0000mug\u00admug",
    "12.5 kg at (3, 7) on 2026-11-25",
    "猫 and a 犬 in the kitchen",
    "[CLS] robot [UNK] arm [MASK][PAD]lift",
    "don't stop; it's the robot's arm—really… “quoted” ‘text’ ¿qué?",
    "ΑΣ σίγμα İstanbul ﬁeld ǅ ẞ",
    "ก็ नमस्ते हिन्दी کتاب",
    "x" * 150 + " mug",
    "zzzz qqqq",
    "",
    "   ",
    "🤖 robot 👍🏽",
    "robot " * 700 + "kettle",
]


def vocabulary():
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens += dict.fromkeys(WORDS)
    tokens += PIECES
    tokens += [c for c in string.ascii_lowercase + string.digits + ".,;:!?()-'\"—…“”‘’¿猫犬คβσς" if c not in tokens]
    tokens += ["##" + c for c in string.ascii_lowercase + string.digits]
    return {token: number for number, token in enumerate(dict.fromkeys(tokens))}


def tokenizer(vocab):
    made = Tokenizer(WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = BertNormalizer(lowercase=True)
    made.pre_tokenizer = BertPreTokenizer()
    made.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    return made


def main():
    vocab, draw = vocabulary(), np.random.default_rng(7)
    size = len(vocab)
    table = draw.standard_normal((size, 16)).astype(np.float32)
    models = {
        "tiny": StaticModel(table, tokenizer(vocab), config={"normalize": True}, normalize=True),
        # The newer form: fewer rows than tokens, a factor for each token, half floats, and vectors that keep their length.
        "mapped": StaticModel(
            table[:100].astype(np.float16),
            tokenizer(vocab),
            config={"normalize": False},
            normalize=False,
            weights=draw.random(size).astype(np.float32),
            token_mapping=draw.integers(0, 100, size).astype(np.int64),
        ),
        "integers": StaticModel(
            (table * 30).clip(-127, 127).astype(np.int8), tokenizer(vocab), config={"normalize": True}, normalize=True
        ),
    }
    golden = {}
    for name, model in models.items():
        model.save_pretrained(HERE / name)
        for left in ("README.md", "modules.json"):
            (HERE / name / left).unlink(missing_ok=True)
        golden[name] = [[round(float(x), 7) for x in vector] for vector in model.encode(TEXTS)]
    text = json.dumps({"texts": TEXTS, "vectors": golden}, ensure_ascii=True, separators=(",", ":"))
    (HERE / "golden.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
