//! Items of the lists that intervals and chains refer to.

use crate::store::codec::{Cache, Caches, Codec, Fault, Item, Record, Text};

macro_rules! item {
    ($(#[$doc:meta])* $type:ident, $table:literal, $field:ident, |$self:ident, $c:ident| $columns:expr, { $($name:ident: $of:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
        pub(in crate::store) struct $type {
            $(pub(super) $name: $of,)*
        }

        impl Record for $type {
            const TABLE: &'static str = $table;

            fn columns<C: Codec>(&mut $self, $c: &mut C) -> Result<(), Fault> {
                $columns
            }
        }

        impl Item for $type {
            fn cache(caches: &mut Caches) -> &mut Cache<Vec<Self>> {
                &mut caches.$field
            }
        }
    };
}

item! {
    /// A signal without a value.
    MissingItem, "missing", missing, |self, c| {
        c.text(&mut self.signal)?;
        c.own_text(&mut self.reason)
    }, { signal: Text, reason: String, }
}

item! {
    /// A sentence for the reader.
    NoteItem, "note", notes, |self, c| c.own_text(&mut self.text), { text: String, }
}

item! {
    /// A name.
    NameItem, "name", names, |self, c| c.text(&mut self.name), { name: Text, }
}

item! {
    /// A program of the recorder, and which of its readings there are.
    ProgramItem, "program", programs, |self, c| {
        c.text(&mut self.name)?;
        c.own_text(&mut self.place)?;
        c.flag(&mut self.is_attached)?;
        c.flag(&mut self.has_run_ns)?;
        c.flag(&mut self.has_runs)?;
        c.flag(&mut self.has_misses)
    }, {
        name: Text,
        place: String,
        is_attached: bool,
        has_run_ns: bool,
        has_runs: bool,
        has_misses: bool,
    }
}

item! {
    /// A BPF map of the recorder.
    MapItem, "map", maps, |self, c| {
        c.text(&mut self.name)?;
        c.reading(&mut self.capacity)
    }, { name: Text, capacity: u64, }
}
