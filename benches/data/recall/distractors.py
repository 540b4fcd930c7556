#!/usr/bin/env python3
"""Writes 10,000 memories that answer no question, one JSON object a line: distractors.py [--seed N] [--count N] > FILE

They look like the memories of memories.jsonl: the same kinds of work, rooms, verbs and times. They come from other sites, have
identifiers of their own, and lie at least 1 km away on the map. Equal seeds and counts give equal bytes, on every
platform: all randomness comes from SplitMix64, written out below.
"""

import argparse
import datetime
import json
import re

FIRST = datetime.datetime(2025, 11, 1)
SECONDS = 365 * 86400

# For each kind of site: rooms, things, people. No thing here is the subject of a question; validate.py checks that.
SITES = {
    "household": (
        "attic,guest room,dining room,conservatory,porch,box room,corner den,boot room,landing,carport",
        "laundry basket,violet cushion,step stool,photo album,candlestick,tea cosy,knitting bag,magazine stack,paper lantern,bean bag,"
        "fruit scale,bread knife,napkin holder,door wedge,picture frame,wicker chair,ironing cloth,board game box,coat hanger,"
        "dust pan",
        "Agathe,Rufus,Delia,Benno,Wilma,Hektor",
    ),
    "warehouse": (
        "bay 41,bay 42,lane R,lane T,lane W,buffer zone,kitting cell,dispatch hall,pallet store,label desk",
        "tote of bolts,cage of bedding,drum of resin,stack of euro pallets,roll container,box of hinges,bundle of pipes,"
        "carton of light bulbs,crate of tiles,sack of gravel,reel of wire,tray of screws,keg of paste,bale of hay mats,"
        "pack of roof felt,box of door handles,tub of grout,pallet of paving,carton of candles,crate of faucets",
        "Marek,Solveig,Idris,Paloma,Gunther,Nadja",
    ),
    "hospital": (
        "ward 8,ward 9,room 902,room 915,dialysis unit,eye clinic,linen store,oncology hall,sleep lab,records room",
        "blanket warmer,bed pan,footstool,suction unit,weighing chair,linen bag,infusion pole,privacy screen,ear scope,"
        "walking belt,sharps box,glove rack,syringe pump,headrest,transfer board,reading lectern,leg brace,gown hook,"
        "patient chart,meal tag",
        "Dr Pavlova,nurse Oyelade,nurse Benedikt,orderly Xiomara,Mr Quillfeather,Mrs Drummond",
    ),
    "farm": (
        "paddock 6,paddock 8,stubble field,willow row,hop garden,turnip field,seed loft,cart shed,stone barn,beet heap",
        "seed drill,harrow,salt lick,feed scoop,water trough,hay rake,sickle,wicker basket,post driver,potato riddle,"
        "milk churn,horse collar,wheel hoe,root slicer,rain gauge,bird scarer,egg box,goose house,rabbit hutch,cider press",
        "Torvald,Benedetta,Cyprian,Eulalia,Hamish,Roswitha",
    ),
    "inspection": (
        "boiler house,cooling tower,quench pit,ash silo,mast field,culvert 7,shaft 19,coal hall,heat exchanger row,"
        "sluice house",
        "stop cock,sight glass,hand wheel,name plate,cable gland,pressure switch,expansion loop,inspection lid,wall bracket,"
        "grating panel,relief vent,drip tray,lifting lug,sample tap,anode plate,junction box,pipe hanger,vent cowl,"
        "access ladder,float switch",
        "Rasmussen,Ilse Vogt,Mbeki,Corrigan,Yelena,Prashant",
    ),
    "lab": (
        "balance room,dark room,robot cell,glass wash,sample archive,solvent room,optics hut,spin lab,dry lab,seed bank",
        "pH meter,stirrer,hot bath,rotor,cuvette box,desiccator,sample sieve,label printer,weighing boat,dewar lid,test tube rack,"
        "timer clock,burette,mortar,filter paper,beam splitter,lens tissue,lab notebook,membrane pump,ultrasonic bath",
        "Dr Lindgren,Dr Achebe,Pim,Saoirse,Tadeusz,Yumiko",
    ),
    "hotel": (
        "floor 7,floor 8,suite 901,suite 914,cigar lounge,breakfast room,linen chute,piano bar,conference room,bell desk",
        "luggage cart,minibar,pillow menu,shoe shine box,ice tongs,cake stand,newspaper rack,key fob,folding bed,champagne cooler,"
        "bath robe,slipper set,door hanger,desk fan,guest book,trouser press,fruit bowl,cocktail shaker,vanity mirror,foot stool",
        "Mr Abercrombie,Frau Winkler,bellhop Tariq,maid Concetta,Monsieur Delorme,barman Lucjan",
    ),
}
COLOURS = "grey,beige,teal,maroon,ivory,ochre,lilac,navy,khaki,bronze".split(",")
STATES = (
    "is in good order,looks well used,has been labelled,is wrapped in foil,wants dusting,has been entered in the register,is as "
    "the plan says,is half hidden,has a new sticker,sits a little askew,was tested and passed,has been reserved for Friday,was "
    "photographed from above,got a fresh coat of lacquer,was shut by the day shift,was lent to the neighbours,was sold to a "
    "dealer,came with a guarantee,was oiled before noon,has changed its owner,was turned towards the aisle,is rated for outdoor "
    "duty,was taken over from the old building,belongs to the night shift,has a dent from long ago,was picked for the exhibition,"
    "is due for a check next month,carries a yellow seal,was adjusted by a specialist,hangs a finger lower than last year"
).split(",")
BESIDE = "beside,behind,below,opposite,near,above,left of,right of".split(",")
ROUTINE = (
    "Drove past the {thing} in the {room}; {free} centimetres of space remained.",
    "Carried the {colour} {thing} to the {room} for {person}.",
    "Stopped {seconds} seconds in the {room} until {person} had passed.",
    "Scanned the {room} and found the {thing} and the {other}.",
)
SEEN = (
    "The {colour} {thing} {state}, {beside} the {other} in the {room}.",
    "A {colour} {thing} stands {beside} the {other}.",
    "In the {room} the {thing} {state}.",
    "{count} items lie around the {colour} {thing} in the {room}.",
    "Noted the {colour} {thing} {beside} the {other}; it {state}.",
)
SAID = (
    "{person} asked for the {colour} {thing} in the {room}.",
    "{person} said the {thing} {beside} the {other} {state}.",
    "{person} wants the {thing} moved {beside} the {other} by {hour} o'clock.",
    "Told {person} that the {colour} {thing} {state}.",
    "{person} told me how the {thing} came into the {room}.",
    "{person} and a visitor argued about the price of the {colour} {thing}.",
    "{person} explained in the {room} why nobody likes the {colour} {thing}.",
    "{person} will come back at {hour} for the {thing} and the {other}.",
)
FAILED = (
    "Grip on the {colour} {thing} failed in the {room}; the second try held.",
    "The {thing} {beside} the {other} forced a detour of {seconds} centimetres.",
    "Did not recognise the {colour} {thing} {beside} the {other} at the first look.",
    "The planned route met the {colour} {thing}; planned again after {seconds} seconds in the {room}.",
)
# Kind of experience, sentences, share in percent.
KINDS = (("observation", SEEN, 55), ("task", ROUTINE, 20), ("conversation", SAID, 15), ("error", FAILED, 10))


