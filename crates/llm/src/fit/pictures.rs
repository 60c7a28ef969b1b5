//! Pictures within the limits of the provider and of the user.
//!
//! The type of a picture comes from its content. A picture that is too large is made smaller; what cannot be sent is
//! left out with a note for the model.

mod convert;

use std::sync::{LazyLock, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::aws::sign::sha256_hex;
use crate::protocol::rules::PictureRules;
use crate::{File, FileData, Message, Model, ToolResult, UserContent};
use convert::{Limit, convert, is_cut_short};

/// Limits of the converted pictures that are remembered, so that each is converted once.
const REMEMBERED: usize = 64;
const REMEMBERED_BYTES: usize = 64 * 1024 * 1024;
/// If there are too many pictures, this share of the limit is left out at once, so that the beginning of the next
/// requests stays the same.
const AT_ONCE: usize = 4;

/// Converts the files of a conversation.
pub(super) fn fit(messages: Vec<Message>, model: &Model, rules: &PictureRules) -> Vec<Message> {
    let cx = Cx { model, rules };
    let mut messages = each_file(messages, &mut |file| cx.file(file));
    let sizes = sizes(&messages);
    let excess = excess(&sizes, rules);
    let mut number = 0;
    if excess > 0 {
        messages = each_file(messages, &mut |file| {
            number += usize::from(is_inline_picture(&file));
            if is_inline_picture(&file) && number <= excess {
                return Err(note(&file, "the request has more pictures than this provider takes"));
            }
            Ok(file)
        });
    }
    messages
}

/// Replaces each file by another one or a note.
fn each_file(messages: Vec<Message>, convert: &mut dyn FnMut(File) -> Result<File, String>) -> Vec<Message> {
    let convert_result = |mut result: ToolResult, convert: &mut dyn FnMut(File) -> Result<File, String>| {
        for file in std::mem::take(&mut result.attachments) {
            match convert(file) {
                Ok(file) => result.attachments.push(file),
                Err(note) if result.output.trim().is_empty() => result.output = note,
                Err(note) => result.output = format!("{}\n\n{note}", result.output),
            }
        }
        result
    };
    let message = |message: Message| match message {
        Message::User(content) => Message::User(
            content
                .into_iter()
                .map(|part| match part {
                    UserContent::File(file) => match convert(file) {
                        Ok(file) => UserContent::File(file),
                        Err(note) => UserContent::Text(note),
                    },
                    text @ UserContent::Text(_) => text,
                })
                .collect(),
        ),
        Message::Tool(results) => {
            Message::Tool(results.into_iter().map(|result| convert_result(result, convert)).collect())
        }
        assistant @ Message::Assistant(_) => assistant,
    };
    messages.into_iter().map(message).collect()
}

fn is_inline_picture(file: &File) -> bool {
    file.mime.starts_with("image/") && matches!(file.data, FileData::Base64(_))
}

/// Returns the sizes of all inline pictures in order.
fn sizes(messages: &[Message]) -> Vec<usize> {
    let mut sizes = Vec::new();
    let mut add = |file: &File| {
        if let (true, FileData::Base64(data)) = (is_inline_picture(file), &file.data) {
            sizes.push(data.len());
        }
    };
    for message in messages {
        match message {
            Message::User(content) => content.iter().for_each(|part| {
                if let UserContent::File(file) = part {
                    add(file);
                }
            }),
            Message::Tool(results) => {
                results.iter().flat_map(|result| &result.attachments).for_each(&mut add);
            }
            Message::Assistant(_) => {}
        }
    }
    sizes
}

/// Returns how many of the first pictures are left out.
fn excess(sizes: &[usize], rules: &PictureRules) -> usize {
    let fits = |count: usize| {
        let rest = &sizes[count..];
        rest.len() <= rules.most && rest.iter().sum::<usize>() <= rules.most_bytes_in_all
    };
    let step = (rules.most / AT_ONCE).max(1);
    let mut count = 0;
    while count < sizes.len() && !fits(count) {
        count = (count + step).min(sizes.len());
    }
    // The newest picture is the one that the user speaks of.
    if count == sizes.len() && sizes.last().is_some_and(|last| *last <= rules.most_bytes_in_all) {
        count -= 1;
    }
    count
}

/// Returns the note for a file that is left out.
fn note(file: &File, reason: &str) -> String {
    let name = file.filename.as_deref().unwrap_or("a file");
    format!("[{name} ({}) is left out: {reason}. Say so to the user.]", file.mime)
}

struct Cx<'a> {
    model: &'a Model,
    rules: &'a PictureRules,
}

