//! Names of kernel functions, through blazesym.

use super::frame::normalize;
use blazesym::symbolize::{
    Input, Symbolized, Symbolizer,
    source::{Kernel, Source},
};

/// Resolves kernel addresses; made for a batch and dropped, so that the symbol
/// table (tens of MB) does not stay resident.
#[derive(Debug)]
pub struct KernelSymbols {
    symbolizer: Symbolizer,
}

impl Default for KernelSymbols {
    fn default() -> Self {
        Self {
            symbolizer: Symbolizer::new(),
        }
    }
}

impl KernelSymbols {
    /// A name for each address, `None` where none is known.
    ///
    /// # Errors
    /// One sentence when kallsyms cannot be used at all.
    pub fn resolve(&self, addresses: &[u64]) -> Result<Vec<Option<String>>, String> {
        // Only kallsyms: a vmlinux file may belong to another build.
        let kernel = Kernel {
            vmlinux: blazesym::MaybeDefault::None,
            ..Kernel::default()
        };
        self.symbolizer
            .symbolize(&Source::Kernel(kernel), Input::AbsAddr(addresses))
            .map(|symbols| {
                symbols
                    .into_iter()
                    .map(|symbol| match symbol {
                        Symbolized::Sym(sym) => Some(normalize(&sym.name).to_owned()),
                        Symbolized::Unknown(_) => None,
                    })
                    .collect()
            })
            .map_err(|error| format!("kernel symbols are unavailable: {error}"))
    }
}
