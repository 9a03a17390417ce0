//! Doctor on recorded, hand-made and crippled hosts.

use std::path::PathBuf;

use serde_json::Value;

use super::*;
use crate::commands::consult_kernel;
use crate::host::privilege::Lockdown;
use crate::host::spinlock::SpinlockMode;
use crate::plan::{Plan, SIGNALS};

/// Attaches everything but the programs named; counts how often it was asked.
#[derive(Default)]
struct Fake {
    refuses: &'static [&'static str],
    calls: usize,
}

impl Prober for Fake {
    fn try_attach(&mut self, plan: &Plan) -> Vec<Attached> {
        self.calls += 1;
        let outcome = |program: &str| {
            if self.refuses.contains(&program) {
                Err("EACCES (Permission denied)".to_owned())
            } else {
                Ok(())
            }
        };
        plan.chosen
            .iter()
            .map(|probe| Attached {
                program: probe.program,
                outcome: outcome(probe.program),
            })
            .collect()
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

/// A host that lacks nothing, with the running kernel's prototypes and offsets.
fn sound() -> (HostFacts, Fact<ProbeFacts>, Surroundings) {
    let mut host = HostFacts::read(&fixture("host-6.18"));
    for capability in [
        &mut host.privilege.cap_bpf,
        &mut host.privilege.cap_perfmon,
        &mut host.privilege.cap_syslog,
        &mut host.privilege.cap_sys_admin,
    ] {
        *capability = Fact::Yes(());
    }
    host.privilege.lockdown = Fact::Yes(Lockdown::None);
    host.kernel.tracefs = Fact::Yes("/sys/kernel/tracing".into());
    host.spinlock = Fact::Yes(SpinlockMode::Pv);
    host.initial_pid_namespace = Fact::Yes(());
    let mut running = HostFacts::read(Path::new("/"));
    running.privilege = host.privilege.clone();
    let probes = consult_kernel(Path::new("/"), &mut running);
    assert!(
        probes.is_yes(),
        "the tests need a kernel with BTF: {:?}",
        probes.reason()
    );
    host.kernel.btf_bytes = running.kernel.btf_bytes;
    let around = Surroundings {
        clocksource: Fact::Yes("tsc".into()),
        terminal: Fact::Yes("xterm".into()),
    };
    (host, probes, around)
}

fn fact<'a>(report: &'a Report, id: &str) -> &'a FactLine {
    report
        .facts
        .iter()
        .find(|line| line.id == id)
        .unwrap_or_else(|| panic!("no fact {id}"))
}

