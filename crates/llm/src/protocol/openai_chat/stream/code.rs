//! Follows Markdown through the pieces of a text, to recognize code.

/// The position in Markdown at the end of a text.
#[derive(Debug)]
pub(super) struct Code {
    /// Only white space has been on the line so far.
    at_line_start: bool,
    /// The character and the length of the fence around the text.
    fence: Option<(char, usize)>,
    /// The number of backticks that opened a code span on this line.
    span: Option<usize>,
    /// The backticks or tildes at the end of the text, which may be more in the next piece.
    run: Option<Run>,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    mark: char,
    length: usize,
    at_line_start: bool,
}

impl Default for Code {
    fn default() -> Self {
        Self { at_line_start: true, fence: None, span: None, run: None }
    }
}

impl Code {
    /// Adds text.
    pub(super) fn scan(&mut self, text: &str) {
        for c in text.chars() {
            if let Some(run) = self.run.as_mut().filter(|run| run.mark == c) {
                run.length += 1;
                continue;
            }
            self.end_run();
            match c {
                '`' => self.start_run(c),
                '~' if self.at_line_start => self.start_run(c),
                '\n' => {
                    self.at_line_start = true;
                    // A backtick without a partner is no code. Spans of several lines are rare.
                    self.span = None;
                }
                c => self.at_line_start &= c.is_whitespace(),
            }
        }
    }

    /// Reports whether other text that follows is code.
    pub(super) fn is_inside(&mut self) -> bool {
        self.end_run();
        self.fence.is_some() || self.span.is_some()
    }

    /// Reports whether text changes the position. Most text does not.
    pub(super) fn is_changed_by(&self, text: &str) -> bool {
        self.at_line_start || self.run.is_some() || text.contains(['`', '\n'])
    }

    fn start_run(&mut self, mark: char) {
        self.run = Some(Run { mark, length: 1, at_line_start: self.at_line_start });
        self.at_line_start = false;
    }

    fn end_run(&mut self) {
        let Some(Run { mark, length, at_line_start }) = self.run.take() else { return };
        match (self.fence, self.span) {
            (Some((fence, least)), _) => {
                if at_line_start && mark == fence && length >= least {
                    self.fence = None;
                }
            }
            (None, _) if at_line_start && length >= 3 => self.fence = Some((mark, length)),
            (None, None) if mark == '`' => self.span = Some(length),
            (None, Some(open)) if mark == '`' && open == length => self.span = None,
            (None, _) => {}
        }
    }
}
