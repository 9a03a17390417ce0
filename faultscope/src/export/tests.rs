//! The contracts of the batch formats, on the fixture model.

use super::*;
use crate::model::{Kind, Value};
use crate::render::fixture;
use serde_json::Value as Json;

fn written(format: Format, selection: Selection, models: &[Model]) -> String {
    let mut out = Vec::new();
    let mut writer = Writer::new(format, selection).expect("a format of top");
    for m in models {
        writer
            .write(&mut out, m)
            .expect("a vector takes everything");
    }
    String::from_utf8(out).expect("output is UTF-8")
}

fn all_of(table: TableId) -> Selection {
    Selection {
        table,
        sort: None,
        word: String::new(),
        top: None,
    }
}

#[test]
fn top_takes_three_formats_and_names_what_it_lacks() {
    for f in Format::ALL {
        assert_eq!(f.id().parse(), Ok(f));
        let made = Writer::new(f, all_of(TableId::Cpus));
        assert_eq!(made.is_ok(), Format::TOP.contains(&f), "{f:?}");
        if let Err(e) = made {
            for lacking in Format::ALL {
                assert!(e.to_string().contains(lacking.id()), "{e}");
            }
        }
    }
    let unknown = "xml".parse::<Format>().expect_err("no such format");
    for f in Format::ALL {
        assert!(unknown.to_string().contains(f.id()), "{unknown}");
    }
}

#[test]
fn jsonl_has_one_object_per_interval_with_the_contract_keys() {
    for t in TableId::ALL {
        let models = [fixture::full(), fixture::lossy()];
        let out = written(Format::Jsonl, all_of(*t), &models);
        assert_eq!(out.lines().count(), 2, "{}", t.id());
        for (line, model) in out.lines().zip(&models) {
            let v: Json = serde_json::from_str(line).expect("a line is one object");
            assert_eq!(v["schema"], "faultscope.top/1");
            assert_eq!(v["view"], t.id());
            assert_eq!(v["interval_ns"], model.interval_ns);
            assert_eq!(v["t_mono_ns"], model.t_mono_ns);
            assert_eq!(v["host"], model.host.name);
            for l in &model.lost {
                assert_eq!(v["lost"][&*l.id]["total"], l.total);
                assert_eq!(v["lost"][&*l.id]["increment"], l.increment);
            }
            let rows = v["rows"].as_array().expect("rows are a list");
            assert_eq!(rows.len(), model.table(*t).rows.len());
            let row = rows[0].as_object().expect("a row is an object");
            for f in t.fields() {
                assert!(row.contains_key(f.id), "{} lacks {}", t.id(), f.id);
                let rate = format!("{}_per_sec", f.id);
                assert_eq!(row.contains_key(&rate), f.kind == Kind::Counter, "{rate}");
            }
        }
    }
}

#[test]
fn increments_and_rates_stand_apart_and_absence_is_null() {
    let mut m = fixture::full();
    m.interval_ns = 2_000_000_000;
    let at = m
        .table(TableId::Processes)
        .position("faults")
        .expect("a column");
    let m = fixture::edited(&m, |id, t| {
        if id == TableId::Processes {
            t.rows[0].cells[at] = Value::Count(500);
            t.rows[1].cells[at] = Value::Absent;
        }
    });
    let out = written(Format::Jsonl, all_of(TableId::Processes), &[m]);
    let v: Json = serde_json::from_str(&out).expect("valid");
    assert_eq!(v["rows"][0]["faults"], 500);
    assert_eq!(v["rows"][0]["faults_per_sec"], 250.0);
    assert!(v["rows"][1]["faults"].is_null());
    assert!(v["rows"][1]["faults_per_sec"].is_null());
    assert_eq!(v["header"]["own_bpf_ratio"], Json::Null);
}

