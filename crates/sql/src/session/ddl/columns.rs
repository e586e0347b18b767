//! Column definitions: attributes, defaults, nullability.
//!
//! A [`ColumnDraft`] is a column on its way into a table: what was declared, with what follows from keys still open (a primary key column is NOT NULL
//! although nobody said so).

use super::types::{self, TypeAttributes};
use crate::expr::context::WarningLevel;
use crate::expr::{self, BindContext, Columns, Context, ExprKind, Resolved, Scope as NameScope};
use crate::parse::ast::{Arguments, ColumnDefinition, ColumnOption, ColumnType, DefaultValue, Expr, Literal};
use rauk_types::error::codes;
use rauk_types::format::append_text;
use rauk_types::geometry::ReferenceSystem;
use rauk_types::{
    Collation, Column, ColumnDefault, ColumnId, DataType, Generated, MysqlError, TypeKind, Value, ValueRef,
};

/// A column on its way into a table.
#[derive(Clone, Debug)]
pub struct ColumnDraft {
    /// `None`: new.
    pub id: Option<ColumnId>,
    pub name: String,
    pub ty: DataType,
    /// As declared: `None` when nothing was said.
    pub nullable: Option<bool>,
    pub default: DefaultDraft,
    pub on_update_now: bool,
    pub auto_increment: bool,
    pub comment: String,
    /// Of a column that exists already: what old rows read as.
    pub initial: Option<Value>,
    /// A key that stood beside the column.
    pub key: Option<InlineKey>,
    /// Its expression names columns as they were written until the table is built.
    pub generated: Option<Generated>,
    /// The type of the elements that a key has entries for; found when the table is built.
    pub elements: Option<DataType>,
    pub invisible: bool,
    /// STORAGE and COLUMN_FORMAT, as they are shown.
    pub storage: String,
}

impl ColumnDraft {
    /// The column of a key's expression, called so until the table is built, which finds its type.
    pub fn of_key(name: String, expression: String) -> ColumnDraft {
        ColumnDraft {
            id: None,
            name,
            ty: DataType::new(TypeKind::Null),
            nullable: None,
            default: DefaultDraft::NotGiven,
            on_update_now: false,
            auto_increment: false,
            comment: String::new(),
            initial: None,
            key: None,
            generated: Some(Generated { expression, stored: false, of_key: true }),
            elements: None,
            invisible: false,
            storage: String::new(),
        }
    }

