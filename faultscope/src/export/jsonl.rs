//! JSON lines, schema `faultscope.top/1`: one object per interval.
//!
//! Row keys are catalogue ids: the increment of a counter stands under its id,
//! its rate under `<id>_per_sec`; what was not measured is null. Findings stand
//! in every object, whatever the view.

use super::{Chosen, Selection};
use crate::model::finding::{Evidence, Finding};
use crate::model::{Field, Header, Kind, Lost, Missing, Model, Row, Value};
use crate::render::cell::per_second;
use crate::render::time::format_rfc3339;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::io::{self, Write};

const SCHEMA: &str = "faultscope.top/1";

#[derive(Serialize)]
struct Interval<'a> {
    schema: &'static str,
    t_mono_ns: u64,
    t_real: String,
    interval_ns: u64,
    view: &'static str,
    host: &'a str,
    kernel: &'a str,
    lost: Losses<'a>,
    missing: Vec<Reason<'a>>,
    header: Head<'a>,
    notes: &'a [String],
    findings: Vec<Found<'a>>,
    rows: Vec<Cells<'a>>,
    omitted: u64,
}

pub(super) fn write(out: &mut dyn Write, model: &Model, selection: &Selection) -> io::Result<()> {
    let Chosen {
        table,
        rows,
        omitted,
    } = selection.choose(model);
    let interval_secs = model.interval_secs();
    let object = Interval {
        schema: SCHEMA,
        t_mono_ns: model.t_mono_ns,
        t_real: format_rfc3339(model.t_real_ns),
        interval_ns: model.interval_ns,
        view: selection.table.id(),
        host: &model.host.name,
        kernel: &model.host.kernel,
        lost: Losses(&model.lost),
        missing: model.missing.iter().map(Reason::new).collect(),
        header: Head::new(&model.header),
        notes: &model.notes,
        findings: model.findings().iter().map(Found).collect(),
        rows: rows
            .iter()
            .map(|i| Cells {
                fields: table.fields,
                row: &table.rows[*i],
                interval_secs,
            })
            .collect(),
        omitted,
    };
    serde_json::to_writer(&mut *out, &object).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

pub(super) struct Losses<'a>(pub(super) &'a [Lost]);

#[derive(Serialize)]
struct Loss {
    total: u64,
    increment: u64,
}

impl Serialize for Losses<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|l| {
            let loss = Loss {
                total: l.total,
                increment: l.increment,
            };
            (&*l.id, loss)
        }))
    }
}

#[derive(Serialize)]
pub(super) struct Reason<'a> {
    signal: &'a str,
    reason: &'a str,
}

impl<'a> Reason<'a> {
    pub(super) fn new(m: &'a Missing) -> Self {
        Self {
            signal: &m.signal,
            reason: &m.reason,
        }
    }
}

#[derive(Serialize)]
struct Head<'a> {
    minor_per_sec: Option<f64>,
    major_per_sec: Option<f64>,
    mmap_lock_wait_ns_per_sec: Option<f64>,
    lru_lock_wait_ns_per_sec: Option<f64>,
    own_cpu_ratio: Option<f64>,
    own_bpf_ratio: Option<f64>,
    own_rss_bytes: Option<u64>,
    own_map_bytes: Option<u64>,
    filter: &'a str,
    spinlock_mode: Option<&'a str>,
    spinlock_exact: bool,
    overruns: u64,
}

impl<'a> Head<'a> {
    fn new(h: &'a Header) -> Self {
        // Destructured, so that a figure added to the header cannot be forgotten here.
        let Header {
            minor_per_sec,
            major_per_sec,
            mmap_lock_wait_ns_per_sec,
            lru_lock_wait_ns_per_sec,
            own_cpu_ratio,
            own_bpf_ratio,
            own_rss_bytes,
            own_map_bytes,
            filter,
            spinlock,
            overruns,
        } = h;
        Self {
            minor_per_sec: *minor_per_sec,
            major_per_sec: *major_per_sec,
            mmap_lock_wait_ns_per_sec: *mmap_lock_wait_ns_per_sec,
            lru_lock_wait_ns_per_sec: *lru_lock_wait_ns_per_sec,
            own_cpu_ratio: *own_cpu_ratio,
            own_bpf_ratio: *own_bpf_ratio,
            own_rss_bytes: *own_rss_bytes,
            own_map_bytes: *own_map_bytes,
            filter,
            spinlock_mode: spinlock.mode.as_deref(),
            spinlock_exact: spinlock.is_exact,
            overruns: *overruns,
        }
    }
}

pub(super) struct Found<'a>(pub(super) &'a Finding);

impl Serialize for Found<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let found = self.0;
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("id", found.id)?;
        map.serialize_entry("title", found.title)?;
        map.serialize_entry("text", &found.text)?;
        map.serialize_entry("evidence", &Numbers(&found.evidence))?;
        map.serialize_entry("next", found.next)?;
        map.end()
    }
}

struct Numbers<'a>(&'a [Evidence]);

impl Serialize for Numbers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for evidence in self.0 {
            cell(&mut map, evidence.name, &evidence.value)?;
        }
        map.end()
    }
}

/// One value under its key; an absent one is null.
fn cell<M: SerializeMap>(map: &mut M, key: &str, value: &Value) -> Result<(), M::Error> {
    match value {
        Value::Absent => map.serialize_entry(key, &()),
        Value::Text(t) => map.serialize_entry(key, t),
        Value::Count(n) => map.serialize_entry(key, n),
        Value::Real(x) => map.serialize_entry(key, x),
    }
}

pub(super) struct Cells<'a> {
    pub(super) fields: &'static [&'static Field],
    pub(super) row: &'a Row,
    pub(super) interval_secs: f64,
}

impl Serialize for Cells<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (field, value) in self.fields.iter().zip(&self.row.cells) {
            cell(&mut map, field.id, value)?;
            if field.kind == Kind::Counter {
                let rate = per_second(field, value, self.interval_secs);
                map.serialize_entry(&format!("{}_per_sec", field.id), &rate)?;
            }
        }
        map.end()
    }
}
