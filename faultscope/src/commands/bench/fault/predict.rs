//! How many faults a case must have.

use rustix::param::page_size;

use super::Spec;
use super::folios::Wanted;
use crate::load::{AROUND, Access, Backing, Faulted, Faults, file_system, huge_page_bytes};

impl Spec {
    /// The number of faults this backing must have, and what to keep in mind.
    pub(super) fn predict(
        &self,
        load: &Faults,
        done: &Faulted,
        notes: &mut Vec<String>,
    ) -> Option<Predicted> {
        let pages = done.pages;
        if self.huge != Wanted::Base {
            return self.predict_huge(done, notes);
        }
        let is_read_file = self.access == Access::Read
            && matches!(
                self.backing,
                Backing::PrivateFile | Backing::SharedFile | Backing::Tmpfs
            );
        let most = if is_read_file {
            let (window, said) = around();
            notes.push(said);
            ((load.bytes / page_size()) as u64).div_ceil(window) * u64::from(load.rounds)
        } else {
            pages
        };
        // A private page is copied by itself; what is shared may be mapped by the folio.
        let may_map_folios = is_read_file || self.backing == Backing::SharedFile;
        if !may_map_folios || self.backing == Backing::Tmpfs {
            return Some(Predicted { least: most, most });
        }
        let name = file_system(&load.directory);
        let Some(folios) = done.file_folios else {
            if done.used.faults() < most {
                notes.push(format!(
                    "fewer faults than predicted: the page cache of {name} has larger folios, of which this kernel maps \
                     a whole one at a fault"
                ));
            }
            return Some(Predicted { least: most, most });
        };
        let in_all = folios * u64::from(load.rounds);
        if in_all < most {
            notes.push(format!(
                "the {} pages of the file are in {folios} folios of the page cache of {name}, and a fault maps one page, a \
                 window, or a whole folio, as the kernel does it: so predicted is a range",
                pages / u64::from(load.rounds.max(1))
            ));
        }
        Some(Predicted {
            least: most.min(in_all),
            most,
        })
    }

    fn predict_huge(&self, done: &Faulted, notes: &mut Vec<String>) -> Option<Predicted> {
        let pages = done.pages;
        let n = match self.access {
            // The huge zero page is no allocation that is counted.
            Access::Read => {
                let huge = (huge_page_bytes() / page_size()) as u64;
                pages / huge + pages % huge
            }
            Access::Write => {
                let Some(folios) = &done.folios else {
                    notes.push(
                        "this kernel does not count its huge pages, so nothing is predicted"
                            .to_owned(),
                    );
                    return None;
                };
                let covered: u64 = folios.iter().map(|(size, n)| size * n).sum();
                let n: u64 = folios.iter().map(|(_, n)| n).sum();
                n + pages.saturating_sub(covered)
            }
        };
        Some(Predicted { least: n, most: n })
    }
}

/// How many faults there must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Predicted {
    pub(super) least: u64,
    pub(super) most: u64,
}

/// Pages mapped around a read fault of a file, and where that is known from.
fn around() -> (u64, String) {
    let file = "/sys/kernel/debug/fault_around_bytes";
    let bytes = std::fs::read_to_string(file)
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok());
    match bytes {
        Some(bytes) => {
            let pages = (bytes / page_size() as u64).max(1);
            (
                pages,
                format!("{pages} pages are mapped around a read fault ({file})"),
            )
        }
        None => (
            AROUND as u64,
            format!(
                "{AROUND} pages are taken to be mapped around a read fault, the kernel's default: {file} cannot be read"
            ),
        ),
    }
}
