//! Configurations such as `gib 1, threads 8`: their names and their order.

use std::cmp::Ordering;

use crate::workload::Metric;

/// The configuration that a figure was measured in; empty if its text tells none.
pub(super) fn cell(metric: &Metric) -> String {
    let words: Vec<String> = metric
        .configuration()
        .map(|(key, value)| format!("{key} {value}"))
        .collect();
    words.join(", ")
}

/// Order of configurations in which 8 stands before 16.
pub(super) fn order(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    while !a.is_empty() && !b.is_empty() {
        let (first, second) = (piece(a), piece(b));
        let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let order = if is_number(first) && is_number(second) {
            // However many digits there are.
            let [x, y] = [first, second].map(|text| text.trim_start_matches('0'));
            let by_value = x.len().cmp(&y.len()).then_with(|| x.cmp(y));
            by_value.then(first.len().cmp(&second.len()))
        } else {
            first.cmp(second)
        };
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (&a[first.len()..], &b[second.len()..]);
    }
    a.len().cmp(&b.len())
}

/// The digits that a text begins with, or what stands before the first digit.
fn piece(text: &str) -> &str {
    let is_digit = text.starts_with(|c: char| c.is_ascii_digit());
    let end = text.find(|c: char| c.is_ascii_digit() != is_digit);
    &text[..end.unwrap_or(text.len())]
}

/// Rank of a statistic among those of one figure: the mean that a benchmark's own table leads with comes first.
fn rank(statistic: &str) -> usize {
    const ORDER: [&str; 6] = ["Hmean", "Amean", "Gmean", "BHmean", "BAmean", "BGmean"];
    ORDER
        .iter()
        .position(|word| statistic.starts_with(word))
        .unwrap_or(ORDER.len())
}

/// The configuration without its statistic, and the rank of that.
pub(super) fn statistic(cell: &str) -> (String, usize) {
    let mut best = 0;
    let rest: Vec<&str> = cell
        .split(", ")
        .filter(|word| match word.strip_prefix("statistic ") {
            Some(statistic) => {
                best = rank(statistic);
                false
            }
            None => true,
        })
        .collect();
    (rest.join(", "), best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_as_numbers() {
        let mut cells = [
            "gib 16, threads 1",
            "gib 4, threads 16",
            "gib 4, threads 8",
            "",
            "gib 4",
            "a",
            "gib 10000000000000000000000",
        ];
        cells.sort_by(|a, b| order(a, b));
        assert_eq!(
            cells,
            [
                "",
                "a",
                "gib 4",
                "gib 4, threads 8",
                "gib 4, threads 16",
                "gib 16, threads 1",
                "gib 10000000000000000000000"
            ]
        );
    }

    #[test]
    fn statistics_of_one_figure_are_known() {
        assert_eq!(
            statistic("statistic Hmean, clients 4"),
            ("clients 4".to_owned(), 0)
        );
        assert_eq!(
            statistic("statistic BHmean-95, clients 4"),
            ("clients 4".to_owned(), 3)
        );
        assert!(statistic("statistic Min").1 > statistic("statistic BGmean").1);
        assert_eq!(statistic("threads 4"), ("threads 4".to_owned(), 0));
    }
}
