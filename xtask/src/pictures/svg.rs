//! Draws a screen as SVG: backgrounds as rectangles, text in runs of one style.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use vt100::{Cell, Color, Screen};

/// The width of a cell in the units of the picture.
const WIDTH: f32 = 8.4;
/// The height of a cell.
const HEIGHT: f32 = 18.0;
/// The baseline of text in a cell.
const BASE: f32 = 13.0;
const MARGIN: f32 = 10.0;

/// The frames of a spinner.
const SPINNER: &str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏";

type Rgb = (u8, u8, u8);
const TEXT: Rgb = (0xd8, 0xd8, 0xd8);
const BACK: Rgb = (0x14, 0x14, 0x14);

/// The first sixteen colours of xterm.
const SIXTEEN: [Rgb; 16] = [
    (0, 0, 0),
    (205, 0, 0),
    (0, 205, 0),
    (205, 205, 0),
    (0, 0, 238),
    (205, 0, 205),
    (0, 205, 205),
    (229, 229, 229),
    (127, 127, 127),
    (255, 0, 0),
    (0, 255, 0),
    (255, 255, 0),
    (92, 92, 255),
    (255, 0, 255),
    (0, 255, 255),
    (255, 255, 255),
];

fn rgb(colour: Color, default: Rgb) -> Rgb {
    match colour {
        Color::Default => default,
        Color::Rgb(red, green, blue) => (red, green, blue),
        Color::Idx(at @ 0..16) => SIXTEEN[usize::from(at)],
        Color::Idx(at @ 16..232) => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let at = at - 16;
            (level(at / 36), level(at / 6 % 6), level(at % 6))
        }
        Color::Idx(at) => {
            let grey = 8 + 10 * (at - 232);
            (grey, grey, grey)
        }
    }
}

/// The style of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Style {
    text: Rgb,
    back: Rgb,
    bold: bool,
    italic: bool,
    underlined: bool,
}

fn style(cell: &Cell) -> Style {
    let (mut text, mut back) = (rgb(cell.fgcolor(), TEXT), rgb(cell.bgcolor(), BACK));
    if cell.inverse() {
        (text, back) = (back, text);
    }
    Style { text, back, bold: cell.bold(), italic: cell.italic(), underlined: cell.underline() }
}

/// A run of cells in a row.
struct Run {
    x: u16,
    width: u16,
    text: String,
    style: Style,
}

/// Replaces everything in the text of a screen that differs from run to run.
pub(super) fn freeze(text: &str) -> String {
    text.lines().map(freeze_row).collect::<Vec<_>>().join("\n")
}

/// Replaces durations and spinners by constants.
fn freeze_row(row: &str) -> String {
    let row: String = row.chars().map(|c| if SPINNER.contains(c) { '⠋' } else { c }).collect();
    let mut frozen = String::new();
    let mut word = String::new();
    for c in row.chars().chain(['\n']) {
        if c == ' ' || c == '\n' {
            frozen.push_str(if is_duration(&word) { "1.2s" } else { &word });
            word.clear();
            if c == ' ' {
                frozen.push(' ');
            }
        } else {
            word.push(c);
        }
    }
    frozen
}

