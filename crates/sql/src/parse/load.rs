//! LOAD DATA, and the export options of SELECT … INTO OUTFILE.
//!
//! LOW_PRIORITY and CONCURRENT are accepted and mean nothing here, as in InnoDB. Of a clause that is written twice, the last counts.

use super::ast::{FileFormat, LoadData, LoadDuplicates, LoadTarget};
use super::cursor::{Parser, Result};
use super::lexer::{Kind, literal_digits};
use super::statement::Statement;

impl Parser<'_> {
    /// Behind LOAD DATA.
    pub fn load_data(&mut self) -> Result<Statement> {
        let _ = self.accept_any_kw(&["LOW_PRIORITY", "CONCURRENT"]);
        let local = self.accept_kw("LOCAL");
        self.expect_kw("INFILE")?;
        let file = self.string()?;
        let duplicates = match self.accept_any_kw(&["REPLACE", "IGNORE"]) {
            Some("REPLACE") => LoadDuplicates::Replace,
            Some(_) => LoadDuplicates::Ignore,
            None => LoadDuplicates::Error,
        };
        self.expect_kws(&["INTO", "TABLE"])?;
        let table = self.table_name()?;
        let partitions = self.partitions()?;
        let charset = self.file_charset()?;
        let format = self.file_format()?;
        let mut skip = 0;
        if self.accept_kw("IGNORE") {
            skip = self.integer()?;
            if self.accept_any_kw(&["LINES", "ROWS"]).is_none() {
                return self.fail();
            }
        }
        let mut targets = vec![];
        if self.accept(Kind::LParen) {
            if self.kind() != Kind::RParen {
                targets = self.comma_separated(|p| match p.kind() {
                    Kind::UserVariable => p.user_variable().map(LoadTarget::Variable),
                    _ => p.column_name().map(LoadTarget::Column),
                })?;
            }
            self.expect(Kind::RParen)?;
        }
        let set = if self.accept_kw("SET") { self.comma_separated(Self::assignment)? } else { vec![] };
        let load = LoadData { local, file, duplicates, table, partitions, charset, format, skip, targets, set };
        Ok(Statement::Load(Box::new(load)))
    }

    /// `CHARACTER SET name`, when it stands here.
    pub fn file_charset(&mut self) -> Result<Option<String>> {
        let written =
            self.accept_kws(&["CHARACTER", "SET"]) || self.accept_kw("CHARSET") || self.accept_kws(&["CHAR", "SET"]);
        if written { self.charset_name().map(Some) } else { Ok(None) }
    }

    /// FIELDS and LINES, either of which may be left out.
    pub fn file_format(&mut self) -> Result<FileFormat> {
        let mut format = FileFormat::default();
        if self.mode.no_backslash_escapes {
            format.escaped.clear();
        }
        if self.accept_any_kw(&["FIELDS", "COLUMNS"]).is_some() {
            let mut any = false;
            loop {
                if self.accept_kws(&["TERMINATED", "BY"]) {
                    format.field_end = self.file_text()?;
                } else if self.accept_kws(&["OPTIONALLY", "ENCLOSED", "BY"]) {
                    format.enclosed = self.file_text()?;
                    format.optionally = true;
                } else if self.accept_kws(&["ENCLOSED", "BY"]) {
                    format.enclosed = self.file_text()?;
                } else if self.accept_kws(&["ESCAPED", "BY"]) {
                    format.escaped = self.file_text()?;
                } else if any {
                    break;
                } else {
                    return self.fail();
                }
                any = true;
            }
        }
        if self.accept_kw("LINES") {
            let mut any = false;
            loop {
                if self.accept_kws(&["TERMINATED", "BY"]) {
                    format.line_end = self.file_text()?;
                } else if self.accept_kws(&["STARTING", "BY"]) {
                    format.line_start = self.file_text()?;
                } else if any {
                    break;
                } else {
                    return self.fail();
                }
                any = true;
            }
        }
        Ok(format)
    }

    /// A text, or the bytes of a hexadecimal or bit literal.
    fn file_text(&mut self) -> Result<Vec<u8>> {
        if !matches!(self.kind(), Kind::Hex | Kind::Bit) {
            return self.string().map(String::into_bytes);
        }
        let token = self.advance();
        let (digits, radix, each) = match token.kind {
            Kind::Hex => (literal_digits(self.text(token)), 16, 2),
            _ => (literal_digits(self.text(token)), 2, 8),
        };
        let padding = "0".repeat(digits.len().next_multiple_of(each) - digits.len());
        let digits = format!("{padding}{digits}");
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + each], radix);
        let bytes: std::result::Result<Vec<u8>, _> = (0..digits.len()).step_by(each).map(byte).collect();
        bytes.or_else(|_| self.fail_at(token))
    }
}
