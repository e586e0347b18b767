//! One text of several statements to the texts of each.

use super::cursor::LOOK;
use super::lexer::{Kind, Lexer, Mode};

/// The statements of `sql`, which semicolons separate; those in strings, quoted names and comments do not count. Nothing behind the last
/// semicolon is no statement, but an empty text is one (which fails with 1065), and so is nothing between two semicolons.
/// It asks now and then whether it may go on; if not, the rest of the text comes as it is.
pub fn split(sql: &str, mode: Mode, mut may_go_on: impl FnMut() -> bool) -> impl Iterator<Item = &str> {
    let mut lexer = Lexer::new(sql, mode);
    let mut start = 0;
    let mut first = true;
    let mut done = false;
    let mut looked = 0;
    std::iter::from_fn(move || {
        if done {
            return None;
        }
        let mut tokens = 0;
        loop {
            looked += 1;
            if looked % LOOK == 0 && !may_go_on() {
                done = true;
                return Some(sql[start..].trim());
            }
            let token = lexer.next_token();
            match token.kind {
                Kind::End => {
                    done = true;
                    return if tokens > 0 || first { Some(sql[start..].trim()) } else { None };
                }
                Kind::Semicolon => {
                    let text = sql[start..token.start as usize].trim();
                    start = token.end as usize;
                    first = false;
                    return Some(text);
                }
                _ => tokens += 1,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(sql: &str) -> Vec<&str> {
        split(sql, Mode::default(), || true).collect()
    }

    #[test]
    fn semicolons_outside_of_quotes_separate() {
        assert_eq!(parts("SELECT 1"), ["SELECT 1"]);
        assert_eq!(parts("SELECT 1;"), ["SELECT 1"]);
        assert_eq!(
            parts("SELECT ';', `;`, \";\" /* ; */ -- ;\n; SELECT 2 # ;\n;"),
            ["SELECT ';', `;`, \";\" /* ; */ -- ;", "SELECT 2 # ;"]
        );
        assert_eq!(parts(""), [""]);
        assert_eq!(parts(" ; ;SELECT 1; -- x"), ["", "", "SELECT 1"]);
        assert_eq!(parts("/*!40101 SET a=1; */ SET b=2"), ["/*!40101 SET a=1", "*/ SET b=2"]);
        assert_eq!(parts("SELECT 'a\\';b'; SELECT 'x"), ["SELECT 'a\\';b'", "SELECT 'x"]);
    }

    #[test]
    fn whoever_may_not_go_on_gets_the_rest_as_it_is() {
        let sql = "SELECT 1;".repeat(LOOK);
        let mut looks = 0;
        let parts: Vec<&str> = split(&sql, Mode::default(), || {
            looks += 1;
            looks < 2
        })
        .collect();
        let rest = parts.last().unwrap();
        assert!(looks == 2 && parts.len() > LOOK / 3 && parts.len() < LOOK && rest.len() > "SELECT 1;".len());
        assert_eq!(parts.concat().len(), sql.len() - (parts.len() - 1));
    }
}
