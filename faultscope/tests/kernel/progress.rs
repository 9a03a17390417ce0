//! The line that `record` shows on a terminal.

use std::io::Read as _;
use std::process::Stdio;

use crate::record::{Directory, record, run, text};
use crate::support::{demand, left_to_real_machines, terminal};

/// What a terminal of some columns shows in the end of all that was written to it.
fn shown(written: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![Vec::new()];
    let (mut line, mut column) = (0, 0);
    let mut rest = written.chars();
    while let Some(letter) = rest.next() {
        match letter {
            '\r' => column = 0,
            '\n' => line += 1,
            '\u{1b}' => {
                assert_eq!(rest.by_ref().take(2).collect::<String>(), "[K");
                lines[line].truncate(column);
            }
            letter => {
                if column == columns {
                    (line, column) = (line + 1, 0);
                }
                lines.resize(lines.len().max(line + 1), Vec::new());
                let cells = &mut lines[line];
                cells.resize(cells.len().max(column + 1), ' ');
                cells[column] = letter;
                column += 1;
            }
        }
        lines.resize(lines.len().max(line + 1), Vec::new());
    }
    lines
        .into_iter()
        .map(|line| line.into_iter().collect())
        .collect()
}

#[test]
fn the_line_on_a_terminal_leaves_what_the_command_writes_alone() {
    if left_to_real_machines() {
        return;
    }
    for (columns, part) in [(100, "recording 00:"), (24, " faults")] {
        let directory = Directory::new(&format!("terminal-{columns}"));
        let file = directory.file("f");
        let script = "sleep 1; echo one; sleep 1; printf 'two? '; sleep 1; echo yes; echo three >&2; sleep 1";
        let (ours, theirs) = terminal(columns);
        let end = || Stdio::from(theirs.try_clone().expect("a descriptor"));
        let mut command = record(&file, &["-d", "0.2", "--", "sh", "-c", script]);
        command.env("TERM", "xterm").stdout(end()).stderr(end());
        let mut process = command.spawn().expect("the binary runs");
        drop(command);
        drop(theirs);
        let mut ours = std::fs::File::from(ours);
        let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
        // The other end is closed by the last who holds it, which reads as an error.
        while let Ok(n @ 1..) = ours.read(&mut buffer) {
            seen.extend_from_slice(&buffer[..n]);
        }
        assert!(process.wait().expect("it ends").success());
        let seen = text(&seen);
        demand("lines of progress", seen.matches(part).count() as u64, 4);
        let lines = shown(&seen, usize::from(columns));
        assert_eq!(lines[..3], ["one", "two? yes", "three"], "{seen:?}");
        assert!(lines[3].starts_with("faultscope: wrote \""), "{lines:?}");
        // What the message in the end says, and no line of progress that stayed.
        let rest = lines[3..].concat();
        assert_eq!(rest.matches("faults,").count(), 1, "{lines:?}");
    }
}

#[test]
fn no_line_goes_into_a_file() {
    if left_to_real_machines() {
        return;
    }
    let directory = Directory::new("redirected");
    let output = run(&directory.file("f"), &["-d", "0.2", "--", "sleep", "1"]);
    let said = text(&output.stderr);
    assert!(
        output.status.success() && !said.contains('\u{1b}'),
        "{said}"
    );
    let is_message = |line: &str| line.starts_with("faultscope: ");
    assert!(said.lines().all(is_message), "{said}");
}
