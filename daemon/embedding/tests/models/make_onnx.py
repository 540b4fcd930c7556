"""Writes the small ONNX model of the tests, and the vectors that onnxruntime makes with it.

    pip install onnx==1.23.2 onnxruntime==1.32.0 tokenizers numpy
    python3 daemon/embedding/tests/models/make_onnx.py

For a model in a folder of its own (model.onnx and tokenizer.json), the golden vectors alone:

    python3 daemon/embedding/tests/models/make_onnx.py FOLDER
"""

import json
import pathlib
import sys

import numpy
import onnxruntime
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

TEXTS = [
    "a white mug on the counter",
    "Where did I last see my cup?",
    "the charger, unplugged (again)",
    "Crème brûlée at dock 7",
    "a word that is unknown: zyzzyva",
    "",
    "mug",
]


def made(folder, tokenizer, most=256):
    """The mean of the vectors of all tokens, as sentence-transformers pools them."""
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    names = {one.name for one in session.get_inputs()}
    vectors = []
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False).ids[: most - 2]
        ids = [tokenizer.token_to_id("[CLS]"), *ids, tokenizer.token_to_id("[SEP]")]
        inputs = {
            "input_ids": numpy.array([ids], dtype=numpy.int64),
            "attention_mask": numpy.ones((1, len(ids)), dtype=numpy.int64),
            "token_type_ids": numpy.zeros((1, len(ids)), dtype=numpy.int64),
        }
        out = session.run(None, {name: value for name, value in inputs.items() if name in names})[0]
        vectors.append([float(number) for number in out[0].mean(axis=0)])
    return {"texts": TEXTS, "vectors": vectors}


def write_model(folder):
    """A table of tokens, a layer over it, and a mask: the inputs and outputs of a sentence model, in few bytes."""
    from onnx import TensorProto, helper, numpy_helper, save

    random = numpy.random.default_rng(7)
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)] + list("0123456789?,().:")
    pieces = ["mug", "white", "counter", "cup", "charger", "dock", "the", "last", "see", "where", "creme", "brulee"]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces, *letters, *("##" + one for one in letters[:25])]
    (folder / "vocab.txt").write_text("".join(one + "\n" for one in vocabulary))
    table = random.normal(size=(len(vocabulary), 8)).astype(numpy.float32)
    layer = random.normal(size=(8, 8)).astype(numpy.float32)
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
        helper.make_node("MatMul", ["rows", "layer"], ["turned"]),
        helper.make_node("Tanh", ["turned"], ["bent"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["column"]),
        helper.make_node("Mul", ["bent", "column"], ["last_hidden_state"]),
    ]
    shape = ["batch", "tokens"]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in ("input_ids", "attention_mask")],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*shape, 8])],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(layer, "layer"),
            numpy_helper.from_array(numpy.array([2], dtype=numpy.int64), "last"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    save(model, folder / "model.onnx")
    tokenizer = Tokenizer(WordPiece({one: at for at, one in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    return tokenizer


if len(sys.argv) > 1:
    folder = pathlib.Path(sys.argv[1])
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
else:
    folder = pathlib.Path(__file__).parent / "onnx"
    folder.mkdir(exist_ok=True)
    tokenizer = write_model(folder)
(folder / "golden.json").write_text(json.dumps(made(folder, tokenizer)) + "\n")
