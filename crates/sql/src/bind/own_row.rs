//! Expressions that belong to a table and read its own row: CHECK constraints, generated columns, defaults that are expressions.
//!
//! The catalog keeps each as canonical text ([`Generated`](rauk_types::Generated)). [`settle`] makes it when a table is defined, and finds the mistakes that
//! MySQL finds then: names, functions and variables that may not stand there, what refers to what. [`row_rules`] binds the texts when a statement that
//! writes rows is planned; the plan keeps the outcome, as it keeps everything else that depends on the table's version and on sql_mode.
//!
//! A bound expression reads the row as table 0, column by column: it needs no place in a logical tree. It has no subquery, so that it is
//! evaluated without waiting. Literals have the default collation, whatever the connection's is.
//!
//! The expression of a key is that of a generated column which no statement can name. A statement that writes it out reads that column instead
//! ([`computed_columns`]), as it does for any generated column that a key has.
//!
//! Errors: 1054, 1111, 3102, 3105, 3106, 3107, 3109, 3763, 3765 of generated columns; 3767, 3768, 3769, 3770, 3772, 3773 of defaults; 3754, 3758 of keys; 3812 to 3816, 3818, 3820
//! of CHECK.

use super::partition_function;
use crate::expr::context::{Formats, SqlMode};
use crate::expr::{self, Aggregate, BindContext, BoundSubquery, ColumnId, Expr, ExprKind, Resolved, Scope};
use crate::logical::RowRules;
use crate::parse::ast::{self, Literal};
use crate::parse::{Mode, Statement, Tree, parse_within, print};
use rauk_types::error::codes;
use rauk_types::{ColumnDefault, DataType, IndexKind, MysqlError, TableSchema, TypeKind};
use std::sync::Arc;

