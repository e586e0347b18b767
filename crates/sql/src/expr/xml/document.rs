//! An XML text as a list of nodes.
//!
//! Only what MySQL asks of a document is checked: tags that match, quoted attributes, comments and sections that end. Entities stay as they are
//! written, as in MySQL, and there is no document type.

use std::ops::Range;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Root,
    Element,
    Attribute,
    Text,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub kind: Kind,
    pub parent: usize,
    /// Of an element or attribute.
    pub name: Range<usize>,
    /// Of an attribute or text.
    pub value: Range<usize>,
    /// The whole node in the text.
    pub place: Range<usize>,
    pub level: usize,
}

/// In the order of the text: a node stands behind its parent, its attributes before its children.
#[derive(Clone, Debug)]
pub struct Document<'t> {
    pub text: &'t str,
    pub nodes: Vec<Node>,
}

/// Where a text is no document, and what is wrong there.
#[derive(Debug, PartialEq, Eq)]
pub struct Wrong {
    pub at: usize,
    pub what: String,
}

const MOST_LEVELS: usize = 1000;

struct Parser<'t> {
    text: &'t str,
    at: usize,
    nodes: Vec<Node>,
    /// The open elements, the root first.
    open: Vec<usize>,
}

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '_' | ':')
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | ':' | '-' | '.')
}

impl<'t> Document<'t> {
    pub fn parse(text: &'t str) -> Result<Document<'t>, Wrong> {
        let root = Node { kind: Kind::Root, parent: 0, name: 0..0, value: 0..0, place: 0..text.len(), level: 0 };
        let mut parser = Parser { text, at: 0, nodes: vec![root], open: vec![0] };
        while parser.at < text.len() {
            parser.piece()?;
        }
        if parser.open.len() > 1 {
            return Err(Wrong { at: text.len(), what: "unexpected END-OF-INPUT".to_string() });
        }
        Ok(Document { text, nodes: parser.nodes })
    }

    pub fn name(&self, node: usize) -> &'t str {
        &self.text[self.nodes[node].name.clone()]
    }
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn wrong<T>(&self, what: &str) -> Result<T, Wrong> {
        let found = match self.rest().chars().next() {
            None => "END-OF-INPUT".to_string(),
            Some(c @ ('=' | '/' | '>' | '<' | '?' | '!')) => format!("'{c}'"),
            Some(_) => "unknown token".to_string(),
        };
        Err(Wrong { at: self.at, what: format!("{found} unexpected ({what} wanted)") })
    }

    fn spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// `wanted`: what might be there, as an error says it.
    fn name(&mut self, wanted: &str) -> Result<Range<usize>, Wrong> {
        let length = self.rest().find(|c| !is_name(c)).unwrap_or(self.rest().len());
        if length == 0 || !self.rest().starts_with(begins_name) {
            return self.wrong(wanted);
        }
        self.at += length;
        Ok(self.at - length..self.at)
    }

    fn expect(&mut self, mark: &str) -> Result<(), Wrong> {
        if !self.rest().starts_with(mark) {
            return self.wrong(&format!("'{mark}'"));
        }
        self.at += mark.len();
        Ok(())
    }

    /// Up to behind an end mark; gives what is before it.
    fn until(&mut self, mark: &str) -> Result<Range<usize>, Wrong> {
        match self.rest().find(mark) {
            Some(length) => {
                let begin = self.at;
                self.at += length + mark.len();
                Ok(begin..begin + length)
            }
            None => {
                self.at = self.text.len();
                self.wrong(if mark.len() == 1 { "'>'" } else { mark })
            }
        }
    }

    fn add(&mut self, kind: Kind, name: Range<usize>, value: Range<usize>, place: Range<usize>) -> usize {
        let parent = self.open[self.open.len() - 1];
        self.nodes.push(Node { kind, parent, name, value, place, level: self.open.len() });
        self.nodes.len() - 1
    }

