"""Ranks memories by BM25 over stems, k1 = 0.9 and b = 0.4: the lexical figure that others are compared with.

A reference in Python, not the daemon's ranking. It prints recall@5 and reciprocal rank with 95 % intervals by a bootstrap.
"""

import collections
import math
import random

from porter import STOP, stem, words

K1, B, AT, SAMPLES = 0.9, 0.4, 5, 2000


class Index:
    """Postings of stems with their counts."""

    def __init__(self, memories):
        self.postings = collections.defaultdict(list)
        self.lengths = {}
        self.topics = {memory["id"]: memory["topic"] for memory in memories}
        for memory in memories:
            counts = collections.Counter(stem(word) for word in words(memory["content"]) if word not in STOP)
            self.lengths[memory["id"]] = sum(counts.values())
            for term, count in counts.items():
                self.postings[term].append((memory["id"], count))
        self.mean = sum(self.lengths.values()) / len(self.lengths)

    def ranked(self, text):
        """Identifiers and scores, the best first; equal scores in the order of identifiers."""
        scores = collections.Counter()
        for term in {stem(word) for word in words(text) if word not in STOP}:
            found = self.postings.get(term, ())
            weight = math.log(1 + (len(self.lengths) - len(found) + 0.5) / (len(found) + 0.5))
            for name, count in found:
                norm = K1 * (1 - B + B * self.lengths[name] / self.mean)
                scores[name] += weight * count * (K1 + 1) / (count + norm)
        return sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))


def interval(values):
    """Mean and 95 % interval by a bootstrap over questions, seeded."""
    draw = random.Random(1)
    means = sorted(sum(draw.choices(values, k=len(values))) / len(values) for _ in range(SAMPLES))
    return sum(values) / len(values), means[int(0.025 * SAMPLES)], means[int(0.975 * SAMPLES)]


def report(memories, questions):
    """Prints recall@5 and reciprocal rank of each kind and part, and how many questions without answer find nothing."""
    index = Index(memories)
    for part, asked in questions.items():
        recalls, ranks, empty = collections.defaultdict(list), collections.defaultdict(list), []
        for _, question in asked:
            if question["kind"] == "typed":
                continue
            hits = [name for name, _ in index.ranked(question["question"])]
            if question["kind"] == "no_answer":
                empty.append(not hits)
                continue
            # The memories of another topic are another robot's: they count neither for nor against.
            hits = [name for name in hits if index.topics[name] == question["topic"] or name.startswith("other-")]
            right, kind = set(question["answers"]), question.get("level", question["kind"])
            recalls[kind].append(len(right & set(hits[:AT])) / len(right))
            ranks[kind].append(next((1 / at for at, name in enumerate(hits, 1) if name in right), 0.0))
        for kind in recalls:
            recall, low, high = interval(recalls[kind])
            print(f"{part:8} {kind:13} recall@{AT} {recall:.3f} [{low:.3f}, {high:.3f}]  MRR {interval(ranks[kind])[0]:.3f}")
        print(f"{part:8} no_answer     nothing found {sum(empty)} of {len(empty)}")