/// What an expression of a table is.
#[derive(Clone, Copy)]
pub(crate) enum Role<'a> {
    /// CHECK of this name.
    Check(&'a str),
    /// The generated column of this name.
    Generated(&'a str),
    /// The default of the column of this name.
    Default(&'a str),
    /// An expression in the key of this name.
    Key(&'a str),
    /// What rows are partitioned by.
    Partition,
}

/// Functions whose value depends on more than their arguments: no CHECK and no generated column may call them.
const CHANGING: &[&str] = &[
    "CONNECTION_ID",
    "CURDATE",
    "CURRENT_ROLE",
    "CURRENT_USER",
    "CURTIME",
    "DATABASE",
    "NOW",
    "PS_CURRENT_THREAD_ID",
    "RAND",
    "RANDOM_BYTES",
    "SYSDATE",
    "USER",
    "UTC_DATE",
    "UTC_TIME",
    "UTC_TIMESTAMP",
    "UUID",
    "UUID_SHORT",
    "VALIDATE_PASSWORD_STRENGTH",
    "VERSION",
];

/// Functions that nothing in a table may call.
const NEVER: &[&str] = &[
    "BENCHMARK",
    "EXTRACTVALUE",
    "FOUND_ROWS",
    "GET_LOCK",
    "IS_FREE_LOCK",
    "IS_USED_LOCK",
    "LAST_INSERT_ID",
    "LOAD_FILE",
    "MASTER_POS_WAIT",
    "RELEASE_ALL_LOCKS",
    "RELEASE_LOCK",
    "ROLES_GRAPHML",
    "ROW_COUNT",
    "SLEEP",
    "SOURCE_POS_WAIT",
    "UPDATEXML",
    "WAIT_FOR_EXECUTED_GTID_SET",
];

/// Functions that are predicates to MySQL.
const PREDICATES: &[&str] =
    &["IS_IPV4", "IS_IPV4_COMPAT", "IS_IPV4_MAPPED", "IS_IPV6", "IS_UUID", "JSON_VALID", "REGEXP_LIKE"];

impl Role<'_> {
    fn unknown_column(&self, path: &[&str]) -> MysqlError {
        let column = path.join(".");
        let clause = match self {
            Role::Check(name) => {
                let message = format!("Check constraint '{name}' refers to non-existing column '{column}'.");
                return MysqlError::new(3820, message);
            }
            Role::Generated(_) => "generated column function",
            Role::Default(_) => "default value expression",
            Role::Key(_) => "functional index",
            Role::Partition => "partition function",
        };
        MysqlError::new(codes::BAD_FIELD, format!("Unknown column '{column}' in '{clause}'"))
    }

    /// A function that may not stand there; `None`: one without a name, or a subquery.
    fn disallowed(&self, function: Option<&str>) -> MysqlError {
        let named = function.map_or(String::from("."), |name| format!(": {}.", name.to_ascii_lowercase()));
        let (code, what) = match (self, function) {
            (Role::Check(name), Some(_)) => {
                (3814, format!("An expression of a check constraint '{name}' contains disallowed function"))
            }
            (Role::Check(name), None) => {
                (3815, format!("An expression of a check constraint '{name}' contains disallowed function"))
            }
            (Role::Generated(name), Some(_)) => {
                (3763, format!("Expression of generated column '{name}' contains a disallowed function"))
            }
            (Role::Generated(name), None) => {
                (3102, format!("Expression of generated column '{name}' contains a disallowed function"))
            }
            (Role::Default(name), Some(_)) => {
                (3770, format!("Default value expression of column '{name}' contains a disallowed function"))
            }
            (Role::Key(name), _) => {
                let message = format!("Expression of functional index '{name}' contains a disallowed function.");
                return MysqlError::new(3758, message);
            }
            (Role::Partition, _) => return partition_function::not_allowed(),
            (Role::Default(name), None) => {
                (3769, format!("Default value expression of column '{name}' contains a disallowed function"))
            }
        };
        MysqlError::new(code, format!("{what}{named}"))
    }

    fn variables(&self) -> MysqlError {
        match self {
            Role::Check(name) => MysqlError::new(
                3816,
                format!("An expression of a check constraint '{name}' cannot refer to a user or system variable."),
            ),
            Role::Generated(name) => MysqlError::new(
                3765,
                format!("Expression of generated column '{name}' cannot refer user or system variables."),
            ),
            Role::Default(name) => MysqlError::new(
                3772,
                format!("Default value expression of column '{name}' cannot refer user or system variables."),
            ),
            Role::Key(_) => self.disallowed(None),
            Role::Partition => partition_function::refused_by_parser(),
        }
    }

    fn auto_increment(&self) -> MysqlError {
        match self {
            Role::Check(name) => {
                MysqlError::new(3818, format!("Check constraint '{name}' cannot refer to an auto-increment column."))
            }
            Role::Generated(name) => {
                MysqlError::new(3109, format!("Generated column '{name}' cannot refer to auto-increment column."))
            }
            Role::Default(name) => MysqlError::new(
                3768,
                format!("Default value expression of column '{name}' cannot refer to an auto-increment column."),
            ),
            Role::Key(name) => {
                MysqlError::new(3754, format!("Functional index '{name}' cannot refer to an auto-increment column."))
            }
            Role::Partition => unreachable!("rows may be partitioned by their numbers"),
        }
    }

    /// Error 1235 for CAST(… AS … ARRAY) anywhere but as the whole expression of a key.
    fn check_arrays(&self, expr: &Expr) -> Result<(), MysqlError> {
        fn has_array(expr: &Expr) -> bool {
            let mut found = expr::elements_of(expr).is_some();
            expr.for_each_child(&mut |child| found = found || crate::stack::grow(|| has_array(child)));
            found
        }
        let misplaced = match (self, expr::elements_of(expr)) {
            (Role::Key(_), Some((document, _))) => has_array(document),
            _ => has_array(expr),
        };
        if misplaced { Err(expr::misplaced_array()) } else { Ok(()) }
    }

    /// Error for a call that may not stand in the expression.
    fn check_calls(&self, expr: &Expr) -> Result<(), MysqlError> {
        match &expr.kind {
            ExprKind::UserVariable(_) | ExprKind::AssignVariable { .. } | ExprKind::SystemVariable { .. } => {
                return Err(self.variables());
            }
            ExprKind::Parameter(_) => return Err(self.disallowed(None)),
            ExprKind::Function { function, arguments } => {
                let name = function.name;
                let changes = CHANGING.contains(&name) || name == "UNIX_TIMESTAMP" && arguments.is_empty();
                let fails = match self {
                    Role::Default(_) => NEVER.contains(&name) || function.waits,
                    _ => NEVER.contains(&name) || changes || function.waits || function.volatile,
                };
                if fails {
                    return Err(self.disallowed(Some(name)));
                }
            }
            _ => {}
        }
        let mut result = Ok(());
        expr.for_each_child(&mut |child| {
            if result.is_ok() {
                result = crate::stack::grow(|| self.check_calls(child));
            }
        });
        result
    }
}

/// The names of a table's own row.
struct OwnRow<'a> {
    schema: &'a TableSchema,
    role: Role<'a>,
}

impl Scope for OwnRow<'_> {
    fn resolve(&mut self, path: &[&str]) -> Result<Resolved, MysqlError> {
        let (name, own) = match path {
            [database, table, name] => (name, *database == self.schema.database && *table == self.schema.name),
            [table, name] => (name, *table == self.schema.name),
            [name] => (name, true),
            _ => return Err(self.role.unknown_column(path)),
        };
        let mut columns = self.schema.visible_columns().iter();
        match columns.position(|c| own && c.name.eq_ignore_ascii_case(name)) {
            Some(column) => {
                let definition = &self.schema.columns[column];
                Ok(Resolved::Column { table: 0, column, ty: definition.ty, nullable: definition.nullable })
            }
            None => Err(self.role.unknown_column(path)),
        }
    }

    fn aggregate(&mut self, _: Aggregate) -> Result<ExprKind, MysqlError> {
        Err(MysqlError::new(codes::INVALID_GROUP_FUNC_USE, "Invalid use of group function"))
    }

    fn inserted_value(&mut self, _: &str) -> Result<Resolved, MysqlError> {
        Err(self.role.disallowed(Some("values")))
    }

    fn subquery(&mut self, _: &ast::Query) -> Result<BoundSubquery, MysqlError> {
        Err(self.role.disallowed(None))
    }

    fn default_value(&mut self, _: &[&str]) -> Result<Expr, MysqlError> {
        match self.role {
            Role::Default(_) => {
                Err(MysqlError::new(3773, "DEFAULT function cannot be used with default value expressions"))
            }
            role => Err(role.disallowed(Some("default"))),
        }
    }
}

