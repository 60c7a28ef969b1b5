//! The media type of a file, derived from its name.

/// File extensions and their media types. Models receive such files unchanged; all other files are read as text. Image
/// formats that providers reject are missing on purpose: such an image would stay in the session and fail every later
/// turn.
const MEDIA_TYPES: [(&str, &str); 10] = [
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

/// Returns the media type of a path: `text/plain` for unknown extensions, a directory type if the path ends with `/`.
#[must_use]
pub fn media_type(path: &str) -> &'static str {
    if path.ends_with('/') {
        return "application/x-directory";
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let entry = MEDIA_TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(extension));
    entry.map_or("text/plain", |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_decides_the_media_type() {
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
