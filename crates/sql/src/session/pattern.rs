//! LIKE on names: `%`, `_`, and `\` before either, as SHOW and GRANT use them.

/// Whether `text` matches. `fold`: upper and lower case are the same.
pub fn like(pattern: &str, text: &str, fold: bool) -> bool {
    let characters = |s: &str| -> Vec<char> {
        if fold { s.chars().flat_map(char::to_lowercase).collect() } else { s.chars().collect() }
    };
    let (pattern, text) = (characters(pattern), characters(text));
    // Greedy with one point to come back to: the last `%` and how much of the text it has taken.
    let (mut p, mut t) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    loop {
        let mut advanced = false;
        match pattern.get(p) {
            Some('%') => {
                back = Some((p + 1, t));
                p += 1;
                advanced = true;
            }
            Some('_') if t < text.len() => {
                p += 1;
                t += 1;
                advanced = true;
            }
            Some('\\') if p + 1 < pattern.len() && text.get(t) == pattern.get(p + 1) => {
                p += 2;
                t += 1;
                advanced = true;
            }
            Some('\\') if p + 1 < pattern.len() => {}
            Some(c) if text.get(t) == Some(c) => {
                p += 1;
                t += 1;
                advanced = true;
            }
            None if t == text.len() => return true,
            _ => {}
        }
        if advanced {
            continue;
        }
        match &mut back {
            Some((after, taken)) if *taken < text.len() => {
                *taken += 1;
                p = *after;
                t = *taken;
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::like;

    #[test]
    fn wildcards() {
        for (pattern, text, expected) in [
            ("%", "", true),
            ("a%", "abc", true),
            ("a_c", "abc", true),
            ("a_c", "ac", false),
            ("%b%", "abc", true),
            ("%ab%ab", "abab", true),
            ("a\\_c", "a_c", true),
            ("a\\_c", "abc", false),
            ("a\\%", "a%", true),
            ("", "", true),
            ("", "a", false),
            ("ABC", "abc", false),
        ] {
            assert_eq!(like(pattern, text, false), expected, "{pattern} {text}");
        }
        assert!(like("ABC", "abc", true));
    }
}
