//! Stop words: words that say how a sentence is built and not what it is about.
//!
//! The English list is that of the Snowball project, with the ends of contractions (`ll`, `ve`) that splitting into words
//! leaves, and the auxiliaries of NLTK's list. The others are the function words of the Snowball lists. A list holds words as
//! [`words`](crate::words()) gives them, without accents, and is sorted.

use crate::Language;

/// Returns true if `word`, as [`words`](crate::words()) gives it, is a stop word of the language.
pub fn is_stop_word(language: Language, word: &str) -> bool {
    list(language).binary_search(&word).is_ok()
}

/// The stop words of a language, sorted.
fn list(language: Language) -> &'static [&'static str] {
    match language {
        Language::English => ENGLISH,
        Language::German => GERMAN,
        Language::French => FRENCH,
        Language::Spanish => SPANISH,
        Language::Italian => ITALIAN,
        Language::Portuguese => PORTUGUESE,
        Language::Dutch => DUTCH,
        Language::Other => &[],
    }
}

#[rustfmt::skip]
const ENGLISH: &[&str] = &[
    "a", "about", "above", "after", "again", "against", "all", "also", "am", "an", "and", "any",
    "are", "aren", "as", "at", "be", "because", "been", "before", "being", "below", "between",
    "both", "but", "by", "can", "could", "couldn", "d", "did", "didn", "do", "does", "doesn",
    "doing", "don", "down", "during", "each", "few", "for", "from", "further", "had", "hadn",
    "has", "hasn", "have", "haven", "having", "he", "her", "here", "hers", "herself", "him",
    "himself", "his", "how", "i", "if", "in", "into", "is", "isn", "it", "its", "itself",
    "just", "ll", "m", "me", "more", "most", "mustn", "my", "myself", "no", "nor", "not", "now",
    "of", "off", "on", "once", "only", "or", "other", "ought", "our", "ours", "ourselves",
    "out", "over", "own", "re", "s", "same", "shan", "she", "should", "shouldn", "so", "some",
    "such", "t", "than", "that", "the", "their", "theirs", "them", "themselves", "then",
    "there", "these", "they", "this", "those", "through", "to", "too", "under", "until", "up",
    "us", "ve", "very", "was", "wasn", "we", "were", "weren", "what", "when", "where", "which",
    "while", "who", "whom", "why", "will", "with", "won", "would", "wouldn", "you", "your",
    "yours", "yourself", "yourselves",
];

#[rustfmt::skip]
const GERMAN: &[&str] = &[
    "aber", "alle", "allem", "allen", "aller", "alles", "als", "also", "am", "an", "ander",
    "andere", "anderem", "anderen", "anderer", "anderes", "auch", "auf", "aus", "bei", "bin",
    "bis", "bist", "da", "damit", "dann", "das", "dass", "dasselbe", "dazu", "dein", "deine",
    "deinem", "deinen", "deiner", "dem", "den", "denn", "denselben", "der", "derselbe", "des",
    "dich", "die", "dies", "diese", "diesem", "diesen", "dieser", "dieses", "dir", "doch",
    "dort", "du", "durch", "ein", "eine", "einem", "einen", "einer", "eines", "einig", "einige",
    "einigem", "einigen", "einiger", "er", "es", "etwas", "euer", "eure", "eurem", "euren",
    "fur", "gegen", "gewesen", "hab", "habe", "haben", "hat", "hatte", "hatten", "hier", "hin",
    "hinter", "ich", "ihm", "ihn", "ihnen", "ihr", "ihre", "ihrem", "ihren", "ihrer", "im",
    "in", "indem", "ins", "ist", "jede", "jedem", "jeden", "jeder", "jedes", "jene", "jenem",
    "jenen", "jener", "jenes", "jetzt", "kann", "kein", "keine", "keinem", "keinen", "keiner",
    "konnen", "konnte", "machen", "man", "manche", "manchem", "manchen", "mancher", "mein",
    "meine", "meinem", "meinen", "meiner", "mich", "mir", "mit", "muss", "musste", "nach",
    "nicht", "nichts", "noch", "nun", "nur", "ob", "oder", "ohne", "sehr", "sein", "seine",
    "seinem", "seinen", "seiner", "selbst", "sich", "sie", "sind", "so", "solche", "solchem",
    "solchen", "solcher", "soll", "sollte", "sondern", "sonst", "uber", "um", "und", "uns",
    "unser", "unsere", "unserem", "unseren", "unter", "viel", "vom", "von", "vor", "wahrend",
    "war", "waren", "warst", "was", "weg", "weil", "weiter", "welche", "welchem", "welchen",
    "welcher", "wenn", "werde", "werden", "wie", "wieder", "will", "wir", "wird", "wirst", "wo",
    "wollen", "wollte", "wurde", "wurden", "zu", "zum", "zur", "zwar", "zwischen",
];

