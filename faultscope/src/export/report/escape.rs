//! Text inside Markdown.

/// Text that Markdown, and the sites that read it, take as text alone: no markup,
/// no table cell's end, no mention, no issue, no link.
pub(super) fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let next = rest.peek().copied().unwrap_or(' ');
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '@' => out.push_str("&#64;"),
            '#' => out.push_str("&#35;"),
            '|' => out.push_str("&#124;"),
            ':' if next == '/' => out.push_str("&#58;"),
            '\\' | '`' | '*' | '[' | ']' | '~' | '$' | '!' => {
                out.push('\\');
                out.push(c);
            }
            // Inside a word it is no markup.
            '_' if before.is_alphanumeric() && next.is_alphanumeric() => out.push(c),
            '_' => out.push_str("\\_"),
            '\n' | '\r' => out.push(' '),
            // A line that begins like this would be a list.
            '-' | '+' | '=' if before == ' ' && out.is_empty() => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
        before = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_text() {
        assert_eq!(markdown("clear_page_erms"), "clear_page_erms");
        assert_eq!(
            markdown("a|b <b> *x* _y_ [l](http://h) @me #1 `c` ![i]"),
            "a&#124;b &lt;b&gt; \\*x\\* \\_y\\_ \\[l\\](http&#58;//h) &#64;me &#35;1 \\`c\\` \\!\\[i\\]"
        );
        assert_eq!(markdown("-"), "\\-");
        assert_eq!(markdown("a\nb"), "a b");
    }
}
