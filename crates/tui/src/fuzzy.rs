//! Fuzzy matching of names.

/// Returns a score that is greater for a better match, or `None` if `name` does not contain the letters in order.
pub(crate) fn score(query: &str, name: &str) -> Option<i64> {
    if query.is_empty() {
        return Some(0);
    }
    let name: Vec<char> = name.chars().collect();
    let lower: Vec<char> = name.iter().map(|c| c.to_lowercase().next().unwrap_or(*c)).collect();
    let query: Vec<char> = query.chars().filter(|c| !c.is_whitespace()).collect();
    let query: Vec<char> = query.iter().map(|c| c.to_lowercase().next().unwrap_or(*c)).collect();
    if let Some(at) = find(&lower, &query) {
        let begins = at == 0 || !name[at - 1].is_alphanumeric();
        let bonus = if at == 0 {
            400
        } else if begins {
            200
        } else {
            0
        };
        return Some(1_000 + bonus - at as i64 - name.len() as i64 / 8);
    }
    let mut total = 0;
    let mut at = 0;
    let mut last = None;
    for letter in &query {
        let found = at + lower[at..].iter().position(|c| c == letter)?;
        let begins = found == 0 || !name[found - 1].is_alphanumeric();
        let follows = last == Some(found.wrapping_sub(1));
        total += if follows {
            30
        } else if begins {
            25
        } else {
            5
        };
        total -= (found - at) as i64;
        last = Some(found);
        at = found + 1;
    }
    Some(total - name.len() as i64 / 4)
}

fn find(name: &[char], query: &[char]) -> Option<usize> {
    (!query.is_empty() && query.len() <= name.len())
        .then(|| name.windows(query.len()).position(|window| window == query))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_matches_come_first() {
        let mut names = ["Compact session", "Switch session", "New session", "Session list", "Help"];
        names.sort_by_key(|name| std::cmp::Reverse(score("session", name)));
        assert_eq!(names[0], "Session list");
        assert_eq!(score("session", "Help"), None);
        assert!(score("sm", "Switch model") > score("sm", "Resume"));
        assert!(score("", "anything") == Some(0));
    }
}
