//! Functions of the database `sys`, which are other names or short forms of built-in ones: `sys.format_bytes(n)` is
//! `FORMAT_BYTES(n)`.

use crate::parse::ast::{Arguments, Call, Expr};

/// What a call of a function of `sys` means; `None`: there is no such function.
pub(super) fn meaning(of: &Call) -> Option<Expr> {
    let Arguments::List { distinct: false, items } = &of.arguments else { return None };
    let call = |name: &str, items: Vec<Expr>| Expr::call(name, items);
    let text = |text: &str| Expr::text(text);
    let number = |number: u32| Expr::number(number.to_string());
    Some(match (of.name.to_ascii_lowercase().as_str(), items.as_slice()) {
        ("format_bytes", [bytes]) => call("FORMAT_BYTES", vec![bytes.clone()]),
        ("format_time", [time]) => call("FORMAT_PICO_TIME", vec![time.clone()]),
        ("format_path", [path]) => path.clone(),
        ("format_statement", [statement]) => {
            let part = |side: &str| call(side, vec![statement.clone(), number(30)]);
            let shortened = call("CONCAT", vec![part("LEFT"), text(" ... "), part("RIGHT")]);
            // 1 from 65 characters on.
            let long = call("INTERVAL", vec![call("CHAR_LENGTH", vec![statement.clone()]), number(65)]);
            let whole = call("IF", vec![long, shortened, statement.clone()]);
            call("REPLACE", vec![whole, text("\n"), text(" ")])
        }
        ("quote_identifier", [name]) => {
            let doubled = call("REPLACE", vec![name.clone(), text("`"), text("``")]);
            call("CONCAT", vec![text("`"), doubled, text("`")])
        }
        ("version_major", []) => call("SUBSTRING_INDEX", vec![call("VERSION", vec![]), text("."), number(1)]),
        ("version_minor", []) => {
            let two = call("SUBSTRING_INDEX", vec![call("VERSION", vec![]), text("."), number(2)]);
            call("SUBSTRING", vec![two, number(3)])
        }
        _ => return None,
    })
}
