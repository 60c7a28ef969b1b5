//! What providers check of pictures: the type by content, the size, and how many there are.

use serde_json::Value;

use super::Problems;

/// The rules of one provider.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) types: &'static [&'static str],
    pub(crate) most: usize,
    /// The largest base64 text.
    pub(crate) most_chars: usize,
    pub(crate) most_pixels: u32,
    /// More pictures than this must be smaller.
    pub(crate) many: usize,
    pub(crate) most_pixels_of_many: u32,
}

/// The rules of most providers.
pub(crate) const USUAL: Rules = Rules {
    types: &["image/png", "image/jpeg", "image/gif", "image/webp"],
    most: 1500,
    most_chars: 28_000_000,
    most_pixels: 8000,
    many: usize::MAX,
    most_pixels_of_many: 8000,
};

/// The pictures of a request: their place, declared type and base64 text.
#[derive(Default)]
pub(crate) struct Pictures<'a>(Vec<(String, &'a str, &'a str)>);

impl<'a> Pictures<'a> {
    pub(crate) fn add(&mut self, at: &str, mime: &'a str, data: &'a str) {
        self.0.push((at.to_owned(), mime, data));
    }

    /// Adds the picture of a `data:` address. The provider downloads other addresses.
    pub(crate) fn add_address(&mut self, at: &str, url: &'a Value) {
        let Some(rest) = url.as_str().and_then(|url| url.strip_prefix("data:")) else { return };
        if let Some((mime, data)) = rest.split_once(";base64,") {
            self.add(at, mime, data);
        }
    }

    pub(crate) fn check(&self, rules: Rules, problems: &mut Problems) {
        if self.0.len() > rules.most {
            problems.add(format!(
                "there are {} pictures, and at most {} are allowed",
                self.0.len(),
                rules.most
            ));
        }
        for (at, mime, data) in &self.0 {
            if !rules.types.contains(mime) {
                problems.add(format!("{at} has the type `{mime}`"));
            }
            if data.len() > rules.most_chars {
                problems.add(format!("{at} has {} characters", data.len()));
            }
            let Some(bytes) = decoded(data) else {
                problems.add(format!("{at} is not base64"));
                continue;
            };
            match kind(&bytes) {
                Some(found) if found == *mime => {}
                Some(found) => problems.add(format!("{at} is declared as `{mime}` and is `{found}`")),
                None => problems.add(format!("{at} is no picture")),
            }
            let many = self.0.len() > rules.many;
            let most = if many { rules.most_pixels_of_many } else { rules.most_pixels };
            if let Some((width, height)) =
                size(&bytes).filter(|(width, height)| *width > most || *height > most)
            {
                problems.add(format!("{at} has {width} x {height} pixels, and at most {most} are allowed"));
            }
        }
    }
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}

fn kind(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Returns width and height of a PNG or a JPEG.
fn size(bytes: &[u8]) -> Option<(u32, u32)> {
    let four = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let two = |at: usize| Some(u32::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    if kind(bytes)? == "image/png" {
        return Some((four(16)?, four(20)?));
    }
    let mut at = 2;
    while kind(bytes)? == "image/jpeg" {
        let mark = *bytes.get(at + 1)?;
        if matches!(mark, 0xc0..=0xcf) && !matches!(mark, 0xc4 | 0xc8 | 0xcc) {
            return Some((two(at + 7)?, two(at + 5)?));
        }
        at += 2 + usize::try_from(two(at + 2)?).ok()?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(pictures: &[(&str, &str)], rules: Rules) -> Vec<String> {
        let (mut all, mut problems) = (Pictures::default(), Problems::default());
        pictures.iter().for_each(|(mime, data)| all.add("it", mime, data));
        all.check(rules, &mut problems);
        problems.into_list()
    }

    #[test]
    fn pictures_are_what_they_are_declared_as() {
        // A PNG of 3000 x 1 pixels, only its header.
        let png = "iVBORw0KGgoAAAANSUhEUgAAC7gAAAABCAAAAAA=";
        assert_eq!(problems(&[("image/png", png)], USUAL), [""; 0]);
        let small = Rules { most_pixels: 2000, ..USUAL };
        assert_eq!(
            problems(&[("image/png", png)], small),
            ["it has 3000 x 1 pixels, and at most 2000 are allowed"]
        );
        let many = Rules { many: 1, most_pixels_of_many: 2000, most: 1, ..USUAL };
        assert_eq!(problems(&[("image/png", png); 2], many).len(), 3);
        for (mime, data, expected) in [
            ("image/jpeg", png, "it is declared as `image/jpeg` and is `image/png`"),
            ("image/png", "AAAA", "it is no picture"),
            ("image/png", "", "it is no picture"),
            ("image/png", "a b", "it is not base64"),
        ] {
            assert_eq!(problems(&[(mime, data)], USUAL), [expected]);
        }
    }
}
