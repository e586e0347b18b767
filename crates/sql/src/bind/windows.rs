//! Windows of a query block: WINDOW, OVER, and the node that computes the functions.
//!
//! A call is registered when the expression with it is bound ([`Scope::window`](crate::expr::Scope)); its window is kept as it is written. After
//! ORDER BY all windows of the block are bound, used or not, those of WINDOW first, with MySQL's order of errors: keys (3592, 1054, 3595), references
//! (3579, 3580), what a window may change of the one it extends (3581, 3583, 3582), then each window's name and frame (3591, 3584 to 3590, 3596).
//!
//! Then the block is split. Above the windows stays what reads a function's value; of everything else that is read there, and of the keys and
//! arguments of the windows, the projection below them makes a column:
//!
//! ```text
//! Project   a + RANK() OVER (ORDER BY b + c)     →   Project #1 + #9
//! Filter, Aggregate, joins                           Window rank as #9 order by #2
//!                                                    Project a as #1, b + c as #2
//!                                                    Filter, Aggregate, joins
//! ```

use super::Binder;
use super::names::Clause;
use crate::expr::{
    self, AggregateFunction, ColumnId, CompareOp, Distance, Expr, ExprKind, FrameBound, WindowCall, WindowFrame,
    WindowFunction,
};
use crate::logical::{Node, Query, SortKey, WindowNode, WindowStage};
use crate::parse::ast;
use rauk_types::{DataType, MysqlError, TypeKind, Value};

/// Windows of a block (4086), as in MySQL.
const MAX_WINDOWS: usize = 127;

/// A call as it is registered.
pub(super) struct PendingCall {
    pub id: ColumnId,
    pub call: WindowCall,
    pub over: ast::Window,
}

/// A call with its window.
pub(super) struct BoundCall {
    pub id: ColumnId,
    pub call: WindowCall,
    pub partition: Vec<Expr>,
    pub order: Vec<SortKey>,
    pub frame: WindowFrame,
}

impl BoundCall {
    /// What it reads of the block.
    pub fn for_each_expr_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let keys = self.order.iter_mut().map(|key| &mut key.expr);
        self.call.arguments.iter_mut().chain(&mut self.partition).chain(keys)
    }
}

/// A window of the block, as it is written.
struct Written<'w> {
    /// An unnamed one stands behind OVER.
    name: Option<&'w str>,
    spec: &'w ast::WindowSpec,
    partition: Vec<Expr>,
    order: Vec<SortKey>,
    /// The one that it extends.
    base: Option<usize>,
}

impl Written<'_> {
    fn printed(&self) -> &str {
        self.name.unwrap_or("<unnamed window>")
    }
}

fn no_such_window(name: &str) -> MysqlError {
    MysqlError::new(3579, format!("Window name '{name}' is not defined."))
}

fn illegal_frame(name: &str) -> MysqlError {
    MysqlError::new(3586, format!("Window '{name}': frame start or end is negative, NULL or of non-integral type"))
}