    /// A text, a tag, a comment or a section.
    fn piece(&mut self) -> Result<(), Wrong> {
        let begin = self.at;
        let rest = self.rest();
        if !rest.starts_with('<') {
            let length = rest.find('<').unwrap_or(rest.len());
            self.at += length;
            self.add(Kind::Text, 0..0, begin..self.at, begin..self.at);
            return Ok(());
        }
        if rest.starts_with("<!--") {
            self.at += 4;
            return self.until("-->").map(drop);
        }
        if rest.starts_with("<![CDATA[") {
            self.at += 9;
            let value = self.until("]]>")?;
            let place = begin..self.at;
            self.add(Kind::Text, 0..0, value, place);
            return Ok(());
        }
        if rest.starts_with("<?") {
            self.at += 2;
            return self.until("?>").map(drop);
        }
        if rest.starts_with("<!") {
            self.at += 2;
            return self.until(">").map(drop);
        }
        if rest.starts_with("</") {
            self.at += 2;
            return self.end_tag();
        }
        self.at += 1;
        self.tag(begin)
    }

    fn end_tag(&mut self) -> Result<(), Wrong> {
        self.spaces();
        let name = self.name("ident")?;
        let open = if self.open.len() > 1 { self.open.pop() } else { None };
        let Some(open) = open else {
            let what = format!("'</{}>' unexpected (END-OF-INPUT wanted)", &self.text[name.clone()]);
            return Err(Wrong { at: name.end, what });
        };
        let wanted = self.nodes[open].name.clone();
        if self.text[wanted.clone()] != self.text[name.clone()] {
            let (given, wanted) = (&self.text[name.clone()], &self.text[wanted]);
            return Err(Wrong { at: name.end, what: format!("'</{given}>' unexpected ('</{wanted}>' wanted)") });
        }
        self.spaces();
        self.expect(">")?;
        self.nodes[open].place.end = self.at;
        Ok(())
    }

    fn tag(&mut self, begin: usize) -> Result<(), Wrong> {
        self.spaces();
        let name = self.name("ident or '/'")?;
        if self.open.len() > MOST_LEVELS {
            return Err(Wrong { at: begin, what: format!("more than {MOST_LEVELS} levels") });
        }
        let element = self.add(Kind::Element, name, 0..0, begin..begin);
        self.open.push(element);
        loop {
            self.spaces();
            if self.rest().starts_with('/') {
                self.at += 1;
                self.spaces();
                self.expect(">")?;
                self.nodes[element].place.end = self.at;
                self.open.pop();
                return Ok(());
            }
            if self.rest().starts_with('>') {
                self.at += 1;
                return Ok(());
            }
            let begin = self.at;
            let name = self.name("'>'")?;
            self.spaces();
            let mut value = self.at..self.at;
            if self.rest().starts_with('=') {
                self.at += 1;
                self.spaces();
                value = match self.rest().chars().next() {
                    Some(quote @ ('"' | '\'')) => {
                        self.at += 1;
                        self.until(&quote.to_string())?
                    }
                    _ => self.name("ident or string")?,
                };
            }
            let place = begin..self.at;
            self.add(Kind::Attribute, name, value, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_their_places() {
        let document = Document::parse("<?xml?><a x='1'> t <b/>u<!-- c --><![CDATA[<v>]]></a>").unwrap();
        let kinds: Vec<Kind> = document.nodes.iter().map(|node| node.kind).collect();
        let texts = document.nodes.iter().filter(|node| node.kind == Kind::Text);
        let texts: Vec<&str> = texts.map(|node| &document.text[node.value.clone()]).collect();
        assert_eq!(
            kinds,
            [Kind::Root, Kind::Element, Kind::Attribute, Kind::Text, Kind::Element, Kind::Text, Kind::Text]
        );
        assert_eq!(texts, [" t ", "u", "<v>"]);
        assert_eq!(&document.text[document.nodes[4].place.clone()], "<b/>");
    }

    #[test]
    fn what_is_no_document() {
        for text in ["<a>", "<a></b>", "</a>", "<a b='>", "<", "<a", "<!-- x", "<a b", "<a b=", "<![CDATA[x"] {
            assert!(Document::parse(text).is_err(), "{text}");
        }
        assert!(Document::parse("text <a/> text").is_ok());
        assert!(Document::parse(&"<a>".repeat(5000)).is_err());
    }
}
