//! Tables of rows whose cells follow the field catalogue.

use super::field::Field;

/// One cell. Absence is a value: it is shown as a dash and exported as null.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Not measured here; never shown as zero.
    Absent,
    /// A scrubbed name or label.
    Text(String),
    /// Events, ns, bytes or pages: an increment for counters, else a level.
    Count(u64),
    /// A ratio, average or per-second figure that has no integer form.
    Real(f64),
}

impl Value {
    /// `Some(x)` becomes a count, `None` absent.
    #[must_use]
    pub fn count(v: Option<u64>) -> Self {
        v.map_or(Self::Absent, Self::Count)
    }

    /// A finite `Some(x)` becomes a real, anything else absent.
    #[must_use]
    pub fn real(v: Option<f64>) -> Self {
        match v {
            Some(x) if x.is_finite() => Self::Real(x),
            _ => Self::Absent,
        }
    }

    /// The number behind the cell, for sorting.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "sorting needs no more than 53 bits"
    )]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Count(n) => Some(*n as f64),
            Self::Real(x) => Some(*x),
            Self::Absent | Self::Text(_) => None,
        }
    }
}

/// One row; `cells` has the length and order of the table's fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Stable identity across intervals (follows a row while values change).
    pub key: u64,
    /// One value per field of the table.
    pub cells: Vec<Value>,
}

/// Rows of one kind.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Columns, in display order, the identifying ones first.
    pub fields: &'static [&'static Field],
    /// Rows, sorted by the table's default sort, greatest first.
    pub rows: Vec<Row>,
    /// Rows left out here because the table is bounded; shown, never silent.
    pub omitted: u64,
}

impl Table {
    /// Position of the field called `id`.
    #[must_use]
    pub fn position(&self, id: &str) -> Option<usize> {
        self.fields.iter().position(|f| f.id == id)
    }
}
