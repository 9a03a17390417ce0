//! What the screen shows and where the user stands; no I/O, no colours.

use super::Position;
use super::keys::Place;
use crate::model::{Field, Model, Table, TableId, View};
use crate::render::order::Sort;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Intervals the fault-rate graph remembers; wider than any screen it fits.
const HISTORY: usize = 600;

/// Where the user stands in one table.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pane {
    /// Place of the cursor in `State::order`.
    pub(crate) cursor: usize,
    /// Place of the topmost row shown.
    pub(crate) top: usize,
    /// Columns scrolled away to the left.
    pub(crate) scroll: usize,
    /// The user's sort; `None` keeps the table's own order.
    pub(crate) sort: Option<Sort>,
}

/// What lies over the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Popup {
    Help { top: usize },
    SortMenu { cursor: usize },
    Filter { text: String },
    Interval { text: String },
    Time { text: String },
}

/// One interval of the graph: minor and major faults per second.
pub(crate) type Rates = Option<(f64, f64)>;

/// The whole state of the screen.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) view: View,
    /// The table each view shows, by the view's place in `View::ALL`.
    tables: [TableId; View::ALL.len()],
    /// By `TableId::index`.
    panes: Vec<Pane>,
    /// The newest model; the shown one lags behind it while paused.
    pub(crate) latest: Option<Arc<Model>>,
    pub(crate) shown: Option<Arc<Model>>,
    pub(crate) is_paused: bool,
    /// Where the shown model stands; `None` unless it is replayed.
    pub(crate) position: Option<Position>,
    /// Rows of the shown table that pass the filter, in display order.
    pub(crate) order: Vec<usize>,
    /// The word rows are filtered by.
    pub(crate) word: String,
    pub(crate) popup: Option<Popup>,
    pub(crate) history: VecDeque<Rates>,
    /// An answer to the last key, gone with the next.
    pub(crate) message: Option<String>,
    /// The interval last asked for here; `None` leaves the command line's.
    pub(crate) interval: Option<Duration>,
    pub(crate) width: u16,
    pub(crate) height: u16,
    /// The order of rows stays until the shown model is later than this.
    pub(crate) frozen_until_ns: u64,
}

impl State {
    pub(crate) fn new(start: TableId) -> Self {
        let mut tables = [TableId::Overview; View::ALL.len()];
        for view in View::ALL {
            if let Some(first) = view.tables().next() {
                tables[view as usize] = first;
            }
        }
        tables[start.view() as usize] = start;
        Self {
            view: start.view(),
            tables,
            panes: vec![Pane::default(); TableId::ALL.len()],
            latest: None,
            shown: None,
            is_paused: false,
            position: None,
            order: Vec::new(),
            word: String::new(),
            popup: None,
            history: VecDeque::new(),
            message: None,
            interval: None,
            width: 80,
            height: 24,
            frozen_until_ns: 0,
        }
    }

    /// The table shown.
    pub(crate) fn table_id(&self) -> TableId {
        self.table_of(self.view)
    }

    /// The table that `view` shows.
    pub(crate) fn table_of(&self, view: View) -> TableId {
        self.tables[view as usize]
    }

    pub(crate) fn set_table(&mut self, id: TableId) {
        self.view = id.view();
        self.tables[id.view() as usize] = id;
    }

    pub(crate) fn fields(&self) -> &'static [&'static Field] {
        self.table_id().fields()
    }

    /// Rows of the table shown; `None` before the first interval ends.
    pub(crate) fn table(&self) -> Option<&Table> {
        self.shown.as_deref().map(|m| m.table(self.table_id()))
    }

    pub(crate) fn pane(&self) -> &Pane {
        &self.panes[self.table_id().index()]
    }

    pub(crate) fn pane_mut(&mut self) -> &mut Pane {
        let i = self.table_id().index();
        &mut self.panes[i]
    }

    /// The sort in force: the user's, else the table's own.
    ///
    /// Some tables have an order of their own, which is no sort.
    pub(crate) fn sort(&self) -> Option<Sort> {
        self.pane().sort.or_else(|| {
            let id = self.table_id();
            let field = self
                .fields()
                .iter()
                .position(|f| f.id == id.default_sort())?;
            id.is_sorted().then(|| Sort::natural(self.fields(), field))
        })
    }

    pub(crate) fn sort_field(&self) -> Option<&'static Field> {
        self.sort()
            .and_then(|s| self.fields().get(s.field).copied())
    }

    /// The part of the key table that holds now.
    pub(crate) fn place(&self) -> Place {
        match self.popup {
            None => Place::Main,
            Some(Popup::Help { .. } | Popup::SortMenu { .. }) => Place::Popup,
            Some(Popup::Filter { .. } | Popup::Interval { .. } | Popup::Time { .. }) => {
                Place::Entry
            }
        }
    }

    /// Key of the row under the cursor.
    pub(crate) fn cursor_key(&self) -> Option<u64> {
        let table = self.table()?;
        let row = self.order.get(self.pane().cursor)?;
        table.rows.get(*row).map(|r| r.key)
    }

    /// How far the shown model lags behind the newest, in ns.
    pub(crate) fn behind_ns(&self) -> u64 {
        match (&self.latest, &self.shown) {
            (Some(l), Some(s)) => l.t_mono_ns.saturating_sub(s.t_mono_ns),
            _ => 0,
        }
    }

    /// Forgets the newest `n` intervals of the graph.
    pub(crate) fn forget(&mut self, n: usize) {
        self.history.truncate(self.history.len().saturating_sub(n));
    }

    /// Puts `n` unknown intervals into the graph.
    pub(crate) fn skip(&mut self, n: usize) {
        for _ in 0..n.min(HISTORY) {
            self.push(None);
        }
    }

    pub(crate) fn remember(&mut self, model: &Model) {
        let h = &model.header;
        self.push(
            h.minor_per_sec
                .map(|minor| (minor, h.major_per_sec.unwrap_or(0.0))),
        );
    }

    fn push(&mut self, rates: Rates) {
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(rates);
    }
}
