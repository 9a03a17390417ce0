//! Which columns of a table fit into a width, and how wide each is.

use super::cell::{is_right_aligned, width};
use crate::model::{Field, Kind};

/// Blank cells between two columns.
pub const GAP: usize = 2;

/// A text column gives way down to this width before other columns are left out.
const TEXT_MIN: usize = 15;

/// The first column names the row: as text it keeps a third of the line, within
/// these bounds.
const NAME_MIN: [usize; 2] = [8, 28];

/// A column that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Position in the table's fields.
    pub field: usize,
    /// Cells it takes.
    pub width: usize,
}

/// Natural width of every column: its head (with room for the mark of the
/// `sort` column) and the widest of the given rows.
#[must_use]
pub fn measure(fields: &[&Field], rows: &[Vec<String>], sort: Option<usize>) -> Vec<usize> {
    let mut widths: Vec<usize> = (0..fields.len())
        .map(|i| width(fields[i].title) + usize::from(Some(i) == sort))
        .collect();
    for row in rows {
        for (w, cell) in widths.iter_mut().zip(row) {
            *w = (*w).max(width(cell));
        }
    }
    widths
}

/// Chooses columns for `available` cells.
///
/// With `scroll` 0 the columns of the greatest `priority` number are left out
/// first, the `sort` column last of all, the first column never. Otherwise the leading key columns stay and the others
/// follow in their order from the `scroll`-th on. At least one column is left, cut if need be; text
/// columns share what room remains, up to their natural width.
#[must_use]
pub fn fit(
    fields: &[&Field],
    natural: &[usize],
    sort: Option<usize>,
    scroll: usize,
    available: usize,
) -> Vec<Column> {
    let least = |i: usize| {
        let w = natural.get(i).copied().unwrap_or(0);
        let text = fields.get(i).is_some_and(|f| !is_right_aligned(f));
        match (text, i) {
            (false, _) => w,
            (true, 0) => w.min((available / 3).clamp(NAME_MIN[0], NAME_MIN[1])),
            (true, _) => w.min(TEXT_MIN),
        }
    };
    let mut chosen = if scroll == 0 {
        by_priority(fields, sort, &least, available)
    } else {
        scrolled(fields, scroll, &least, available)
    };
    let used = total(&chosen, |c| c.width);
    let mut rest = available.saturating_sub(used);
    for c in &mut chosen {
        let wish = natural
            .get(c.field)
            .map_or(0, |n| n.saturating_sub(c.width));
        let more = wish.min(rest);
        c.width += more;
        rest -= more;
    }
    if let [only] = chosen.as_mut_slice() {
        only.width = only.width.min(available);
    }
    chosen
}

fn total<T>(items: &[T], width: impl Fn(&T) -> usize) -> usize {
    let gaps = GAP * items.len().saturating_sub(1);
    items.iter().map(width).sum::<usize>() + gaps
}

fn by_priority(
    fields: &[&Field],
    sort: Option<usize>,
    least: &dyn Fn(usize) -> usize,
    available: usize,
) -> Vec<Column> {
    let mut chosen: Vec<Column> = (0..fields.len())
        .map(|field| Column {
            field,
            width: least(field),
        })
        .collect();
    while chosen.len() > 1 && total(&chosen, |c| c.width) > available {
        let last = (1..chosen.len()).max_by_key(|i| {
            let field = chosen[*i].field;
            (Some(field) != sort, fields[field].priority, *i)
        });
        match last {
            Some(i) => chosen.remove(i),
            None => break,
        };
    }
    chosen
}

fn scrolled(
    fields: &[&Field],
    scroll: usize,
    least: &dyn Fn(usize) -> usize,
    available: usize,
) -> Vec<Column> {
    let keys = pinned(fields);
    let order = (0..keys).chain((keys + scroll.min(max_scroll(fields)) - 1)..fields.len());
    let mut chosen: Vec<Column> = Vec::new();
    for field in order {
        chosen.push(Column {
            field,
            width: least(field),
        });
        if chosen.len() > 1 && total(&chosen, |c| c.width) > available {
            chosen.pop();
            break;
        }
    }
    chosen
}

/// Number of leading key columns, which do not scroll away.
fn pinned(fields: &[&Field]) -> usize {
    fields.iter().take_while(|f| f.kind == Kind::Key).count()
}

/// The greatest `scroll` that still shows a column beside the keys.
#[must_use]
pub fn max_scroll(fields: &[&Field]) -> usize {
    fields.len().saturating_sub(pinned(fields)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{TableId, field};

    #[test]
    fn narrow_tables_drop_columns_by_priority_and_keep_the_sort() {
        let fields = field::PROCESSES;
        let sort = fields.iter().position(|f| f.id == "rss_updates_per_fault");
        let natural = measure(fields, &[], sort);
        for available in 0..300 {
            let cols = fit(fields, &natural, sort, 0, available);
            let used = total(&cols, |c| c.width);
            assert!(!cols.is_empty());
            assert!(used <= available.max(1), "{used} cells of {available}");
            assert_eq!(cols[0].field, 0, "at {available}");
            let has_sort = cols.iter().any(|c| Some(c.field) == sort);
            assert!(has_sort || available < 11, "at {available}");
            let worst = cols
                .iter()
                .filter(|c| Some(c.field) != sort && c.field != 0)
                .map(|c| fields[c.field].priority)
                .max();
            let best_left_out = (0..fields.len())
                .filter(|i| Some(*i) != sort && cols.iter().all(|c| c.field != *i))
                .map(|i| fields[i].priority)
                .min();
            if let (Some(w), Some(b)) = (worst, best_left_out) {
                assert!(w <= b, "priority {b} left out before {w} at {available}");
            }
        }
    }

    #[test]
    fn scrolling_reaches_every_column_and_keeps_the_keys() {
        for t in TableId::ALL {
            let fields = t.fields();
            let natural = measure(fields, &[], None);
            let mut seen = vec![false; fields.len()];
            for scroll in 0..=max_scroll(fields) {
                let cols = fit(fields, &natural, None, scroll, 90);
                assert_eq!(cols[0].field, 0, "{}", t.id());
                for c in cols {
                    seen[c.field] = true;
                }
            }
            assert!(seen.iter().all(|s| *s), "{}: {seen:?}", t.id());
        }
    }

    #[test]
    fn text_takes_the_room_that_is_left() {
        let rows = [vec![
            "/a/very/long/path/of/a/cgroup/indeed".to_owned(),
            "1".to_owned(),
        ]];
        let fields: &[&Field] = &[&field::CGROUP, &field::FAULTS_N];
        let natural = measure(fields, &rows, None);
        assert_eq!(fit(fields, &natural, None, 0, 30)[0].width, 30 - GAP - 6);
        assert_eq!(fit(fields, &natural, None, 0, 100)[0].width, 36);
    }
}