impl Cx<'_> {
    /// Returns a file that the provider accepts, or a note.
    fn file(&self, file: File) -> Result<File, String> {
        let file = inlined(file);
        let data = match &file.data {
            FileData::Base64(data) => data,
            FileData::Url(url) if has_web_scheme(url) => return Ok(file),
            FileData::Url(_) => return Err(note(&file, "its address cannot be read by the provider")),
        };
        let data: String = data.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        let Ok(bytes) = STANDARD.decode(&data) else {
            return Err(note(&file, "its content is damaged"));
        };
        if bytes.is_empty() {
            return Err(note(&file, "it is empty"));
        }
        let found = media_type(&bytes);
        let is_picture = found.is_some_and(|mime| mime.starts_with("image/"));
        if is_picture {
            let mime = found.unwrap_or_default().to_owned();
            return self.picture(File { mime, data: FileData::Base64(data), ..file }, bytes);
        }
        if file.mime.starts_with("image/") {
            return not_a_picture(file, bytes);
        }
        if file.mime == "application/pdf" && found != Some("application/pdf") {
            return Err(note(&file, "it is not a PDF document"));
        }
        Ok(File { data: FileData::Base64(data), ..file })
    }

    /// Returns a picture within the limits.
    fn picture(&self, file: File, bytes: Vec<u8>) -> Result<File, String> {
        if !self.model.capabilities.input.image {
            return Ok(file);
        }
        let own = self.model.pictures;
        let limit = Limit {
            width: own.width.min(self.rules.most_pixels),
            height: own.height.min(self.rules.most_pixels),
            base64_bytes: own.base64_bytes.min(self.rules.most_base64_bytes),
            types: self.rules.types,
        };
        let FileData::Base64(data) = &file.data else { return Ok(file) };
        if is_cut_short(&bytes) {
            return Err(note(&file, "its content is damaged: it ends too early"));
        }
        if limit.holds(&file.mime, data.len(), &bytes) {
            return Ok(file);
        }
        if !own.resize && self.rules.types.contains(&file.mime.as_str()) {
            return Err(note(&file, "it is larger than the configuration allows"));
        }
        match remembered(data, &limit, bytes) {
            Some((mime, data)) => Ok(File { mime, data: FileData::Base64(data), ..file }),
            None => Err(note(&file, "it is too large or damaged, and could not be made smaller")),
        }
    }
}

/// Returns a file whose `data:` address became its content.
fn inlined(file: File) -> File {
    let FileData::Url(url) = &file.data else { return file };
    let Some((head, body)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(',')) else {
        return file;
    };
    let body: Vec<u8> = percent_encoding::percent_decode_str(body).collect();
    let data = if head.to_ascii_lowercase().ends_with(";base64") {
        String::from_utf8_lossy(&body).into_owned()
    } else {
        STANDARD.encode(body)
    };
    File { data: FileData::Base64(data), ..file }
}

/// Providers download from the web and from the stores of their clouds.
fn has_web_scheme(url: &str) -> bool {
    ["https://", "http://", "s3://", "gs://"].iter().any(|scheme| url.starts_with(scheme))
}

/// Returns a vector graphic as the text that it is, and a note for anything else.
fn not_a_picture(file: File, bytes: Vec<u8>) -> Result<File, String> {
    let is_vector = file.mime.starts_with("image/svg");
    if is_vector && std::str::from_utf8(&bytes).is_ok() {
        return Ok(File {
            mime: "text/plain".to_owned(),
            data: FileData::Base64(STANDARD.encode(bytes)),
            ..file
        });
    }
    Err(note(&file, "its content is no picture that can be read"))
}

/// Returns the media type of the content of a picture or a PDF document, by its first bytes.
#[must_use]
pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
    let starts = |magic: &[u8]| bytes.starts_with(magic);
    let brand = || bytes.get(4..12).filter(|head| head.starts_with(b"ftyp")).map(|head| &head[4..]);
    Some(match () {
        () if starts(b"\x89PNG\r\n\x1a\n") => "image/png",
        () if starts(b"\xff\xd8\xff") => "image/jpeg",
        () if starts(b"GIF87a") || starts(b"GIF89a") => "image/gif",
        () if starts(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") => "image/webp",
        // Text may begin with these letters. The header of a picture has a small size after them.
        () if starts(b"BM") && bytes.len() > 26 && bytes[15..18] == [0, 0, 0] => "image/bmp",
        () if starts(b"II*\0") || starts(b"MM\0*") => "image/tiff",
        () if matches!(brand(), Some(b"avif" | b"avis")) => "image/avif",
        () if matches!(brand(), Some(b"heic" | b"heix" | b"hevc")) => "image/heic",
        () if matches!(brand(), Some(b"mif1" | b"msf1" | b"heif")) => "image/heif",
        () if bytes.get(..1024.min(bytes.len())).is_some_and(has_pdf_mark) => "application/pdf",
        () => return None,
    })
}

fn has_pdf_mark(head: &[u8]) -> bool {
    head.windows(5).any(|window| window == b"%PDF-")
}

/// A converted picture: its media type and its content in base64.
type Converted = Option<(String, String)>;

/// Converts a picture, or returns the result of the last time.
fn remembered(data: &str, limit: &Limit, bytes: Vec<u8>) -> Converted {
    static KNOWN: LazyLock<Mutex<Vec<(String, Converted)>>> = LazyLock::new(Mutex::default);
    let key = format!("{} {limit:?}", sha256_hex(data.as_bytes()));
    let lock = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, converted)) = lock().iter().find(|(known, _)| *known == key) {
        return converted.clone();
    }
    let converted = convert(bytes, limit).map(|(mime, bytes)| (mime.to_owned(), STANDARD.encode(bytes)));
    let mut known = lock();
    known.push((key, converted.clone()));
    let size = |(_, converted): &(String, Converted)| converted.as_ref().map_or(0, |(_, data)| data.len());
    while known.len() > REMEMBERED || known.iter().map(size).sum::<usize>() > REMEMBERED_BYTES {
        known.remove(0);
    }
    converted
}

#[cfg(test)]
mod tests;
