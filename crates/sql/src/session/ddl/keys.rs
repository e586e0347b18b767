//! Keys: from definitions to checked index schemas.
//!
//! A part that is an expression is a column of its own: a generated one behind all others, which no statement can name and which goes with its key
//! ([`rauk_types::Generated::of_key`]). A part `CAST(… AS … ARRAY)` makes the index one of the elements of an array ([`rauk_types::elements`]). In drafts it is called by its number ([`name_of_expression`]), in the table by its text.
//!
//! Errors: 1059, 1060, 1061, 1068, 1069, 1070, 1071, 1072, 1089, 1170, 1171, 1280, 1283, 1391, 3152, 3522; of expressions 3753, 3756, 3757, 3762, and those of
//! [`crate::bind::own_row`].

use super::columns::ColumnDraft;
use crate::parse::ast::{CastType, Expr, IndexAlgorithm, KeyDefinition, KeyPart, TableConstraint};
use crate::session::errors;
use rauk_types::error::codes;
use rauk_types::geometry::POINT_BYTES;
use rauk_types::schema::{MAX_INDEXES, MAX_KEY_BYTES, MAX_KEY_PARTS};
use rauk_types::{
    Collation, DataType, Elements, GeometryKind, IndexId, IndexKind, IndexPart, IndexSchema, MysqlError, TableId,
    TextParser, TypeKind,
};

