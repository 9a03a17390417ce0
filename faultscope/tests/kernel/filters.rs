//! Filters act in the kernel: what they leave out has no row, and the figures of
//! the machine are the same without them.

use std::path::PathBuf;

use faultscope::commands::session::{Options, Session};
use faultscope::error::Exit;
use faultscope::model::{Model, TableId, Value};
use faultscope::sample::Scope;
use faultscope::sample::counters::LOCK_CLASSES;

use crate::support::{
    self, Cgroup, Child, Link, Pages, Role, demand, demand_near, own_faults, process, tick,
};

/// Roles of the children of this file.
pub(crate) const ROLES: &[(&str, Role)] = &[("filter_touch", touch), ("filter_rename", rename)];

/// Pages a child touches at each step.
const TOUCHED: u64 = 2000;
/// Faults of a child beside those, at its own stack and its reports.
const BESIDE: u64 = 4;

fn session(options: Options) -> Session {
    Session::start(&Options {
        bpf_object: support::object(),
        ..options
    })
    .expect("the core set attaches; see `faultscope doctor`")
}

fn refused(options: &Options) -> String {
    let error = Session::start(options).expect_err("the filter names nothing");
    assert_eq!(Exit::of(&error), Exit::Usage, "{error:#}");
    error.to_string()
}

/// Whether the process stands in a table of processes or threads.
fn has_row(model: &Model, pid: u32) -> bool {
    [TableId::Processes, TableId::Threads].iter().any(|id| {
        let table = model.table(*id);
        let column = table.fields.iter().position(|field| field.id == "pid");
        let column = column.expect("a column of process ids");
        let rows = table.rows.iter();
        rows.map(|row| &row.cells[column])
            .any(|cell| matches!(cell, Value::Count(n) if *n == u64::from(pid)))
    })
}

fn step_all(session: &mut Session, children: &mut [&mut Child]) -> Model {
    tick(session);
    for child in &mut *children {
        child.step();
    }
    tick(session)
}

fn demand_counted(model: &Model, child: &Child) {
    let seen = process(model.delta(), child.pid()).user();
    demand_near(
        "user faults of a process let through",
        seen,
        TOUCHED,
        BESIDE,
    );
    assert!(has_row(model, child.pid()));
}

/// A process that was never let through: nothing of it, nowhere.
fn demand_left_out(model: &Model, child: &Child) {
    let counters = process(model.delta(), child.pid());
    assert!(counters.is_zero(), "{counters:?}");
    assert!(!has_row(model, child.pid()), "a row that was filtered out");
    let threads = model.delta().threads.values();
    assert!(threads.into_iter().all(|t| t.process.tgid != child.pid()));
}

/// A process that was let through until after the last reading. A wait for a
/// spinlock that is the first it does after the move still counts as before: its
/// row may change only where it may sleep. Nothing else does.
fn demand_moved_out(model: &Model, child: &Child) {
    let mut counters = process(model.delta(), child.pid());
    for class in 0..LOCK_CLASSES {
        counters[Scope::Waits(class)] = 0;
        counters[Scope::WaitNs(class)] = 0;
    }
    assert!(counters.is_zero(), "{counters:?}");
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of faults of one interval, rounded down"
)]
fn demand_machine_unfiltered(model: &Model, children: u64) {
    let total = model.delta().total();
    demand("faults of all CPUs", total.faults(), children * TOUCHED);
    let header = model.header.minor_per_sec.expect("a figure") * model.interval_secs();
    demand(
        "faults of the header",
        header.round() as u64,
        children * TOUCHED,
    );
}

#[test]
fn a_process_filter_leaves_other_processes_out() {
    let mut inside = Child::start("filter_touch", &[]);
    let mut outside = Child::start("filter_touch", &[]);
    let mut session = session(Options {
        pids: vec![inside.pid()],
        ..Options::default()
    });
    let model = step_all(&mut session, &mut [&mut inside, &mut outside]);
    demand_counted(&model, &inside);
    demand_left_out(&model, &outside);
    demand_machine_unfiltered(&model, 2);
    assert_eq!(model.header.filter, format!("pid {}", inside.pid()));
}