fn find(windows: &[Written<'_>], name: &str) -> Option<usize> {
    windows.iter().position(|window| window.name.is_some_and(|known| known.eq_ignore_ascii_case(name)))
}

impl Binder<'_> {
    /// Error 3593 or 3595: no window function may stand here.
    pub(super) fn check_window_place(&self, name: &str) -> Result<(), MysqlError> {
        let Some(frame) = self.frames.last() else { return Err(expr::window_refused(name)) };
        if let Some(window) = &frame.in_window {
            let message = format!("You cannot nest a window function in the specification of window '{window}'.");
            return Err(MysqlError::new(3595, message));
        }
        if !frame.takes_windows || frame.windows_around > 0 || frame.aggregates_around > 0 {
            return Err(expr::window_refused(name));
        }
        Ok(())
    }

    pub(super) fn register_window(&mut self, call: WindowCall, over: &ast::Window) -> ExprKind {
        let known = self.frame().windows.iter().find(|known| known.call == call && known.over == *over);
        if let Some(known) = known {
            return ExprKind::Reference(known.id);
        }
        let id = self.add_column(call.ty, call.nullable, String::new());
        self.frame().windows.push(PendingCall { id, call, over: over.clone() });
        ExprKind::Reference(id)
    }

    /// Binds all windows of the block.
    pub(super) fn windows(&mut self, named: &[(String, ast::WindowSpec)]) -> Result<Vec<BoundCall>, MysqlError> {
        let calls = std::mem::take(&mut self.frame().windows);
        if named.is_empty() && calls.is_empty() {
            return Ok(vec![]);
        }
        let mut windows: Vec<Written<'_>> = Vec::new();
        let mut add = |name, spec| windows.push(Written { name, spec, partition: vec![], order: vec![], base: None });
        named.iter().for_each(|(name, spec)| add(Some(name.as_str()), spec));
        for call in &calls {
            match &call.over {
                ast::Window::Named(name) if !named.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) => {
                    return Err(no_such_window(name));
                }
                ast::Window::Named(_) => {}
                ast::Window::Spec(spec) => add(None, &**spec),
            }
        }
        if windows.len() > MAX_WINDOWS {
            let message = format!("Too many windows in SELECT: {}. Maximum allowed is {MAX_WINDOWS}", windows.len());
            return Err(MysqlError::new(4086, message));
        }
        for window in &mut windows {
            self.bind_keys(window)?;
        }
        check_references(&mut windows)?;
        let mut frames = Vec::with_capacity(windows.len());
        for at in 0..windows.len() {
            let name = windows[at].name;
            if name.is_some_and(|name| {
                windows.iter().filter(|w| w.name.is_some_and(|n| n.eq_ignore_ascii_case(name))).count() > 1
            }) {
                return Err(MysqlError::new(3591, format!("Window '{}' is defined twice.", windows[at].printed())));
            }
            let (partition, order) = whole(&windows, at);
            let frame = self.window_frame(windows[at].printed(), windows[at].spec.frame.as_ref(), &order)?;
            frames.push((partition, order, frame));
        }
        let mut unnamed = named.len();
        let mut bound = Vec::with_capacity(calls.len());
        for PendingCall { id, call, over } in &calls {
            let at = match over {
                ast::Window::Named(name) => find(&windows, name).expect("it was found above"),
                ast::Window::Spec(_) => {
                    unnamed += 1;
                    unnamed - 1
                }
            };
            let (partition, order, frame) = frames[at].clone();
            bound.push(BoundCall { id: *id, call: call.clone(), partition, order, frame });
        }
        Ok(bound)
    }

    fn bind_keys(&mut self, window: &mut Written<'_>) -> Result<(), MysqlError> {
        let printed = window.printed().to_string();
        let check = |expr: &ast::Expr| match expr {
            ast::Expr::Literal(ast::Literal::Number(digits)) if digits.bytes().all(|d| d.is_ascii_digit()) => {
                let message = format!(
                    "Window '{printed}': ORDER BY or PARTITION BY uses legacy position indication which is not supported, use expression."
                );
                Err(MysqlError::new(3592, message))
            }
            _ => Ok(()),
        };
        let frame = self.frame();
        frame.in_window = Some(printed.clone());
        frame.use_aliases = false;
        for key in &window.spec.partition_by {
            check(key)?;
            window.partition.push(self.bind_in(key, Clause::WindowPartition)?);
        }
        for key in &window.spec.order_by {
            check(&key.expr)?;
            let expr = self.bind_in(&key.expr, Clause::WindowOrder)?;
            window.order.push(SortKey { expr, descending: key.descending });
        }
        self.frame().in_window = None;
        Ok(())
    }

    /// The frame of a window with this order.
    fn window_frame(
        &mut self,
        name: &str,
        frame: Option<&ast::Frame>,
        order: &[SortKey],
    ) -> Result<WindowFrame, MysqlError> {
        let Some(frame) = frame else {
            let end = if order.is_empty() { FrameBound::Unbounded } else { FrameBound::CurrentRow };
            return Ok(WindowFrame { window: name.into(), range: true, start: FrameBound::Unbounded, end });
        };
        let range = frame.unit == ast::FrameUnit::Range;
        let current = ast::FrameBound::CurrentRow;
        let end = frame.end.as_ref().unwrap_or(&current);
        if range {
            for bound in [&frame.start, end] {
                check_range(name, bound, order)?;
            }
        }
        use ast::FrameBound::{CurrentRow, Following, Preceding, UnboundedFollowing, UnboundedPreceding};
        if frame.start == UnboundedFollowing {
            return Err(MysqlError::new(3584, format!("Window '{name}': frame start cannot be UNBOUNDED FOLLOWING.")));
        }
        let start = self.frame_bound(name, range, &frame.start, order)?;
        if *end == UnboundedPreceding {
            return Err(MysqlError::new(3585, format!("Window '{name}': frame end cannot be UNBOUNDED PRECEDING.")));
        }
        if matches!(
            (&frame.start, end),
            (CurrentRow, Preceding(_)) | (Following(_), CurrentRow) | (Following(_), Preceding(_))
        ) {
            return Err(illegal_frame(name));
        }
        let end = self.frame_bound(name, range, end, order)?;
        Ok(WindowFrame { window: name.into(), range, start, end })
    }

    fn frame_bound(
        &mut self,
        name: &str,
        range: bool,
        bound: &ast::FrameBound,
        order: &[SortKey],
    ) -> Result<FrameBound, MysqlError> {
        let (written, preceding) = match bound {
            ast::FrameBound::CurrentRow => return Ok(FrameBound::CurrentRow),
            ast::FrameBound::UnboundedPreceding | ast::FrameBound::UnboundedFollowing => {
                return Ok(FrameBound::Unbounded);
            }
            ast::FrameBound::Preceding(distance) => (distance, true),
            ast::FrameBound::Following(distance) => (distance, false),
        };
        let interval = match written {
            ast::Expr::Interval { amount, unit } => Some((amount, *unit)),
            _ => None,
        };
        if !range && interval.is_some() {
            return Err(MysqlError::new(
                3596,
                format!("Window '{name}': INTERVAL can only be used with RANGE frames."),
            ));
        }
        let amount = interval.map_or(written, |(amount, _)| amount);
        let amount = self.bind_in(amount, Clause::WindowFrame)?;
        if !amount.is_constant() || amount.has_subquery() {
            return Err(MysqlError::new(3590, format!("Window '{name}' has a non-constant frame bound.")));
        }
        if let ExprKind::Literal(value) = &amount.kind {
            let legal = match value {
                Value::Int(count) => *count >= 0,
                Value::UInt(_) => true,
                Value::Decimal(number) => range && !number.is_negative(),
                Value::Double(number) => range && *number >= 0.0,
                // An amount of a unit of several parts.
                Value::Str(_) => range && interval.is_some(),
                _ => false,
            };
            if !legal {
                return Err(illegal_frame(name));
            }
        }
        let by = match interval {
            None => Distance::Number(amount),
            Some((_, unit)) => {
                let SortKey { expr: key, descending } = order[0].clone();
                let context = self.context;
                let subtract = preceding != descending;
                let moved = expr::date_add(key.clone(), amount.clone(), unit, subtract, self, context);
                let compared = expr::compare(CompareOp::Lt, key, moved.clone(), self, context)?;
                let ExprKind::Compare { by, .. } = compared.kind else { unreachable!("made so") };
                Distance::Interval { amount, moved, by }
            }
        };
        Ok(FrameBound::Distance { by, preceding })
    }

    /// Puts the windows above what the block has made so far, and makes `items` and `order` read their values.
    pub(super) fn window_node(
        &mut self,
        node: Node,
        calls: Vec<BoundCall>,
        items: &mut [(ColumnId, Expr)],
        order: &mut [SortKey],
    ) -> Node {
        let own: Vec<ColumnId> = calls.iter().map(|call| call.id).collect();
        let mut below: Vec<(ColumnId, Expr)> = Vec::new();
        for expr in items.iter_mut().map(|(_, item)| item).chain(order.iter_mut().map(|key| &mut key.expr)) {
            self.split(expr, &own, &mut below);
        }
        let mut stages: Vec<WindowStage> = Vec::new();
        for BoundCall { id, mut call, partition, order, mut frame } in calls {
            let count = call.count_argument();
            let json = matches!(
                call.function,
                WindowFunction::Aggregate(AggregateFunction::JsonArrayAgg | AggregateFunction::JsonObjectAgg)
            );
            for (at, argument) in call.arguments.iter_mut().enumerate().filter(|(at, _)| Some(*at) != count) {
                let predicate = json && argument.is_boolean();
                debug_assert!(count != Some(at));
                let column = self.below(argument.clone(), &mut below);
                // A document shows a predicate as a boolean, by its form.
                *argument = if predicate { not(not(column)) } else { column };
            }
            let partition: Vec<Expr> = partition.into_iter().map(|key| self.below(key, &mut below)).collect();
            let order: Vec<SortKey> = order
                .into_iter()
                .map(|key| SortKey { expr: self.below(key.expr, &mut below), descending: key.descending })
                .collect();
            for bound in [&mut frame.start, &mut frame.end] {
                if let FrameBound::Distance { by: Distance::Interval { moved, .. }, .. } = bound
                    && let ExprKind::DateAdd { date, .. } = &mut moved.kind
                {
                    **date = order[0].expr.clone();
                }
            }
            let same = |stage: &&mut WindowStage| {
                let keys = |a: &SortKey, b: &SortKey| a.expr == b.expr && a.descending == b.descending;
                stage.partition == partition
                    && stage.order.len() == order.len()
                    && stage.order.iter().zip(&order).all(|(a, b)| keys(a, b))
            };
            match stages.iter_mut().find(same) {
                Some(stage) => stage.calls.push((id, call, frame)),
                None => stages.push(WindowStage { partition, order, calls: vec![(id, call, frame)] }),
            }
        }
        let columns = below.iter().map(|(id, _)| *id).collect();
        let input = Query { node: Node::Project { input: Box::new(node), items: below }, columns };
        Node::Window(Box::new(WindowNode { input, stages }))
    }

    /// Replaces the parts of an expression that read no window function by columns of the projection below.
    fn split(&mut self, expr: &mut Expr, own: &[ColumnId], below: &mut Vec<(ColumnId, Expr)>) {
        if !reads(expr, own) {
            if !expr.is_constant() || expr.has_subquery() {
                let whole = std::mem::replace(expr, Expr::null());
                *expr = self.below(whole, below);
            }
            return;
        }
        expr.for_each_child_mut(&mut |child| crate::stack::grow(|| self.split(child, own, below)));
    }

    /// The column of the projection below that is this expression.
    fn below(&mut self, expr: Expr, below: &mut Vec<(ColumnId, Expr)>) -> Expr {
        let known = below.iter().find(|(_, item)| *item == expr && is_repeatable(&expr)).map(|(id, _)| *id);
        let id = known.unwrap_or_else(|| {
            let name = match expr.kind {
                ExprKind::Reference(id) => self.columns.get(id).result.name.clone(),
                _ => String::new(),
            };
            let id = self.add_item(&expr, name);
            below.push((id, expr.clone()));
            id
        });
        Expr { kind: ExprKind::Reference(id), ..expr }
    }
}