/// The tree of a text that the catalog keeps.
fn parsed(text: &str, context: &BindContext) -> Result<Tree, MysqlError> {
    Ok(parse_within(&format!("DO {text}"), Mode::default(), &context.memory)?.statement)
}

/// The expression in a tree that [`parsed`] gives.
fn expression(tree: &Tree) -> &ast::Expr {
    match &**tree {
        Statement::Do(list) if list.len() == 1 => &list[0],
        _ => unreachable!("the catalog keeps texts of single expressions"),
    }
}

fn bind_tree(tree: &Tree, schema: &TableSchema, role: Role<'_>, context: &BindContext) -> Result<Expr, MysqlError> {
    crate::stack::with_room(tree.height, || bound_expr(expression(tree), schema, role, context))
}

/// A written expression, bound to the row of its table.
pub(super) fn bound_expr(
    expr: &ast::Expr,
    schema: &TableSchema,
    role: Role<'_>,
    context: &BindContext,
) -> Result<Expr, MysqlError> {
    // Whoever writes the row, its columns are computed alike.
    let sql_mode = SqlMode { formats: Formats::default(), ..context.sql_mode };
    let own = BindContext { sql_mode, memory: context.memory.clone(), arrays: true, ..BindContext::default() };
    expr::bind(expr, &mut OwnRow { schema, role }, &own)
}

/// An expression of the catalog, bound to the row of its table.
pub(super) fn bound(
    text: &str,
    schema: &TableSchema,
    role: Role<'_>,
    context: &BindContext,
) -> Result<Expr, MysqlError> {
    bind_tree(&parsed(text, context)?, schema, role, context)
}