#[rustfmt::skip]
const FRENCH: &[&str] = &[
    "a", "ai", "as", "au", "aura", "auront", "aussi", "aux", "avaient", "avait", "avec", "avez",
    "avons", "ayant", "c", "car", "ce", "ceci", "cela", "ces", "cet", "cette", "chez", "comme",
    "d", "dans", "de", "des", "donc", "dont", "du", "elle", "elles", "en", "entre", "es", "est",
    "et", "etaient", "etais", "etait", "etant", "ete", "etee", "etees", "etes", "etions", "eu",
    "eux", "furent", "fut", "ici", "il", "ils", "j", "je", "l", "la", "le", "les", "leur",
    "leurs", "lui", "m", "ma", "mais", "me", "meme", "mes", "moi", "mon", "n", "ne", "nos",
    "notre", "nous", "on", "ont", "ou", "par", "pas", "plus", "pour", "qu", "quand", "que",
    "qui", "s", "sa", "sans", "se", "sera", "serai", "serait", "seront", "ses", "si", "soient",
    "soit", "sommes", "son", "sont", "sous", "suis", "sur", "t", "ta", "te", "tes", "toi",
    "ton", "tres", "tu", "un", "une", "vers", "vos", "votre", "vous", "y",
];

#[rustfmt::skip]
const SPANISH: &[&str] = &[
    "a", "al", "algo", "algunas", "algunos", "alli", "ante", "antes", "aqui", "como", "con",
    "contra", "cual", "cuando", "de", "del", "desde", "donde", "durante", "e", "el", "ella",
    "ellas", "ellos", "en", "entre", "era", "eran", "es", "esa", "esas", "ese", "eso", "esos",
    "esta", "estaba", "estaban", "estan", "estar", "estas", "este", "esto", "estos", "estoy",
    "fue", "fueron", "ha", "habia", "habian", "han", "hasta", "hay", "he", "hemos", "la", "las",
    "le", "les", "lo", "los", "mas", "me", "mi", "mia", "mio", "mis", "mucho", "muchos", "muy",
    "nada", "ni", "no", "nos", "nosotros", "nuestra", "nuestro", "o", "os", "otra", "otras",
    "otro", "otros", "para", "pero", "poco", "por", "porque", "que", "quien", "quienes", "se",
    "ser", "si", "sido", "sin", "sobre", "son", "su", "sus", "suya", "suyo", "tambien", "tanto",
    "te", "ti", "tiene", "tienen", "todo", "todos", "tu", "tus", "tuyo", "un", "una", "uno",
    "unos", "vosotros", "vuestro", "y", "ya", "yo",
];

