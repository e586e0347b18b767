//! ALTER TABLE.

use super::ast::ColumnDefinition;
use super::cursor::{Parser, Result};
use super::lexer::Kind;
use super::statement::{AlterOperation, ColumnPosition, Demands, Statement};

impl Parser<'_> {
    /// Behind `ALTER TABLE`.
    pub fn alter_table(&mut self) -> Result<Statement> {
        let table = self.table_name()?;
        let mut operations = Vec::new();
        let mut partitions = None;
        if self.at_end() {
            return Ok(Statement::AlterTable { table, operations, partitions });
        }
        loop {
            if self.is_any_kw(&["DISCARD", "IMPORT"])
                && (self.is_kw_at(1, "TABLESPACE") || self.is_kw_at(1, "PARTITION"))
            {
                return self.unsupported("ALTER TABLE ... TABLESPACE");
            }
            if operations.iter().all(|operation| matches!(operation, AlterOperation::Demand(_))) {
                partitions = match self.partition_operation()? {
                    None => self.repartition()?,
                    operation => operation,
                };
                if partitions.is_some() {
                    break;
                }
            }
            self.alter_operation(&mut operations)?;
            if !self.accept(Kind::Comma) {
                partitions = self.repartition()?;
                break;
            }
        }
        Ok(Statement::AlterTable { table, operations, partitions })
    }

    fn column_position(&mut self) -> Result<ColumnPosition> {
        if self.accept_kw("FIRST") {
            return Ok(ColumnPosition::First);
        }
        if self.accept_kw("AFTER") { self.name().map(ColumnPosition::After) } else { Ok(ColumnPosition::Last) }
    }

    fn alter_operation(&mut self, operations: &mut Vec<AlterOperation>) -> Result<()> {
        let mut demands = Demands::default();
        if self.demand(&mut demands)? {
            operations.push(AlterOperation::Demand(demands));
            return Ok(());
        }
        let Some(verb) = self.accept_any_kw(&[
            "ADD", "DROP", "MODIFY", "CHANGE", "ALTER", "RENAME", "DISABLE", "ENABLE", "FORCE", "CONVERT", "ORDER",
            "WITH", "WITHOUT",
        ]) else {
            // Table options may follow each other without commas.
            let mut any = false;
            while let Some((name, value)) = self.table_option()? {
                operations.push(AlterOperation::Option { name, value });
                any = true;
            }
            return if any { Ok(()) } else { self.fail() };
        };
        let operation = match verb {
            "ADD" => return self.alter_add(operations),
            "DROP" => self.alter_drop()?,
            "MODIFY" => {
                self.accept_kw("COLUMN");
                self.accept_kws(&["IF", "EXISTS"]);
                let column = self.column_definition()?;
                AlterOperation::ModifyColumn { column, position: self.column_position()? }
            }
            "CHANGE" => {
                self.accept_kw("COLUMN");
                self.accept_kws(&["IF", "EXISTS"]);
                let old = self.name()?;
                let column = self.column_definition()?;
                AlterOperation::ChangeColumn { old, column, position: self.column_position()? }
            }
            "ALTER" => {
                if let Some(word) = self.accept_any_kw(&["CHECK", "CONSTRAINT"]) {
                    let name = self.name()?;
                    let enforced = !self.accept_kw("NOT");
                    self.expect_kw("ENFORCED")?;
                    operations.push(AlterOperation::AlterCheck { name, enforced, constraint: word == "CONSTRAINT" });
                    return Ok(());
                }
                if self.accept_kw("INDEX") {
                    let name = if self.is_kw("PRIMARY") { self.any_word()? } else { self.name()? };
                    let Some(word) = self.accept_any_kw(&["VISIBLE", "INVISIBLE"]) else { return self.fail() };
                    operations.push(AlterOperation::AlterIndex { name, invisible: word == "INVISIBLE" });
                    return Ok(());
                }
                self.accept_kw("COLUMN");
                let column = self.name()?;
                if self.accept_kws(&["DROP", "DEFAULT"]) {
                    AlterOperation::SetDefault { column, value: None }
                } else if self.accept_kws(&["SET", "INVISIBLE"]) {
                    AlterOperation::SetVisible { column, invisible: true }
                } else if self.accept_kws(&["SET", "VISIBLE"]) {
                    AlterOperation::SetVisible { column, invisible: false }
                } else {
                    self.expect_kws(&["SET", "DEFAULT"])?;
                    AlterOperation::SetDefault { column, value: Some(self.default_value()?) }
                }
            }
            "RENAME" => self.alter_rename()?,
            "DISABLE" | "ENABLE" => {
                self.expect_kw("KEYS")?;
                AlterOperation::Nothing
            }
            "FORCE" => AlterOperation::Force,
            "CONVERT" => {
                self.expect_kw("TO")?;
                if !self.accept_kws(&["CHARACTER", "SET"]) {
                    self.expect_kw("CHARSET")?;
                }
                let charset = self.charset_name()?;
                let collation = if self.accept_kw("COLLATE") { Some(self.charset_name()?) } else { None };
                AlterOperation::ConvertTo { charset, collation }
            }
            "ORDER" => {
                self.expect_kw("BY")?;
                self.comma_separated(Self::order_item)?;
                AlterOperation::Nothing
            }
            _ => {
                self.expect_kw("VALIDATION")?;
                AlterOperation::Nothing
            }
        };
        operations.push(operation);
        Ok(())
    }

    fn alter_add(&mut self, operations: &mut Vec<AlterOperation>) -> Result<()> {
        if !self.is_kw("COLUMN")
            && let Some(constraint) = self.table_constraint()?
        {
            operations.push(AlterOperation::AddConstraint(constraint));
            return Ok(());
        }
        self.accept_kw("COLUMN");
        let if_not_exists = self.accept_kws(&["IF", "NOT", "EXISTS"]);
        if self.kind() == Kind::LParen {
            let columns: Vec<Option<ColumnDefinition>> = self.parenthesized(|p| {
                p.comma_separated(|p| match p.table_constraint()? {
                    Some(constraint) => {
                        operations.push(AlterOperation::AddConstraint(constraint));
                        Ok(None)
                    }
                    None => p.column_definition().map(Some),
                })
            })?;
            let add = |column| AlterOperation::AddColumn { column, position: ColumnPosition::Last, if_not_exists };
            operations.extend(columns.into_iter().flatten().map(add));
            return Ok(());
        }
        let column = self.column_definition()?;
        operations.push(AlterOperation::AddColumn { column, position: self.column_position()?, if_not_exists });
        Ok(())
    }

    fn alter_drop(&mut self) -> Result<AlterOperation> {
        if self.accept_kws(&["PRIMARY", "KEY"]) {
            return Ok(AlterOperation::DropPrimaryKey);
        }
        if self.accept_any_kw(&["KEY", "INDEX"]).is_some() {
            self.accept_kws(&["IF", "EXISTS"]);
            return self.name().map(AlterOperation::DropIndex);
        }
        if self.accept_kw("FOREIGN") {
            self.expect_kw("KEY")?;
            self.accept_kws(&["IF", "EXISTS"]);
            return self.name().map(AlterOperation::DropForeignKey);
        }
        if self.accept_kw("CHECK") {
            return self.name().map(AlterOperation::DropCheck);
        }
        if self.accept_kw("CONSTRAINT") {
            self.accept_kws(&["IF", "EXISTS"]);
            return self.name().map(AlterOperation::DropConstraint);
        }
        self.accept_kw("COLUMN");
        let if_exists = self.accept_kws(&["IF", "EXISTS"]);
        let name = self.name()?;
        let _ = self.accept_any_kw(&["RESTRICT", "CASCADE"]);
        Ok(AlterOperation::DropColumn { name, if_exists })
    }

    fn alter_rename(&mut self) -> Result<AlterOperation> {
        if self.accept_kw("COLUMN") {
            let old = self.name()?;
            self.expect_kw("TO")?;
            return Ok(AlterOperation::RenameColumn { old, new: self.name()? });
        }
        if self.accept_any_kw(&["INDEX", "KEY"]).is_some() {
            let old = self.name()?;
            self.expect_kw("TO")?;
            return Ok(AlterOperation::RenameIndex { old, new: self.name()? });
        }
        if self.accept_any_kw(&["TO", "AS"]).is_none() {
            self.accept(Kind::Eq);
        }
        Ok(AlterOperation::RenameTable(self.table_name()?))
    }
}
