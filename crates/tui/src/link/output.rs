//! Writes links to the terminal (OSC 8), around the cells of their text.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write};
use std::rc::Rc;

use ratatui::backend::{Backend, ClearType, WindowSize};
use ratatui::buffer::{Buffer, Cell, CellDiffOption};
use ratatui::layout::{Position, Rect, Size};
use unicode_segmentation::UnicodeSegmentation as _;

use super::{Link, Piece};
use crate::wrap;

/// The targets of cells.
pub(crate) type Cells = HashMap<(u16, u16), Rc<str>>;

/// A backend that adds links to the cells that it draws.
pub(crate) struct Linked<B> {
    inner: B,
    /// The links of the frame that is drawn.
    cells: Rc<RefCell<Cells>>,
}

impl<B> Linked<B> {
    pub(crate) fn new(inner: B, cells: Rc<RefCell<Cells>>) -> Self {
        Self { inner, cells }
    }
}

/// Returns the cells of links whose text is on the screen, and makes the terminal draw them again.
///
/// Text that a dialog covers is not linked. Cells that were linked before are drawn again without a link.
pub(crate) fn place(buffer: &mut Buffer, area: Rect, links: &[(&Link, Rc<str>)], before: &Cells) -> Cells {
    let mut cells = Cells::new();
    for (link, target) in links {
        if link.pieces.iter().all(|piece| is_visible(buffer, area, piece)) {
            for piece in &link.pieces {
                let columns = piece.columns.clone();
                cells.extend(columns.map(|x| ((area.x + x, area.y + piece.row), Rc::clone(target))));
            }
        }
    }
    for at in before.keys().chain(cells.keys()) {
        if let Some(cell) = buffer.cell_mut(*at) {
            cell.set_diff_option(CellDiffOption::AlwaysUpdate);
        }
    }
    cells
}

/// Whether the cells of a piece have its text.
fn is_visible(buffer: &Buffer, area: Rect, piece: &Piece) -> bool {
    let mut x = area.x.saturating_add(piece.columns.start);
    let y = area.y.saturating_add(piece.row);
    area.contains((x, y).into())
        && piece.columns.end <= area.width
        && piece.text.graphemes(true).all(|grapheme| {
            let is_same = buffer.cell((x, y)).is_some_and(|cell| cell.symbol() == grapheme);
            x = x.saturating_add(u16::try_from(wrap::width(grapheme)).unwrap_or(u16::MAX));
            is_same
        })
}

impl<B: Backend<Error = io::Error> + Write> Linked<B> {
    /// Draws cells that all have the same target.
    fn draw_run(&mut self, run: &[(u16, u16, &Cell)], target: Option<&str>) -> io::Result<()> {
        let Some(target) = target else { return self.inner.draw(run.iter().copied()) };
        let mut hasher = DefaultHasher::new();
        target.hash(&mut hasher);
        // The id joins the rows of a link. The target is printable ASCII without a semicolon in the parameters.
        write!(self.inner, "\u{1b}]8;id={:x};{target}\u{1b}\\", hasher.finish())?;
        self.inner.draw(run.iter().copied())?;
        write!(self.inner, "\u{1b}]8;;\u{1b}\\")
    }
}

impl<B: Backend<Error = io::Error> + Write> Backend for Linked<B> {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let cells = Rc::clone(&self.cells);
        let cells = cells.borrow();
        if cells.is_empty() {
            return self.inner.draw(content);
        }
        let mut run: Vec<(u16, u16, &Cell)> = Vec::new();
        let mut target: Option<Rc<str>> = None;
        for (x, y, cell) in content {
            let next = cells.get(&(x, y)).cloned();
            if next != target && !run.is_empty() {
                self.draw_run(&run, target.as_deref())?;
                run.clear();
            }
            target = next;
            run.push((x, y, cell));
        }
        self.draw_run(&run, target.as_deref())
    }

    fn append_lines(&mut self, count: u16) -> io::Result<()> {
        self.inner.append_lines(count)
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.inner.hide_cursor()
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.inner.show_cursor()
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        self.inner.get_cursor_position()
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.inner.set_cursor_position(position)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.inner.clear()
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        self.inner.clear_region(region)
    }

    fn size(&self) -> io::Result<Size> {
        self.inner.size()
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        self.inner.window_size()
    }

    fn flush(&mut self) -> io::Result<()> {
        Backend::flush(&mut self.inner)
    }
}

impl<B: Write> Write for Linked<B> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Write::flush(&mut self.inner)
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::CrosstermBackend;

    use super::*;
    use crate::link::Reference;

    #[derive(Default)]
    struct Screen(Rc<RefCell<Cells>>, Rc<RefCell<Vec<u8>>>);

    /// A writer that can be read.
    struct Written(Rc<RefCell<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    type TestTerminal = Terminal<Linked<CrosstermBackend<Written>>>;

    impl Screen {
        fn terminal(&self) -> TestTerminal {
            let written = CrosstermBackend::new(Written(Rc::clone(&self.1)));
            let viewport = ratatui::Viewport::Fixed(Rect::new(0, 0, 20, 2));
            let linked = Linked::new(written, Rc::clone(&self.0));
            Terminal::with_options(linked, ratatui::TerminalOptions { viewport }).unwrap()
        }

        /// Draws a line with a link and returns the output.
        fn draw(&self, terminal: &mut TestTerminal, line: &str, link: Option<&Link>) -> String {
            let area = Rect::new(0, 0, 20, 2);
            let links: Vec<(&Link, Rc<str>)> =
                link.into_iter().map(|link| (link, "https://a.example/".into())).collect();
            let drawn = terminal.draw(|frame| {
                frame.buffer_mut().set_string(0, 0, line, ratatui::style::Style::new());
                let placed = place(frame.buffer_mut(), area, &links, &self.0.borrow());
                *self.0.borrow_mut() = placed;
            });
            drawn.unwrap();
            String::from_utf8(std::mem::take(&mut self.1.borrow_mut())).unwrap()
        }
    }

    #[test]
    fn a_link_surrounds_its_cells_and_is_removed_again() {
        let piece = Piece { row: 0, columns: 4..8, text: "here".to_owned() };
        let link = Link { reference: Reference::Url(String::new()), pieces: vec![piece] };
        let screen = Screen::default();
        let mut terminal = screen.terminal();
        let output = screen.draw(&mut terminal, "see here", Some(&link));
        let (before, rest) = output.split_once(";https://a.example/\u{1b}\\").unwrap();
        assert!(before.contains("see") && before.contains("\u{1b}]8;id="), "{output:?}");
        assert!(rest.split("\u{1b}]8;;\u{1b}\\").next().unwrap().contains("here"), "{output:?}");
        // The text is the same, and no longer a link.
        let output = screen.draw(&mut terminal, "see here", None);
        assert!(output.contains("here") && !output.contains("]8;"), "{output:?}");
        // A dialog covers a part of the text.
        let output = screen.draw(&mut terminal, "see heXX", Some(&link));
        assert!(!output.contains("]8;"), "{output:?}");
    }
}