#[rustfmt::skip]
const ITALIAN: &[&str] = &[
    "a", "abbiamo", "ad", "agl", "agli", "ai", "al", "all", "alla", "alle", "allo", "anche",
    "avete", "aveva", "avevano", "c", "che", "chi", "ci", "coi", "col", "come", "con", "contro",
    "cui", "da", "dagli", "dai", "dal", "dall", "dalla", "dalle", "dallo", "degli", "dei",
    "del", "dell", "della", "delle", "dello", "di", "dov", "dove", "e", "ed", "era", "erano",
    "essere", "fu", "furono", "gli", "ha", "hai", "hanno", "ho", "i", "il", "in", "io", "l",
    "la", "le", "lei", "li", "lo", "loro", "lui", "ma", "mi", "mia", "mie", "miei", "mio", "ne",
    "negli", "nei", "nel", "nell", "nella", "nelle", "nello", "noi", "non", "nostra", "nostre",
    "nostri", "nostro", "o", "per", "perche", "piu", "quale", "quanta", "quante", "quanti",
    "quanto", "quella", "quelle", "quelli", "quello", "questa", "queste", "questi", "questo",
    "qui", "se", "sei", "si", "siamo", "siete", "sono", "stata", "state", "stati", "stato",
    "su", "sua", "sue", "sugli", "sui", "sul", "sull", "sulla", "sulle", "sullo", "suo", "suoi",
    "ti", "tra", "tu", "tua", "tue", "tuo", "tuoi", "tutti", "tutto", "un", "una", "uno", "vi",
    "voi", "vostra", "vostro",
];

#[rustfmt::skip]
const PORTUGUESE: &[&str] = &[
    "a", "ali", "ao", "aos", "aquela", "aquelas", "aquele", "aqueles", "aqui", "aquilo", "as",
    "ate", "com", "como", "da", "das", "de", "dela", "delas", "dele", "deles", "depois", "do",
    "dos", "e", "ela", "elas", "ele", "eles", "em", "entre", "era", "eram", "essa", "essas",
    "esse", "esses", "esta", "estamos", "estao", "estas", "estava", "estavam", "este", "estes",
    "estou", "eu", "foi", "foram", "ha", "isso", "isto", "ja", "lhe", "lhes", "mais", "mas",
    "me", "mesmo", "meu", "meus", "minha", "minhas", "muito", "na", "nao", "nas", "nem", "no",
    "nos", "nossa", "nossas", "nosso", "nossos", "num", "numa", "o", "onde", "os", "ou", "para",
    "pela", "pelas", "pelo", "pelos", "por", "qual", "quando", "que", "quem", "sao", "se",
    "sem", "ser", "seu", "seus", "sido", "so", "sua", "suas", "tambem", "te", "tem", "teu",
    "tinha", "tinham", "tu", "tua", "um", "uma", "voce", "voces", "vos",
];

#[rustfmt::skip]
const DUTCH: &[&str] = &[
    "aan", "al", "alles", "als", "altijd", "andere", "ben", "bij", "daar", "dan", "dat", "de",
    "der", "deze", "die", "dit", "doch", "doen", "door", "dus", "een", "eens", "en", "er", "ge",
    "geen", "geweest", "haar", "had", "heb", "hebben", "heeft", "hem", "het", "hier", "hij",
    "hoe", "hun", "iemand", "iets", "ik", "in", "is", "ja", "je", "kan", "kon", "kunnen",
    "maar", "me", "meer", "men", "met", "mij", "mijn", "moet", "na", "naar", "niet", "niets",
    "nog", "nu", "of", "om", "omdat", "onder", "ons", "ook", "op", "over", "reeds", "te",
    "tegen", "toch", "toen", "tot", "u", "uit", "uw", "van", "veel", "voor", "want", "waren",
    "was", "wat", "werd", "wezen", "wie", "wil", "worden", "wordt", "zal", "ze", "zelf", "zich",
    "zij", "zijn", "zo", "zonder", "zou",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_hold_words_as_they_are_looked_up() {
        for language in Language::ALL {
            assert!(list(language).is_sorted_by(|a, b| a < b), "{language:?}");
            for word in list(language) {
                let mut found = Vec::new();
                crate::words(word, |word| found.push(word.to_owned()));
                assert_eq!(found, [*word], "{language:?}");
            }
        }
    }

    #[test]
    fn stop_words_of_one_language_are_words_of_another() {
        assert!(is_stop_word(Language::English, "was"));
        assert!(is_stop_word(Language::German, "fur"), "für, without its dots");
        assert!(!is_stop_word(Language::English, "fur"), "of an animal");
        assert!(!is_stop_word(Language::Other, "the"));
        assert!(!is_stop_word(Language::English, "must"), "a constraint is content");
    }
}
