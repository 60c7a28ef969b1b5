//! The system text, block by block. The order in `system` is the order the model sees.
//!
//! What never changes comes first and what changes daily comes late, so that
//! providers can keep the beginning of every request in their caches.

use std::path::Path;

use super::instructions::Instruction;
use crate::run::structured;

/// What the blocks are made of.
pub(crate) struct Facts<'a> {
    /// The agent's own prompt, or that of the model's family.
    pub(crate) base: &'a str,
    pub(crate) model_name: &'a str,
    /// `provider/model`.
    pub(crate) model_id: String,
    pub(crate) directory: &'a Path,
    pub(crate) worktree: &'a Path,
    pub(crate) is_git: bool,
    /// When the conversation began, in milliseconds since 1970.
    pub(crate) began_ms: u64,
    pub(crate) instructions: &'a [Instruction],
    /// Whether the answer is a value that is handed in.
    pub(crate) structured: bool,
    /// System text of the prompt itself.
    pub(crate) user: Option<&'a str>,
}

/// Puts the system text together.
pub(crate) fn system(facts: &Facts<'_>) -> String {
    let mut blocks = vec![facts.base.trim_end().to_owned()];
    blocks.push(format!("The model answering is {}, known here as {}.", facts.model_name, facts.model_id));
    blocks.push(environment(facts));
    if !facts.instructions.is_empty() {
        let files = facts.instructions.iter();
        let texts = files.map(|file| format!("Instructions from: {}\n{}", file.origin, file.text.trim_end()));
        blocks.push(texts.collect::<Vec<_>>().join("\n\n"));
    }
    blocks.extend(facts.structured.then(|| structured::INSTRUCTION.to_owned()));
    blocks.extend(facts.user.filter(|text| !text.trim().is_empty()).map(str::to_owned));
    blocks.join("\n")
}

fn environment(facts: &Facts<'_>) -> String {
    let git = if facts.is_git { "yes" } else { "no" };
    format!(
        "Where you are working:\n<env>\n  Working directory: {}\n  Workspace root folder: {}\n  Is directory a git \
         repo: {git}\n  Platform: {}\n  Today's date: {}\n</env>",
        facts.directory.display(),
        facts.worktree.display(),
        std::env::consts::OS,
        date(facts.began_ms),
    )
}

/// `Sat Nov 21 2026`: the shape in which existing prompts give the day, in UTC.
pub(crate) fn date(now_ms: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (year, month, day) = civil(now_ms);
    let weekday = DAYS[(now_ms / 86_400_000 % 7) as usize];
    format!("{weekday} {} {day:02} {year}", MONTHS[month as usize - 1])
}

/// Year, month and day of a moment, by Howard Hinnant's `civil_from_days`.
pub(crate) fn civil(now_ms: u64) -> (u64, u64, u64) {
    let days = now_ms / 86_400_000 + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_day_is_written_as_existing_prompts_write_it() {
        assert_eq!(date(1_795_293_417_297), "Sat Nov 21 2026");
        assert_eq!(date(0), "Thu Jan 01 1970");
        assert_eq!(date(951_782_400_000), "Tue Feb 29 2000");
        assert_eq!(date(1_735_689_599_999), "Tue Dec 31 2024");
    }

    #[test]
    fn blocks_stand_in_order_and_the_changing_ones_late() {
        let instructions = vec![Instruction { origin: "/p/AGENTS.md".into(), text: "Use tabs.\n".into() }];
        let text = system(&Facts {
            base: "AGENT\n",
            model_name: "Plain",
            model_id: "mock/plain".into(),
            directory: Path::new("/p/sub"),
            worktree: Path::new("/p"),
            is_git: true,
            began_ms: 0,
            instructions: &instructions,
            structured: true,
            user: Some("LAST"),
        });
        let places: Vec<_> = [
            "AGENT",
            "mock/plain",
            "<env>",
            "/p/sub",
            "Thu Jan",
            "Instructions from: /p/AGENTS.md",
            "Use tabs.",
            "LAST",
        ]
        .iter()
        .map(|marker| text.find(marker).unwrap_or_else(|| panic!("{marker} is missing in {text}")))
        .collect();
        assert!(places.is_sorted(), "{text}");
    }
}
