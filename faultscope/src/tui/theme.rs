//! Styles asked for by meaning; the only place that knows colours.
//!
//! Foreground and background are inherited; colours are the sixteen of the
//! terminal's own palette. Without colour the same meanings are told apart by
//! reverse, bold and underline, and never by colour alone: bad things begin
//! with `!`.

use crate::render::header::Tone;
use ratatui::style::{Color, Modifier, Style};

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColorChoice {
    /// Unless `NO_COLOR` is set or the terminal is dumb.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What the environment says about colour.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Environment {
    /// `NO_COLOR` is set and not empty (no-color.org).
    pub(crate) no_color: bool,
    /// `TERM=dumb`.
    pub(crate) dumb: bool,
}

impl Environment {
    pub(crate) fn read() -> Self {
        Self {
            no_color: std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty()),
            dumb: std::env::var_os("TERM").is_some_and(|v| v == "dumb"),
        }
    }
}

/// What a piece of the screen means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    /// Column heads.
    Head,
    /// The head of the column that sorts.
    SortHead,
    /// The row under the cursor.
    Cursor,
    /// Not measured on this host.
    Missing,
    Title,
    Tab,
    ActiveTab,
    Live,
    Paused,
    Bad,
    Note,
    /// A key on the hint line and in help.
    Key,
    Border,
    /// Minor faults in the graph.
    Graph,
    /// Major faults in the graph.
    GraphMajor,
    /// Heat from 0 (none) to 9 (the greatest).
    Heat(u8),
}

/// Characters that differ between UTF-8 and ASCII terminals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Glyphs {
    /// Ascending, descending.
    pub(crate) sort: [char; 2],
    pub(crate) cut: char,
    /// Eighths of a bar, the full one last.
    pub(crate) bars: [char; 8],
    pub(crate) major: char,
    pub(crate) horizontal: char,
    pub(crate) vertical: char,
    /// Upper left, upper right, lower left, lower right.
    pub(crate) corners: [char; 4],
}

const UNICODE: Glyphs = Glyphs {
    sort: ['▲', '▼'],
    cut: '…',
    bars: ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
    major: '▒',
    horizontal: '─',
    vertical: '│',
    corners: ['┌', '┐', '└', '┘'],
};

const ASCII: Glyphs = Glyphs {
    sort: ['^', 'v'],
    cut: '~',
    bars: ['_', '.', '.', ':', ':', '|', '|', '|'],
    major: '#',
    horizontal: '-',
    vertical: '|',
    corners: ['+', '+', '+', '+'],
};

/// Styles and glyphs of one terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Theme {
    is_colored: bool,
    pub(crate) glyphs: Glyphs,
}

impl Theme {
    pub(crate) fn new(choice: ColorChoice, ascii: bool, env: Environment) -> Self {
        let is_colored = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => !env.no_color && !env.dumb,
        };
        Self {
            is_colored,
            glyphs: if ascii || env.dumb { ASCII } else { UNICODE },
        }
    }

    /// The style of a meaning.
    pub(crate) fn style(&self, role: Role) -> Style {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        let color = |style: Style, c: Color| if self.is_colored { style.fg(c) } else { style };
        match role {
            Role::Plain | Role::Border | Role::Tab | Role::Note => plain,
            Role::Head => bold.add_modifier(Modifier::UNDERLINED),
            Role::SortHead => color(bold.add_modifier(Modifier::UNDERLINED), Color::Cyan),
            Role::Cursor => plain.add_modifier(Modifier::REVERSED),
            Role::Missing => color(plain, Color::DarkGray),
            Role::Title | Role::Key => bold,
            Role::ActiveTab => bold.add_modifier(Modifier::REVERSED),
            Role::Live => color(bold, Color::Green),
            Role::Paused => color(bold.add_modifier(Modifier::REVERSED), Color::Yellow),
            Role::Bad => color(bold.add_modifier(Modifier::REVERSED), Color::Red),
            Role::Graph => color(plain, Color::Blue),
            Role::GraphMajor => color(bold, Color::Red),
            Role::Heat(level) => match level {
                0 => plain,
                1..=3 => color(plain, Color::Blue),
                4..=6 => color(plain, Color::Yellow),
                _ => color(bold, Color::Red),
            },
        }
    }

    pub(crate) fn tone(&self, tone: Tone) -> Style {
        self.style(match tone {
            Tone::Plain => Role::Plain,
            Tone::Live => Role::Live,
            Tone::Paused => Role::Paused,
            Tone::Bad => Role::Bad,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Environment = Environment {
        no_color: false,
        dumb: false,
    };
    const NO_COLOR: Environment = Environment {
        no_color: true,
        dumb: false,
    };
    const DUMB: Environment = Environment {
        no_color: false,
        dumb: true,
    };

    const ROLES: [Role; 17] = [
        Role::Plain,
        Role::Head,
        Role::SortHead,
        Role::Cursor,
        Role::Missing,
        Role::Title,
        Role::Tab,
        Role::ActiveTab,
        Role::Live,
        Role::Paused,
        Role::Bad,
        Role::Note,
        Role::Key,
        Role::Border,
        Role::Graph,
        Role::GraphMajor,
        Role::Heat(9),
    ];

    #[test]
    fn without_colour_no_style_has_one() {
        let off = [
            Theme::new(ColorChoice::Auto, false, NO_COLOR),
            Theme::new(ColorChoice::Auto, false, DUMB),
            Theme::new(ColorChoice::Never, false, QUIET),
        ];
        for t in off {
            for role in ROLES {
                assert_eq!(t.style(role).fg, None, "{role:?}");
                assert_eq!(t.style(role).bg, None, "{role:?}");
            }
            let cursor = t.style(Role::Cursor).add_modifier;
            assert!(cursor.contains(Modifier::REVERSED));
        }
        let forced = Theme::new(ColorChoice::Always, false, NO_COLOR);
        assert_eq!(forced.style(Role::Live).fg, Some(Color::Green));
    }

    #[test]
    fn the_background_is_always_inherited_and_colours_are_the_sixteen() {
        let t = Theme::new(ColorChoice::Always, false, QUIET);
        for role in ROLES {
            let s = t.style(role);
            assert_eq!(s.bg, None, "{role:?}");
            assert!(!matches!(s.fg, Some(Color::Rgb(..) | Color::Indexed(_))));
        }
    }
}
