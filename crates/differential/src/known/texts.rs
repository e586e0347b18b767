//! Which of several texts that are equal by their collation stands for their group.
//!
//! A server is free to choose: 'AB' or 'ab' are the same group. What reads the text by its letters (TRIM, LIKE, HEX) then
//! has other answers, also in a block around, where the rows of the result differ and not only their texts. In these
//! words MariaDB takes the first and the last by their bytes.

use super::names::Names;
use crate::tree::visit::{NodeMut, walk_mut};
use crate::tree::{Class, Expr, Statement};

pub(super) fn least_of_groups(statement: &mut Statement, _: &Names<'_>) -> bool {
    of_groups(statement, "(CONVERT(MIN(BINARY {0}) USING utf8mb4) COLLATE utf8mb4_unicode_ci)")
}

pub(super) fn largest_of_groups(statement: &mut Statement, _: &Names<'_>) -> bool {
    of_groups(statement, "(CONVERT(MAX(BINARY {0}) USING utf8mb4) COLLATE utf8mb4_unicode_ci)")
}

/// Columns of texts by which a block groups, where its list shows them.
fn of_groups(statement: &mut Statement, form: &'static str) -> bool {
    let mut changed = false;
    walk_mut(statement, &mut |node| {
        let NodeMut::Select(select) = node else { return };
        if select.rollup {
            return;
        }
        let is_key = |expr: &Expr| expr.class() == Class::Text && select.group.contains(expr);
        for item in select.items.iter_mut().filter(|item| is_key(&item.expr)) {
            let key = std::mem::replace(&mut item.expr, Expr::literal("NULL", Class::Text));
            item.expr = Expr::form(form, Class::Text, vec![key]);
            changed = true;
        }
    });
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;
    use crate::tree::{Body, Item, Query, Select};

    #[test]
    fn a_text_of_the_list_by_which_is_grouped_is_the_least_of_its_group() {
        let text = || Expr::column("r1", "d", Class::Text);
        let number = || Expr::column("r1", "a", Class::Integer);
        let item = |expr, alias: &str| Item { expr, alias: alias.into() };
        let trimmed = Expr::form("TRIM({0})", Class::Text, vec![text()]);
        let mut select = Select::of(vec![item(text(), "e1"), item(number(), "e2"), item(trimmed, "e3")]);
        select.group = vec![text(), number()];
        let mut statement = Statement::Query(Query::of(Body::Select(Box::new(select))));
        let schema = Schema::random(1);
        let other = statement.clone();
        assert!(least_of_groups(&mut statement, &Names::of(&other, &schema)));
        assert_eq!(
            statement.to_string(),
            "SELECT (CONVERT(MIN(BINARY r1.d) USING utf8mb4) COLLATE utf8mb4_unicode_ci) AS e1, r1.a AS e2, \
             TRIM(r1.d) AS e3 GROUP BY r1.d, r1.a"
        );
    }
}