#[test]
fn a_cgroup_filter_takes_descendants_and_follows_moves() {
    let above = Cgroup::new("above");
    let [beside, below] = ["beside", "below"].map(|name| above.make_inside(name));
    let mut parent = Child::start_in("filter_touch", &[], Some(&beside));
    let mut child = Child::start_in("filter_touch", &[], Some(&below));
    let mut outside = Child::start("filter_touch", &[]);
    let name = above.path().file_name().expect("a name");
    for path in [above.path().to_owned(), PathBuf::from(name)] {
        let mut session = session(Options {
            cgroups: vec![path],
            ..Options::default()
        });
        let model = step_all(&mut session, &mut [&mut parent, &mut child, &mut outside]);
        demand_counted(&model, &parent);
        demand_counted(&model, &child);
        demand_left_out(&model, &outside);
        demand_machine_unfiltered(&model, 3);
        let paths: Vec<&str> = model.delta().cgroup_paths.values().map(|p| &**p).collect();
        let shown = format!("/{}/below", name.to_string_lossy());
        assert!(paths.contains(&&*shown), "{paths:?} lacks {shown}");
    }
    let mut session = session(Options {
        cgroups: vec![below.path().to_owned()],
        ..Options::default()
    });
    let model = step_all(&mut session, &mut [&mut parent, &mut child]);
    demand_left_out(&model, &parent);
    demand_counted(&model, &child);
    below.take(parent.pid());
    beside.take(child.pid());
    let model = step_all(&mut session, &mut [&mut parent, &mut child]);
    demand_counted(&model, &parent);
    demand_moved_out(&model, &child);
}

#[test]
fn a_name_filter_follows_the_name() {
    let mut child = Child::start("filter_rename", &[]);
    let mut session = session(Options {
        comms: vec!["fs-inside".into()],
        ..Options::default()
    });
    for (turn, is_inside) in [false, true, false, true].into_iter().enumerate() {
        let model = step_all(&mut session, &mut [&mut child]);
        if is_inside {
            demand_counted(&model, &child);
        } else if turn == 0 {
            demand_left_out(&model, &child);
        } else {
            demand_moved_out(&model, &child);
        }
        demand_machine_unfiltered(&model, 1);
    }
}

#[test]
fn all_kinds_of_filter_must_agree() {
    let cgroup = Cgroup::new("agree");
    let mut inside = Child::start_in("filter_touch", &[], Some(&cgroup));
    let mut outside = Child::start("filter_touch", &[]);
    let mut session = session(Options {
        pids: vec![inside.pid(), outside.pid()],
        cgroups: vec![cgroup.path().to_owned()],
        ..Options::default()
    });
    let model = step_all(&mut session, &mut [&mut inside, &mut outside]);
    demand_counted(&model, &inside);
    demand_left_out(&model, &outside);
}

#[test]
fn filters_that_name_nothing_are_usage_errors() {
    let cgroup = |path: &str| Options {
        cgroups: vec![path.into()],
        ..Options::default()
    };
    for path in [
        "faultscope-none",
        "/faultscope-none",
        "../x",
        "tasks",
        "cgroup.procs",
    ] {
        if path == "tasks" && !std::path::Path::new("/sys/fs/cgroup/memory/tasks").exists() {
            continue;
        }
        let message = refused(&cgroup(path));
        assert!(message.contains(path), "{message}");
    }
    let message = refused(&Options {
        comms: vec!["sixteen bytes !!".into()],
        ..Options::default()
    });
    assert!(message.contains("15 bytes"), "{message}");
}

fn touch(link: &mut Link, _: &[u64]) {
    own_faults();
    loop {
        let pages = Pages::new(TOUCHED as usize);
        link.stop([0; 4]);
        pages.touch();
    }
}

fn rename(link: &mut Link, _: &[u64]) {
    let mut names = [c"fs-outside", c"fs-inside"].iter().cycle();
    loop {
        let pages = Pages::new(TOUCHED as usize);
        link.stop([0; 4]);
        let name = names.next().expect("names without end");
        // SAFETY: a name that ends in NUL.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
        pages.touch();
    }
}
