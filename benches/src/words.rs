//! A vocabulary whose words are as unevenly used as those of a language (Zipf, s = 1).
//!
//! The most frequent words are function words, as in any English text; they are two fifths of all
//! words. Words for things and places follow, then made-up ones.

use omird_tests::random::Random;

/// Number of words.
const SIZE: usize = 5000;

/// The words that say nothing by themselves, most frequent first.
const FUNCTION: &str = "the a in of at and is on to near with from by for it was that this left \
                        right are be one two not";

const THINGS: &str = "robot door kitchen table chair mug red corridor blue shelf person charger dock \
    box room wall window lamp green cup bottle desk office lift stairs ramp pallet forklift aisle \
    gripper arm camera lidar map battery low empty full open closed blocked broken wet floor carpet \
    cable plug socket drawer handle fridge sink stove plate bowl spoon knife towel sofa bed book \
    laptop screen keyboard phone bag coat shoe ball toy dog cat plant tree gate fence road car truck \
    bicycle bus sign light signal crossing pavement bench bin bridge river hill path gravel grass mud \
    rain snow fog dust smoke fire water oil leak noise alarm voice visitor nurse patient doctor \
    worker child driver guard parcel letter crate barrel tool hammer screw wrench drill saw paint \
    brush rope hook wheel motor sensor valve pump pipe tank fan filter heater meter panel switch fuse \
    rack tray label barcode";

const SYLLABLES: [&str; 32] = [
    "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "qui", "ro", "su",
    "ta", "ve", "wi", "xo", "yu", "za", "bre", "cli", "dro", "flu", "gra", "ple", "sti", "tro",
    "shu", "cha", "then",
];

/// The vocabulary, by rank.
pub struct Words {
    words: Vec<String>,
    /// Chance that a word has this rank or a lower one.
    cumulative: Vec<f64>,
    function: usize,
}

impl Words {
    /// Makes the vocabulary; always the same one.
    pub fn new() -> Self {
        let mut words: Vec<String> = FUNCTION
            .split_whitespace()
            .chain(THINGS.split_whitespace())
            .map(str::to_owned)
            .collect();
        for number in 0..SIZE - words.len() {
            let syllable = |n: usize| SYLLABLES[n % SYLLABLES.len()];
            let (a, b, c) = (number, number / 32, number / 1024 + 7 * (number % 3));
            words.push(format!("{}{}{}n", syllable(a), syllable(b + 5), syllable(c)));
        }
        let total: f64 = (1..=SIZE).map(|rank| 1.0 / rank as f64).sum();
        let mut sum = 0.0;
        let cumulative = (1..=SIZE)
            .map(|rank| {
                sum += 1.0 / rank as f64 / total;
                sum
            })
            .collect();
        Self { words, cumulative, function: FUNCTION.split_whitespace().count() }
    }

    /// The number of words.
    pub fn len(&self) -> u16 {
        self.words.len() as u16
    }

    /// Draws a word as a text would use it; gives its rank.
    pub fn draw(&self, random: &mut Random) -> u16 {
        let at = random.unit();
        let rank = self.cumulative.partition_point(|&chance| chance <= at).min(SIZE - 1);
        rank as u16
    }

    /// Draws a function word.
    pub fn draw_function(&self, random: &mut Random) -> u16 {
        loop {
            let rank = self.draw(random);
            if !self.has_meaning(rank) {
                return rank;
            }
        }
    }

    /// Returns true if it is no function word.
    pub fn has_meaning(&self, rank: u16) -> bool {
        usize::from(rank) >= self.function
    }

    /// A text of these words.
    pub fn text(&self, ranks: &[u16]) -> String {
        let words: Vec<&str> =
            ranks.iter().map(|&rank| self.words[usize::from(rank)].as_str()).collect();
        words.join(" ")
    }
}