fn text(report: &Report) -> String {
    let mut out = Vec::new();
    report.write_text(&mut out).expect("writing to memory");
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn sound_host_attaches_and_exits_0() {
    let (host, probes, around) = sound();
    let mut prober = Fake::default();
    let report = examine(&host, &probes, &around, &mut prober);
    assert_eq!(prober.calls, 1);
    assert_eq!(report.exit(), Exit::Done);
    assert_eq!(report.verdict, "ok");
    let lacking: Vec<_> = report
        .facts
        .iter()
        .filter(|line| line.level > Level::Ok && !line.id.starts_with(signals::PREFIX))
        .map(|line| line.id.as_str())
        .collect();
    assert_eq!(lacking, [] as [&str; 0]);
    assert_eq!(fact(&report, "signal.mark_accessed").state, "yes");
    assert_eq!(fact(&report, "signal.faults").state, "yes");
    assert!(
        report
            .programs
            .iter()
            .any(|line| line.name == "fault_user" && line.attached)
    );
}

#[test]
fn missing_capability_is_named_and_nothing_is_tried() {
    let (sound_host, probes, around) = sound();
    for name in ["CAP_BPF", "CAP_PERFMON"] {
        let mut host = sound_host.clone();
        host.privilege.cap_sys_admin =
            Fact::no("CAP_SYS_ADMIN is not in the effective set of this process");
        let lacks = Fact::no(format!(
            "{name} is not in the effective set of this process"
        ));
        if name == "CAP_BPF" {
            host.privilege.cap_bpf = lacks;
        } else {
            host.privilege.cap_perfmon = lacks;
        }
        let mut prober = Fake::default();
        let report = examine(&host, &probes, &around, &mut prober);
        assert_eq!(
            (prober.calls, report.exit(), report.verdict),
            (0, Exit::Refused, "refused")
        );
        let line = fact(&report, &name.to_lowercase());
        assert_eq!((line.state, line.level), ("no", Level::Fail));
        assert!(
            line.fix
                .as_deref()
                .expect("has a fix")
                .contains("setcap cap_bpf,cap_perfmon=ep")
        );
        assert!(
            report
                .programs
                .iter()
                .all(|program| !program.attached && program.reason.is_some())
        );
        let signal = fact(&report, "signal.faults");
        assert_eq!(signal.state, "unknown");
        assert!(
            signal.reason.as_deref().expect("said").contains(name),
            "{signal:?}"
        );
        assert!(!text(&report).contains("root"), "never \"run as root\"");
    }
}

#[test]
fn admin_stands_in_and_says_so() {
    let (mut host, probes, around) = sound();
    host.privilege.cap_bpf = Fact::no("CAP_BPF is not in the effective set of this process");
    let report = examine(&host, &probes, &around, &mut Fake::default());
    let line = fact(&report, "cap_bpf");
    assert_eq!((line.state, line.level), ("yes", Level::Ok));
    assert!(
        line.reason
            .as_deref()
            .expect("said")
            .contains("CAP_SYS_ADMIN")
    );
    assert_eq!(report.exit(), Exit::Done);
}

#[test]
fn no_btf_is_refused_with_the_build_option() {
    let (mut host, _, around) = sound();
    host.kernel.btf_bytes = Fact::no("there is no \"/sys/kernel/btf/vmlinux\"");
    let probes = consult_kernel(&fixture("host-6.18"), &mut host);
    let mut prober = Fake::default();
    let report = examine(&host, &probes, &around, &mut prober);
    assert_eq!((prober.calls, report.exit()), (0, Exit::Refused));
    assert!(
        fact(&report, "btf")
            .fix
            .as_deref()
            .expect("has a fix")
            .contains("CONFIG_DEBUG_INFO_BTF=y")
    );
    assert!(
        report
            .programs
            .iter()
            .all(|program| program.reason.as_deref() == Some("not tried without the kernel's BTF"))
    );
}

#[test]
fn damaged_btf_is_unknown_and_no_panic() {
    let (mut host, _, _) = sound();
    let root = std::env::temp_dir().join(format!("faultscope-doctor-{}", std::process::id()));
    std::fs::create_dir_all(root.join("sys/kernel/btf")).expect("temporary directory");
    std::fs::write(root.join("sys/kernel/btf/vmlinux"), [0x9f, 0xeb, 1, 0, 24])
        .expect("temporary file");
    let probes = consult_kernel(&root, &mut host);
    std::fs::remove_dir_all(&root).expect("temporary directory");
    assert_eq!(probes.state(), "unknown");
    assert!(probes.reason().expect("said").contains("ends inside"));
}

#[test]
fn hidden_names_and_absent_tracefs_degrade_only() {
    let (mut host, probes, around) = sound();
    host.privilege.kptr_restrict = Fact::Yes(2);
    host.kernel.kallsyms = Fact::no("hidden");
    host.kernel.tracefs = HostFacts::read(&fixture("host-6.18")).kernel.tracefs;
    let report = examine(&host, &probes, &around, &mut Fake::default());
    assert_eq!((report.exit(), report.verdict), (Exit::Done, "degraded"));
    for id in ["kptr_restrict", "kallsyms"] {
        assert_eq!(
            fact(&report, id).fix.as_deref(),
            Some("sysctl -w kernel.kptr_restrict=1")
        );
    }
    assert_eq!(
        fact(&report, "tracefs").fix.as_deref(),
        Some("mount -t tracefs nodev /sys/kernel/tracing")
    );

    host.privilege.kptr_restrict = Fact::Yes(1);
    host.privilege.cap_syslog = Fact::no("x");
    let report = examine(&host, &probes, &around, &mut Fake::default());
    assert!(
        fact(&report, "kallsyms")
            .fix
            .as_deref()
            .expect("has a fix")
            .contains("cap_syslog=ep")
    );
    assert_eq!(report.exit(), Exit::Done);
}

#[test]
fn refused_program_fails_its_signal_and_the_exit() {
    let (host, probes, around) = sound();
    let mut prober = Fake {
        refuses: &["fault_major"],
        calls: 0,
    };
    let report = examine(&host, &probes, &around, &mut prober);
    assert_eq!(report.exit(), Exit::Refused);
    let line = fact(&report, "signal.major_faults");
    assert_eq!((line.state, line.level), ("no", Level::Fail));
    assert!(
        line.reason.as_deref().expect("said").contains("EACCES"),
        "{line:?}"
    );
    let program = report
        .programs
        .iter()
        .find(|line| line.name == "fault_major")
        .expect("listed");
    assert!(!program.attached && program.reason.as_deref().expect("said").contains("EACCES"));
    assert_eq!(fact(&report, "signal.faults").state, "yes");
}

#[test]
fn kernel_without_tracepoints_is_no_failure() {
    let (host, probes, around) = sound();
    let Fact::Yes(mut kernel) = probes else {
        panic!("the tests need a kernel with BTF")
    };
    kernel.tracepoints.clear();
    let report = examine(&host, &Fact::Yes(kernel), &around, &mut Fake::default());
    assert_eq!((report.exit(), report.verdict), (Exit::Done, "degraded"));
    let faults = fact(&report, "signal.faults");
    assert_eq!(faults.state, "yes");
    assert!(
        faults
            .lost
            .as_deref()
            .expect("the fall-back gives less")
            .contains("user and kernel only")
    );
    assert_eq!(fact(&report, "signal.madvise").state, "no");
}

#[test]
fn spinlock_mode_says_what_contention_misses() {
    let (mut host, probes, around) = sound();
    for (mode, words) in [
        (SpinlockMode::Native, "first waiter"),
        (SpinlockMode::TestAndSet, "not seen at all"),
    ] {
        host.spinlock = Fact::Yes(mode);
        let report = examine(&host, &probes, &around, &mut Fake::default());
        for id in ["spinlock_mode", "signal.contention"] {
            assert!(
                fact(&report, id)
                    .lost
                    .as_deref()
                    .expect("said")
                    .contains(words),
                "{id}"
            );
        }
        assert_eq!(report.exit(), Exit::Done);
    }
}

#[test]
fn lockdown_and_mglru_of_the_hand_made_host() {
    let (sound_host, probes, around) = sound();
    let mut host = HostFacts::read(&fixture("host-unified"));
    host.privilege.cap_bpf = Fact::Yes(());
    host.privilege.cap_perfmon = Fact::Yes(());
    host.kernel.btf_bytes = sound_host.kernel.btf_bytes;
    let report = examine(&host, &probes, &around, &mut Fake::default());
    assert_eq!(fact(&report, "lockdown").level, Level::Fail);
    assert!(
        fact(&report, "mglru")
            .lost
            .as_deref()
            .expect("said")
            .contains("lru_activations stays 0")
    );
    assert!(
        fact(&report, "memory_cgroups")
            .reason
            .as_deref()
            .expect("said")
            .starts_with("v2 at")
    );
    assert!(
        fact(&report, "preemption")
            .reason
            .as_deref()
            .expect("said")
            .contains("PREEMPT_RT")
    );
}

#[test]
fn json_has_the_contract_and_nothing_else() {
    let (host, probes, around) = sound();
    let report = examine(&host, &probes, &around, &mut Fake::default());
    let mut out = Vec::new();
    report.write_json(&mut out).expect("writing to memory");
    let json: Value = serde_json::from_slice(&out).expect("valid JSON");
    let keys = |value: &Value| {
        value
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    let mut top = keys(&json);
    top.sort();
    assert_eq!(top, ["facts", "programs", "schema", "verdict"]);
    assert_eq!(json["schema"], "faultscope.doctor/1");
    for entry in json["facts"].as_array().expect("a list") {
        let mut names = keys(entry);
        names.sort();
        assert_eq!(names, ["fix", "id", "lost", "reason", "state"]);
        assert!(["yes", "no", "unknown"].contains(&entry["state"].as_str().expect("a word")));
    }
    for entry in json["programs"].as_array().expect("a list") {
        let mut names = keys(entry);
        names.sort();
        assert_eq!(names, ["attached", "name", "ns", "reason"]);
        assert!(entry["ns"].is_null());
    }
}

#[test]
fn every_signal_and_program_has_a_line_and_a_reason_where_it_lacks() {
    let (host, probes, around) = sound();
    let report = examine(&host, &probes, &around, &mut Fake::default());
    for signal in SIGNALS {
        let line = fact(&report, &format!("signal.{}", signal.id));
        assert!(
            line.reason
                .as_deref()
                .is_some_and(|reason| !reason.is_empty()),
            "{line:?}"
        );
        assert_eq!(
            line.state == "yes" && line.lost.is_none(),
            line.level == Level::Ok,
            "{line:?}"
        );
    }
    assert_eq!(report.programs.len(), plan::PROBES.len());
    for program in &report.programs {
        assert_eq!(program.attached, program.reason.is_none(), "{program:?}");
    }
    let text = text(&report);
    assert!(
        text.contains("Signals") && text.contains("verdict: ok"),
        "{text}"
    );
}

#[test]
fn slow_clock_is_a_loss() {
    let (host, probes, mut around) = sound();
    around.clocksource = Fact::Yes("hpet".into());
    let report = examine(&host, &probes, &around, &mut Fake::default());
    assert!(
        fact(&report, "clock")
            .lost
            .as_deref()
            .expect("said")
            .contains("slow clock")
    );
}

/// Every signal a column names is one the catalogue knows.
#[test]
fn field_signals_are_known() {
    for field in crate::model::field::ALL {
        assert!(
            field.signal.is_empty() || SIGNALS.iter().any(|signal| signal.id == field.signal),
            "{}: unknown signal {}",
            field.id,
            field.signal
        );
    }
}
