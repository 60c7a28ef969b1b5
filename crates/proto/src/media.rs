//! What kind of content a file has, by its name.

/// Endings of names, and the media types of such files. A model is shown them as they are; others are read as text, and
/// so are pictures that providers refuse: one that was sent would stay in the session and fail every later turn.
const KNOWN: [(&str, &str); 10] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("pdf", "application/pdf"),
    ("mp3", "audio/mpeg"),
    ("wav", "audio/wav"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
];

/// The media type of a file, by its path: text unless it is known to be something else, a directory if it ends so.
#[must_use]
pub fn media_type(path: &str) -> &'static str {
    if path.ends_with('/') {
        return "application/x-directory";
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let known = KNOWN.iter().find(|(known, _)| known.eq_ignore_ascii_case(ending));
    known.map_or("text/plain", |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_ending() {
        for (path, expected) in [
            ("/a/b.txt", "text/plain"),
            ("B.PNG", "image/png"),
            ("a.jpg", "image/jpeg"),
            ("a.bmp", "text/plain"),
            ("a.AVIF", "text/plain"),
            ("/a.png/b", "text/plain"),
            ("/a/b/", "application/x-directory"),
            ("/a/README", "text/plain"),
            ("/pdf", "text/plain"),
            ("x/y.pdf", "application/pdf"),
            ("", "text/plain"),
        ] {
            assert_eq!(media_type(path), expected, "{path}");
        }
    }
}