/// A key on its way into a table; its columns are still names.
#[derive(Clone, Debug)]
pub struct IndexDraft {
    /// `None`: new.
    pub id: Option<IndexId>,
    pub entry_table: Option<TableId>,
    /// `None`: named after its first column.
    pub name: Option<String>,
    pub kind: IndexKind,
    pub parts: Vec<PartDraft>,
    pub hash_only: bool,
    pub comment: String,
    pub invisible: bool,
    /// UNIQUE … GLOBAL.
    pub global: bool,
    /// USING BTREE and KEY_BLOCK_SIZE, as they are shown.
    pub storage: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartDraft {
    pub column: String,
    pub prefix: Option<u64>,
    pub descending: bool,
}

impl IndexDraft {
    pub fn on_column(kind: IndexKind, column: &str) -> IndexDraft {
        IndexDraft {
            id: None,
            entry_table: None,
            name: None,
            kind,
            parts: vec![PartDraft { column: column.to_string(), prefix: None, descending: false }],
            hash_only: false,
            comment: String::new(),
            invisible: false,
            global: false,
            storage: String::new(),
        }
    }
}

/// What a key is called whose first part is an expression, where nobody says it; and in errors about its expression.
pub const UNNAMED_EXPRESSION: &str = "functional_index";

/// The name of the column of a key's expression in drafts, which no other column can have.
pub fn name_of_expression(number: usize) -> String {
    format!("\0expression {number}")
}

/// Reads `column`, `column(10)`, `column DESC`, `(expression)`, for which it adds a column.
pub fn parts(parts: &[KeyPart], columns: &mut Vec<ColumnDraft>) -> Result<Vec<PartDraft>, MysqlError> {
    let draft = |part: &KeyPart| match part {
        KeyPart::Column { name, prefix: Some(0), .. } => {
            Err(MysqlError::new(1391, format!("Key part '{name}' length cannot be 0")))
        }
        KeyPart::Column { name, prefix, descending } => {
            Ok(PartDraft { column: name.clone(), prefix: *prefix, descending: *descending })
        }
        KeyPart::Expr { expr: Expr::Column(_), .. } => Err(MysqlError::new(
            3762,
            "Functional index on a column is not supported. Consider using a regular index instead.",
        )),
        KeyPart::Expr { expr, descending } => {
            let free = |number: &usize| columns.iter().all(|column| column.name != name_of_expression(*number));
            let number = (columns.len()..).find(free).expect("some number is free");
            let name = name_of_expression(number);
            columns.push(ColumnDraft::of_key(name.clone(), expr.to_string()));
            Ok(PartDraft { column: name, prefix: None, descending: *descending })
        }
    };
    parts.iter().map(draft).collect()
}

fn read(
    key: &KeyDefinition,
    name: Option<&str>,
    kind: IndexKind,
    columns: &mut Vec<ColumnDraft>,
) -> Result<IndexDraft, MysqlError> {
    if kind == IndexKind::Primary && key.parts.iter().any(|part| matches!(part, KeyPart::Expr { .. })) {
        return Err(MysqlError::new(3756, "The primary key cannot be a functional index"));
    }
    if key.parser.is_some() && !matches!(kind, IndexKind::FullText(_)) {
        let message = "You have an error in your SQL syntax; WITH PARSER stands behind FULLTEXT keys only";
        return Err(MysqlError::new(codes::PARSE_ERROR, message));
    }
    if key.global && kind != IndexKind::Unique {
        let message = "You have an error in your SQL syntax; GLOBAL stands behind UNIQUE keys only";
        return Err(MysqlError::new(codes::PARSE_ERROR, message));
    }
    let is_array =
        |part: &KeyPart| matches!(part, KeyPart::Expr { expr: Expr::Cast { target: CastType::Array(_), .. }, .. });
    let unique = kind == IndexKind::Unique;
    let draft_kind = match key.parts.iter().position(is_array) {
        // The type of the elements is found when the table is built.
        Some(part) if unique || kind == IndexKind::Ordered => {
            IndexKind::Elements(Elements { part: part as u8, ty: DataType::new(TypeKind::Null), unique })
        }
        _ => kind,
    };
    Ok(IndexDraft {
        id: None,
        entry_table: None,
        name: name.map(str::to_string),
        kind: draft_kind,
        parts: parts(&key.parts, columns)?,
        // A key that is not unique is ordered in any case, as in InnoDB.
        hash_only: key.algorithm == Some(IndexAlgorithm::Hash)
            && matches!(kind, IndexKind::Primary | IndexKind::Unique),
        comment: key.comment.clone().unwrap_or_default(),
        invisible: key.invisible,
        global: key.global,
        storage: storage_text(key),
    })
}

fn storage_text(key: &KeyDefinition) -> String {
    let mut out = String::new();
    if key.algorithm == Some(IndexAlgorithm::BTree) {
        out.push_str(" USING BTREE");
    }
    if key.block_size > 0 {
        out.push_str(&format!(" KEY_BLOCK_SIZE={}", key.block_size));
    }
    out
}

/// Whether a key asks for a hash and gets an ordered index, as in InnoDB: note 3502.
pub fn is_not_hashed(constraint: &TableConstraint) -> bool {
    matches!(constraint, TableConstraint::Index(key) if key.algorithm == Some(IndexAlgorithm::Hash))
}

/// Reads a table constraint that makes an index. Error 1235 for spatial keys.
pub fn draft(constraint: &TableConstraint, columns: &mut Vec<ColumnDraft>) -> Result<IndexDraft, MysqlError> {
    match constraint {
        TableConstraint::PrimaryKey(key) => read(key, Some("PRIMARY"), IndexKind::Primary, columns),
        TableConstraint::Unique(key) => {
            read(key, key.name.as_deref().or(key.symbol.as_deref()), IndexKind::Unique, columns)
        }
        TableConstraint::Index(key) => read(key, key.name.as_deref(), IndexKind::Ordered, columns),
        TableConstraint::ForeignKey { .. } => unreachable!("the caller takes foreign keys elsewhere"),
        TableConstraint::Check(_) => unreachable!("CHECKs are no keys"),
        TableConstraint::FullText(key) => full_text(key, columns),
        TableConstraint::Spatial(_) => Err(errors::not_supported("SPATIAL indexes")),
    }
}

/// A full-text key. A length and a direction of a part say nothing, as in MySQL.
fn full_text(key: &KeyDefinition, columns: &mut Vec<ColumnDraft>) -> Result<IndexDraft, MysqlError> {
    if key.parts.iter().any(|part| matches!(part, KeyPart::Expr { .. })) {
        return Err(MysqlError::new(3758, "Fulltext functional index is not supported."));
    }
    let parser = match &key.parser {
        None => TextParser::Words,
        Some(name) if name.eq_ignore_ascii_case("ngram") => TextParser::Ngram,
        Some(name) => return Err(MysqlError::new(1128, format!("Function '{name}' is not defined"))),
    };
    let mut draft = read(key, key.name.as_deref(), IndexKind::FullText(parser), columns)?;
    for part in &mut draft.parts {
        (part.prefix, part.descending) = (None, false);
    }
    Ok(draft)
}

/// A part of a full-text key. Error 1283.
fn text_part(draft: &PartDraft, columns: &[ColumnDraft]) -> Result<IndexPart, MysqlError> {
    let at = position(draft, columns)?;
    let ty = &columns[at].ty;
    let text = ty.is_text() && !ty.has_members() && ty.kind != TypeKind::Json && ty.collation != Collation::Binary;
    if !text {
        let message = format!("Column '{}' cannot be part of FULLTEXT index", columns[at].name);
        return Err(MysqlError::new(BAD_FULL_TEXT_COLUMN, message));
    }
    Ok(IndexPart { column: at, prefix: None, descending: false })
}

/// ER_BAD_FT_COLUMN.
const BAD_FULL_TEXT_COLUMN: u16 = 1283;

/// Gives names to keys that have none, and checks those that have.
fn name_all(drafts: &mut [IndexDraft], columns: &[ColumnDraft]) -> Result<(), MysqlError> {
    let mut taken: Vec<String> = Vec::new();
    for draft in drafts.iter() {
        let Some(name) = &draft.name else { continue };
        super::check_identifier(name)?;
        let primary = name.eq_ignore_ascii_case("PRIMARY");
        if primary != (draft.kind == IndexKind::Primary) || name.is_empty() || name.ends_with(' ') {
            let message = format!("Incorrect index name '{name}'");
            return Err(MysqlError::new(codes::WRONG_NAME_FOR_INDEX, message));
        }
        if taken.iter().any(|t| t.eq_ignore_ascii_case(name)) {
            return Err(MysqlError::new(codes::DUP_KEYNAME, format!("Duplicate key name '{name}'")));
        }
        taken.push(name.clone());
    }
    for draft in drafts.iter_mut().filter(|d| d.name.is_none()) {
        if draft.kind == IndexKind::Primary {
            draft.name = Some("PRIMARY".to_string());
            continue;
        }
        let first = &draft.parts[0].column;
        let is_expression = columns.iter().any(|column| column.is_of_key() && column.name == *first);
        let base = if is_expression { UNNAMED_EXPRESSION } else { first.as_str() };
        let free =
            |name: &str| !name.eq_ignore_ascii_case("PRIMARY") && !taken.iter().any(|t| t.eq_ignore_ascii_case(name));
        let name = if free(base) {
            base.to_string()
        } else {
            (2..).map(|n| format!("{base}_{n}")).find(|n| free(n)).expect("some number is free")
        };
        taken.push(name.clone());
        draft.name = Some(name);
    }
    Ok(())
}

fn wrong_prefix() -> MysqlError {
    MysqlError::new(
        codes::WRONG_SUB_KEY,
        "Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or the storage engine doesn't support unique prefix keys",
    )
}

/// Where a part's column stands. Error 1072.
fn position(draft: &PartDraft, columns: &[ColumnDraft]) -> Result<usize, MysqlError> {
    columns.iter().position(|c| c.name.eq_ignore_ascii_case(&draft.column)).ok_or_else(|| {
        MysqlError::new(
            codes::KEY_COLUMN_DOES_NOT_EXIST,
            format!("Key column '{}' doesn't exist in table", draft.column),
        )
    })
}

/// One part, checked; and its bytes in MySQL's count of a key.
fn part(draft: &PartDraft, columns: &[ColumnDraft]) -> Result<(IndexPart, u64), MysqlError> {
    let at = position(draft, columns)?;
    let ty = &columns[at].ty;
    let name = &columns[at].name;
    if let Some(ty) = columns[at].elements {
        return element_part(draft, at, &ty);
    }
    if columns[at].is_of_key() && matches!(ty.kind, TypeKind::Json | TypeKind::Geometry) {
        let message = "Cannot create a functional index on a function that returns a JSON or GEOMETRY value.";
        return Err(MysqlError::new(3753, message));
    }
    if columns[at].is_of_key() && ty.is_lob() {
        return Err(MysqlError::new(
            3757,
            "Cannot create a functional index on an expression that returns a BLOB or TEXT. Please consider using CAST.",
        ));
    }
    if ty.kind == TypeKind::Json {
        let message =
            format!("JSON column '{name}' supports indexing only via generated columns on a specified JSON path.");
        return Err(MysqlError::new(3152, message));
    }
    let character_bytes = if ty.is_text() { 4 } else { 1 };
    let mut prefix = None;
    let bytes = match draft.prefix {
        // All points have the same length.
        None if ty.geometry_kind() == Some(GeometryKind::Point) => {
            prefix = Some(POINT_BYTES as u32);
            POINT_BYTES as u64
        }
        None if ty.is_lob() => {
            let message = format!("BLOB/TEXT column '{name}' used in key specification without a key length");
            return Err(MysqlError::new(codes::BLOB_KEY_WITHOUT_LENGTH, message));
        }
        None if ty.is_text() || ty.is_bytes() => u64::from(ty.length) * character_bytes,
        None => ty.row_bytes(),
        Some(_) if !ty.is_text() && !ty.is_bytes() => return Err(wrong_prefix()),
        Some(length) if !ty.is_lob() && length > u64::from(ty.length) => return Err(wrong_prefix()),
        Some(length) => {
            // A prefix of the whole column is no prefix.
            if ty.is_lob() || length < u64::from(ty.length) {
                prefix = Some(length.min(u64::from(u32::MAX)) as u32);
            }
            length.saturating_mul(character_bytes)
        }
    };
    Ok((IndexPart { column: at, prefix, descending: draft.descending }, bytes))
}

/// A part that has a key for each element. Error 1221.
fn element_part(draft: &PartDraft, at: usize, ty: &DataType) -> Result<(IndexPart, u64), MysqlError> {
    if draft.descending {
        return Err(MysqlError::new(1221, "Incorrect usage of DESC and multi-valued index"));
    }
    let bytes = if ty.is_text() { u64::from(ty.length) * 4 } else { ty.row_bytes() };
    Ok((IndexPart { column: at, prefix: None, descending: false }, bytes))
}

/// What kind of index it is by its parts. Error 1235 for several parts with elements.
fn kind_by_parts(draft: &IndexDraft, parts: &[IndexPart], columns: &[ColumnDraft]) -> Result<IndexKind, MysqlError> {
    let unique = match draft.kind {
        IndexKind::Elements(elements) => elements.unique,
        kind => kind == IndexKind::Unique,
    };
    let of_elements = |(part, at): (usize, &IndexPart)| Some((part, columns[at.column].elements?));
    let mut found = parts.iter().enumerate().filter_map(of_elements);
    let Some((part, ty)) = found.next() else {
        return Ok(match draft.kind {
            IndexKind::Elements(_) if unique => IndexKind::Unique,
            IndexKind::Elements(_) => IndexKind::Ordered,
            kind => kind,
        });
    };
    if found.next().is_some() {
        return Err(errors::not_supported("more than one multi-valued key part per index"));
    }
    Ok(IndexKind::Elements(Elements { part: part as u8, ty, unique }))
}

/// [`StorageClauses::indexes`](rauk_types::StorageClauses).
pub type StorageOfIndexes = Vec<(IndexId, String)>;

/// All keys of a table, checked, named and in MySQL's order: the primary key, unique keys over NOT NULL columns, other unique keys, the rest. Ids are
/// those of the drafts, or the next free ones. Columns of the primary key become NOT NULL in `columns`.
pub fn build(
    mut drafts: Vec<IndexDraft>,
    columns: &mut [ColumnDraft],
    first_free_id: u16,
) -> Result<(Vec<IndexSchema>, StorageOfIndexes), MysqlError> {
    if drafts.iter().filter(|d| d.kind == IndexKind::Primary).count() > 1 {
        return Err(MysqlError::new(codes::MULTIPLE_PRI_KEY, "Multiple primary key defined"));
    }
    if drafts.len() > MAX_INDEXES {
        let message = format!("Too many keys specified; max {MAX_INDEXES} keys allowed");
        return Err(MysqlError::new(codes::TOO_MANY_KEYS, message));
    }
    name_all(&mut drafts, columns)?;
    if let Some(primary) = drafts.iter().find(|d| d.kind == IndexKind::Primary) {
        for part in &primary.parts {
            let Some(column) = columns.iter_mut().find(|c| c.name.eq_ignore_ascii_case(&part.column)) else { continue };
            if column.nullable == Some(true) {
                return Err(MysqlError::new(
                    codes::PRIMARY_CANT_HAVE_NULL,
                    "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead",
                ));
            }
            column.nullable = Some(false);
            if column.default == super::columns::DefaultDraft::Value(rauk_types::Value::Null) {
                column.default = super::columns::DefaultDraft::NotGiven;
            }
        }
    }
    let mut next_id = first_free_id;
    let mut out = Vec::with_capacity(drafts.len());
    let mut storage = Vec::new();
    for draft in drafts {
        if draft.parts.len() > MAX_KEY_PARTS {
            let message = format!("Too many key parts specified; max {MAX_KEY_PARTS} parts allowed");
            return Err(MysqlError::new(codes::TOO_MANY_KEY_PARTS, message));
        }
        if draft.comment.chars().count() > 1024 {
            let name = draft.name.as_deref().unwrap_or_default();
            return Err(MysqlError::new(1688, format!("Comment for index '{name}' is too long (max = 1024)")));
        }
        let mut parts = Vec::with_capacity(draft.parts.len());
        let mut bytes = 0;
        for wanted in &draft.parts {
            let (found, length) = match draft.kind {
                IndexKind::FullText(_) => (text_part(wanted, columns)?, 0),
                _ => part(wanted, columns)?,
            };
            if parts.iter().any(|p: &IndexPart| p.column == found.column) {
                let message = format!("Duplicate column name '{}'", wanted.column);
                return Err(MysqlError::new(codes::DUP_FIELDNAME, message));
            }
            parts.push(found);
            bytes += length;
        }
        if let (IndexKind::FullText(_), Some(first)) = (draft.kind, parts.first()) {
            let collation = |part: &IndexPart| columns[part.column].ty.collation;
            if let Some(other) = parts.iter().find(|part| collation(part) != collation(first)) {
                let name = &columns[other.column].name;
                let message = format!("Column '{name}' cannot be part of FULLTEXT index");
                return Err(MysqlError::new(BAD_FULL_TEXT_COLUMN, message));
            }
        }
        if bytes > MAX_KEY_BYTES as u64 {
            let message = format!("Specified key was too long; max key length is {MAX_KEY_BYTES} bytes");
            return Err(MysqlError::new(codes::TOO_LONG_KEY, message));
        }
        let kind = kind_by_parts(&draft, &parts, columns)?;
        let id = match (kind, draft.id) {
            (IndexKind::Primary, _) => IndexId::PRIMARY,
            (_, Some(id)) => id,
            (_, None) => {
                next_id += 1;
                IndexId(next_id - 1)
            }
        };
        if !draft.storage.is_empty() {
            storage.push((id, draft.storage));
        }
        out.push(IndexSchema {
            id,
            name: draft.name.expect("all keys were named"),
            kind,
            parts,
            // Elements are looked for in order.
            hash_only: draft.hash_only && !matches!(kind, IndexKind::Elements(_)),
            entry_table: draft.entry_table,
            comment: draft.comment,
            invisible: draft.invisible,
            global: draft.global,
        });
    }
    // As MySQL sorts them; a row collides with the first unique key that is taken.
    let rank = |index: &IndexSchema| match index.kind {
        IndexKind::Primary => 0,
        IndexKind::Unique => {
            let is_nullable = index.parts.iter().any(|p| columns[p.column].nullable != Some(false));
            let has_prefix = index.parts.iter().any(|p| p.prefix.is_some());
            1 + 2 * u8::from(is_nullable) + u8::from(has_prefix)
        }
        IndexKind::Elements(Elements { unique: true, .. }) => 4,
        IndexKind::Ordered | IndexKind::Elements(_) => 5,
        IndexKind::FullText(_) => 6,
    };
    out.sort_by_key(rank);
    // The first unique key over NOT NULL columns stands for a primary key that is not there.
    if out.first().is_some_and(|index| index.invisible && rank(index) < 3) {
        return Err(MysqlError::new(3522, "A primary key index cannot be invisible"));
    }
    Ok((out, storage))
}