/// The positions of the columns that an expression reads.
pub(super) fn columns_of(expr: &Expr) -> Vec<usize> {
    let mut columns = Vec::new();
    expr.for_each_column(&mut |_, column| columns.push(column));
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// What is computed and checked of each row that is written; `None`: nothing.
pub(crate) fn row_rules(schema: &TableSchema, context: &BindContext) -> Result<Option<Arc<RowRules>>, MysqlError> {
    if !schema.has_row_rules() {
        return Ok(None);
    }
    let mut rules = RowRules::default();
    for (at, column) in schema.columns.iter().enumerate() {
        if let Some(generated) = &column.generated {
            let expr = bound(&generated.expression, schema, Role::Generated(&column.name), context)?;
            rules.generated.push((at, expr));
        }
    }
    for check in schema.checks.iter().filter(|check| check.enforced) {
        let expr = bound(&check.expression, schema, Role::Check(&check.name), context)?;
        rules.checks.push((check.name.clone(), expr));
    }
    Ok((!rules.generated.is_empty() || !rules.checks.is_empty()).then(|| Arc::new(rules)))
}

/// A column's default that is an expression.
pub(crate) fn computed_default(
    schema: &TableSchema,
    column: usize,
    context: &BindContext,
) -> Result<Option<Expr>, MysqlError> {
    let definition = &schema.columns[column];
    match &definition.default {
        ColumnDefault::Expression(text) => bound(text, schema, Role::Default(&definition.name), context).map(Some),
        _ => Ok(None),
    }
}

/// The same for a row whose columns have these ids.
pub(super) fn default_reading(
    schema: &TableSchema,
    column: usize,
    ids: &[ColumnId],
    context: &BindContext,
) -> Result<Option<Expr>, MysqlError> {
    let Some(expr) = computed_default(schema, column, context)? else { return Ok(None) };
    Ok(Some(reading(expr, ids)))
}

/// The columns that a CHECK of a stored table reads.
pub(crate) fn read_by_check(schema: &TableSchema, check: &rauk_types::CheckConstraint) -> Vec<usize> {
    let expr = bound(&check.expression, schema, Role::Check(&check.name), &BindContext::default());
    expr.map_or_else(|_| vec![], |expr| columns_of(&expr))
}

/// The columns that a generated column, or a default that is an expression, of a stored table reads.
pub(crate) fn read_by_column(schema: &TableSchema, column: usize) -> Vec<usize> {
    let definition = &schema.columns[column];
    let context = BindContext::default();
    let expr = match (&definition.generated, &definition.default) {
        (Some(generated), _) => bound(&generated.expression, schema, Role::Generated(&definition.name), &context),
        (None, ColumnDefault::Expression(text)) => bound(text, schema, Role::Default(&definition.name), &context),
        _ => return vec![],
    };
    expr.map_or_else(|_| vec![], |expr| columns_of(&expr))
}

/// Checks all expressions of a table that is being defined, whose names may be written with the table's, and makes their texts canonical. `beside`: of a CHECK
/// that stands beside a column, by the name of the CHECK, that column.
pub(crate) fn settle(schema: &mut TableSchema, beside: &[(String, String)]) -> Result<(), MysqlError> {
    if !schema.has_row_rules() && schema.checks.is_empty() {
        return Ok(());
    }
    let context = BindContext::default();
    for at in 0..schema.columns.len() {
        let column = &schema.columns[at];
        if let Some(generated) = &column.generated {
            // The expressions of keys are settled before the keys are made.
            if generated.of_key {
                continue;
            }
            let stored = generated.stored;
            let text = settled_generated(schema, at, &generated.expression, &context)?;
            let in_key =
                schema.indexes.iter().any(|i| i.kind == IndexKind::Primary && i.parts.iter().any(|p| p.column == at));
            if in_key && !stored {
                return Err(unsupported("Defining a virtual generated column as primary key"));
            }
            schema.columns[at].generated = Some(rauk_types::Generated { expression: text, stored, of_key: false });
        } else if let ColumnDefault::Expression(text) = &column.default {
            let text = settled_default(schema, at, text, &context)?;
            schema.columns[at].default = ColumnDefault::Expression(text);
        }
    }
    for at in 0..schema.checks.len() {
        let text = settled_check(schema, at, beside, &context)?;
        schema.checks[at].expression = text;
    }
    Ok(())
}

/// A key's expression over the rows of a table.
pub(crate) struct SettledKey {
    pub ty: DataType,
    /// Canonical.
    pub text: String,
    /// The type of the elements of CAST(… AS … ARRAY).
    pub elements: Option<DataType>,
}

pub(crate) fn settled_key(row: &TableSchema, index: &str, text: &str) -> Result<SettledKey, MysqlError> {
    let (bound, text) = settled(text, row, Role::Key(index), &BindContext::default())?;
    Ok(SettledKey { ty: bound.ty, text, elements: expr::elements_of(&bound).map(|(_, ty)| ty) })
}

/// Functions that read of the session what no statement says: its time zone, its language, its first day of the week.
const OF_SESSION: &[&str] = &[
    "CONVERT_TZ",
    "DATE_FORMAT",
    "DAYNAME",
    "FORMAT",
    "FROM_UNIXTIME",
    "MONTHNAME",
    "STR_TO_DATE",
    "TIME_FORMAT",
    "UNIX_TIMESTAMP",
    "WEEK",
    "YEARWEEK",
];

/// Whether sessions may see different values of the same row.
fn depends_on_session(expr: &Expr) -> bool {
    let mut found = match &expr.kind {
        ExprKind::Column { .. } => expr.ty.kind == TypeKind::Timestamp,
        ExprKind::Function { function, .. } => OF_SESSION.contains(&function.name),
        ExprKind::Deep(_) => true,
        _ => false,
    };
    expr.for_each_child(&mut |child| found = found || crate::stack::grow(|| depends_on_session(child)));
    found
}

/// Whether a column has room for every value of an expression, and gives it back as it is.
fn holds_all(column: &DataType, expr: &DataType) -> bool {
    match column.kind {
        TypeKind::VarChar | TypeKind::VarBinary => {
            DataType { length: expr.length, ..*column } == *expr && column.length >= expr.length
        }
        _ if column.is_integer() && expr.is_integer() => {
            column.unsigned == expr.unsigned && column.row_bytes() >= expr.row_bytes()
        }
        _ => column == expr,
    }
}

/// The generated columns of a table that its keys have, and what each of them computes of a row whose columns have these ids. Left out: those that
/// sessions may compute in different ways, and those that may hold less than the expression gives.
pub(crate) fn computed_columns(schema: &TableSchema, ids: &[ColumnId]) -> Vec<(ColumnId, Expr)> {
    let mut computed = Vec::new();
    let context = BindContext::default();
    for (at, column) in schema.columns.iter().enumerate() {
        let Some(generated) = &column.generated else { continue };
        if !schema.indexes.iter().any(|index| index.parts.iter().any(|part| part.column == at)) {
            continue;
        }
        let Ok(expr) = bound(&generated.expression, schema, Role::Generated(&column.name), &context) else { continue };
        let is_plain = matches!(expr.kind, ExprKind::Column { .. } | ExprKind::Literal(_));
        if is_plain || depends_on_session(&expr) || !holds_all(&column.ty, &crate::expr::plain_type(expr.ty)) {
            continue;
        }
        computed.push((ids[at], reading(expr, ids)));
    }
    computed
}

/// An expression over a table's own row, for a row whose columns have these ids.
fn reading(expr: Expr, ids: &[ColumnId]) -> Expr {
    expr.map(&mut |expr| match expr.kind {
        ExprKind::Column { column, .. } => Expr { kind: ExprKind::Reference(ids[column]), ..expr },
        _ => expr,
    })
}

/// ER_UNSUPPORTED_ACTION_ON_GENERATED_COLUMN.
pub(crate) fn unsupported(what: &str) -> MysqlError {
    MysqlError::new(3106, format!("'{what}' is not supported for generated columns."))
}

/// ER_NON_DEFAULT_VALUE_FOR_GENERATED_COLUMN.
pub(super) fn not_default(schema: &TableSchema, column: usize) -> MysqlError {
    let (column, table) = (&schema.columns[column].name, &schema.name);
    let message = format!("The value specified for generated column '{column}' in table '{table}' is not allowed.");
    MysqlError::new(3105, message)
}

/// Binds a text for [`settle`]; gives what it became and its canonical form.
fn settled(
    text: &str,
    schema: &TableSchema,
    role: Role<'_>,
    context: &BindContext,
) -> Result<(Expr, String), MysqlError> {
    let tree = parsed(text, context)?;
    let bound = bind_tree(&tree, schema, role, context)?;
    role.check_arrays(&bound)?;
    role.check_calls(&bound)?;
    if let Some(numbered) = schema.auto_increment
        && columns_of(&bound).contains(&numbered)
    {
        return Err(role.auto_increment());
    }
    Ok((bound, print::of_own_row(expression(&tree))))
}

fn settled_generated(schema: &TableSchema, at: usize, text: &str, context: &BindContext) -> Result<String, MysqlError> {
    let role = Role::Generated(&schema.columns[at].name);
    let (bound, text) = settled(text, schema, role, context)?;
    if columns_of(&bound).iter().any(|&read| read >= at && schema.columns[read].generated.is_some()) {
        let message = "Generated column can refer only to generated columns defined prior to it.";
        return Err(MysqlError::new(3107, message));
    }
    Ok(text)
}

fn settled_default(schema: &TableSchema, at: usize, text: &str, context: &BindContext) -> Result<String, MysqlError> {
    let name = &schema.columns[at].name;
    let (bound, text) = settled(text, schema, Role::Default(name), context)?;
    let computed = |read: usize| {
        let column = &schema.columns[read];
        column.generated.is_some() || matches!(column.default, ColumnDefault::Expression(_))
    };
    if columns_of(&bound).iter().any(|&read| read >= at && computed(read)) {
        return Err(MysqlError::new(
            3767,
            format!(
                "Default value expression of column '{name}' cannot refer to a column defined after it if that column is a generated column or has an expression as default value."
            ),
        ));
    }
    // Defaults are computed before generated columns.
    if columns_of(&bound).iter().any(|&read| schema.columns[read].generated.is_some()) {
        let text = "This version of MySQL doesn't yet support 'DEFAULT (expression) that reads a generated column'";
        return Err(MysqlError::new(codes::NOT_SUPPORTED_YET, text));
    }
    Ok(text)
}

fn settled_check(
    schema: &TableSchema,
    at: usize,
    beside: &[(String, String)],
    context: &BindContext,
) -> Result<String, MysqlError> {
    let check = &schema.checks[at];
    let name = &check.name;
    let tree = parsed(&check.expression, context)?;
    let is_number = matches!(expression(&tree), ast::Expr::Literal(Literal::Number(_)));
    let (bound, text) = settled(&check.expression, schema, Role::Check(name), context)?;
    if is_number || !is_predicate(&bound) {
        return Err(MysqlError::new(
            3812,
            format!("An expression of non-boolean type specified to a check constraint '{name}'."),
        ));
    }
    if let Some((_, column)) = beside.iter().find(|(known, _)| known == name) {
        let own = |read: &usize| schema.columns[*read].name.eq_ignore_ascii_case(column);
        if !columns_of(&bound).iter().all(own) {
            let message = format!("Column check constraint '{name}' references other column.");
            return Err(MysqlError::new(3813, message));
        }
    }
    Ok(text)
}

fn is_predicate(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Function { function, .. } => {
            PREDICATES.contains(&function.name) || crate::expr::is_spatial_test(function.name)
        }
        ExprKind::RowOrder { .. } | ExprKind::RowIn(_) => true,
        ExprKind::Deep(deep) => {
            let mut found = false;
            deep.with(&mut |inner| found = is_predicate(inner));
            found
        }
        _ => expr.is_predicate(),
    }
}