fn is_duration(word: &str) -> bool {
    let number = word.strip_suffix("ms").or_else(|| word.strip_suffix('s')).unwrap_or_default();
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn runs(screen: &Screen, y: u16) -> Vec<Run> {
    let (_, columns) = screen.size();
    let mut runs: Vec<Run> = Vec::new();
    let mut x = 0;
    while x < columns {
        let Some(cell) = screen.cell(y, x) else { break };
        let style = style(cell);
        let width = if cell.is_wide() { 2 } else { 1 };
        let symbol = if cell.has_contents() { cell.contents() } else { " " };
        match runs.last_mut() {
            Some(run) if run.style == style => {
                run.text.push_str(symbol);
                run.width += width;
            }
            _ => runs.push(Run { x, width, text: symbol.to_owned(), style }),
        }
        x += width;
    }
    for run in &mut runs {
        let whole = run.text.chars().count();
        let mut text = freeze_row(&run.text);
        // Keep the width: pad a shorter duration, and remove blanks after a longer one.
        while text.chars().count() < whole {
            text.push(' ');
        }
        while text.chars().count() > whole && text.ends_with(' ') {
            text.pop();
        }
        run.width = run.width.max(u16::try_from(text.chars().count()).unwrap_or(run.width));
        run.text = text;
    }
    runs
}

fn hex((red, green, blue): Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Draws a screen.
pub(super) fn draw(screen: &Screen) -> String {
    let (rows, columns) = screen.size();
    let (width, height) =
        (f32::from(columns) * WIDTH + 2.0 * MARGIN, f32::from(rows) * HEIGHT + 2.0 * MARGIN);
    let all: Vec<Vec<Run>> = (0..rows).map(|y| runs(screen, y)).collect();
    let mut area: BTreeMap<Rgb, usize> = BTreeMap::new();
    for run in all.iter().flatten() {
        *area.entry(run.style.back).or_default() += usize::from(run.width);
    }
    let backdrop = area.iter().max_by_key(|(_, count)| **count).map_or(BACK, |(back, _)| *back);
    let mut classes: BTreeMap<(Rgb, bool, bool, bool), usize> = BTreeMap::new();
    let mut body = String::new();
    for (y, row) in (0_u16..).zip(&all) {
        for run in row {
            back(&mut body, run, y, backdrop);
        }
        for run in row {
            let style = run.style;
            let next = classes.len();
            let class =
                *classes.entry((style.text, style.bold, style.italic, style.underlined)).or_insert(next);
            letters(&mut body, run, y, class);
        }
    }
    let mut css = String::new();
    for ((text, bold, italic, underlined), class) in &classes {
        let weight = if *bold { ";font-weight:bold" } else { "" };
        let slant = if *italic { ";font-style:italic" } else { "" };
        let line = if *underlined { ";text-decoration:underline" } else { "" };
        write!(css, ".c{class}{{fill:{}{weight}{slant}{line}}}", hex(*text))
            .expect("writing to a string cannot fail");
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"14\">\n\
         <style>text{{white-space:pre}}{css}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{}\"/>\n{body}</svg>\n",
        hex(backdrop)
    )
}

fn at(x: u16, y: u16) -> (f32, f32) {
    (MARGIN + f32::from(x) * WIDTH, MARGIN + f32::from(y) * HEIGHT)
}

/// Formats a number without a trailing `.0`.
fn number(value: f32) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

fn rect(body: &mut String, (x, y): (f32, f32), (width, height): (f32, f32), fill: &str) {
    let [x, y, width, height] = [x, y, width, height].map(number);
    writeln!(body, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" {fill}/>")
        .expect("writing to a string cannot fail");
}

fn back(body: &mut String, run: &Run, y: u16, backdrop: Rgb) {
    if run.style.back != backdrop {
        let fill = format!("fill=\"{}\"", hex(run.style.back));
        rect(body, at(run.x, y), (f32::from(run.width) * WIDTH, HEIGHT), &fill);
    }
}

/// The position and the size of a rectangle.
type Stroke = ((f32, f32), (f32, f32));

/// Returns the two strokes of a corner character, relative to its upper left.
fn corner(c: char) -> Option<[Stroke; 2]> {
    let (left, right, above, below) = match c {
        '┌' => (false, true, false, true),
        '┐' => (true, false, false, true),
        '└' => (false, true, true, false),
        '┘' => (true, false, true, false),
        '├' => (false, true, true, true),
        '┤' => (true, false, true, true),
        '┬' => (true, true, false, true),
        '┴' => (true, true, true, false),
        '┼' => (true, true, true, true),
        _ => return None,
    };
    let (x, y) = (WIDTH / 2.0 - 0.5, HEIGHT / 2.0 - 0.5);
    let (from, to) = (if left { 0.0 } else { x }, if right { WIDTH } else { x + 1.0 });
    let (top, bottom) = (if above { 0.0 } else { y }, if below { HEIGHT } else { y + 1.0 });
    Some([((from, y), (to - from, 1.0)), ((x, top), (1.0, bottom - top))])
}

/// Draws a run. Lines and blocks are rectangles, so that they meet in every font; the rest is text.
fn letters(body: &mut String, run: &Run, y: u16, class: usize) {
    let fill = format!("class=\"c{class}\"");
    let mut text = String::new();
    let mut begun = run.x;
    let mut x = run.x;
    let chars: Vec<char> = run.text.chars().collect();
    let mut nth = 0;
    let flush = |body: &mut String, text: &mut String, begun: u16, until: u16| {
        let blank = text.chars().take_while(|c| *c == ' ').count();
        let trimmed = text.trim().to_owned();
        text.clear();
        if trimmed.is_empty() {
            return;
        }
        let from = begun + u16::try_from(blank).unwrap_or(0);
        let count = trimmed.chars().count();
        let cells = u16::try_from(count).unwrap_or(0).min(until - from.min(until));
        let (left, top) = at(from, y);
        let length = number(f32::from(cells) * WIDTH);
        let (left, base) = (number(left), number(top + BASE));
        writeln!(
            body,
            "<text x=\"{left}\" y=\"{base}\" textLength=\"{length}\" lengthAdjust=\"spacingAndGlyphs\" {fill}>{}</text>",
            escape(&trimmed)
        )
        .expect("writing to a string cannot fail");
    };
    while let Some(c) = chars.get(nth) {
        let same = chars[nth..].iter().take_while(|other| *other == c).count();
        let cells = u16::try_from(same).unwrap_or(1);
        let (left, top) = at(x, y);
        let wide = f32::from(cells) * WIDTH;
        let shape = match c {
            '┃' => Some(((left + 3.2, top), (2.0, HEIGHT))),
            '╹' => Some(((left + 3.2, top), (2.0, HEIGHT / 2.0))),
            '│' => Some(((left + 3.7, top), (1.0, HEIGHT))),
            '─' => Some(((left, top + 8.5), (wide, 1.0))),
            '▀' => Some(((left, top), (wide, HEIGHT / 2.0))),
            '▄' => Some(((left, top + HEIGHT / 2.0), (wide, HEIGHT / 2.0))),
            '█' => Some(((left, top), (wide, HEIGHT))),
            _ => None,
        };
        match shape {
            Some((origin, size)) => {
                flush(body, &mut text, begun, x);
                rect(body, origin, size, &fill);
                x += cells;
                nth += same;
                begun = x;
            }
            None if corner(*c).is_some() => {
                flush(body, &mut text, begun, x);
                for (origin, size) in corner(*c).into_iter().flatten() {
                    rect(body, (left + origin.0, top + origin.1), size, &fill);
                }
                x += 1;
                nth += 1;
                begun = x;
            }
            None => {
                text.push(*c);
                x += 1;
                nth += 1;
            }
        }
    }
    flush(body, &mut text, begun, x);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_spinners_are_frozen() {
        assert_eq!(freeze("▣ Build · 393ms  ⠼ x\n12.7s ls s ms"), "▣ Build · 1.2s  ⠋ x\n1.2s ls s ms");
    }

    #[test]
    fn a_screen_becomes_a_picture() {
        let mut parser = vt100::Parser::new(2, 20, 0);
        parser.process("\u{1b}[1;31m┃ a<b\u{1b}[0m \u{1b}[44m  x\u{1b}[0m".as_bytes());
        let drawn = draw(parser.screen());
        assert!(drawn.contains("a&lt;b</text>") && drawn.contains("fill=\"#0000ee\""), "{drawn}");
        assert!(drawn.contains("font-weight:bold"), "{drawn}");
    }
}
