//! The tables of a recording: one list, from which the DDL, the statements and the
//! reference in `docs/recording-format.md` are made.

mod dictionary;
mod increments;
mod run;

use std::{collections::BTreeMap, fmt::Write as _, sync::LazyLock};

/// `PRAGMA application_id` of a recording: `FSC1` in ASCII.
pub const APPLICATION_ID: i32 = 0x4653_4331;
/// `PRAGMA user_version`: raised by every change to a table of an earlier version. New
/// tables do not raise it; readers leave tables alone that they do not know.
pub const VERSION: i32 = 1;
/// Tables that came after recordings of this version were made: a file may lack them.
pub(super) const LATER: &[&str] = &["result_refused"];

/// Bits of the place of a row in its interval: rows are numbered by the interval and by it, so
/// that they are appended to their table, whose pages are then filled to the end.
pub(super) const ROW_BITS: u32 = 18;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An integer.
    Int,
    /// An integer or NULL.
    OptInt,
    /// A text.
    Text,
    /// A text or NULL.
    OptText,
    /// A number.
    Real,
    /// A list of counts as `pack` writes it, or NULL.
    Counts,
    /// A sum that SQLite computes of the row; not stored, and no integer where it is beyond 2^63.
    Sum(&'static str),
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Meaning and unit, a clause.
    pub doc: &'static str,
}

/// A table.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Name.
    pub name: &'static str,
    /// What a row is, a sentence.
    pub doc: &'static str,
    /// Columns, in groups that tables share.
    pub groups: &'static [&'static [Column]],
    /// Columns of the primary key, from the first on.
    pub key: usize,
    /// Leading columns that a row's place gives and not its content.
    pub place: usize,
}

impl Table {
    /// Its columns.
    pub fn columns(&self) -> impl Iterator<Item = &'static Column> + use<> {
        self.groups.iter().copied().flatten()
    }

    /// The statement that creates it; compared letter by letter on reading.
    #[must_use]
    pub fn ddl(&self) -> String {
        let mut sql = format!("CREATE TABLE {} (\n", self.name);
        for column in self.columns() {
            let kind = match column.kind {
                Kind::Int => "INTEGER NOT NULL",
                Kind::OptInt => "INTEGER",
                Kind::Text => "TEXT NOT NULL",
                Kind::OptText => "TEXT",
                Kind::Real => "REAL NOT NULL",
                Kind::Counts => "BLOB",
                Kind::Sum(of) => &format!("ANY AS ({of}) VIRTUAL"),
            };
            writeln!(sql, "  {} {kind},", column.name).expect("writing to a string");
        }
        let key: Vec<&str> = self.columns().take(self.key).map(|c| c.name).collect();
        // A single integer is the row's own number; several make an index of their own.
        let rowid = if self.key == 1 { "" } else { ", WITHOUT ROWID" };
        write!(sql, "  PRIMARY KEY ({})\n) STRICT{rowid}", key.join(", "))
            .expect("writing to a string");
        sql
    }

    fn stored(&self) -> Vec<&'static str> {
        self.columns()
            .filter(|c| !matches!(c.kind, Kind::Sum(_)))
            .map(|c| c.name)
            .collect()
    }
}

/// The statements for a table.
#[derive(Debug)]
pub(super) struct Statements {
    /// Adds a row: all stored columns.
    pub(super) insert: String,
    /// Rows of a place in order: stored columns but those of the place.
    pub(super) select: String,
    /// Stands for the table in checksums.
    pub(super) tag: u64,
}

static STATEMENTS: LazyLock<BTreeMap<&'static str, Statements>> = LazyLock::new(|| {
    let statements = |table: &Table| {
        let columns = table.stored();
        let place = &columns[..table.place];
        let order: Vec<&str> = columns[..table.key].to_vec();
        let at = match place {
            // A whole table, by position.
            ["position"] => String::new(),
            ["at"] => format!(" WHERE at >= ?1 << {ROW_BITS} AND at < (?1 + 1) << {ROW_BITS}"),
            _ => format!(" WHERE {} = ?1", place[0]),
        };
        Statements {
            insert: format!(
                "INSERT INTO {} ({}) VALUES ({})",
                table.name,
                columns.join(", "),
                vec!["?"; columns.len()].join(", ")
            ),
            select: format!(
                "SELECT {} FROM {}{at} ORDER BY {}",
                columns[table.place..].join(", "),
                table.name,
                order.join(", ")
            ),
            tag: super::digest::of_bytes(table.name.as_bytes()),
        }
    };
    tables().map(|t| (t.name, statements(t))).collect()
});

/// The statements for the table called `name`.
///
/// # Panics
/// If there is no such table, which a test on all records rules out.
pub(super) fn statements(name: &str) -> &'static Statements {
    STATEMENTS
        .get(name)
        .expect("records name tables of the list")
}

/// Every table.
pub fn tables() -> impl Iterator<Item = &'static Table> {
    [run::TABLES, increments::TABLES, dictionary::TABLES]
        .into_iter()
        .flatten()
}

/// The statements that create all tables and mark the file.
pub(super) fn create() -> String {
    let mut sql =
        format!("PRAGMA application_id = {APPLICATION_ID};\nPRAGMA user_version = {VERSION};\n");
    for table in tables() {
        sql.push_str(&table.ddl());
        sql.push_str(";\n");
    }
    sql
}

macro_rules! columns {
    ($($kind:ident$(($of:literal))? $name:literal $doc:literal;)*) => {
        &[$(crate::store::schema::Column {
            name: $name,
            kind: crate::store::schema::Kind::$kind$(($of))?,
            doc: $doc,
        }),*]
    };
}
use columns;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn tables_and_columns_have_names_of_their_own_and_documents() {
        let mut names = BTreeSet::new();
        for table in tables() {
            assert!(names.insert(table.name), "{} stands twice", table.name);
            assert!(table.doc.ends_with('.'), "{}", table.name);
            let mut columns = BTreeSet::new();
            for column in table.columns() {
                assert!(
                    columns.insert(column.name),
                    "{}.{}",
                    table.name,
                    column.name
                );
                assert!(!column.doc.is_empty(), "{}.{}", table.name, column.name);
            }
            assert!(table.place <= table.key && table.key <= columns.len());
        }
    }
}
