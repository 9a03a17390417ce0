//! Models for tests: every table filled from the catalogue, without kernel data.

use crate::model::header::Header;
use crate::model::{
    Context, Field, HostLine, Kind, Lost, Missing, Model, Row, Spinlock, Table, TableId, Unit,
    Value,
};
use crate::sample::blocked::{BlockedId, BlockedWaits, Held};
use crate::sample::{Budget, Delta};
use crate::symbol::FaultPart;
use std::sync::Arc;

/// Two seconds of a quiet machine, with four rows in every table.
pub(crate) fn full() -> Model {
    sized(4)
}

/// Like [`full`], with `rows` rows in every table.
pub(crate) fn sized(rows: u64) -> Model {
    let context = Context {
        host: Arc::new(HostLine {
            name: "build-7".to_owned(),
            kernel: "6.18.0-1-amd64".to_owned(),
        }),
        ..Context::default()
    };
    let header = Header {
        minor_per_sec: Some(12_345.0),
        major_per_sec: Some(3.5),
        mmap_lock_wait_ns_per_sec: Some(3_200_000.0),
        lru_lock_wait_ns_per_sec: Some(850.0),
        own_cpu_ratio: Some(0.004),
        own_bpf_ratio: None,
        own_rss_bytes: Some(23_400_000),
        own_map_bytes: Some(12_000_000),
        filter: String::new(),
        spinlock: Spinlock {
            mode: Some("pv".into()),
            is_exact: false,
            sentence: "spinlocks: pv; every waiter of a spinlock is seen".to_owned(),
        },
        overruns: 0,
    };
    let tables = TableId::ALL.iter().map(|t| table(*t, rows)).collect();
    let mut m = Model::from_tables(Arc::new(context), header, tables);
    m.t_mono_ns = 100_000_000_000;
    m.t_real_ns = 1_700_000_000_000_000_000;
    m.interval_ns = 2_000_000_000;
    m.notes = Vec::new();
    m.lost = vec![
        Lost {
            id: "thread_slot_collision".into(),
            description: "Faults of threads whose slot another thread had.".into(),
            total: 0,
            increment: 0,
        },
        Lost {
            id: "ring_full".into(),
            description: "Events that found the ring buffer full.".into(),
            total: 0,
            increment: 0,
        },
    ];
    m
}

/// The model with every table changed by `edit`.
pub(crate) fn edited(model: &Model, edit: impl Fn(TableId, &mut Table)) -> Model {
    let tables = TableId::ALL
        .iter()
        .map(|id| {
            let mut table = model.table(*id).clone();
            edit(*id, &mut table);
            table
        })
        .collect();
    let mut m = Model::from_tables(Arc::default(), model.header.clone(), tables);
    m.host = Arc::clone(&model.host);
    m.t_mono_ns = model.t_mono_ns;
    m.t_real_ns = model.t_real_ns;
    m.interval_ns = model.interval_ns;
    m.lost.clone_from(&model.lost);
    m.missing = Arc::clone(&model.missing);
    m.notes.clone_from(&model.notes);
    m
}

fn table(id: TableId, rows: u64) -> Table {
    let fields = id.fields();
    Table {
        fields,
        rows: (0..rows)
            .map(|r| Row {
                key: 1000 + r,
                cells: fields.iter().map(|f| cell(f, r)).collect(),
            })
            .collect(),
        omitted: 0,
    }
}

/// Row 0 is the busiest; figures fall by a third from row to row.
#[expect(clippy::cast_precision_loss, reason = "small test numbers")]
fn cell(field: &Field, r: u64) -> Value {
    let n = 90_000 / (r * 3 + 1);
    match (field.id, field.unit) {
        ("cpu", _) => Value::Count(r),
        ("node", _) => Value::Count(r / 8),
        ("llc", _) => Value::Count(r / 4),
        ("core", _) => Value::Count(r / 2),
        ("pid" | "tid", _) => Value::Count(4200 + 7 * r),
        ("comm" | "taker" | "owner", _) => Value::Text(
            ["mysqld", "cc1plus", "kswapd0", "tokio-runtime-w"][(r % 4) as usize].into(),
        ),
        ("cgroup", _) => Value::Text(format!("/system.slice/build-{r}.service")),
        ("comment", _) => Value::Text("what to know about the row".to_owned()),
        (id, Unit::None) => Value::Text(format!("{id} {r}")),
        (_, Unit::Events | Unit::Pages) if field.kind == Kind::Counter => Value::Count(n),
        (_, Unit::Ns | Unit::Bytes) => Value::Count(n * 40),
        (_, Unit::Ratio) => Value::Real(0.9 / (r + 1) as f64),
        (_, Unit::PerSec) => Value::Real(n as f64 * 1.5),
        (_, _) => Value::Count(n / 100),
    }
}

/// No rows, no figures.
pub(crate) fn empty() -> Model {
    let mut m = sized(0);
    m.header = Header::default();
    m
}

/// Seven events lost.
pub(crate) fn lossy() -> Model {
    let mut m = full();
    m.lost[0].total = 5;
    m.lost[0].increment = 1;
    m.lost[1].total = 2;
    m
}

/// Reasons as a kernel without uprobes or contention tracepoints gives them.
pub(crate) fn missing() -> Arc<[Missing]> {
    Arc::new([
        Missing {
            signal: "contention".into(),
            reason: "the kernel has no tracepoint lock:contention_begin".to_owned(),
        },
        Missing {
            signal: "major_faults".into(),
            reason: "perf_event_open: Permission denied".to_owned(),
        },
    ])
}

/// One second in which writers block faults and page clearing dominates.
pub(crate) fn found() -> Model {
    let mut delta = Delta {
        t_mono_ns: 100_000_000_000,
        t_real_ns: 1_700_000_000_000_000_000,
        interval_ns: 1_000_000_000,
        ..Delta::default()
    };
    delta.names.insert(4200, "mysqld".into());
    let id = BlockedId {
        tgid: 4200,
        syscall: -1,
        is_write: false,
        site: 0,
        held: Held::Write,
        holder: 4200,
        holder_tid: 4207,
        holder_comm: "connection".into(),
        holder_syscall: Some(11),
        holder_site: 0,
        owner: 4200,
    };
    let waits = BlockedWaits {
        waits: 12_345,
        wait_ns: 678_000_000,
        max_ns: 9_000_000,
    };
    delta.blocked.insert(id, waits);
    let mut budget = Budget {
        period_ns: 1_003_009,
        user: 500,
        kernel: 800,
        ..Budget::default()
    };
    budget.parts[FaultPart::PageClearing as usize][0] = 310;
    budget.parts[FaultPart::OtherLock as usize][0] = 90;
    delta.budget = Some(budget);
    Model::new(Arc::new(delta), Arc::default())
}

/// A kernel-side filter, missing signals, a note and late ticks at once.
pub(crate) fn degraded() -> Model {
    let mut m = lossy();
    m.missing = missing();
    m.notes = vec!["3 waits began before attach and are left out".to_owned()];
    m.header.filter = "pid=4200 comm=mysqld".to_owned();
    m.header.overruns = 2;
    edited(&m, |_, t| t.omitted = 17)
}