fn not(expr: Expr) -> Expr {
    let nullable = expr.nullable;
    Expr {
        kind: ExprKind::Not(Box::new(expr)),
        ty: DataType { length: 1, ..DataType::BIGINT },
        nullable,
        coercibility: 5,
    }
}

/// Whether an expression reads one of these columns.
pub(super) fn reads(expr: &Expr, columns: &[ColumnId]) -> bool {
    let mut found = false;
    expr.for_each_reference(&mut |id, _| found |= columns.contains(&id));
    found
}

/// Whether two of the same expression have the same value in a row.
fn is_repeatable(expr: &Expr) -> bool {
    let mut repeatable = match &expr.kind {
        ExprKind::AssignVariable { .. } | ExprKind::UserVariable(_) | ExprKind::Deep(_) => false,
        ExprKind::Reference(_) => true,
        ExprKind::Function { function, .. } => !function.volatile,
        _ => true,
    };
    expr.for_each_child(&mut |child| repeatable = repeatable && is_repeatable(child));
    repeatable
}

/// The partition and the order of a window, with what it has of the one that it extends.
fn whole(windows: &[Written<'_>], at: usize) -> (Vec<Expr>, Vec<SortKey>) {
    let mut at = at;
    let mut order = vec![];
    loop {
        let window = &windows[at];
        if order.is_empty() {
            order.clone_from(&window.order);
        }
        match window.base {
            Some(base) => at = base,
            None => return (window.partition.clone(), order),
        }
    }
}

/// Finds the window that each extends. Errors: 3579, 3580, 3581, 3583, 3582.
fn check_references(windows: &mut [Written<'_>]) -> Result<(), MysqlError> {
    for at in 0..windows.len() {
        if let Some(name) = &windows[at].spec.base {
            windows[at].base = Some(find(windows, name).ok_or_else(|| no_such_window(name))?);
        }
    }
    for start in 0..windows.len() {
        let (mut at, mut steps) = (start, 0);
        while let Some(base) = windows[at].base {
            at = base;
            steps += 1;
            if steps > windows.len() {
                return Err(MysqlError::new(3580, "There is a circularity in the window dependency graph."));
            }
        }
    }
    for at in 0..windows.len() {
        if windows[at].base.is_some() && !windows[at].spec.partition_by.is_empty() {
            return Err(MysqlError::new(3581, "A window which depends on another cannot define partitioning."));
        }
        if windows.iter().any(|window| window.base == Some(at)) {
            if windows[at].spec.frame.is_some() {
                let name = windows[at].printed();
                let message =
                    format!("Window '{name}' has a frame definition, so cannot be referenced by another window.");
                return Err(MysqlError::new(3582, message));
            }
            continue;
        }
        let mut orderer: Option<usize> = None;
        let mut next = Some(at);
        while let Some(at) = next {
            if !windows[at].spec.order_by.is_empty() {
                if let Some(first) = orderer {
                    let message = format!(
                        "Window '{}' cannot inherit '{}' since both contain an ORDER BY clause.",
                        windows[first].printed(),
                        windows[at].printed()
                    );
                    return Err(MysqlError::new(3583, message));
                }
                orderer = Some(at);
            }
            next = windows[at].base;
        }
    }
    Ok(())
}

/// Errors 3587, 3588, 3589: a bound of RANGE that does not suit the order.
fn check_range(name: &str, bound: &ast::FrameBound, order: &[SortKey]) -> Result<(), MysqlError> {
    let (ast::FrameBound::Preceding(distance) | ast::FrameBound::Following(distance)) = bound else { return Ok(()) };
    let interval = matches!(distance, ast::Expr::Interval { .. });
    let temporal =
        |ty: &DataType| matches!(ty.kind, TypeKind::Date | TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp);
    let number = |ty: &DataType| ty.is_numeric() || matches!(ty.kind, TypeKind::Year | TypeKind::Bit);
    match order {
        [key] if temporal(&key.expr.ty) && !interval => Err(MysqlError::new(
            3588,
            format!(
                "Window '{name}' with RANGE frame has ORDER BY expression of datetime type. Only INTERVAL bound value allowed."
            ),
        )),
        [key] if number(&key.expr.ty) && interval => Err(MysqlError::new(
            3589,
            format!(
                "Window '{name}' with RANGE frame has ORDER BY expression of numeric type, INTERVAL bound value not allowed."
            ),
        )),
        [key] if temporal(&key.expr.ty) || number(&key.expr.ty) => Ok(()),
        _ => Err(MysqlError::new(
            3587,
            format!(
                "Window '{name}' with RANGE N PRECEDING/FOLLOWING frame requires exactly one ORDER BY expression, of numeric or temporal type"
            ),
        )),
    }
}
