//! Writing text into the buffer: clipped, scrubbed, styled by meaning.

use crate::render::cell::{scrub, width};
use crate::render::header::{GAP, Segment, fit_segments};
use crate::tui::theme::{Role, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// The only way text reaches the buffer.
pub(crate) struct Pen<'a> {
    buffer: &'a mut Buffer,
    pub(crate) theme: &'a Theme,
}

impl<'a> Pen<'a> {
    pub(crate) fn new(buffer: &'a mut Buffer, theme: &'a Theme) -> Self {
        Self { buffer, theme }
    }

    /// The part of `area` that the buffer has.
    pub(crate) fn clip(&self, area: Rect) -> Rect {
        area.intersection(self.buffer.area)
    }

    /// Writes text at column `x` of line `y` of `area`; gives the column after it.
    pub(crate) fn put(&mut self, area: Rect, x: u16, y: u16, text: &str, role: Role) -> u16 {
        let style = self.theme.style(role);
        self.put_styled(area, x, y, text, style)
    }

    fn put_styled(&mut self, area: Rect, x: u16, y: u16, text: &str, style: Style) -> u16 {
        let area = self.clip(area);
        if x >= area.width || y >= area.height {
            return x;
        }
        let room = usize::from(area.width - x);
        let (end, _) = self
            .buffer
            .set_stringn(area.x + x, area.y + y, scrub(text), room, style);
        end - area.x
    }

    /// Writes a line, its end marked if it had to be cut.
    pub(crate) fn line(&mut self, area: Rect, y: u16, text: &str, role: Role) {
        let text = scrub(text);
        let room = usize::from(area.width);
        if width(&text) > room {
            let cut = crate::render::cell::align(&text, room, false, self.theme.glyphs.cut);
            self.put(area, 0, y, &cut, role);
        } else {
            self.put(area, 0, y, &text, role);
        }
    }

    /// Writes the segments that fit into one line.
    pub(crate) fn segments(&mut self, area: Rect, y: u16, line: Vec<Segment>) {
        let mut x = 0;
        for s in fit_segments(line, usize::from(area.width)) {
            let style = self.theme.tone(s.tone);
            x = self.put_styled(area, x, y, &s.text, style);
            x = x.saturating_add(u16::try_from(GAP).unwrap_or(u16::MAX));
        }
    }

    /// Gives a line of `area` a style over what is written there.
    pub(crate) fn tint(&mut self, area: Rect, y: u16, role: Role) {
        let area = self.clip(area);
        if y < area.height {
            let line = Rect::new(area.x, area.y + y, area.width, 1);
            self.buffer.set_style(line, self.theme.style(role));
        }
    }

    /// An empty box with a border and a title; gives the area inside.
    pub(crate) fn frame(&mut self, area: Rect, title: &str) -> Rect {
        let area = self.clip(area);
        for y in 0..area.height {
            self.put(area, 0, y, &" ".repeat(area.width.into()), Role::Plain);
            self.buffer
                .set_style(Rect::new(area.x, area.y + y, area.width, 1), Style::reset());
        }
        if area.width < 3 || area.height < 3 {
            return area;
        }
        let g = self.theme.glyphs;
        let bar: String = std::iter::repeat_n(g.horizontal, usize::from(area.width) - 2).collect();
        let [upper_left, upper_right, lower_left, lower_right] = g.corners;
        let last = area.height - 1;
        self.put(
            area,
            0,
            0,
            &format!("{upper_left}{bar}{upper_right}"),
            Role::Border,
        );
        self.put(
            area,
            0,
            last,
            &format!("{lower_left}{bar}{lower_right}"),
            Role::Border,
        );
        for y in 1..last {
            self.put(area, 0, y, &g.vertical.to_string(), Role::Border);
            self.put(
                area,
                area.width - 1,
                y,
                &g.vertical.to_string(),
                Role::Border,
            );
        }
        let inside = Rect::new(area.x + 1, area.y + 1, area.width - 2, area.height - 2);
        let head = Rect::new(inside.x, area.y, inside.width, 1);
        self.line(head, 0, &format!(" {title} "), Role::Title);
        inside
    }
}
