//! What people read of a comparison, in order.

use std::collections::BTreeSet;

use super::super::budget::Budget;
use super::super::headline::{Role, Row};
use super::super::stats::{Comparison, Order};
use super::super::{Report, gate::Difference};
use super::cells::{counted, deviations, figure, is_against_medians, state};
use super::plots;
use crate::units::{format_ns, format_ratio};

/// Values that are printed one by one.
const FEW: usize = 10;

/// Differences of one kind that are printed.
pub(super) const DIFFERENCES: usize = 12;

/// A piece of the document.
#[derive(Debug)]
pub(super) enum Block {
    /// A heading.
    Title(String),
    /// A sentence or a line of facts.
    Line(String),
    /// A sentence that must not be missed.
    Warning(String),
    /// A plot as HTML, for the page alone.
    Plot(String),
    /// Rows under heads; all columns but the first are numbers or words of known width.
    Table {
        heads: Vec<&'static str>,
        rows: Vec<Vec<String>>,
    },
}

/// All of it.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) blocks: Vec<Block>,
}

impl Document {
    pub(super) fn new(report: &Report) -> Self {
        let mut made = Self { blocks: Vec::new() };
        made.head(report);
        if report.is_refused() {
            made.refusal(report);
            return made;
        }
        for note in &report.notes {
            let is_loud = note.starts_with("FORCED") || note.starts_with("order:");
            made.blocks.push(if is_loud {
                Block::Warning(note.clone())
            } else {
                Block::Line(note.clone())
            });
        }
        for finding in report
            .findings
            .iter()
            .filter(|f| f.id == "locks_against_throughput")
        {
            made.blocks.push(Block::Warning(finding.text.clone()));
        }
        made.figures(report);
        made.against_medians(report);
        made.blocks
            .extend(plots::strips(report).into_iter().map(Block::Plot));
        if let Some(sweep) = &report.sweep {
            made.sweep(report, sweep);
            made.blocks
                .extend(plots::sweeps(report).into_iter().map(Block::Plot));
        }
        made.kinds(report);
        made.quantiles(&report.quantiles);
        if let Some(locks) = &report.locks {
            made.locks(locks);
        }
        made.details(&report.details, report.options.per);
        if let Some(budget) = &report.budget {
            made.budget(budget);
        }
        made.findings(report);
        made.gates(report);
        made.values(report);
        made.differences(report);
        made
    }

