//! Curves of throughput by the number of threads, and the runs they are made of.

use super::{Block, Grid};
use crate::export::report::sweep::NO_CURVE;
use crate::export::report::{Sweep, SweepRun};
use crate::model::{Field, Kind, Unit, scale::AllSeries};
use crate::render::{
    cell::{ABSENT, scrub},
    scale::sheet,
};

const fn text(id: &'static str, title: &'static str, description: &'static str) -> Field {
    Field {
        id,
        title,
        unit: Unit::None,
        kind: Kind::Key,
        priority: 0,
        signal: "",
        description,
    }
}

static FILE: Field = text("file", "FILE", "The recording.");
static HOST: Field = text("host", "HOST", "Machine that the run names.");
static FIGURES: Field = Field {
    unit: Unit::Number,
    ..text("figures", "FIGURES", "Figures that the workload gave.")
};
static LABELS: Field = text("labels", "LABELS", "What was said of the run.");

/// What the columns are.
const DESCRIPTION: &str = "Efficiency is X(n) / (n X(1)), gain what each further one brought as a share of what one does alone. The law \
     is X(n) = lam n / (1 + s (n - 1) + k n (n - 1)).";

/// A table for each curve, and why others are not there.
pub(super) fn curves(all: &AllSeries) -> Vec<Block> {
    let mut blocks: Vec<Block> = all
        .series
        .iter()
        .enumerate()
        .map(|(at, series)| {
            let sheet = sheet(series);
            Block::Grid(Grid {
                id: format!("scalability-{at}"),
                title: sheet.title,
                // Once is enough.
                description: if at == 0 {
                    DESCRIPTION.to_owned()
                } else {
                    String::new()
                },
                fields: sheet.fields,
                rows: sheet.rows,
                foot: sheet.notes,
            })
        })
        .collect();
    let mut reasons: Vec<String> = all.reasons.iter().map(|r| scrub(r).into_owned()).collect();
    if all.is_empty() {
        reasons.push(NO_CURVE.to_owned());
    }
    if !reasons.is_empty() {
        blocks.push(Block::Lines(reasons));
    }
    blocks
}

/// The runs as a table.
pub(super) fn runs(sweep: &Sweep) -> Block {
    let row = |run: &SweepRun| {
        let labels = run
            .run
            .labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"));
        let host = if run.run.host.is_empty() {
            ABSENT
        } else {
            &run.run.host
        };
        let cells = [
            run.file.clone(),
            host.to_owned(),
            run.metrics.len().to_string(),
            labels.collect::<Vec<_>>().join(" "),
        ];
        cells.map(|cell| scrub(&cell).into_owned()).to_vec()
    };
    Block::Grid(Grid {
        id: "sweep-runs".to_owned(),
        title: "Runs".to_owned(),
        description: String::new(),
        fields: vec![&FILE, &HOST, &FIGURES, &LABELS],
        rows: sweep.runs.iter().map(row).collect(),
        foot: Vec::new(),
    })
}