    /// Whether it holds the expression of a key.
    pub fn is_of_key(&self) -> bool {
        self.generated.as_ref().is_some_and(|generated| generated.of_key)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum DefaultDraft {
    NotGiven,
    Value(Value),
    Now,
    /// One that is computed for each row: text that names columns as they were written until the table is built.
    Expression(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InlineKey {
    Primary,
    Unique,
}

/// Constants only: DEFAULT may name no column and no aggregate.
struct NoNames;

impl NameScope for NoNames {
    fn resolve(&mut self, path: &[&str]) -> Result<Resolved, MysqlError> {
        let name = path.join(".");
        Err(MysqlError::new(codes::BAD_FIELD, format!("Unknown column '{name}' in 'field list'")))
    }
    fn aggregate(&mut self, _: expr::Aggregate) -> Result<ExprKind, MysqlError> {
        Err(MysqlError::new(codes::INVALID_GROUP_FUNC_USE, "Invalid use of group function"))
    }
    fn inserted_value(&mut self, column: &str) -> Result<Resolved, MysqlError> {
        self.resolve(&[column])
    }
    fn default_value(&mut self, column: &[&str]) -> Result<expr::Expr, MysqlError> {
        self.resolve(column).map(|_| unreachable!("no name resolves"))
    }
}

impl Columns for NoNames {
    fn column(&self, _: usize, _: usize) -> ValueRef<'_> {
        ValueRef::Null
    }
}

/// The value and type of an expression without names.
pub fn evaluate(e: &Expr, bind_context: &BindContext, context: &mut Context) -> Result<(Value, DataType), MysqlError> {
    let bound = expr::bind(e, &mut NoNames, bind_context)?;
    Ok((bound.eval(&NoNames, context)?, bound.ty))
}

fn invalid_default(name: &str) -> MysqlError {
    MysqlError::new(codes::INVALID_DEFAULT, format!("Invalid default value for '{name}'"))
}

/// `CURRENT_TIMESTAMP`, `NOW(3)`, `LOCALTIME`, …: the digits that are asked for.
pub fn current_timestamp(e: &Expr) -> Option<u8> {
    let Expr::Call(call) = e else { return None };
    let is_now = |name: &str| {
        ["CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"].iter().any(|n| n.eq_ignore_ascii_case(name))
    };
    let Arguments::List { distinct: false, items } = &call.arguments else { return None };
    if call.database.is_some() || !is_now(&call.name) {
        return None;
    }
    match items.as_slice() {
        [] => Some(0),
        [Expr::Literal(Literal::Number(digits))] => digits.parse().ok(),
        _ => None,
    }
}

/// Reads one column definition. `inherited` is the table's collation.
pub fn draft(
    definition: &ColumnDefinition,
    inherited: Collation,
    context: &mut Context,
) -> Result<ColumnDraft, MysqlError> {
    let name = definition.name.clone();
    super::check_identifier(&name)?;
    if name.is_empty() || name.ends_with(' ') {
        return Err(MysqlError::new(1166, format!("Incorrect column name '{name}'")));
    }
    let mut attributes = TypeAttributes { inherited, strict: context.sql_mode.strict, ..TypeAttributes::default() };
    attributes.charset = definition.options.iter().find_map(|option| match option {
        ColumnOption::Charset(name) => Some(name.as_str()),
        _ => None,
    });
    attributes.collation = definition.options.iter().find_map(|option| match option {
        ColumnOption::Collation(name) => Some(name.as_str()),
        _ => None,
    });

    for option in &definition.options {
        if let ColumnOption::Srid(value) = option {
            attributes.system = Some(reference_system(value, &definition.column_type, context)?);
        }
    }
    attributes.binary = definition.options.contains(&ColumnOption::BinaryCollation);
    attributes.zerofill = definition.options.contains(&ColumnOption::Zerofill);
    if let ColumnType::Year(Some(4)) = definition.column_type {
        let message = "'YEAR(4)' is deprecated and will be removed in a future release. Please use YEAR instead";
        context.warn(codes::WARN_DEPRECATED_SYNTAX, message.into());
    }

    let mut nullable = None;
    let mut default = None;
    let mut on_update = None;
    let mut auto_increment = false;
    let mut comment = String::new();
    let mut key = None;
    let mut generated = None;
    let mut invisible = false;
    let (mut storage, mut format) = (None, None);
    for option in &definition.options {
        match option {
            ColumnOption::Zerofill => {}
            ColumnOption::Null => nullable = Some(true),
            ColumnOption::NotNull => nullable = Some(false),
            ColumnOption::Default(value) => default = Some(value),
            ColumnOption::PrimaryKey => key = Some(InlineKey::Primary),
            // PRIMARY KEY UNIQUE is the primary key.
            ColumnOption::Unique => key = key.or(Some(InlineKey::Unique)),
            ColumnOption::Comment(text) => comment = text.clone(),
            ColumnOption::OnUpdate(value) => on_update = Some(value),
            ColumnOption::Charset(_) | ColumnOption::Collation(_) | ColumnOption::BinaryCollation => {}
            ColumnOption::AutoIncrement => auto_increment = true,
            // A foreign key of the table, which has it already.
            ColumnOption::References(_) => {}
            // The table's.
            ColumnOption::Check(_) => {}
            ColumnOption::Generated { expr, stored } => {
                let expression = expr.to_string();
                generated = Some(Generated { expression, stored: *stored, of_key: false });
            }
            ColumnOption::Invisible => invisible = true,
            ColumnOption::Storage(word) => storage = Some(format!(" /*!50606 STORAGE {word} */")),
            ColumnOption::Format(word) => format = Some(format!(" /*!50606 COLUMN_FORMAT {word} */")),
            ColumnOption::Srid(_) => {}
        }
    }
    if comment.chars().count() > 1024 {
        return Err(MysqlError::new(1629, format!("Comment for field '{name}' is too long (max = 1024)")));
    }
    // A TEXT or BLOB can have no such default value.
    let is_null = |value: &DefaultValue| matches!(value, DefaultValue::Plain(Expr::Literal(Literal::Null)));
    attributes.strict |= default.is_some_and(|value| matches!(value, DefaultValue::Plain(_)) && !is_null(value));
    let ty = types::convert(&definition.column_type, &name, &attributes)?;
    if let Some(message) = types::conversion(&definition.column_type, &ty, &name) {
        context.push_warning(WarningLevel::Note, codes::AUTO_CONVERT, message);
    }
    let mut draft = ColumnDraft {
        id: None,
        name,
        ty,
        nullable,
        default: DefaultDraft::NotGiven,
        on_update_now: false,
        auto_increment,
        comment,
        initial: None,
        key,
        generated,
        elements: None,
        invisible,
        storage: storage.unwrap_or_default() + format.as_deref().unwrap_or_default(),
    };
    if draft.generated.is_some() {
        let given =
            [("DEFAULT", default.is_some()), ("ON UPDATE", on_update.is_some()), ("AUTO_INCREMENT", auto_increment)];
        if let Some((clause, _)) = given.iter().find(|(_, given)| *given) {
            let message = format!("Incorrect usage of {clause} and generated column");
            return Err(MysqlError::new(codes::WRONG_USAGE, message));
        }
    }
    if let Some(value) = on_update {
        let fits = matches!(ty.kind, TypeKind::DateTime | TypeKind::Timestamp);
        if !fits || current_timestamp(value) != Some(ty.scale) {
            let message = format!("Invalid ON UPDATE clause for '{}' column", draft.name);
            return Err(MysqlError::new(1294, message));
        }
        draft.on_update_now = true;
    }
    if auto_increment {
        let numeric = ty.is_integer() || matches!(ty.kind, TypeKind::Float | TypeKind::Double);
        if !numeric {
            let message = format!("Incorrect column specifier for column '{}'", draft.name);
            return Err(MysqlError::new(1063, message));
        }
        if default.is_some() {
            return Err(invalid_default(&draft.name));
        }
    }
    if let Some(value) = default {
        draft.default = default_value(value, &draft, context)?;
    }
    Ok(draft)
}

/// The system that SRID names. Errors: 1221, 1690, 3548.
fn reference_system(
    value: &Expr,
    column_type: &ColumnType,
    context: &mut Context,
) -> Result<&'static ReferenceSystem, MysqlError> {
    if !matches!(column_type, ColumnType::Geometry(_)) {
        return Err(MysqlError::new(codes::WRONG_USAGE, "Incorrect usage of SRID and non-geometry column"));
    }
    let (value, _) = evaluate(value, &BindContext::default(), context)?;
    let number = value.as_ref().as_integer().and_then(|number| u32::try_from(number).ok());
    let srid =
        number.ok_or_else(|| MysqlError::new(codes::DATA_OUT_OF_RANGE, "SRID value is out of range in 'SRID'"))?;
    ReferenceSystem::find(srid).ok_or_else(|| {
        MysqlError::new(codes::SRS_NOT_FOUND, format!("There's no spatial reference system with SRID {srid}."))
    })
}

/// DEFAULT of a column: its value, converted to the column's type, or an expression that is computed for each row. Errors: 1067, 1101.
pub fn default_value(
    value: &DefaultValue,
    column: &ColumnDraft,
    context: &mut Context,
) -> Result<DefaultDraft, MysqlError> {
    let (value, is_expression) = match value {
        DefaultValue::Plain(value) => (value, false),
        DefaultValue::Expr(value) => (value, true),
    };
    if let Some(digits) = current_timestamp(value) {
        let fits = matches!(column.ty.kind, TypeKind::DateTime | TypeKind::Timestamp);
        if fits && digits == column.ty.scale {
            return Ok(DefaultDraft::Now);
        }
        if !is_expression {
            return Err(invalid_default(&column.name));
        }
    }
    let bind_context =
        BindContext { collation: context.collation, sql_mode: context.sql_mode, ..BindContext::default() };
    let bound = expr::bind(value, &mut NoNames, &bind_context);
    let is_constant = bound.as_ref().is_ok_and(expr::Expr::is_immutable);
    // MariaDB writes calls without parentheses. What is wrong with the expression is found when the table is built.
    if !is_constant && (is_expression || matches!(value, Expr::Call(_))) {
        return Ok(DefaultDraft::Expression(value.to_string()));
    }
    let bound = bound.map_err(|e| match e.code {
        codes::BAD_FIELD => invalid_default(&column.name),
        _ => e,
    })?;
    if !is_constant {
        return Err(invalid_default(&column.name));
    }
    let evaluated = bound.eval(&NoNames, context).map_err(|_| invalid_default(&column.name))?;
    if evaluated.is_null() {
        if column.nullable == Some(false) {
            return Err(invalid_default(&column.name));
        }
        return Ok(DefaultDraft::Value(Value::Null));
    }
    if let Some(members) = column.ty.members {
        // By its text alone: a number is none.
        let mut text = Vec::new();
        append_text(evaluated.as_ref(), &bound.ty, &mut text);
        let text = String::from_utf8(text).map_err(|_| invalid_default(&column.name))?;
        let text = text.trim_end_matches(' ');
        let number = match column.ty.kind {
            TypeKind::Enum => members.position(text, column.ty.collation),
            _ => Some(members.bits(text, column.ty.collation)).filter(|(_, all)| *all).map(|(bits, _)| bits),
        };
        let number = number.ok_or_else(|| invalid_default(&column.name))?;
        return Ok(DefaultDraft::Value(Value::UInt(number)));
    }
    if column.ty.is_lob() && !is_expression {
        let message = format!("BLOB, TEXT, GEOMETRY or JSON column '{}' can't have a default value", column.name);
        return Err(MysqlError::new(codes::BLOB_CANT_HAVE_DEFAULT, message));
    }
    // A default that does not fit is refused in every sql_mode.
    let warnings = context.warnings.len();
    let counted = context.warning_count;
    let strict = std::mem::replace(&mut context.strict_statement, true);
    let target = finish(column, true, None);
    let converted = expr::convert_for_column(evaluated, &bound.ty, &target, 1, context);
    context.strict_statement = strict;
    let noted = context.warnings.len() > warnings;
    context.warnings.truncate(warnings);
    context.warning_count = counted;
    match converted {
        Ok(value) if !noted || !context.sql_mode.strict || column.ty.is_numeric() => Ok(DefaultDraft::Value(value)),
        _ => Err(invalid_default(&column.name)),
    }
}

/// The column as the table has it. `id` may be set later.
pub fn finish(draft: &ColumnDraft, nullable: bool, id: Option<ColumnId>) -> Column {
    let default = match &draft.default {
        DefaultDraft::Value(value) => ColumnDefault::Value(value.clone()),
        DefaultDraft::Now => ColumnDefault::Now,
        DefaultDraft::Expression(text) => ColumnDefault::Expression(text.clone()),
        DefaultDraft::NotGiven if nullable => ColumnDefault::Value(Value::Null),
        DefaultDraft::NotGiven => ColumnDefault::None,
    };
    Column {
        id: id.or(draft.id).unwrap_or(ColumnId(0)),
        name: draft.name.clone(),
        ty: draft.ty,
        nullable,
        default,
        on_update_now: draft.on_update_now,
        comment: draft.comment.clone(),
        initial: draft.initial.clone().unwrap_or_default(),
        generated: draft.generated.clone(),
        invisible: draft.invisible,
    }
}

/// The value of a type that stands for "nothing given": what ADD COLUMN … NOT NULL without a default puts into old rows.
pub fn implicit_value(column: &Column, context: &mut Context) -> Result<Value, MysqlError> {
    let ty = &column.ty;
    Ok(match ty.kind {
        TypeKind::Null => Value::Null,
        TypeKind::Enum => Value::UInt(1),
        TypeKind::Set | TypeKind::Bit | TypeKind::Year => Value::UInt(0),
        _ if ty.is_integer() => {
            if ty.unsigned {
                Value::UInt(0)
            } else {
                Value::Int(0)
            }
        }
        TypeKind::Float | TypeKind::Double => Value::Double(0.0),
        TypeKind::Json => Value::Json(rauk_types::json::JsonRef::NULL.to_stored()),
        _ if ty.is_text() => Value::Str(String::new()),
        TypeKind::Binary => Value::Bytes(vec![0; ty.length as usize]),
        // No geometry stands for none.
        TypeKind::Geometry => return Err(rauk_types::geometry::no_geometry()),
        _ if ty.is_bytes() => Value::Bytes(Vec::new()),
        TypeKind::Timestamp => Value::Timestamp(0),
        _ => {
            // Zero dates and a zero DECIMAL: by way of the conversion that knows their form; sql_mode does not forbid them here.
            let mode = context.sql_mode;
            context.sql_mode.no_zero_date = false;
            context.sql_mode.no_zero_in_date = false;
            let converted = if ty.kind == TypeKind::Decimal {
                expr::convert_for_column(Value::Int(0), &DataType::BIGINT, column, 1, context)
            } else {
                let text = if ty.kind == TypeKind::Time { "00:00:00" } else { "0000-00-00" };
                let from = DataType::varchar(10, Collation::Utf8mb4Bin);
                expr::convert_for_column(Value::from(text), &from, column, 1, context)
            };
            context.sql_mode = mode;
            converted?
        }
    })
}