    pub(super) fn line(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Line(text.into()));
    }

    pub(super) fn title(&mut self, text: &str) {
        self.blocks.push(Block::Title(text.to_owned()));
    }

    fn head(&mut self, report: &Report) {
        let [before, after] = &report.sides;
        let order = match report.order {
            Some(Order::Alternating) => ", alternating",
            Some(Order::Blocked) => ", blocked",
            Some(Order::Mixed) => ", mixed",
            None => "",
        };
        let host = if report.comparability.is_same_host {
            "same"
        } else if report.comparability.are_hosts_unknown {
            "unknown"
        } else {
            "DIFFERENT"
        };
        let paired = match report.pairs {
            Some(pairs) => format!(", {}", counted(pairs, "pair")),
            None => String::new(),
        };
        let command = before
            .first()
            .and_then(|o| o.run.workload.as_ref())
            .map(|w| w.argv.join(" "))
            .filter(|c| !c.is_empty());
        if let Some(command) = command {
            self.line(format!("workload  {command}"));
        }
        self.line(format!(
            "runs      {} vs {}{order}{paired}    host {host}",
            before.len(),
            after.len()
        ));
        let [from, to] = &report.options.labels;
        if from != "before" || to != "after" {
            self.line(format!("sides     before is {from}, after is {to}"));
        }
        let kernels = |side: &[super::super::observed::Observed]| {
            side.first()
                .map(|o| o.run.kernel.clone())
                .filter(|k| !k.is_empty())
        };
        if let (Some(from), Some(to)) = (kernels(before), kernels(after)) {
            let text = if from == to {
                from
            } else {
                format!("{from} -> {to}")
            };
            self.line(format!("kernel    {text}"));
        }
        if let Some(state) = state(report) {
            self.line(format!("state     {state}"));
        }
    }

    fn refusal(&mut self, report: &Report) {
        self.blocks.push(Block::Warning(
            "NOT COMPARABLE: no percentage is given".to_owned(),
        ));
        self.list(&report.comparability.refusals);
        let mut keys: Vec<&str> = report
            .comparability
            .refusals
            .iter()
            .filter_map(Difference::lifted_by)
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let vary: Vec<String> = keys.iter().map(|key| format!("--vary {key}")).collect();
        if vary.is_empty() {
            self.line(
                "make runs that differ in the patch alone, or compare all the same with --force",
            );
        } else {
            self.line(format!(
                "if that is what you mean to compare, say so with {}; --force compares all the same and leaves a banner",
                vary.join(" ")
            ));
        }
        self.differences(report);
    }

    fn list(&mut self, all: &[Difference]) {
        for difference in all.iter().take(DIFFERENCES) {
            self.line(
                if difference.after.is_empty() && difference.key == "unknown" {
                    format!("  not known on a side: {}", difference.before)
                } else {
                    let shown = |text: &str| {
                        if text.is_empty() {
                            "-".to_owned()
                        } else {
                            text.to_owned()
                        }
                    };
                    format!(
                        "  {}: {} -> {}",
                        difference.key,
                        shown(&difference.before),
                        shown(&difference.after)
                    )
                },
            );
        }
        if let Some(more) = all.len().checked_sub(DIFFERENCES).filter(|n| *n > 0) {
            self.line(format!("  and {more} more; --format json has them all"));
        }
    }

    fn differences(&mut self, report: &Report) {
        let found = &report.comparability;
        if !report.is_refused() && !found.refusals.is_empty() {
            self.title("not comparable, forced");
            self.list(&found.refusals);
        }
        if !found.flags.is_empty() {
            self.title("other differences");
            self.list(&found.flags);
        }
    }

    fn figures(&mut self, report: &Report) {
        let in_cells = report.sweep.is_some();
        let is_tested = |r: &&Row| r.role != Role::Context;
        let tested: Vec<&Row> = report
            .rows
            .iter()
            .filter(is_tested)
            .filter(|r| !in_cells || r.role != Role::Primary)
            .collect();
        if !tested.is_empty() {
            self.blocks.push(Block::Table {
                heads: vec![
                    "metric", "before", "after", "change", "95% CI", "adj.p", "verdict",
                ],
                rows: tested.into_iter().map(figure).collect(),
            });
        }
        let methods: BTreeSet<&str> = report
            .rows
            .iter()
            .filter(is_tested)
            .filter(|r| r.adjusted_p.is_some())
            .map(|r| r.comparison.test.method.word())
            .collect();
        if !methods.is_empty() {
            let test = if report.options.is_paired {
                "Wilcoxon signed-rank"
            } else {
                "Mann-Whitney"
            };
            let methods: Vec<&str> = methods.into_iter().collect();
            let has_floor = report.rows.iter().any(|row| row.floor.is_some());
            let is_learnt = has_floor && !report.options.is_halved;
            self.line(format!(
                "{test} ({}), Hodges-Lehmann shift, Holm; margin +-{:.1} %{} or what a figure can show",
                methods.join(", "),
                100.0 * report.options.min_effect,
                if is_learnt { ", its floor" } else { "" }
            ));
        }
        self.context(report);
    }

    /// Figures that are told and not tested; those of a sweep's configurations are counted.
    fn context(&mut self, report: &Report) {
        let in_cells = report.sweep.is_some();
        let (shown, hidden): (Vec<&Row>, Vec<&Row>) = report
            .rows
            .iter()
            .filter(|r| r.role == Role::Context)
            .partition(|r| !in_cells || r.cell.is_empty());
        let cells: BTreeSet<&str> = shown
            .iter()
            .map(|r| r.cell.as_str())
            .filter(|cell| !cell.is_empty())
            .collect();
        if !shown.is_empty() {
            self.title("context, not tested");
            if cells.len() == 1 {
                self.blocks
                    .extend(cells.iter().map(|cell| Block::Line(format!("of {cell}"))));
            }
            let has_deviations = shown.iter().any(|r| r.deviations.is_some());
            let mut heads = vec!["figure", "before", "after", "change", "95% CI"];
            if has_deviations {
                heads[4] = "stddev";
            }
            let row = |r: &&Row| {
                let mut row = figure(r)[..5].to_vec();
                if cells.len() > 1 && !r.cell.is_empty() {
                    row[0] = format!("{}, {}", r.title, r.cell);
                }
                if has_deviations {
                    row[4] = deviations(r.deviations.unwrap_or_default());
                }
                row
            };
            self.blocks.push(Block::Table {
                heads,
                rows: shown.iter().map(row).collect(),
            });
            if has_deviations {
                self.line("stddev -: LKP prints none of 2 % or less; mails may lose others");
            }
        }
        if !hidden.is_empty() {
            self.line(format!(
                "and {} of configurations; --format json or csv has them",
                counted(hidden.len(), "other figure")
            ));
        }
    }

    /// Names the figures whose change seems to contradict their medians.
    fn against_medians(&mut self, report: &Report) {
        let mut names: Vec<String> = report
            .rows
            .iter()
            .filter(|r| r.role != Role::Context || r.cell.is_empty())
            .filter(|r| is_against_medians(&r.comparison))
            .map(|r| match r.cell.as_str() {
                "" => r.title.clone(),
                cell if r.role == Role::Primary && report.sweep.is_some() => cell.to_owned(),
                _ => r.title.clone(),
            })
            .collect();
        let locks = report.locks.iter().flat_map(|locks| &locks.rows);
        let is_against = |c: &Option<Comparison>| c.as_ref().is_some_and(is_against_medians);
        names.extend(
            locks
                .filter(|r| is_against(&r.comparison) || is_against(&r.rates))
                .map(|r| r.class.name()),
        );
        if names.is_empty() {
            return;
        }
        let more = match names.len().checked_sub(DIFFERENCES) {
            Some(n) if n > 0 => format!(" and {n} more"),
            _ => String::new(),
        };
        names.truncate(DIFFERENCES);
        self.line(format!(
            "{}{more}: the change is the median over all pairs of runs, and goes the other way than the medians beside it",
            names.join(", ")
        ));
    }

    fn kinds(&mut self, report: &Report) {
        if report.kinds.is_empty() {
            return;
        }
        self.title("faults by kind, share of all");
        self.blocks.push(Block::Table {
            heads: vec!["kind", "before", "after"],
            rows: report
                .kinds
                .iter()
                .map(|k| {
                    vec![
                        k.name.clone(),
                        format_ratio(k.share[0]),
                        format_ratio(k.share[1]),
                    ]
                })
                .collect(),
        });
    }

    fn budget(&mut self, budget: &Budget) {
        self.title("CPU time of a fault, ns: the changes add up");
        let row = |name: &str, ns: [f64; 2]| {
            vec![
                name.to_owned(),
                format!("{:.0}", ns[0]),
                format!("{:.0}", ns[1]),
                format!("{:+.0}", ns[1] - ns[0]),
            ]
        };
        let mut rows: Vec<Vec<String>> = budget.parts.iter().map(|p| row(p.name, p.ns)).collect();
        rows.push(row("= fault", budget.total.ns));
        self.blocks.push(Block::Table {
            heads: vec!["part", "before", "after", "change"],
            rows,
        });
        let parts: Vec<String> = budget
            .parts
            .iter()
            .map(|p| format!("{} {:+.0}", p.name, p.change()))
            .collect();
        self.line(format!(
            "budget/fault: {} = {:+.0} ns",
            parts.join(", "),
            budget.total.change()
        ));
        if let Some([before, after]) = budget.wait_ns {
            self.line(format!(
                "beside it, lock waits per fault (asleep or spinning, whole machine): {} -> {}",
                format_ns(before),
                format_ns(after)
            ));
        }
    }

    fn findings(&mut self, report: &Report) {
        if report.findings.is_empty() {
            return;
        }
        let primary: Vec<&Row> = report
            .rows
            .iter()
            .filter(|r| r.role == Role::Primary)
            .collect();
        let is_single = report.sides.iter().any(|side| side.len() == 1)
            || (!primary.is_empty()
                && primary
                    .iter()
                    .all(|row| row.comparison.design.smaller() == 1));
        self.title(if is_single {
            "findings, on single runs: no verdicts"
        } else {
            "findings"
        });
        for (i, finding) in report.findings.iter().enumerate() {
            self.line(format!("{}. {}", i + 1, finding.text));
        }
    }

    fn gates(&mut self, report: &Report) {
        for gate in &report.gates {
            let verdict = if gate.is_regressed {
                "CONFIRMED REGRESSION"
            } else {
                "no confirmed regression"
            };
            self.line(format!(
                "gate {} {} %: {verdict}",
                gate.metric, gate.percent
            ));
        }
    }

    /// All values, where they are few, and what is odd about them.
    fn values(&mut self, report: &Report) {
        let is_told =
            |r: &&Row| r.role != Role::Context && (report.sweep.is_none() || !r.flags.is_empty());
        let rows: Vec<&Row> = report.rows.iter().filter(is_told).collect();
        if rows.is_empty() {
            return;
        }
        let mut lines = Vec::new();
        for row in rows {
            let name = if row.cell.is_empty() {
                row.title.clone()
            } else {
                format!("{} {}", row.title, row.cell)
            };
            if row.before.len().max(row.after.len()) <= FEW && report.sweep.is_none() {
                let list = |side: &[(f64, u64)]| {
                    side.iter()
                        .map(|(v, _)| row.shown.value(*v))
                        .collect::<Vec<_>>()
                        .join(" ")
                };
                lines.push(format!(
                    "{name}: {} | {}",
                    list(&row.before),
                    list(&row.after)
                ));
            }
            lines.extend(row.flags.iter().map(|flag| format!("{name}: {flag}")));
        }
        if !lines.is_empty() {
            let runs = || report.sides.iter().flatten();
            let order = if runs().all(|o| o.run.start_real_ns > 0) {
                "starts"
            } else if runs().all(|o| o.run.start_real_ns == 0) {
                "names"
            } else {
                "starts, else names"
            };
            self.title(&format!(
                "runs, before | after, in the order of their {order}"
            ));
            lines.into_iter().for_each(|line| self.line(line));
        }
    }
}
