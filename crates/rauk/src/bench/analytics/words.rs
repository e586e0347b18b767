//! The words of TPC-H (specification, 4.2.2.13 and 4.2.2.14), and the text that is made of them.
//!
//! Comments are sentences of a small grammar over these words. As in the specification they are taken at random places
//! out of one long text, which is made once.

use super::random::Random;

pub const REGIONS: [&str; 5] = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];

/// Each with the number of its region.
pub const NATIONS: [(&str, usize); 25] = [
    ("ALGERIA", 0),
    ("ARGENTINA", 1),
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("EGYPT", 4),
    ("ETHIOPIA", 0),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("INDONESIA", 2),
    ("IRAN", 4),
    ("IRAQ", 4),
    ("JAPAN", 2),
    ("JORDAN", 4),
    ("KENYA", 0),
    ("MOROCCO", 0),
    ("MOZAMBIQUE", 0),
    ("PERU", 1),
    ("CHINA", 2),
    ("ROMANIA", 3),
    ("SAUDI ARABIA", 4),
    ("VIETNAM", 2),
    ("RUSSIA", 3),
    ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
];

pub const SEGMENTS: &[&str] = &["AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"];
pub const PRIORITIES: &[&str] = &["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"];
pub const INSTRUCTIONS: &[&str] = &["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"];
pub const MODES: &[&str] = &["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"];

pub const TYPES: [&[&str]; 3] = [
    &["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"],
    &["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"],
    &["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"],
];
pub const CONTAINERS: [&[&str]; 2] =
    [&["SM", "LG", "MED", "JUMBO", "WRAP"], &["CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"]];

/// Words of part names.
pub const COLORS: &str = "almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood \
    burnished chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick \
    floral forest frosted gainsboro ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon \
    light lime linen magenta maroon medium metallic midnight mint misty moccasin navajo navy olive orange orchid pale \
    papaya peach peru pink plum powder puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate \
    smoke snow spring steel tan thistle tomato turquoise violet wheat white yellow";

/// The first four are the most frequent.
const NOUNS: &str = "packages|requests|accounts|deposits|foxes|ideas|theodolites|pinto beans|instructions|dependencies|\
    excuses|platelets|asymptotes|courts|dolphins|multipliers|sauternes|warthogs|frets|dinos|attainments|somas|Tiresias|\
    patterns|forges|braids|hockey players|frays|warhorses|dugouts|notornis|epitaphs|pearls|tithes|waters|orbits|gifts|\
    sheaves|depths|sentiments|decoys|realms|pains|grouches|escapades";
const FREQUENT_NOUNS: usize = 4;
const VERBS: &str = "sleep|wake|are|cajole|haggle|nag|use|boost|affix|detect|integrate|maintain|nod|was|lose|sublate|\
    solve|thrash|promise|engage|hinder|print|x-ray|breach|eat|grow|impress|mold|poach|serve|run|dazzle|snooze|doze|\
    unwind|kindle|play|hang|believe|doubt";
const ADJECTIVES: &str = "special|pending|unusual|express|furious|sly|careful|blithe|quick|fluffy|slow|quiet|ruthless|\
    thin|close|dogged|daring|brave|stealthy|permanent|enticing|idle|busy|regular|final|ironic|even|bold|silent";
const ADVERBS: &str = "sometimes|always|never|furiously|slyly|carefully|blithely|quickly|fluffily|slowly|quietly|\
    ruthlessly|thinly|closely|doggedly|daringly|bravely|stealthily|permanently|enticingly|idly|busily|regularly|\
    finally|ironically|evenly|boldly|silently";
const PREPOSITIONS: &str = "about|above|according to|across|after|against|along|alongside of|among|around|at|atop|\
    before|behind|beneath|beside|besides|between|beyond|by|despite|during|except|for|from|in place of|inside|\
    instead of|into|near|of|on|outside|over|past|since|through|throughout|to|toward|under|until|up|upon|without|\
    with|within";
const AUXILIARIES: &str = "do|may|might|shall|will|would|can|could|should|ought to|must|will have to|shall have to|\
    could have to|should have to|must have to|need to|try to";
const TERMINATORS: &str = ".|;|:|?|!|--";

/// Bytes of the text that comments are taken from.
const TEXT: usize = 4 << 20;

pub struct Text(String);

impl Text {
    pub fn new(random: &mut Random) -> Text {
        let split = |list: &'static str| list.split('|').collect::<Vec<_>>();
        let grammar = Grammar {
            nouns: split(NOUNS),
            verbs: split(VERBS),
            adjectives: split(ADJECTIVES),
            adverbs: split(ADVERBS),
            prepositions: split(PREPOSITIONS),
            auxiliaries: split(AUXILIARIES),
            terminators: split(TERMINATORS),
        };
        let mut text = String::with_capacity(TEXT + 200);
        while text.len() < TEXT {
            grammar.sentence(random, &mut text);
        }
        Text(text)
    }

    /// A piece of between `least` and `most` bytes.
    pub fn piece(&self, random: &mut Random, least: usize, most: usize) -> &str {
        let length = random.between(least as i64, most as i64) as usize;
        let start = random.between(0, (TEXT - length) as i64) as usize;
        // All its words are ASCII.
        &self.0[start..start + length]
    }
}

struct Grammar {
    nouns: Vec<&'static str>,
    verbs: Vec<&'static str>,
    adjectives: Vec<&'static str>,
    adverbs: Vec<&'static str>,
    prepositions: Vec<&'static str>,
    auxiliaries: Vec<&'static str>,
    terminators: Vec<&'static str>,
}

impl Grammar {
    fn sentence(&self, random: &mut Random, out: &mut String) {
        let form = random.between(0, 4);
        self.noun_phrase(random, out);
        if form >= 3 {
            self.prepositional_phrase(random, out);
        }
        self.verb_phrase(random, out);
        match form {
            1 | 4 => self.prepositional_phrase(random, out),
            2 | 3 => self.noun_phrase(random, out),
            _ => {}
        }
        out.pop();
        out.push_str(random.one_of(&self.terminators));
        out.push(' ');
    }

    fn word(&self, list: &[&'static str], random: &mut Random, out: &mut String) {
        out.push_str(random.one_of(list));
        out.push(' ');
    }

    fn noun(&self, random: &mut Random, out: &mut String) {
        let frequent = random.between(0, 9) < 4;
        let list = if frequent { &self.nouns[..FREQUENT_NOUNS] } else { &self.nouns[FREQUENT_NOUNS..] };
        self.word(list, random, out);
    }

    fn noun_phrase(&self, random: &mut Random, out: &mut String) {
        let form = random.between(0, 3);
        if form == 3 {
            self.word(&self.adverbs, random, out);
        }
        if form >= 1 {
            self.word(&self.adjectives, random, out);
        }
        if form == 2 {
            out.pop();
            out.push_str(", ");
            self.word(&self.adjectives, random, out);
        }
        self.noun(random, out);
    }

    fn verb_phrase(&self, random: &mut Random, out: &mut String) {
        let form = random.between(0, 3);
        if form == 1 || form == 3 {
            self.word(&self.auxiliaries, random, out);
        }
        self.word(&self.verbs, random, out);
        if form >= 2 {
            self.word(&self.adverbs, random, out);
        }
    }

    fn prepositional_phrase(&self, random: &mut Random, out: &mut String) {
        self.word(&self.prepositions, random, out);
        out.push_str("the ");
        self.noun_phrase(random, out);
    }
}