class SplitMix64:
    """The generator of Steele, Lea and Flood, 2014; not Python's, whose choices may change between versions."""

    def __init__(self, seed):
        self.state = seed & (2**64 - 1)

    def below(self, bound):
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        mixed = self.state
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % 2**64
        return (mixed ^ (mixed >> 31)) % bound

    def pick(self, choices):
        return choices[self.below(len(choices))]


def slug(text):
    return text.lower().replace(" ", "-")


def one(number, draw):
    """One distractor."""
    domain = draw.pick(list(SITES))
    rooms, things, people = (names.split(",") for names in SITES[domain])
    at = draw.below(len(rooms))
    thing, other = draw.pick(things), draw.pick(things)
    while other == thing:
        other = draw.pick(things)
    share = draw.below(100)
    for kind, sentences, percent in KINDS:
        if share < percent:
            break
        share -= percent
    facts = {
        "room": rooms[at], "thing": thing, "other": other, "person": draw.pick(people), "colour": draw.pick(COLOURS),
        "state": draw.pick(STATES), "beside": draw.pick(BESIDE), "count": 2 + draw.below(40), "free": 15 + draw.below(80),
        "seconds": 3 + draw.below(200), "hour": 6 + draw.below(14),
    }
    sentence = draw.pick(sentences)
    content = sentence.format(**facts)
    content = re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", content[0].upper() + content[1:])
    mentioned = [name for name in ("thing", "other", "person") if "{" + name + "}" in sentence]
    site = f"other-{domain}"
    second = draw.below(SECONDS)
    # A grid of rooms, 10 m apart, with the sites in the north of everything in memories.jsonl.
    x, y = 10 * at + draw.below(900) / 100, 2000 + 100 * list(SITES).index(domain) + draw.below(900) / 100
    return {
        "id": f"other-{number:05}",
        "topic": site,
        "domain": domain,
        "experienceType": kind,
        "eventTime": (FIRST + datetime.timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "place": {"frame": "map", "position": [round(x, 2), round(y, 2), 0.0], "room": f"Entity/{site}.{slug(rooms[at])}"},
        "entityRefs": [f"Entity/{site}.{slug(name)}" for name in [rooms[at]] + [facts[name] for name in mentioned]],
        "content": content,
    }


def distractors(seed=1, count=10_000):
    """All distractors; no two have equal words."""
    draw, known, made = SplitMix64(seed), set(), []
    while len(made) < count:
        candidate = one(len(made) + 1, draw)
        if candidate["content"] not in known:
            known.add(candidate["content"])
            made.append(candidate)
    return made


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=10_000)
    options = parser.parse_args()
    for memory in distractors(options.seed, options.count):
        print(json.dumps(memory, ensure_ascii=False))
