//! Order and choice of rows, by index so that no row is copied or formatted.

use crate::model::{Field, Kind, Row, Table, Value};
use std::cmp::Ordering;

/// A sort the user asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sort {
    /// Position in the table's fields.
    pub field: usize,
    /// Least first.
    pub ascending: bool,
}

impl Sort {
    /// The natural direction: keys ascending, figures greatest first.
    #[must_use]
    pub fn natural(fields: &[&Field], field: usize) -> Self {
        let ascending = fields.get(field).is_some_and(|f| f.kind == Kind::Key);
        Self { field, ascending }
    }
}

/// Indices of the rows that hold `word`, in the order of `sort`.
///
/// Without a sort the table's own order stays. An empty word keeps all rows.
/// Absent cells come last in both directions; equal rows keep their order.
#[must_use]
pub fn order(table: &Table, sort: Option<Sort>, word: &str) -> Vec<usize> {
    let word = word.to_lowercase();
    let mut rows: Vec<usize> = (0..table.rows.len())
        .filter(|i| word.is_empty() || has_word(table.fields, &table.rows[*i], &word))
        .collect();
    if let Some(sort) = sort {
        let cell = |i: usize| table.rows[i].cells.get(sort.field);
        rows.sort_by(|a, b| compare(cell(*a), cell(*b), sort.ascending));
    }
    rows
}

/// True if a key text of the row holds `word`, which is in lower case.
fn has_word(fields: &[&Field], row: &Row, word: &str) -> bool {
    fields.iter().zip(&row.cells).any(|(f, v)| {
        f.kind == Kind::Key && matches!(v, Value::Text(t) if t.to_lowercase().contains(word))
    })
}

fn compare(a: Option<&Value>, b: Option<&Value>, ascending: bool) -> Ordering {
    let turn = |o: Ordering| if ascending { o } else { o.reverse() };
    match (a, b) {
        (Some(Value::Text(a)), Some(Value::Text(b))) => turn(a.cmp(b)),
        (Some(Value::Count(a)), Some(Value::Count(b))) => turn(a.cmp(b)),
        _ => match (rank(a), rank(b)) {
            (Some(a), Some(b)) => turn(a.total_cmp(&b)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        },
    }
}

fn rank(v: Option<&Value>) -> Option<f64> {
    match v {
        // Text among numbers stands before them, but is not absent.
        Some(Value::Text(_)) => Some(f64::INFINITY),
        Some(v) => v.number().filter(|x| !x.is_nan()),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::field;

    static FIELDS: &[&Field] = &[&field::COMM, &field::FAULTS_N];

    fn table(values: Vec<Value>) -> Table {
        Table {
            fields: FIELDS,
            rows: values
                .into_iter()
                .enumerate()
                .map(|(i, v)| Row {
                    key: i as u64,
                    cells: vec![Value::Text(format!("Name{i}")), v],
                })
                .collect(),
            omitted: 0,
        }
    }

    #[test]
    fn absent_rows_are_last_both_ways() {
        let t = table(vec![
            Value::Absent,
            Value::Count(3),
            Value::Real(7.5),
            Value::Count(5),
            Value::Real(f64::NAN),
        ]);
        let by = |ascending| {
            order(
                &t,
                Some(Sort {
                    field: 1,
                    ascending,
                }),
                "",
            )
        };
        assert_eq!(by(false), [2, 3, 1, 0, 4]);
        assert_eq!(by(true), [1, 3, 2, 0, 4]);
        assert_eq!(order(&t, None, ""), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn words_match_key_text_in_any_case() {
        let t = table(vec![Value::Count(12), Value::Count(2)]);
        assert_eq!(order(&t, None, "nAME1"), [1]);
        assert!(order(&t, None, "12").is_empty(), "figures are not matched");
    }

    #[test]
    fn keys_ascend_and_figures_descend() {
        assert!(Sort::natural(FIELDS, 0).ascending);
        assert!(!Sort::natural(FIELDS, 1).ascending);
    }
}