#[test]
fn rows_cut_by_top_are_counted_as_omitted() {
    let m = fixture::full();
    let (table, rows) = (TableId::Processes, m.table(TableId::Processes).rows.len());
    let selection = Selection {
        top: Some(1),
        ..all_of(table)
    };
    let out = written(Format::Jsonl, selection.clone(), std::slice::from_ref(&m));
    let v: Json = serde_json::from_str(&out).expect("valid");
    assert_eq!(v["rows"].as_array().map(Vec::len), Some(1));
    assert_eq!(v["omitted"], m.table(table).omitted + rows as u64 - 1);
    let text = written(Format::Text, selection, &[m]);
    assert!(text.contains("more rows not shown"), "{text}");
}

/// Splits CSV by the letter of RFC 4180.
fn records(csv: &str) -> Vec<Vec<String>> {
    let (mut all, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut chars = csv.chars().peekable();
    let mut quoted = false;
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                cell.push('"');
                chars.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\r' if !quoted => {}
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                all.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    assert!(!quoted && cell.is_empty() && row.is_empty(), "torn record");
    all
}

#[test]
fn csv_has_one_header_and_no_cell_breaks_a_row() {
    let evil = "a,b\r\n\"c\"\nd";
    for t in TableId::ALL {
        let m = fixture::edited(&fixture::full(), |_, table| {
            for (f, c) in table.fields.iter().zip(&mut table.rows[0].cells) {
                if f.unit == crate::model::Unit::None {
                    *c = Value::Text(evil.to_owned());
                }
            }
        });
        let (rows, first) = (m.table(*t).rows.len(), m.table(*t).rows[0].clone());
        let out = written(Format::Csv, all_of(*t), &[m.clone(), m]);
        let all = records(&out);
        assert_eq!(all.len(), 1 + 2 * rows, "{}", t.id());
        assert!(all.iter().all(|r| r.len() == all[0].len()), "{}", t.id());
        let mut names = all[0].clone();
        assert_eq!(names[0], "t_real");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all[0].len(), "{}: a name stands twice", t.id());
        for (i, c) in first.cells.iter().enumerate() {
            if let Value::Text(text) = c {
                assert_eq!(&all[1][i + 1], text);
            }
        }
    }
}

#[test]
fn text_has_header_table_losses_and_missing_signals() {
    let mut m = fixture::lossy();
    m.missing = fixture::missing();
    insta::assert_snapshot!(written(Format::Text, all_of(TableId::Cgroups), &[m]));
}

#[test]
fn text_of_an_empty_model_still_names_its_columns() {
    for t in TableId::ALL {
        let out = written(Format::Text, all_of(*t), &[fixture::empty()]);
        assert!(out.contains(t.fields()[0].title), "{out}");
    }
}

#[test]
fn a_closed_pipe_is_an_error_of_its_kind() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for f in Format::TOP {
        let mut w = Writer::new(f, all_of(TableId::Cpus)).expect("a format of top");
        let e = w.write(&mut Closed, &fixture::full()).expect_err("closed");
        assert_eq!(e.kind(), io::ErrorKind::BrokenPipe, "{f:?}");
    }
}

#[test]
fn every_object_has_the_findings_with_their_numbers() {
    for table in [TableId::Findings, TableId::Cpus] {
        let out = written(Format::Jsonl, all_of(table), &[fixture::found()]);
        let v: Json = serde_json::from_str(&out).expect("a line is one object");
        let findings = v["findings"].as_array().expect("findings are a list");
        let ids: Vec<_> = findings.iter().map(|f| &f["id"]).collect();
        assert_eq!(
            ids,
            ["mmap_lock_writers_block_faults", "page_clearing_dominates"]
        );
        assert_eq!(findings[0]["evidence"]["fault_wait_ns"], 678_000_000_u64);
        assert_eq!(findings[0]["evidence"]["writer_syscall"], "munmap");
        assert_eq!(findings[0]["next"], "faultscope top --view blocked");
        for key in ["title", "text"] {
            assert!(findings[1][key].is_string(), "{key}");
        }
    }
    let out = written(Format::Text, all_of(TableId::Findings), &[fixture::found()]);
    assert!(out.contains("12.3k faults waited 678ms"), "{out}");
    assert!(out.contains("faultscope top --view budget"), "{out}");
    let out = written(Format::Jsonl, all_of(TableId::Cpus), &[fixture::empty()]);
    assert!(out.contains("\"findings\":[]"), "{out}");
}
