//! `stats`: prints the usage of sessions in boxes.

use std::io;
use std::process::ExitCode;

use anyhow::Context as _;
use codewright_config::Env;
use codewright_engine::Engine;
use codewright_engine::inspect::{self, Usage};
use codewright_proto::Clock;

use crate::clean::clean_line;
use crate::cli::StatsArgs;
use crate::connection::{engine_error, open_engine, working_directory};
use crate::output::{Output, exit_code};

/// The inner width of a box.
const WIDTH: usize = 56;
/// The length of the longest bar.
const BAR: usize = 20;
/// The width of a tool's name.
const TOOL_CHARS: usize = 18;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

pub(crate) fn main(args: &StatsArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let engine = open_engine(Env::from_process(), &working_directory(None)?).await?;
        let done = stats(&engine, args).await;
        engine.close().await?;
        done
    })
}

async fn stats(engine: &Engine, args: &StatsArgs) -> anyhow::Result<ExitCode> {
    let models = match args.models.as_deref() {
        None => 0,
        Some("all") => usize::MAX,
        Some(text) => text.parse().with_context(|| format!("--models expects a number, not `{text}`"))?,
    };
    let now = Clock::system().now_ms();
    let since = match args.days {
        None => 0,
        Some(0) => inspect::day_start(now)?,
        Some(days) => now.saturating_sub(u64::from(days) * DAY_MS),
    };
    let project = match args.project.as_deref() {
        None => None,
        Some("") => Some(
            engine
                .transfer()
                .project_of(engine.default_directory())
                .await
                .map_err(engine_error)?
                .id
                .to_string(),
        ),
        Some(id) => Some(id.to_owned()),
    };
    let usage = engine.transfer().statistics(since, project).await.map_err(engine_error)?;
    let text = report(&usage, args, models);
    let mut output = Output::new();
    let written: io::Result<()> = output.write(&text);
    exit_code(written.and_then(|()| output.finish()))
}

fn report(usage: &Usage, args: &StatsArgs, models: usize) -> String {
    let days = match args.days {
        Some(days) => u64::from(days.max(1)),
        None if usage.sessions == 0 => 0,
        None => usage.last.saturating_sub(usage.first).div_ceil(DAY_MS).max(1),
    };
    let per_day = if days == 0 { 0.0 } else { usage.cost / days as f64 };
    let average = usage.tokens.sum().checked_div(usage.sessions).unwrap_or(0);
    let mut text = String::new();
    open(&mut text, 23, "OVERVIEW");
    row(&mut text, "Sessions", &grouped(usage.sessions));
    row(&mut text, "Messages", &grouped(usage.messages));
    row(&mut text, "Days", &days.to_string());
    close(&mut text);
    text.push('\n');
    open(&mut text, 20, "COST & TOKENS");
    row(&mut text, "Total Cost", &format!("${:.2}", usage.cost));
    row(&mut text, "Avg Cost/Day", &format!("${per_day:.2}"));
    row(&mut text, "Avg Tokens/Session", &short(average));
    row(&mut text, "Median Tokens/Session", &short(median(&usage.each)));
    row(&mut text, "Input", &short(usage.tokens.input));
    row(&mut text, "Output", &short(usage.tokens.output));
    row(&mut text, "Cache Read", &short(usage.tokens.cache_read));
    row(&mut text, "Cache Write", &short(usage.tokens.cache_write));
    close(&mut text);
    text.push('\n');
    if models > 0 && !usage.models.is_empty() {
        model_box(&mut text, usage, models);
    }
    text.push('\n');
    let tools = args.tools.unwrap_or(usize::MAX);
    if tools > 0 && !usage.tools.is_empty() {
        tool_box(&mut text, usage, tools);
    }
    text.push('\n');
    text
}

fn model_box(text: &mut String, usage: &Usage, most: usize) {
    open(text, 22, "MODEL USAGE");
    for (n, model) in usage.models.iter().take(most).enumerate() {
        if n > 0 {
            text.push_str(&format!("├{}┤\n", "─".repeat(WIDTH)));
        }
        text.push_str(&format!("│ {:<54} │\n", cut(&clean_line(&model.model), WIDTH - 2)));
        row(text, "  Messages", &grouped(model.messages));
        row(text, "  Input Tokens", &short(model.tokens.input));
        row(text, "  Output Tokens", &short(model.tokens.output.saturating_add(model.tokens.reasoning)));
        row(text, "  Cache Read", &short(model.tokens.cache_read));
        row(text, "  Cache Write", &short(model.tokens.cache_write));
        row(text, "  Cost", &format!("${:.4}", model.cost));
    }
    close(text);
}

fn tool_box(text: &mut String, usage: &Usage, most: usize) {
    let calls: u64 = usage.tools.iter().map(|(_, calls)| calls).sum();
    let highest = usage.tools.first().map_or(1, |(_, calls)| *calls).max(1);
    open(text, 22, "TOOL USAGE");
    for (tool, count) in usage.tools.iter().take(most) {
        let tool = cut(&clean_line(tool), TOOL_CHARS);
        let bar = "█".repeat(((*count as usize * BAR) / highest as usize).max(1));
        let share = *count as f64 * 100.0 / calls as f64;
        let line = format!(" {tool:<TOOL_CHARS$} {bar:<BAR$} {count:>3} ({share:>4.1}%)");
        text.push_str(&format!("│{line:<WIDTH$}│\n"));
    }
    close(text);
}

fn open(text: &mut String, left: usize, title: &str) {
    let line = "─".repeat(WIDTH);
    let title = format!("{}{title}", " ".repeat(left));
    text.push_str(&format!("┌{line}┐\n│{title:<WIDTH$}│\n├{line}┤\n"));
}

fn row(text: &mut String, name: &str, value: &str) {
    let room = WIDTH - 1 - name.chars().count();
    text.push_str(&format!("│{name}{value:>room$} │\n"));
}

fn close(text: &mut String) {
    text.push_str(&format!("└{}┘\n", "─".repeat(WIDTH)));
}

fn cut(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    text.chars().take(limit - 2).chain("..".chars()).collect()
}

fn median(each: &[u64]) -> u64 {
    match each {
        [] => 0,
        each if each.len() % 2 == 1 => each[each.len() / 2],
        each => each[each.len() / 2 - 1].midpoint(each[each.len() / 2]),
    }
}

/// `999`, `1.2K`, `3.4M`.
fn short(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{:.1}K", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shortened_or_grouped() {
        for (number, expected) in [(0, "0"), (999, "999"), (16_177, "16.2K"), (1_234_667, "1.2M")] {
            assert_eq!(short(number), expected);
        }
        for (number, expected) in [(0, "0"), (123, "123"), (1_234, "1,234"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), expected);
        }
    }

    #[test]
    fn the_median_is_the_middle_value() {
        for (each, expected) in [(&[][..], 0), (&[3], 3), (&[1, 5], 3), (&[1, 2, 9], 2)] {
            assert_eq!(median(each), expected);
        }
    }
}
