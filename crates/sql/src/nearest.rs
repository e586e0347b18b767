//! The nearest right name for a wrong one, as the end of an error: `; did you mean 'name'?`.
//!
//! MySQL's text stays the beginning, and its code, so whatever reads errors reads them as before.
//!
//! Mechanism: the distance of two names is the number of letters that are changed, added, left out or exchanged with the
//! next one, without regard to case. A third of a name may differ, so `nmae` is near to `name` and `id` to nothing.
//! The nearest name is told, of several equally near the first in the alphabet.
//!
//! Invariants: only names that whoever asks may see are looked at (the caller gives no others), and at most [`MOST`] of
//! them, since an error must not take longer than the statement would have. Left out: names in other databases, and
//! words of the grammar.

/// Names that are looked at.
const MOST: usize = 10_000;
/// Letters of a name beyond which nothing is near.
const LONGEST: usize = 64;

/// `; did you mean 'NAME'?`, or nothing where no name is near.
pub(crate) fn hint<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, names).map_or(String::new(), |name| format!("; did you mean '{name}'?"))
}

fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = word.to_lowercase();
    let length = folded.chars().count();
    if length > LONGEST {
        return None;
    }
    let allowed = length / 3;
    let mut best: Option<(usize, &str)> = None;
    for name in names.into_iter().take(MOST) {
        if name == word || name.chars().count().abs_diff(length) > allowed {
            continue;
        }
        let found = (strsim::osa_distance(&folded, &name.to_lowercase()), name);
        if found.0 <= allowed && best.is_none_or(|best| found < best) {
            best = Some(found);
        }
    }
    best.map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_told() {
        let names = ["id", "name", "created_at", "price", "prices", "名前"];
        let told = |word| hint(word, names);
        assert_eq!(told("nmae"), "; did you mean 'name'?");
        assert_eq!(told("NAMES"), "; did you mean 'name'?");
        assert_eq!(told("create_at"), "; did you mean 'created_at'?");
        assert_eq!(told("prise"), "; did you mean 'price'?", "nearer than prices");
        assert_eq!(told("Price"), "; did you mean 'price'?", "another case");
        assert_eq!(told("pricez"), "; did you mean 'price'?", "the first of two equally near");
        for far in ["x", "ix", "nothing", "", "customer"] {
            assert_eq!(told(far), "", "{far}");
        }
        assert_eq!(told(&"a".repeat(100)), "");
        assert_eq!(hint("price", ["price"]), "", "it is the name itself");
    }
}
